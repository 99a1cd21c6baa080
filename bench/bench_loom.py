"""Text trees: what a large one costs its views, and what a token of 64 branches costs."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage
from statistics import median

import weft
from bench.logs import stamped, write_facts
from bench.scenes import run as run_async
from bench.table import Row
from weft.app import App
from weft.events import (
    Fact,
    NewMessage,
    SessionCreated,
    TextDelta,
    TokenReceived,
    UsageRecorded,
)
from weft.ids import NodeId, SessionId
from weft.loom.trees.tree_edits import text_node
from weft.messages import Usage
from weft.providers import ModelInfo, ModelRequest, StreamEvent, StreamFinished, TextPiece
from weft.store.sqlite import open_sqlite

NODES = 100_000
DEEPEST = 2_491
BRANCHES = 64
TOKENS = 300
PACE_SECONDS = 0.01
REPEATS = 20
RUNS = 5
GROWN = SessionId("ses_grown")
ROOT, TIP = NodeId(f"nod_{0:026}"), NodeId(f"nod_{DEEPEST - 1:026}")
MIDDLE, FAR, FARTHER, FARTHEST = (
    NodeId(f"nod_{number:026}") for number in (50_000, 60_000, 70_000, 99_999)
)


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
        used = Usage(input_tokens=100, output_tokens=40, cost_usd=0.001)
        yield UsageRecorded(usage=used, model="paced:m", purpose="branch", node=node.id)


def _spent(work: Callable[[], object]) -> float:
    """Milliseconds of processor time."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def _typical(work: Callable[[], object]) -> float:
    """The median of several."""
    work()
    return median(_spent(work) for _ in range(REPEATS))


async def _first_touches(folder: Path) -> dict[str, float]:
    """What a process pays that has not seen the tree before."""
    async with _opened(folder) as app:
        warm = await app.loom.open((await app.loom.create_root("warm")).id)
        warm.get_state()
        began = time.process_time()
        view = await app.loom.open(TIP)
        spent = {"open": (time.process_time() - began) * 1000}
        tree = view.loom_tree
        spent["state at the tip of 2,491"] = _spent(view.get_state)
        spent["state in the middle"] = _spent(lambda: view.checkout(MIDDLE))
        spent["line"] = _spent(lambda: tree.line(FAR))
        spent["children"] = _spent(lambda: tree.children(FARTHER))
        spent["descendants"] = _spent(lambda: tree.descendant_count(FARTHER))
        spent["hidden"] = _spent(lambda: tree.find(FARTHEST))
        began = time.process_time()
        await app.loom.search("while goes")
        spent["search for words of all nodes"] = (time.process_time() - began) * 1000
        await view.aclose()
        return spent


async def _views(folder: Path, when: str) -> list[Row]:
    runs = [await _first_touches(folder) for _ in range(RUNS)]
    rows = [
        Row(f"loom: {name}, first{when}", median(run[name] for run in runs), "ms", limit=50.0)
        for name in runs[0]
    ]
    async with _opened(folder) as app:
        view = await app.loom.open(TIP)
        tree = view.loom_tree
        view.get_state()

        def walk() -> None:
            view.navigate_parent()
            view.navigate_child()

        work: dict[str, Callable[[], object]] = {
            "there and back": walk,
            "a line of 2,491": lambda: tree.line(TIP),
            "children": lambda: tree.children(ROOT),
            "descendants": lambda: tree.descendant_count(ROOT),
            "hidden": lambda: tree.find(TIP),
        }
        rows += [
            Row(f"loom: {name}{when}", _typical(each), "ms", limit=5.0)
            for name, each in work.items()
        ]
        await view.aclose()
    return rows


async def _delete_much(folder: Path) -> None:
    """Delete some subtrees, and restore one of them."""
    async with _opened(folder) as app:
        tree = (await app.loom.open(ROOT)).loom_tree
        halfway = NodeId(f"nod_{DEEPEST // 2:026}")
        for node in (*tree.children(ROOT)[1:], *tree.children(halfway)[1:], MIDDLE):
            await app.loom.delete_subtree(node)
        await app.loom.restore_subtree(MIDDLE)


def _opened(folder: Path) -> App:
    return weft.open(folder, folder / "weft.db", {"sandbox.mode": "off"})


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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with await open_sqlite(folder / "weft.db") as store:
            await write_facts(store, GROWN, stamped(GROWN, _grown()), mode="loom", is_searched=True)
        async with _opened(folder) as app:
            # The first opening folds the log and keeps a snapshot; the next one reads it.
            await app.loom.open(GROWN)
        rows = await _views(folder, "")
        await _delete_much(folder)
        rows += await _views(folder, ", after deletions")
        most = getrusage(RUSAGE_SELF).ru_maxrss / 1024
        rows.append(Row("loom: memory of all this at most", most, "MB", limit=300.0))
        async with _opened(folder) as app:
            return [*rows, await _tokens(app)]


def run() -> list[Row]:
    """Views of a large tree, and tokens."""
    return run_async(_measured)
