"""Reading events: with a cursor, without gap or repeat, and at no cost to the session."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from tests.support.example_count import cases
from tests.support.idle_loop import all_tasks_blocked
from tests.support.world import PATIENCE, World, crash, facts, running, until_idle
from weft.api.session import Session
from weft.events import (
    ContextUsage,
    Event,
    FactBase,
    NewMessage,
    SessionCreated,
    SessionRestarted,
    SessionStatus,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    ToolComplete,
    TurnFinished,
    TurnStarted,
)
from weft.providers.script import CallTool, SayText, Stall, Think
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore

pytestmark = pytest.mark.anyio


async def read_to_end(
    session: Session, *, after: int | None = None, live: bool = True
) -> list[Event]:
    """Every event up to the end of what is stored now."""
    end = (await session.editor_snapshot()).seq
    found: list[Event] = []
    async with await session.subscribe(after=after, live=live) as events:
        while events.cursor < end:
            found.append(await anext(events))
    return found


async def test_a_turn_is_reported_live_as_it_happens(world: World) -> None:
    world.write("a", "text")
    model = ScriptedModel(
        [
            (
                Think(text="hm", signature="s"),
                SayText(text="Let me look.", chunk=4),
                CallTool(name="read", args={"path": "a"}),
            ),
            "It says text.",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        seen: list[Event] = []
        async with await session.subscribe() as events, running():
            await session.send_message("go")
            while not isinstance(seen[-1] if seen else None, TurnFinished):
                seen.append(await anext(events))
    kinds = [type(event) for event in seen]
    for kind in (ThinkingDelta, TextDelta, ToolArgsDelta, ContextUsage, SessionStatus):
        assert kind in kinds
    deltas = [event for event in seen if isinstance(event, TextDelta)]
    first = [delta for delta in deltas if delta.node_id == deltas[0].node_id]
    assert "".join(delta.text for delta in first) == "Let me look."
    assert [delta.offset for delta in first] == [0, 4, 8]
    node_ids = [event.node.id for event in seen if isinstance(event, NewMessage)]
    assert deltas[0].node_id in node_ids
    assert kinds.index(TextDelta) < kinds.index(ToolComplete)
    durable = [event for event in seen if isinstance(event, FactBase)]
    assert [event.seq for event in durable] == list(
        range(durable[0].seq, durable[0].seq + len(durable))
    )
    for event in seen:
        assert event.session_id == session.id
        if not isinstance(event, FactBase):
            assert event.after_seq >= durable[0].seq - 1  # type: ignore[union-attr]


@pytest.mark.requirement("session:subscribe")
async def test_a_cursor_replays_what_was_missed_and_then_follows(world: World) -> None:
    model = ScriptedModel(["one", (Stall(gate="g"), SayText(text="two"))])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        async with await session.subscribe(after=0) as events, running():
            first = await anext(events)
            assert isinstance(first, SessionCreated)
            seen = [first.seq]
            await session.send_prompt("b")
            await model.gate("g").reached.wait()
            model.gate("g").opened.set()
            finished = 0
            while finished < 2:
                event = await anext(events)
                seen += [event.seq] if isinstance(event, FactBase) else []
                finished += isinstance(event, TurnFinished)
        assert seen == list(range(1, seen[-1] + 1))


@pytest.mark.requirement("session:subscribe")
async def test_a_reader_that_comes_back_with_its_cursor_misses_nothing(world: World) -> None:
    model = ScriptedModel(["one", "two", "three"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_message("a")
        events = await session.subscribe(after=0, live=False)
        seen = [(await anext(events)).seq, (await anext(events)).seq]  # type: ignore[union-attr]
        cursor = events.cursor
        events.close()
        await session.send_message("b")
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        seen += [each.seq for each in await read_to_end(session, after=cursor, live=False)]  # type: ignore[union-attr]
        assert seen == list(range(1, len(seen) + 1))


async def test_without_a_cursor_only_what_comes_is_reported(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        async with await session.subscribe() as events, running():
            await session.send_message("b")
            first = await anext(events)
            while not isinstance(first, FactBase):
                first = await anext(events)
            assert isinstance(first, NewMessage)
            assert first.node.text == "b"


async def test_a_reader_of_facts_alone_gets_no_live_event_and_ends_with_the_log(
    world: World,
) -> None:
    async with world.open(ScriptedModel([SayText(text="abcdef", chunk=1), Stall()])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        for status in ("idle", "thinking"):
            with anyio.fail_after(PATIENCE):
                events = await session.subscribe(after=0, live=False)
                seen = [event async for event in events]
            assert all(isinstance(event, FactBase) for event in seen)
            assert events.cursor == len(seen) == (await session.editor_snapshot()).seq
            assert not events.is_open, "a reader that is done does not keep the session loaded"
            assert await session.get_status() == status
            if status == "idle":
                await session.send_prompt("b")


async def test_a_reader_of_facts_alone_gets_what_is_appended_while_it_reads(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        async with await session.subscribe(after=0, live=False) as events, running():
            seen = [await anext(events)]
            await session.send_message("b")
            seen += [event async for event in events]
        assert len(seen) == (await session.editor_snapshot()).seq


@pytest.mark.requirement("session:subscribe:break")
async def test_leaving_the_loop_is_safe_and_frees_the_reader(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("a")
        async for event in await session.subscribe(after=0):
            if isinstance(event, TurnStarted):
                break
        await until_idle(session)
        assert (await session.send_message("b")).text == "two"
        assert await app.sessions.unload_idle(0) == 1


def keep_old_objects_out_of_collections() -> None:
    """Keep the garbage collector to what is made from here on.

    It goes through everything that lives at each of its runs, and here it runs thousands of times:
    with the modules of the whole suite loaded, that took the test over a minute.
    """
    gc.collect()
    # Never undone: `gc.unfreeze` would also release what was frozen when collecting ended.
    gc.freeze()


@contextmanager
def collecting_after(allocations: int) -> Iterator[None]:
    """Let the garbage collector run once so many objects have been made."""
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(allocations, 1, 1)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def abandon_in_a_cycle(session: Session, readers: int) -> None:
    """Subscribe, and let go of the subscriptions so that only the garbage collector finds them."""
    cycle: list[object] = [await session.subscribe() for _ in range(readers)]
    cycle.append(cycle)


async def test_readers_that_are_collected_while_a_fact_is_published_do_no_harm(
    world: World,
) -> None:
    """Publishing to fifty readers makes fifty objects: in steps of 25 the collector meets every
    publication of the turn; the inner loop takes some of the steps.
    """
    steps = cases(range(25, 1500, 25))
    keep_old_objects_out_of_collections()
    async with world.open(ScriptedModel(["yes"] * len(steps))) as app:
        session = await app.sessions.start_session()
        for allocations in steps:
            with collecting_after(allocations):
                await abandon_in_a_cycle(session, 50)
                await session.send_message("go on")
        assert await facts(session, SessionRestarted) == []
        gc.collect()
        assert await app.sessions.unload_idle(0) == 1


@pytest.mark.requirement("session:unsubscribe")
async def test_unsubscribing_ends_the_iteration(world: World) -> None:
    async with world.open() as app:
        session = await app.sessions.start_session()
        seen: list[Event] = []

        async def read() -> None:
            seen.extend([event async for event in await session.subscribe(after=0)])

        async with running(read):
            await all_tasks_blocked()
            await session.unsubscribe()
        assert len(seen) == 1
        await session.unsubscribe()


async def test_stopping_the_session_ends_its_readers(world: World) -> None:
    async with world.open() as app:
        session = await app.sessions.start_session()

        async def read() -> None:
            async for _ in await session.subscribe():
                pass

        async with running(read):
            await all_tasks_blocked()
            await session.stop()


@pytest.mark.requirement("session:subscribe:slow")
async def test_a_reader_that_never_reads_slows_nothing_and_misses_nothing(world: World) -> None:
    model = ScriptedModel([SayText(text="x" * 3_000, chunk=1), "two"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        stalled = await session.subscribe(after=0)
        with anyio.fail_after(10):
            await session.send_message("a")
            await session.send_message("b")
        end = (await session.editor_snapshot()).seq
        seqs: list[int] = []
        with anyio.fail_after(5):
            while stalled.cursor < end:
                event = await anext(stalled)
                if isinstance(event, FactBase):
                    seqs.append(event.seq)
        assert seqs == list(range(1, end + 1))


class Slow(MemoryStore):
    """A store that tells its writer late: what was appended can be read before."""

    def __init__(self) -> None:
        super().__init__()
        self.appended = anyio.Event()
        self.tells = anyio.Event()
        self.tells.set()

    async def append(self, *appends: Append) -> None:
        await super().append(*appends)
        self.appended.set()
        await self.tells.wait()


async def test_no_subscriber_hears_of_a_fact_before_the_session_has_it(plain_world: World) -> None:
    """A reader that comes with a cursor reads the log, and must not be ahead of what the session
    answers.
    """
    store = Slow()
    async with plain_world.open(ScriptedModel(["one"]), store=store) as app:
        session = await app.sessions.start_session()
        store.appended, store.tells = anyio.Event(), anyio.Event()
        heard: list[int] = []

        async def read() -> None:
            async with await session.subscribe(after=0) as events:
                async for event in events:
                    if not isinstance(event, FactBase):
                        continue
                    assert event.seq <= (await session.editor_snapshot()).seq
                    heard.append(event.seq)
                    if isinstance(event, TurnFinished):
                        return

        async with running(lambda: session.send_prompt("a")):
            await store.appended.wait()
            async with running(read):
                await all_tasks_blocked()
                assert heard == [1]
                store.tells.set()
        assert heard == list(range(1, len(heard) + 1))


async def test_two_readers_see_the_same(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        other = await app.sessions.get(session.id)
        await session.send_message("a")
        assert await read_to_end(session, after=0) == await read_to_end(other, after=0)


@pytest.mark.requirement("session:editor_snapshot")
async def test_a_snapshot_and_its_cursor_are_enough_to_draw_a_screen(world: World) -> None:
    """Text in flight is in the snapshot; events after its `seq` bring it on, without a gap."""
    model = ScriptedModel(
        [(SayText(text="Hello "), Stall(gate="g"), SayText(text="world"), Stall(gate="h"))]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(title="T", thinking="low")
        await session.send_prompt("hi")
        await model.gate("g").reached.wait()
        await session.queue_steering("s")
        await session.queue_follow_up("f")
        snapshot = await session.editor_snapshot()
        assert (snapshot.draft, snapshot.status) == ("Hello ", "thinking")
        assert (snapshot.steering_length, snapshot.follow_up_length) == (1, 1)
        assert [entry.text for entry in snapshot.queue] == ["s", "f"]
        assert (snapshot.title, snapshot.model, snapshot.thinking) == (
            "T",
            "scripted:script",
            "low",
        )
        assert (snapshot.mode, snapshot.permission_mode, snapshot.error) == (
            "normal",
            "default",
            "",
        )
        assert snapshot.seq == (await facts(session, FactBase))[-1].seq
        drawn = snapshot.draft
        async with await session.subscribe(after=snapshot.seq) as events, running():
            model.gate("g").opened.set()
            while drawn != "Hello world":
                event = await anext(events)
                if isinstance(event, TextDelta):
                    assert event.node_id == snapshot.draft_node
                    drawn = drawn[: event.offset] + event.text
        await session.abort()
        assert (await session.editor_snapshot()).draft == ""
        assert (await session.editor_snapshot()).draft_node is None


async def test_a_session_that_was_killed_shows_its_events_to_a_later_reader(world: World) -> None:
    app = await world.open(ScriptedModel([Stall(gate="g")])).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_prompt("a")
    before = await read_to_end(session, after=0, live=False)
    await crash(app)
    async with world.open() as app:
        session = await app.sessions.get("s")
        assert await read_to_end(session, after=0, live=False) == before
