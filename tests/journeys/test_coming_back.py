"""Going on: after an abort, a limit, a vendor's failure and a crash, from exactly what is
stored.
"""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

import weft
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    running,
    until,
    until_idle,
    until_status,
)
from weft.api.session import Session
from weft.app import App
from weft.errors import (
    NoPendingRequest,
    SessionBusy,
    SessionInterrupted,
    SessionStopped,
    UsageError,
)
from weft.events import (
    PermissionRequest,
    PermissionResolved,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from weft.providers.script import Break, CallTogether, CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.tools import FunctionTool, PreparedCall, ToolContext, ToolOutcome
from weft.tools.builtin.write import WriteTool

pytestmark = pytest.mark.anyio


class Counter:
    """A tool with an effect, which counts its runs and may wait in the middle of one."""

    def __init__(self, *, waits: bool = False) -> None:
        self.runs = 0
        self.reached = anyio.Event()
        self.opened = anyio.Event()
        if not waits:
            self.opened.set()

    async def count(self) -> str:
        """Count one up."""
        self.runs += 1
        self.reached.set()
        await self.opened.wait()
        return f"run {self.runs}"

    @property
    def tool(self) -> FunctionTool:
        return weft.tool(self.count)


async def start(app: App, *tools: FunctionTool, **settings: str) -> Session:
    """A session that allows everything."""
    return await app.sessions.start_session(
        session_id="s", tools=[*tools, "read", "write"], auto_approve=True
    )


# --- in the same process -------------------------------------------------------------------


@pytest.mark.requirement("session:continue_turn")
async def test_an_aborted_turn_goes_on_with_its_partial_answer_in_view(world: World) -> None:
    model = ScriptedModel([(SayText(text="Half"), Stall(gate="g")), "the other half"])
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("tell")
        await model.gate("g").reached.wait()
        await session.abort()
        assert (await session.continue_turn()).status == "started"
        await until_idle(session)
        assert await message_lines(session) == [
            "user: tell",
            "assistant: Half",
            "assistant: the other half",
        ]
    assert request_lines(model.last_request)[:2] == ["user: tell", "assistant: Half"]
    assert model.last_request.messages[-1].role == "user"


@pytest.mark.requirement("session:continue_turn")
async def test_a_turn_that_reached_its_limit_goes_on(world: World) -> None:
    counter = Counter()
    model = ScriptedModel([CallTool(name="count"), "Counted."])
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        reply = await session.send_message("count", max_turns=1)
        assert reply.finish_reason == "max_turns"
        reply = await session.continue_and_wait()
        assert (reply.finish_reason, reply.text) == ("stop", "Counted.")
        assert (await session.metadata()).turn_count == 1
    assert counter.runs == 1


@pytest.mark.requirement("session:continue_turn")
async def test_a_turn_that_the_vendor_failed_goes_on(world: World) -> None:
    model = ScriptedModel([(SayText(text="so f"), Break(times=1)), "All of it."])
    async with world.open(model) as app:
        session = await start(app)
        reply = await session.send_message("tell", retries=0)
        assert (reply.finish_reason, reply.text) == ("provider_error", "so f")
        assert (await session.continue_and_wait()).text == "All of it."
    assert request_lines(model.last_request)[1] == "assistant: so f"


async def test_there_is_nothing_to_continue_in_an_empty_session(world: World) -> None:
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="nothing to continue"):
            await session.continue_turn()


