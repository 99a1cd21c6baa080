"""A turn that waits: in the log, without a model call, woken once by whatever comes first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import anyio
import pytest

from tests.support.background_shell import background_shell, plays, start
from tests.support.role_models import agent_call
from tests.support.waiting_turns import (
    TEN_MINUTES,
    HeldSleep,
    left_waiting,
    open_world,
    result_of,
    waiting,
    woken_by,
)
from tests.support.world import (
    PATIENCE,
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    until,
    until_holds,
    until_idle,
    until_status,
)
from weft.errors import Owned
from weft.events import (
    ChildStarted,
    InputQueued,
    ModelCallStarted,
    PermissionRequest,
    ToolComplete,
    TurnFinished,
    TurnWaiting,
)
from weft.ids import SessionId
from weft.loop.waits.wait_text import shown_seconds
from weft.messages import Text
from weft.providers import CallResults, ModelRequest
from weft.providers.script import CallTogether, CallTool, SayText, Stall, Step
from weft.providers.scripted import ScriptedModel
from weft.session import RecallQueues, SendPrompt
from weft.store import Lease, MemoryData, MemoryStore, SessionRow
from weft.testing.store_contract import add_row

pytestmark = pytest.mark.anyio


async def test_a_turn_waits_for_a_time_and_asks_no_model_meanwhile(world: World) -> None:
    model = ScriptedModel([TEN_MINUTES, "rested"])
    app, sleep = open_world(world, model)
    async with app:
        session = await waiting(app)
        for _ in range(19):
            sleep.pass_time(30)
            await anyio.wait_all_tasks_blocked()
        assert len(model.requests) == 1
        assert await session.get_status() == "waiting"
        sleep.pass_time(31)
        await until_idle(session)
        [wait] = await facts(session, TurnWaiting)
        assert (wait.on.kind, wait.until) == ("time", wait.at + 600)
        assert await woken_by(session) == ["time"]
        assert "10 minutes have passed" in await result_of(session)
        assert (await message_lines(session))[-1] == "assistant: rested"
        assert max(sleep.asked) <= 30, "a machine that was suspended is late by half a minute"


@pytest.mark.parametrize("how", ["steer", "prompt", "message"])
async def test_a_message_of_the_user_wakes_it(world: World, how: str) -> None:
    app, _ = open_world(world, ScriptedModel([TEN_MINUTES, "what is it?", "done"]))
    async with app:
        session = await waiting(app)
        if how == "steer":
            await session.queue_steering("listen")
        elif how == "prompt":
            await session.send_prompt("listen")
        else:
            reply = await session.send_message("listen")
            assert (reply.finish_reason, reply.text) == ("stop", "what is it?")
            assert [each.role for each in reply.messages] == ["user", "assistant"]
        await until_idle(session)
        assert await woken_by(session) == ["message"]
        assert "ended early" in await result_of(session)
        lines = await message_lines(session)
        assert lines.count("user: listen") == 1
        assert lines[-2:] == ["user: listen", "assistant: what is it?"]
        assert len(await facts(session, TurnFinished)) == 1


async def test_a_message_with_options_has_a_turn_of_its_own_after_the_one_it_wakes(
    world: World,
) -> None:
    app, _ = open_world(world, ScriptedModel([TEN_MINUTES, "awake", "answered"]))
    async with app:
        session = await waiting(app)
        reply = await session.send_message("listen", max_turns=3)
        assert reply.text == "answered"
        assert await woken_by(session) == ["message"]
        assert (await message_lines(session)).count("user: listen") == 1


async def test_a_message_that_woke_a_turn_and_is_taken_back_is_read_by_none(world: World) -> None:
    app, _ = open_world(world, ScriptedModel([TEN_MINUTES, "awake"]))
    async with app:
        session = await waiting(app)
        port = await app.host.port(session.id)
        message = SendPrompt(parts=(Text(text="listen"),), when_busy="follow_up", waits=True)
        async with anyio.create_task_group() as group:
            # Both are in the mailbox before the turn can write that it has read anything.
            group.start_soon(port.call, message)
            group.start_soon(port.call, RecallQueues())
        await until_idle(session)
        assert await woken_by(session) == ["message"]
        assert (await result_of(session)).endswith("a message came.")
        assert "user: listen" not in await message_lines(session)
        assert len(await facts(session, TurnFinished)) == 1


async def test_the_sender_of_a_message_that_woke_a_turn_gets_the_end_of_that_turn(
    world: World,
) -> None:
    stalled = ScriptedModel([TEN_MINUTES, (Stall(gate="g"), SayText(text="x")), "answered"])
    app, _ = open_world(world, stalled)
    async with app:
        session = await waiting(app)
        reply = ""

        async def send() -> None:
            nonlocal reply
            reply = (await session.send_message("listen")).finish_reason

        async with anyio.create_task_group() as group:
            group.start_soon(send)
            with anyio.fail_after(PATIENCE):
                await stalled.gate("g").reached.wait()
            await session.abort()
        assert reply == "aborted"


async def test_a_follow_up_lets_it_wait(world: World) -> None:
    model = ScriptedModel([TEN_MINUTES, "rested", "followed"])
    app, sleep = open_world(world, model)
    async with app:
        session = await waiting(app)
        await session.queue_follow_up("later")
        await anyio.wait_all_tasks_blocked()
        assert await session.get_status() == "waiting"
        sleep.pass_time(601)
        await until_idle(session)
        assert (await message_lines(session))[-1] == "assistant: followed"


async def test_an_abort_ends_the_wait_and_the_turn(world: World) -> None:
    model = ScriptedModel([TEN_MINUTES, "never"])
    app, sleep = open_world(world, model)
    async with app:
        session = await waiting(app)
        await session.abort()
        await until_idle(session)
        assert [each.reason for each in await facts(session, TurnFinished)] == ["aborted"]
        sleep.pass_time(700)
        assert await app.host.wake_due() == []
        assert await woken_by(session) == []
        assert len(model.requests) == 1


async def test_what_the_other_calls_of_the_answer_came_to_is_stored_first(world: World) -> None:
    world.write("a.txt", "words")
    read = CallTool(name="read", args={"path": "a.txt"})
    app, _ = open_world(world, ScriptedModel([CallTogether(calls=(TEN_MINUTES, read)), "ok"]))
    async with app:
        session = await waiting(app)
        [done] = await facts(session, ToolComplete)
        assert "words" in done.result.text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "say how long"),
        ({"seconds": 1, "until": "2027-01-01T00:00"}, "not both"),
        ({"until": "noon"}, "no ISO 8601 time"),
        ({"command": "bg_7"}, "no background command 'bg_7'"),
        ({"until": "2001-01-01T00:00+00:00"}, "that time is over: it is 20"),
        ({"until": "1999-12-31", "command": "bg_1"}, "that time is over"),
        ({"seconds": -1}, "at `$.seconds`"),
        ({"seconds": "long"}, "at `$.seconds`"),
        ({"seconds": 10**9}, "a turn waits for 7 days at most"),
        ({"until": "9999-01-01T00:00+00:00"}, "a turn waits for 7 days at most"),
    ],
)
async def test_a_wait_for_nothing_is_an_error(world: World, args: object, said: str) -> None:
    assert isinstance(args, dict)
    async with world.open(ScriptedModel([CallTool(name="wait", args=args), "ok"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("go")
        assert said in await result_of(session)
        assert await facts(session, TurnWaiting) == []


@pytest.mark.parametrize("field", ["seconds", "until"])
async def test_both_ways_to_name_a_time_have_one_limit(world: World, field: str) -> None:
    def week(more: int) -> CallTool:
        seconds = 7 * 24 * 3600 + more
        until_then = datetime.fromtimestamp(world.clock.now() + seconds, UTC).isoformat()
        return CallTool(name="wait", args={field: seconds if field == "seconds" else until_then})

    app, _ = open_world(world, ScriptedModel([week(1), week(0)]))
    async with app:
        session = await waiting(app)
        [refused] = await facts(session, ToolComplete)
        assert refused.result.is_error
        assert "a turn waits for 7 days at most" in refused.result.text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a second"),
        (0.999, "less than a second"),
        (1, "1 second"),
        (1.9, "1 second"),
        (2.04, "2 seconds"),
        (119.9, "119 seconds"),
        (120, "2 minutes"),
        (179, "2 minutes"),
        (7199, "119 minutes"),
        (7200, "2 h 0 min"),
        (90_061, "25 h 1 min"),
    ],
)
def test_a_length_of_time_is_said_as_one_would_say_it(seconds: float, words: str) -> None:
    assert shown_seconds(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "Less than a second has passed"), (1, "1 second has"), (2, "2 seconds have passed")],
)
async def test_the_end_of_a_short_wait_is_said_in_the_right_number(
    plain_world: World, seconds: float, said: str
) -> None:
    call = CallTool(name="wait", args={"seconds": seconds})
    app, sleep = open_world(plain_world, ScriptedModel([call, "ok"]))
    async with app:
        session = await waiting(app)
        sleep.pass_time(seconds + 0.04)
        await until_idle(session)
        assert (await result_of(session)).startswith(said)


async def test_what_is_woken_asks_before_it_changes_anything(world: World) -> None:
    """Whatever mode it had, in its own process or in the one that wakes it: no user is there."""
    app, _ = open_world(world, ScriptedModel([TEN_MINUTES]))
    await app.__aenter__()
    session = await app.sessions.start_session(
        session_id="ses_waits", permission_mode="accept_edits"
    )
    await session.send_prompt("go")
    await until_status(session, "waiting")
    await crash(app)
    world.clock.advance(601)
    write = CallTool(name="write", args={"path": "made.txt", "content": "made"})
    app, _ = open_world(world, ScriptedModel([write]))
    async with app:
        assert await app.host.wake_due() == ["ses_waits"]
        session = await app.sessions.get("ses_waits")
        await until(session, PermissionRequest)
        assert (await app.host.port(session.id)).permission_mode == "default"
        await session.set_permission_mode("accept_edits")
        assert (await app.host.port(session.id)).permission_mode == "accept_edits"
        assert not (world.project / "made.txt").exists()


# --- over a restart ----------------------------------------------------------------------


async def test_a_wait_outlives_its_process_and_is_woken_once_when_it_is_due(world: World) -> None:
    session_id = await left_waiting(world)
    model = ScriptedModel(["rested"])
    app, _ = open_world(world, model)
    async with app:
        assert await app.host.wake_due() == []
        assert await app.sessions.find_session(session_id) is None, (
            "nothing is opened that is not due"
        )
        world.clock.advance(601)
        assert await app.host.wake_due() == [session_id]
        assert await app.host.wake_due() == []
        session = await app.sessions.get(session_id)
        await until_idle(session)
        assert await woken_by(session) == ["time"]
        assert len(await facts(session, ModelCallStarted)) == 2
        assert (await message_lines(session))[-1] == "assistant: rested"
        assert await app.host.wake_due() == []


async def test_an_opened_session_still_waits(world: World) -> None:
    session_id = await left_waiting(world)
    model = ScriptedModel(["rested"])
    app, _ = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(session_id=session_id)
        assert await session.get_status() == "waiting"
        await anyio.wait_all_tasks_blocked()
        assert model.requests == []
        world.clock.advance(601)
        assert await app.host.wake_due() == [session_id]
        await until_idle(session)
        assert await woken_by(session) == ["time"]


async def test_a_message_wakes_what_another_process_left(world: World) -> None:
    session_id = await left_waiting(world)
    model = ScriptedModel(["yes?"])
    app, _ = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(session_id=session_id)
        await session.send_prompt("listen")
        await until_idle(session)
        assert await woken_by(session) == ["message"]
        assert request_lines(model.requests[0])[-1] == "user: listen"
        assert len(await facts(session, TurnFinished)) == 1


async def test_an_abort_ends_what_another_process_left(world: World) -> None:
    session_id = await left_waiting(world)
    app, _ = open_world(world, ScriptedModel([]))
    async with app:
        session = await app.sessions.start_session(session_id=session_id)
        assert (await session.abort()).turn_id is not None
        assert await session.get_status() == "idle"
        world.clock.advance(601)
        assert await app.host.wake_due() == []


async def test_a_run_that_goes_on_waits_to_the_end(world: World) -> None:
    session_id = await left_waiting(world)
    app, sleep = open_world(world, ScriptedModel(["rested"]))
    async with app:
        session = await app.sessions.start_session(session_id=session_id, resume="auto")
        with anyio.fail_after(PATIENCE):
            await sleep.begun.wait()
        assert await session.get_status() == "waiting"
        sleep.pass_time(601)
        await until_idle(session)
        assert await woken_by(session) == ["time"]


async def test_a_session_of_another_project_is_left_to_it(world: World) -> None:
    session_id = await left_waiting(world)
    world.clock.advance(601)
    world.project = world.base / "other"
    world.project.mkdir()
    app, _ = open_world(world, ScriptedModel([]))
    async with app:
        assert await app.host.wake_due() == []
        assert await app.sessions.find_session(session_id) is None


async def test_a_session_of_a_folder_that_was_moved_is_listed_and_woken_where_it_is_now(
    shared_world: World,
) -> None:
    world = shared_world
    session_id = await left_waiting(world)
    world.clock.advance(601)
    here = world.project
    world.project = here.rename(world.base / "elsewhere")
    world.write("a.txt", "words")
    read = CallTool(name="read", args={"path": "a.txt"})
    app, _ = open_world(world, ScriptedModel([read, "rested"]))
    async with app:
        assert [row.id for row in await app.sessions.list_saved(world.project)] == [session_id]
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_idle(session)
        assert "words" in await result_of(session)
        [row] = await app.sessions.list_saved(world.project)
        assert row.project_path == str(world.project)
    # Another project in its old place has none of its sessions.
    here.mkdir()
    world.project = here
    app, _ = open_world(world, ScriptedModel([]))
    async with app:
        await app.sessions.start_session(session_id="ses_other")
        assert [row.id for row in await app.sessions.list_saved(here)] == ["ses_other"]


@pytest.mark.parametrize("is_ours", [False, True], ids=["another project", "cannot be opened"])
async def test_what_cannot_be_woken_keeps_no_other_asleep(world: World, is_ours: bool) -> None:
    session_id = await left_waiting(world)
    world.clock.advance(601)
    app, _ = open_world(world, ScriptedModel(["rested"]))
    async with app:
        path = app.project_path if is_ours else "/other"
        for number in range(101):
            row = SessionRow(id=SessionId(f"ses_{number}"), project_path=path, wake_at=1.0)
            await add_row(app.store, row)
        looks = [await app.host.wake_due(), await app.host.wake_due()]
        assert [session_id] in looks
        await until_idle(await app.sessions.get(session_id))


class CountedLeases(MemoryStore):
    """Counts how leases are taken."""

    def __init__(self, data: MemoryData, owned: str = "") -> None:
        super().__init__(data=data)
        self.taken: list[int] = []
        self._owned = owned

    async def take_leases(self, streams: Sequence[str], *, steal: bool = False) -> list[Lease]:
        self.taken.append(len(streams))
        if self._owned in streams:
            raise Owned(self._owned, pid=1, host="h", address="", since=0.0)
        return await super().take_leases(streams, steal=steal)


@pytest.mark.parametrize("owned", ["", "ses_1"])
async def test_sessions_that_are_due_are_taken_over_in_one_go(
    plain_world: World, owned: str
) -> None:
    """But for one that another process has taken in the same moment."""
    world, data = plain_world, MemoryData()
    names = [f"ses_{number}" for number in range(5)]
    sleep = HeldSleep(world.clock)
    parts: dict[str, Any] = {"sleep": sleep, "clock": world.clock}
    app = world.open(ScriptedModel([TEN_MINUTES] * 5), store=MemoryStore(data=data), **parts)
    await app.__aenter__()
    for name in names:
        session = await app.sessions.start_session(session_id=name)
        await session.send_prompt("go")
        await until_status(session, "waiting")
    await crash(app)
    world.clock.advance(601)
    store = CountedLeases(data, owned)
    async with world.open(ScriptedModel(["ok"] * 5), store=store, **parts) as app:
        woken = await app.host.wake_due()
        assert sorted(woken) == [name for name in names if name != owned]
        assert store.taken == ([5, 4] if owned else [5])


async def test_a_session_that_a_living_process_has_is_left_to_it(world: World) -> None:
    app, _ = open_world(world, ScriptedModel([TEN_MINUTES, "rested"]))
    other, _ = open_world(world, ScriptedModel([]))
    async with app, other:
        session = await waiting(app)
        world.clock.advance(601)
        assert await other.host.wake_due() == []
        assert await session.get_status() == "waiting"


async def test_an_application_wakes_what_is_due_by_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = await left_waiting(world)
    world.clock.advance(601)
    monkeypatch.setattr("weft.app.app.WAKE_EVERY_SECONDS", 0.01)
    model = ScriptedModel([[Stall(gate="asked"), SayText(text="rested")]])
    async with world.open(model, clock=world.clock, wakes_due=True) as app:
        with anyio.fail_after(PATIENCE):
            await model.gate("asked").reached.wait()
        model.gate("asked").opened.set()
        session = await app.sessions.get(session_id)
        await until_idle(session)
        assert await woken_by(session) == ["time"]


class AskedStore(MemoryStore):
    """Counts how often it is asked what is due."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.thrice = anyio.Event()

    async def due(
        self, before: float, *, project_path: str | None = None, limit: int = 100
    ) -> list[SessionRow]:
        self.asked += 1
        if self.asked == 3:
            self.thrice.set()
        return await super().due(before, project_path=project_path, limit=limit)


