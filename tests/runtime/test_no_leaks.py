"""Nothing is left in memory of sessions that were started and deleted."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest

from tests.support.world import World
from weft.actors.hub import MOST_WEIGHT
from weft.app import App
from weft.events import ToolOutput
from weft.ids import CallUid
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.runtime.decisions import decision_book

pytestmark = pytest.mark.anyio


async def live_and_go(app: App, count: int) -> None:
    """Start sessions, with tools of a program's own, let them work, and delete them."""

    def probe(number: int) -> str:
        """Tell the number."""
        return str(number)

    for _ in range(count):
        session = await app.sessions.start_session(tools=["all", probe], auto_approve=True)
        reply = await session.send_message("go", tools=["read", "probe"])
        assert reply.tool_calls_made == 2
        await app.sessions.delete_session(session.id)


def held() -> Counter[str]:
    """How many objects of ours there are, by their class."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(f"{k.__module__}.{k.__qualname__}" for k in kinds if _is_ours(k))


def _is_ours(kind: type) -> bool:
    return str(getattr(kind, "__module__", "")).startswith("weft.")


async def test_a_deleted_session_leaves_no_object_behind(tmp_path: Path) -> None:
    world = World("sqlite", tmp_path)
    world.write("a", "text of a")
    calls: list[CallTool | str] = [
        CallTool(name="read", args={"path": "a"}),
        CallTool(name="probe", args={"number": 1}),
        "done",
    ]
    model = ScriptedModel(calls * 12, keep_requests=0)
    async with world.open(model) as app:
        await live_and_go(app, 2)
        before = held()
        await live_and_go(app, 10)
        grown = held() - before
    # A few belong to work that ends with the next turn of the event loop.
    assert {kind: count for kind, count in grown.items() if count >= 10} == {}


async def lead_and_delete(app: App, count: int) -> None:
    """Lead sessions through what leaves something in their project, and delete them."""
    for _ in range(count):
        session = await app.sessions.start_session(tools=["read", "write"], auto_approve=True)
        for _ in range(2):
            await session.send_message("go")
        await session.rewind(0)
        await session.undo_rewind()
        await session.rewind(0)
        async with await session.subscribe(after=0) as events:
            await anext(events)
        await app.host.unload_idle(0)
        await session.send_message("on")
        await app.sessions.delete_session(session.id)


async def test_sessions_that_are_rewound_and_deleted_leave_as_many_objects_as_a_few_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempts that a project keeps of them are on its stream; of those, few are in memory."""
    monkeypatch.setattr(decision_book, "MOST_NOTED", 3)
    world = World("sqlite", tmp_path)
    calls: list[CallTool | str] = [
        *(CallTool(name="write", args={"path": "a", "content": "one"}), "done"),
        *(CallTool(name="write", args={"path": "a", "content": "two"}), "done", "well"),
    ]
    async with world.open(ScriptedModel(calls * 25, keep_requests=0)) as app:
        await lead_and_delete(app, 5)
        before = held()
        await lead_and_delete(app, 20)
        grown = held() - before
        assert len(await app.decisions.nodes()) == 25
    # A few belong to work that ends with the next turn of the event loop.
    assert {kind: count for kind, count in grown.items() if count >= 10} == {}
    assert {kind: count for kind, count in grown.items() if ".decisions." in kind} == {}


async def test_a_stopped_session_comes_back_with_the_tools_that_it_was_started_with(
    plain_world: World,
) -> None:
    """What is kept of a session that may come back is what could give it more than it had."""
    model = ScriptedModel(["one", "two"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session(tools=["read"], auto_approve=True)
        await session.send_message("go")
        await session.stop()
        await session.send_message("on")
    first, second = (sorted(tool.name for tool in each.tools) for each in model.requests)
    assert first == second == ["read"]


async def test_live_output_that_is_not_read_weighs_what_it_weighs(plain_world: World) -> None:
    """A subscriber that does not read must not hold hundreds of megabytes of a command's output."""
    async with plain_world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        events = await session.subscribe()
        log = (await app.host.local_port(session.id)).actor.log
        for _ in range(100):
            log.signal(ToolOutput(call_uid=CallUid("c"), chunk="x" * 1_000_000))
        await session.stop()
        kept = [len(event.chunk) async for event in events if isinstance(event, ToolOutput)]
    assert sum(kept) <= MOST_WEIGHT