async def test_a_running_turn_cannot_be_continued(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        with pytest.raises(SessionBusy):
            await session.continue_turn()


# --- in a new process ----------------------------------------------------------------------


@pytest.mark.requirement("manager:start_session:resume")
async def test_opening_an_interrupted_session_calls_no_model_and_runs_no_tool(world: World) -> None:
    counter = Counter(waits=True)
    model = ScriptedModel([CallTool(name="count")])
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("count")
    await counter.reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert await session.get_status() == "interrupted"
        [row] = await app.sessions.list_saved()
        assert row.turn_open
    assert (model.request_count, counter.runs) == (1, 1)


@pytest.mark.requirement("session:continue_turn")
async def test_a_crash_in_the_middle_of_text_keeps_what_had_arrived(world: World) -> None:
    """The draft beside the log becomes a partial message, its cost is estimated and marked, and the
    turn ends as it should.
    """
    model = ScriptedModel(
        [
            (SayText(text="The first "), Stall(gate="a"), SayText(text="half"), Stall(gate="b")),
            "and the rest.",
        ]
    )
    app = await world.open(model, clock=world.clock).__aenter__()
    session = await start(app)
    await session.send_prompt("tell")
    await model.gate("a").reached.wait()
    world.clock.advance(1)
    model.gate("a").opened.set()
    await model.gate("b").reached.wait()
    await crash(app)
    async with world.open(model, clock=world.clock) as app:
        session = await app.sessions.get("s")
        reply = await session.continue_and_wait()
        assert reply.finish_reason == "stop"
        assert await message_lines(session) == [
            "user: tell",
            "assistant: The first half",
            "assistant: and the rest.",
        ]
        first, second = await facts(session, UsageRecorded)
        assert (first.estimated, second.estimated) == (True, False)
        assert (await session.usage()).total.cost_usd is not None
    assert request_lines(model.last_request)[1] == "assistant: The first half"


async def test_a_money_budget_still_counts_after_a_crash(world: World) -> None:
    """The interrupted call's cost is estimated with the model's price: not unknown, which would
    stop every later turn.
    """
    model = ScriptedModel([Stall(gate="g"), "fine"])
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_prompt("tell")
    await model.gate("g").reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        await session.set_budget(usd=1.0)
        assert (await session.continue_and_wait()).finish_reason == "stop"


@pytest.mark.requirement("turn:effects")
async def test_a_tool_with_an_effect_is_not_run_again_and_everybody_is_told(world: World) -> None:
    counter = Counter(waits=True)
    model = ScriptedModel([CallTool(name="count"), "I will look first."])
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("count")
    await counter.reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        await session.continue_and_wait()
        [complete] = await facts(session, ToolComplete)
        assert complete.result.status == "interrupted"
        assert "unknown" in complete.result.text
        notes = [each for each in await session.messages() if each.role == "system"]
        assert "was not run again" in notes[0].content
    assert counter.runs == 1
    assert "its effect is unknown" in request_lines(model.last_request)[2]


async def test_a_pure_tool_is_run_again(world: World) -> None:
    counter = Counter(waits=True)
    tool = weft.tool(effect="pure")(counter.count)
    model = ScriptedModel([CallTool(name="count"), CallTool(name="count"), "Counted."])
    app = await world.open(model).__aenter__()
    session = await start(app, tool)
    await session.send_prompt("count")
    await counter.reached.wait()
    await crash(app)
    counter.opened.set()
    async with world.open(model) as app:
        session = await start(app, tool)
        assert (await session.continue_and_wait()).finish_reason == "stop"


@pytest.mark.requirement("turn:effects")
@pytest.mark.parametrize("written", [True, False])
async def test_a_write_whose_effect_can_be_checked_is_checked(world: World, written: bool) -> None:
    """The file tells: with the new content it was done and is not repeated.

    With the old one it runs now, after all.
    """
    model = ScriptedModel(
        [CallTool(name="write", args={"path": "a.txt", "content": "new\n"}), "Written."]
    )
    gated = GatedWrite(after=written)
    app = await world.open(model).__aenter__()
    session = await app.sessions.start_session(session_id="s", tools=[gated], auto_approve=True)
    await session.send_prompt("write")
    await gated.reached.wait()
    await crash(app)
    assert (world.project / "a.txt").exists() == written
    async with world.open(model) as app:
        session = await start(app)
        await session.continue_and_wait()
        [complete] = await facts(session, ToolComplete)
        assert not complete.is_error
        executing = await facts(session, ToolExecuting)
        assert [each.attempt for each in executing] == ([1] if written else [1, 2])
    assert world.read("a.txt") == "new\n"


class GatedWrite(WriteTool):
    """The real `write`, which then never gets past one side of its effect."""

    def __init__(self, *, after: bool) -> None:
        self._after = after
        self.reached = anyio.Event()

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        prepared = await super().prepare(args, context)

        async def run() -> ToolOutcome:
            if self._after:
                await prepared.run()
            self.reached.set()
            await anyio.sleep_forever()
            raise AssertionError

        return msgspec.structs.replace(prepared, run=run)


async def test_a_request_for_permission_is_offered_again_under_its_id(world: World) -> None:
    model = ScriptedModel([CallTool(name="write", args={"path": "a", "content": "x"}), "Done."])
    app = await world.open(model).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_prompt("write")
    request = await until(session, PermissionRequest)
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert (await session.editor_snapshot()).requests == (request,)
        await session.continue_turn()
        await until_status(session, "awaiting_permission")
        assert (await session.editor_snapshot()).requests == (request,)
        await session.respond_to_permission("allow_once", request_id=request.request_id)
        await until_idle(session)
        assert len(await facts(session, PermissionRequest)) == 1
    assert world.read("a") == "x"


async def test_an_answer_given_before_the_turn_goes_on_counts(world: World) -> None:
    model = ScriptedModel([CallTool(name="write", args={"path": "a", "content": "x"}), "Done."])
    app = await world.open(model).__aenter__()
    session = await app.sessions.start_session(session_id="s")
    await session.send_prompt("write")
    await until(session, PermissionRequest)
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        await session.respond_to_permission("allow_once")
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once")
        assert (await session.continue_and_wait()).finish_reason == "stop"
    assert world.read("a") == "x"


@pytest.mark.requirement("session:respond_to_permission:shown")
async def test_an_answer_is_void_when_what_was_shown_has_changed(world: World) -> None:
    """An answer counts for exactly what was shown: another preview is another question."""
    world.write("plan", "delete one file")
    ran: list[str] = []

    async def act() -> None:
        ran.append(world.read("plan"))

    tool = weft.tool(preview=lambda: world.read("plan"))(act)
    model = ScriptedModel([CallTool(name="act"), "Done."])
    app = await world.open(model).__aenter__()
    session = await app.sessions.start_session(session_id="s", tools=[tool])
    await session.send_prompt("act")
    first = await until(session, PermissionRequest)
    assert first.preview == "delete one file"
    await crash(app)
    world.write("plan", "delete everything")
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", tools=[tool])
        await session.respond_to_permission("allow_once", request_id=first.request_id)
        await session.continue_turn()
        await until_status(session, "awaiting_permission")
        [second] = (await session.editor_snapshot()).requests
        assert isinstance(second, PermissionRequest)
        assert second.request_id != first.request_id
        assert second.preview == "delete everything"
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once", request_id=first.request_id)
        await session.respond_to_permission("deny")
        await until_idle(session)
    assert ran == []


async def test_steering_goes_before_the_next_model_call_after_a_crash(world: World) -> None:
    model = ScriptedModel([Stall(gate="g"), "As you wish."])
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_prompt("go left")
    await model.gate("g").reached.wait()
    await session.queue_steering("no, go right")
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        await session.continue_and_wait()
        assert await session.get_queued_messages() == ((), ())
    assert request_lines(model.requests[1]) == ["user: go left", "user: no, go right"]
    assert model.request_count == 2


async def test_follow_ups_wait_for_the_user_after_a_crash(world: World) -> None:
    model = ScriptedModel([Stall(gate="g"), "one", "two"])
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_prompt("a")
    await model.gate("g").reached.wait()
    await session.queue_follow_up("b")
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert [entry.text for entry in (await session.get_queued_messages())[1]] == ["b"]
        assert model.request_count == 1
        await session.continue_turn()
        await until_idle(session)
        assert (await message_lines(session))[-2:] == ["user: b", "assistant: two"]


@pytest.mark.requirement("reason:halted")
async def test_another_prompt_ends_the_interrupted_turn_and_starts_its_own(world: World) -> None:
    counter = Counter(waits=True)
    model = ScriptedModel([CallTool(name="count"), "Hello again."])
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("count")
    await counter.reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert (await session.send_message("hello")).text == "Hello again."
        assert [each.reason for each in await facts(session, TurnFinished)] == ["halted", "stop"]
    assert counter.runs == 1
    assert request_lines(model.last_request)[-1] == "user: hello"


@pytest.mark.requirement("manager:start_session:resume")
async def test_an_interrupted_session_can_go_on_by_itself(world: World) -> None:
    model = ScriptedModel([Stall(gate="g"), "Here I am."])
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_prompt("go")
    await model.gate("g").reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", resume="auto")
        await until_idle(session)
        assert await message_lines(session) == ["user: go", "assistant: Here I am."]


async def test_a_caller_that_repeats_a_message_of_an_interrupted_turn_is_told_how_to_go_on(
    world: World,
) -> None:
    model = ScriptedModel([Stall(gate="g"), "Here."])
    app = await world.open(model).__aenter__()
    session = await start(app)

    async def ask() -> None:
        with pytest.raises(SessionStopped):
            await session.send_message("hi", input_id="i")

    async with running(ask):
        await model.gate("g").reached.wait()
        await crash(app)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        with anyio.fail_after(5), pytest.raises(SessionInterrupted, match=r"continue_turn\(\)"):
            await session.send_message("hi", input_id="i")
        await session.continue_turn()
        assert (await session.send_message("hi", input_id="i")).text == "Here."


async def test_a_session_is_what_it_was_when_it_comes_back(world: World) -> None:
    """Reopened in good order: history, ids, settings, title, usage, files and todos are
    the same.
    """
    todos = {"todos": [{"text": "think", "status": "in_progress"}]}
    model = ScriptedModel(
        [
            CallTogether(
                calls=(
                    CallTool(name="write", args={"path": "a.txt", "content": "hello\n"}),
                    CallTool(name="todo", args=todos),
                )
            ),
            "Done.",
        ]
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(
            session_id="s", title="Mine", permission_mode="accept_edits"
        )
        await session.send_message("do")
        await session.set_thinking_level("high")
        before = await everything(session)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert await everything(session) == before
        assert await session.get_status() == "idle"


async def everything(session: Session) -> list[object]:
    """All that can be read of a session."""
    return [
        await session.messages_with_ids(),
        await session.metadata(),
        await session.usage(),
        await session.touched_files(),
        await session.todos(),
        await session.editor_snapshot(),
    ]


@pytest.mark.requirement("fault:turn-lost")
async def test_a_second_crash_in_the_middle_of_coming_back_loses_nothing(world: World) -> None:
    counter = Counter(waits=True)
    model = ScriptedModel([CallTool(name="count"), Stall(gate="g"), "Finally."])
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("count")
    await counter.reached.wait()
    await crash(app)
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.continue_turn()
    await model.gate("g").reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert (await session.continue_and_wait()).text == "Finally."
        assert len(await facts(session, TurnStarted)) == 1
        assert len(await facts(session, ToolComplete)) == 1
        assert await facts(session, PermissionResolved) == []
    assert counter.runs == 1


async def test_closing_the_app_suspends_a_turn_and_it_goes_on_afterwards(world: World) -> None:
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g")), "rest"])
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        async with running(app.aclose):
            pass
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert await session.get_status() == "interrupted"
        assert await facts(session, TurnFinished) == []
        assert (await session.continue_and_wait()).text == "rest"
        assert await message_lines(session) == ["user: go", "assistant: half", "assistant: rest"]
        assert len(await facts(session, TurnStarted)) == 1


async def test_a_call_that_a_closing_app_cut_short_is_counted_once(world: World) -> None:
    model = ScriptedModel([Stall(gate="g"), "rest"])
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        await session.continue_and_wait()
        counted = await facts(session, UsageRecorded)
        assert [each.estimated for each in counted] == [True, False]


async def test_an_effect_that_a_closing_app_cut_short_is_not_run_again(world: World) -> None:
    counter = Counter(waits=True)
    model = ScriptedModel([CallTool(name="count"), "I see."])
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        await session.send_prompt("count")
        await counter.reached.wait()
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert await facts(session, TurnFinished, ToolComplete) == []
        assert (await session.continue_and_wait()).text == "I see."
        (done,) = await facts(session, ToolComplete)
        assert done.result.status == "interrupted"
    assert counter.runs == 1


async def test_a_permission_request_outlives_the_closing_of_the_app(world: World) -> None:
    model = ScriptedModel([CallTool(name="write", args={"path": "a", "content": "1"}), "Done."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", tools=["write"])
        await session.send_prompt("write")
        asked = await until(session, PermissionRequest)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert (await session.editor_snapshot()).requests == (asked,)
        await session.respond_to_permission("allow_once", request_id=asked.request_id)
        assert (await session.continue_and_wait()).text == "Done."
    assert world.read("a") == "1"


async def test_a_caller_that_waits_for_a_turn_hears_that_the_app_closed(world: World) -> None:
    model = ScriptedModel([Stall(gate="g"), "rest"])
    raised: list[Exception] = []
    async with world.open(model) as app:
        session = await start(app)

        async def wait() -> None:
            try:
                await session.send_message("go")
            except SessionInterrupted as error:
                raised.append(error)

        async with running(wait):
            await model.gate("g").reached.wait()
            await app.aclose()
    assert len(raised) == 1


@pytest.mark.parametrize("leave", ["stop", "abort"])
async def test_stopping_a_session_and_aborting_still_end_the_turn(world: World, leave: str) -> None:
    model = ScriptedModel([(SayText(text="half"), Stall(gate="g")), "rest"])
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        await (session.stop() if leave == "stop" else session.abort())
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert await session.get_status() == "idle"
        assert [each.reason for each in await facts(session, TurnFinished)] == ["aborted"]


async def test_a_tool_that_ignores_the_closing_neither_holds_it_up_nor_writes(world: World) -> None:
    reached, opened = anyio.Event(), anyio.Event()

    async def deaf() -> str:
        """Work on, whatever comes."""
        with anyio.CancelScope(shield=True):
            reached.set()
            await opened.wait()
        return "late"

    model = ScriptedModel([CallTool(name="deaf"), "Done."])
    app = await world.open(model).__aenter__()
    session = await start(app, weft.tool(deaf))
    await session.send_prompt("go")
    await reached.wait()
    async with running(app.host.aclose):
        pass
    opened.set()
    await app.aclose()
    async with world.open(model) as app:
        session = await start(app, weft.tool(deaf))
        assert await session.get_status() == "interrupted"
        assert await facts(session, TurnFinished, ToolComplete) == []
