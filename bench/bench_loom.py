"""Text trees: what a large one costs its views, and what a token of 64 branches costs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from statistics import median

import weft
from bench.logs import stamped, write_facts
from bench.scenes import run as run_async
from bench.table import Row
from weft.app import App
from weft.events import Fact, NewMessage, SessionCreated, TextDelta, TokenReceived
from weft.ids import NodeId, SessionId
from weft.loom.trees.tree_edits import text_node
from weft.providers import ModelInfo, ModelRequest, StreamEvent, StreamFinished, TextPiece
from weft.store.sqlite import open_sqlite

NODES = 100_000
DEEPEST = 2_491
BRANCHES = 64
TOKENS = 300
PACE_SECONDS = 0.01
REPEATS = 20
GROWN = SessionId("ses_grown")
ROOT, TIP = NodeId(f"nod_{0:026}"), NodeId(f"nod_{DEEPEST - 1:026}")


class PacedModel:
    """A hundred tokens a second, and nothing else: its own cost is measured and taken off."""

    def __init__(self) -> None:
        self.info = ModelInfo(provider="paced", name="m", price_input=1.0, price_output=1.0)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """Play the answer."""
        yield self._pieces()

    async def _pieces(self) -> AsyncIterator[StreamEvent]:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for number in range(TOKENS):
            due += PACE_SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))
            yield TextPiece(f" word{number % 97}")
        yield StreamFinished()


def _grown() -> Iterator[Fact]:
    """A tree with one deep line, and branches everywhere."""
    dice = Random(1)
    yield SessionCreated(project_path="/", title="Grown", settings={"mode": "loom"})
    for number in range(NODES):
        above = number - 1 if number < DEEPEST else dice.randrange(number)
        node = text_node(
            NodeId(f"nod_{number:026}"),
            f" branch {number} that goes on for a while",
            parent=None if not number else NodeId(f"nod_{above:026}"),
            model="paced:m",
            strategy="system",
            max_tokens=40,
            temperature=0.9,
        )
        yield NewMessage(node=node, advance=not number)


def _typical(work: Callable[[], object]) -> float:
    """Milliseconds of processor time, the median of several."""
    work()
    times: list[float] = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return median(times) * 1000


async def _views(app: App) -> list[Row]:
    began = time.process_time()
    await app.loom.open(GROWN)
    view = await app.loom.open(TIP)
    opened = (time.process_time() - began) * 1000
    tree = view.loom_tree
    view.get_state()

    def walk() -> None:
        view.navigate_parent()
        view.navigate_child()

    rows = [
        Row("loom: open, 100,000 nodes", opened, "ms"),
        Row("loom: there and back", _typical(walk), "ms", limit=5.0),
        Row("loom: a line of 2,491", _typical(lambda: tree.line(TIP)), "ms", limit=5.0),
        Row("loom: descendants", _typical(lambda: tree.descendant_count(ROOT)), "ms", limit=5.0),
        Row("loom: hidden", _typical(lambda: tree.find(TIP)), "ms", limit=5.0),
    ]
    await view.aclose()
    return rows


async def _bare() -> float:
    """What the model itself costs."""
    model = PacedModel()

    async def one() -> None:
        async with model.stream(ModelRequest(model="m", messages=())) as events:
            async for _ in events:
                pass

    began = time.process_time()
    await asyncio.gather(*(one() for _ in range(BRANCHES)))
    return time.process_time() - began


async def _tokens(app: App) -> Row:
    bare = await _bare()
    root = await app.loom.create_root("Once upon a time")
    view = await app.loom.open(root.id)
    view.set_model(PacedModel())
    view.set_max_tokens(8_000)
    view.set_n_branches(BRANCHES)
    session = await app.sessions.get(await app.loom.session_of(root.id))
    events = await session.subscribe()
    seen = 0

    async def watch() -> None:
        nonlocal seen
        async for event in events:
            seen += isinstance(event, TextDelta)

    watcher = asyncio.create_task(watch())
    began, came = time.process_time(), 0
    async for event in view.generate():
        came += isinstance(event, TokenReceived)
    spent = time.process_time() - began - bare
    watcher.cancel()
    assert came == seen, "every token is seen once"
    return Row("loom: a token of 64 branches", spent / came * 1e6, "us", limit=60.0)


async def _measured() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weft.db"
        async with await open_sqlite(path) as store:
            await write_facts(store, GROWN, stamped(GROWN, _grown()))
        async with weft.open(folder, path, {"sandbox.mode": "off"}) as app:
            # The first opening folds the log and keeps a snapshot; the second one reads it.
            await app.loom.session_of(GROWN)
        async with weft.open(folder, path, {"sandbox.mode": "off"}) as app:
            return [*await _views(app), await _tokens(app)]


def run() -> list[Row]:
    """Views of a large tree, and tokens."""
    return run_async(_measured)