async def test_a_program_wakes_what_is_due_only_where_it_says_so(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It may lack the rules and hooks of the program that began the wait.
    monkeypatch.setattr("weft.app.app.WAKE_EVERY_SECONDS", 0.01)
    silent, asking = AskedStore(), AskedStore()
    model = ScriptedModel([])
    async with (
        plain_world.open(model, store=silent),
        plain_world.open(model, store=asking, wakes_due=True),
    ):
        with anyio.fail_after(PATIENCE):
            await asking.thrice.wait()
        assert silent.asked == 0


# --- background commands -----------------------------------------------------------------


def wait_for(name: str = "bg_1", **more: object) -> CallTool:
    return CallTool(name="wait", args={"command": name, **more})


@pytest.mark.process
async def test_a_turn_waits_for_a_background_command_and_reads_what_it_printed(
    world: World,
) -> None:
    gate = world.project / "gate"
    command = f"echo begun; while [ ! -e {gate} ]; do sleep 0.05; done; echo all done; exit 3"
    model = plays(background_shell(command), wait_for(), "seen")
    async with world.open(model, clock=world.clock) as app:
        session = await start(app)
        await session.send_prompt("go")
        await until_status(session, "waiting")
        [wait] = await facts(session, TurnWaiting)
        assert (wait.on.kind, wait.on.name, wait.until) == ("command", "bg_1", None)
        assert wait.on.text.startswith("echo begun;")
        assert len(model.requests) == 2
        gate.touch()
        await until_idle(session)
        assert await woken_by(session) == ["command"]
        text = await result_of(session)
        assert "all done" in text
        assert "exit code 3" in text
        assert await facts(session, InputQueued) == [], "the result says it, and no message besides"
        assert len(model.requests) == 3


@pytest.mark.process
async def test_a_command_that_takes_longer_than_it_may_runs_on(world: World) -> None:
    model = plays(background_shell("exec sleep 1000"), wait_for(seconds=60), "enough")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("go")
        assert await woken_by(session) == ["time"]
        assert "bg_1 still runs" in await result_of(session)
        assert [each.status for each in await session.background_commands()] == ["running"]


@pytest.mark.process
async def test_a_command_that_is_over_is_not_waited_for(world: World) -> None:
    model = plays(background_shell("sleep 0.6; echo done"), "first", wait_for(), "second")
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("go")

        async def has_ended_twice() -> bool:
            return len(await facts(session, TurnFinished)) == 2

        await until_holds(session, has_ended_twice)
        assert "done" in await result_of(session)
        assert await facts(session, TurnWaiting) == []


@pytest.mark.process
async def test_a_command_that_died_with_its_process_is_not_waited_for_any_more(
    world: World,
) -> None:
    lost = plays(background_shell("exec sleep 1000"), wait_for(), "never")
    app = world.open(lost, clock=world.clock)
    await app.__aenter__()
    session = await start(app)
    await session.send_prompt("go")
    await until_status(session, "waiting")
    await crash(app)
    model = plays("so be it")
    async with world.open(model, clock=world.clock) as app:
        assert await app.host.wake_due() == [session.id]
        again = await app.sessions.get(session.id)
        await until_idle(again)
        assert await woken_by(again) == ["command"]
        assert "interrupted" in await result_of(again)
        assert len(model.requests) == 1


async def test_lists_say_that_a_session_waits(world: World) -> None:
    session_id = await left_waiting(world)
    app, _ = open_world(world, ScriptedModel([]))
    async with app:
        [row] = await app.sessions.list_saved()
        assert (row.id, row.turn_open, row.wake_at) == (session_id, True, world.clock.now() + 600)
        session = await app.sessions.start_session(session_id=session_id)
        await session.abort()
        [row] = await app.sessions.list_saved()
        assert (row.turn_open, row.wake_at) == (False, None)


async def test_an_agent_that_waits_is_woken_by_the_turn_that_it_works_for(world: World) -> None:
    def say(request: ModelRequest) -> Step:
        is_child = "rest a while" in request_lines(request)[0]
        if is_child:
            return TEN_MINUTES if not any(_results(request)) else SayText(text="rested")
        return SayText(text="all rested") if any(_results(request)) else agent_call("rest a while")

    app, sleep = open_world(world, ScriptedModel([], choose=say))
    await app.__aenter__()
    session = await app.sessions.start_session(session_id="ses_parent", auto_approve=True)
    await session.send_prompt("let it rest")
    with anyio.fail_after(PATIENCE):
        await sleep.begun.wait()
    [started] = await facts(session, ChildStarted)
    await crash(app)
    again, sleep = open_world(world, ScriptedModel([], choose=say))
    async with again:
        assert await again.host.wake_due() == []
        session = await again.sessions.start_session(session_id="ses_parent", auto_approve=True)
        assert await session.get_status() == "interrupted"
        await session.continue_turn()
        with anyio.fail_after(PATIENCE):
            await sleep.begun.wait()
        sleep.pass_time(601)
        await until_idle(session)
        assert (await message_lines(session))[-1] == "assistant: all rested"
        assert await woken_by(await again.sessions.get(started.child)) == ["time"]


def _results(request: ModelRequest) -> list[bool]:
    return [isinstance(message, CallResults) for message in request.messages]


@pytest.mark.parametrize("resume", ["auto", "ask"])
async def test_a_session_that_is_stopped_waits_no_more(
    world: World, resume: Literal["auto", "ask"]
) -> None:
    session_id = await left_waiting(world)
    app, _ = open_world(world, ScriptedModel([]))
    async with app:
        await app.sessions.start_session(session_id=session_id, resume=resume)
        await app.sessions.stop_session(session_id)
        world.clock.advance(601)
        assert await app.host.wake_due() == []
        assert (await app.sessions.list_saved())[0].turn_open is False


async def test_a_session_that_is_unloaded_waits_on(world: World) -> None:
    session_id = await left_waiting(world)
    app, _ = open_world(world, ScriptedModel(["rested"]))
    async with app:
        await app.sessions.start_session(session_id=session_id)
        assert await app.sessions.unload_idle(0) == 1
        world.clock.advance(601)
        assert await app.host.wake_due() == [session_id]
        session = await app.sessions.get(session_id)
        await until_idle(session)
        assert await woken_by(session) == ["time"]
