"""A goal is worked for turn after turn, until its check says that it is reached."""

from __future__ import annotations

import os

import anyio
import anyio.to_thread
import msgspec
import pytest

from tests.support.world import World, crash, facts, until, until_idle
from weft.api.session import Session
from weft.app import App
from weft.errors import SessionBusy, UsageError
from weft.events import (
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    ModelCallStarted,
    NewMessage,
    PermissionRequest,
    SessionRestarted,
    SystemNote,
    ToolExecuting,
    TurnFinished,
    TurnStarted,
    decode,
)
from weft.ids import SessionId
from weft.messages import Text, Usage
from weft.permissions import MODES
from weft.providers import ModelInfo
from weft.providers.script import CallTool, SayText, Spend, Stall
from weft.providers.scripted import ScriptedModel
from weft.session import SendPrompt
from weft.store import LOOKS_READER

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CHECK = "grep -q right answer.txt"
JUDGE = ModelInfo(provider="scripted", name="judge")
PRICED = ModelInfo(provider="scripted", name="script", price_input=1.0, price_output=1.0)
JUDGE_PRICED = msgspec.structs.replace(PRICED, name="judge")
HELD = (Stall(gate="works"), SayText(text="Half of it."))


def write(text: str) -> CallTool:
    return CallTool(name="write", args={"path": "answer.txt", "content": text})


async def reasons(session: Session) -> list[str]:
    return [each.reason for each in await facts(session, GoalEnded)]


async def started(session: Session, text: str = "write the right answer", **more: object) -> None:
    given = {"check": CHECK, "outside_sandbox": True, **more}
    await session.set_goal(text, **given)  # type: ignore[arg-type]


@pytest.mark.requirement("session:set_goal", "session:goal")
async def test_a_goal_that_fails_twice_and_then_succeeds(world: World) -> None:
    model = ScriptedModel(
        [write("wrong"), "I think so.", write("nearly"), "Now.", write("right"), "Now indeed."]
    )
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        await until(session, GoalEnded)
        checked = await facts(session, GoalChecked)
        assert [each.done for each in checked] == [False, False, True]
        assert [each.round for each in checked] == [1, 2, 3]
        assert await reasons(session) == ["done"]
        goal = await session.goal()
        assert goal is not None
        assert (goal.status, goal.round) == ("done", 3)
        assert world.read("answer.txt") == "right"


async def test_a_goal_without_progress_ends_after_two_rounds_and_says_why(world: World) -> None:
    model = ScriptedModel(["I would do this.", "I still would."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        await until(session, GoalEnded)
        assert [each.progress for each in await facts(session, GoalChecked)] == [False, False]
        goal = await session.goal()
        assert goal is not None
        assert (goal.status, goal.reason, goal.round) == ("ended", "no_progress", 2)
        assert "two rounds in a row" in goal.detail
        assert "brought no progress" in await last_round(session)


async def test_edits_that_change_nothing_for_the_check_are_no_progress(world: World) -> None:
    model = ScriptedModel([step for n in range(9) for step in (write(f"# {n}"), "Done.")])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        await until(session, GoalEnded)
        # The first one is new, the two behind it say what it said.
        assert [each.progress for each in await facts(session, GoalChecked)] == [True, False, False]
        assert await reasons(session) == ["no_progress"]


async def test_a_goal_ends_after_its_rounds(world: World) -> None:
    steps = [step for n in range(9) for step in (write(f"try {n}"), "Done.")]
    app = world.open(ScriptedModel(steps))
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        # Each round prints something else.
        await started(session, check="cat answer.txt; exit 1", max_rounds=3)
        await until(session, GoalEnded)
        assert await reasons(session) == ["max_rounds"]
        assert len(await facts(session, GoalChecked)) == 3


async def last_round(session: Session) -> str:
    nodes = [each.node for each in await facts(session, NewMessage)]
    return [node.text for node in nodes if node.role == "user"][-1]


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("no-such-program-anywhere", "there is no such command"),
        ("kill -9 $$", "killed by signal 9"),
        ("exit 126", "it cannot be run"),
    ],
)
async def test_a_check_that_gives_no_verdict_pauses_the_goal(
    world: World, check: str, says: str
) -> None:
    app = world.open(ScriptedModel(["Done."]))
    async with app:
        session = await app.sessions.start_session()
        await started(session, check=check)
        pause = await until(session, GoalPaused)
        goal = await session.goal()
        assert goal is not None
        assert (pause.reason, goal.status) == ("failed", "paused")
        assert says in goal.detail
        assert await facts(session, GoalChecked) == []


async def test_a_check_with_a_code_above_all_signals_has_failed(world: World) -> None:
    app = world.open(ScriptedModel(["Done.", "Done."]))
    async with app:
        session = await app.sessions.start_session()
        # So end `exit -1`, ssh and PHP.
        await started(session, check="exit 255")
        await until(session, GoalEnded)
        assert [each.exit_code for each in await facts(session, GoalChecked)] == [255, 255]
        assert await facts(session, GoalPaused) == []


@pytest.mark.requirement("session:edit_goal", "session:resume_goal")
async def test_a_goal_whose_check_was_wrong_goes_on_with_another_one(world: World) -> None:
    app = world.open(ScriptedModel([write("right"), "Done."]))
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session, check="no-such-program-anywhere")
        await until(session, GoalPaused)
        edited = await session.edit_goal(check=CHECK, outside_sandbox=True)
        assert (edited.status, edited.revision) == ("paused", 1)
        await session.resume_goal()
        await until(session, GoalEnded)
        # The round was done already: it is checked, and no model is asked.
        assert await reasons(session) == ["done"]
        assert len(await facts(session, TurnStarted)) == 1


@pytest.mark.requirement("session:pause_goal")
async def test_a_pause_lets_the_present_step_end_and_no_round_begins(world: World) -> None:
    model = ScriptedModel([HELD, write("right"), "Done."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        await until(session, ModelCallStarted)
        paused = await session.pause_goal()
        assert (paused.status, paused.reason) == ("paused", "user")
        model.gate("works").opened.set()
        await until_idle(session)
        assert await facts(session, GoalChecked) == []
        await session.resume_goal()
        await until(session, GoalEnded)
        assert await reasons(session) == ["done"]


async def test_an_abort_pauses_the_goal_and_a_resume_begins_the_next_round(world: World) -> None:
    model = ScriptedModel([(Stall(gate="works"), write("right")), "Done."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        await until(session, ModelCallStarted)
        await session.abort("Esc")
        pause = await until(session, GoalPaused)
        assert pause.reason == "stopped"
        await until_idle(session)
        model.gate("works").opened.set()
        await session.resume_goal()
        await until(session, GoalEnded)
        assert [each.reason for each in await facts(session, TurnFinished)] == ["aborted", "stop"]


async def test_an_abort_stops_a_check_that_hangs(world: World) -> None:
    app = world.open(ScriptedModel(["Done."]))
    async with app:
        session = await app.sessions.start_session()
        await started(session, check="sleep 600")
        await until(session, ToolExecuting)
        await session.abort("Esc")
        pause = await until(session, GoalPaused)
        await until_idle(session)
        assert pause.reason == "stopped"
        assert await facts(session, GoalChecked) == []


async def test_what_the_user_says_goes_before_the_check(world: World) -> None:
    model = ScriptedModel([HELD, write("right"), "As you say."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        await until(session, ModelCallStarted)
        await session.queue_follow_up("write it into answer.txt")
        model.gate("works").opened.set()
        await until(session, GoalEnded)
        [checked] = await facts(session, GoalChecked)
        assert (checked.round, checked.done) == (1, True)
        assert len(await facts(session, TurnStarted)) == 2


async def test_a_goal_that_is_set_while_a_turn_runs_begins_behind_it(world: World) -> None:
    model = ScriptedModel([HELD, write("right"), "Done."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await session.send_prompt("look at it")
        await until(session, ModelCallStarted)
        await started(session)
        model.gate("works").opened.set()
        await until(session, GoalEnded)
        assert await reasons(session) == ["done"]


async def test_a_branch_pauses_a_goal_that_no_process_works_for(world: World) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]))
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await started(session)
    await until(session, ModelCallStarted)
    with pytest.raises(SessionBusy):
        await session.branch_at(0)
    await crash(app)
    app = world.open(ScriptedModel(["never"]))
    async with app:
        session = await app.sessions.get(session.id)
        await session.branch_at(0)
        pause = await until(session, GoalPaused)
        assert pause.reason == "moved"
        assert await app.host.wake_due() == []


@pytest.mark.requirement("session:clear_goal")
async def test_a_goal_is_cleared_and_another_one_is_set(world: World) -> None:
    model = ScriptedModel([HELD, write("right"), "Done."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session)
        with pytest.raises(UsageError, match="a goal here already"):
            await started(session)
        assert await session.clear_goal()
        assert not await session.clear_goal()
        await started(session, text="another")
        model.gate("works").opened.set()
        await until(session, GoalEnded, after=(await facts(session, GoalEnded))[-1].seq)
        assert await reasons(session) == ["cleared", "done"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": " "}, "needs a text"),
        ({"check": None}, "needs a check"),
        ({"max_rounds": 0}, "more than 0"),
        ({"max_seconds": -1.0}, "more than 0"),
        ({"outside_sandbox": False}, "no sandbox here"),
        ({"judge": "nobody:none"}, "nobody"),
    ],
)
async def test_a_goal_that_could_never_end_well_is_refused(
    world: World, given: dict[str, object], says: str
) -> None:
    app = world.open(ScriptedModel(["never"]))
    async with app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match=says):
            await started(session, **given)  # type: ignore[arg-type]
        assert await session.goal() is None
        assert await facts(session, GoalSet, TurnStarted) == []


async def test_a_goal_is_refused_in_plan_mode(world: World) -> None:
    app = world.open(ScriptedModel(["never"]))
    async with app:
        session = await app.sessions.start_session(permission_mode="plan")
        with pytest.raises(UsageError, match="plan mode"):
            await started(session)


async def test_after_a_kill_the_goal_goes_on_in_its_mode_with_no_grant_it_did_not_have(
    world: World,
) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]))
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await started(session)
    await until(session, ModelCallStarted)
    await crash(app)
    app = world.open(ScriptedModel([write("wrong"), "Hm.", write("right"), "Done."]))
    async with app:
        assert await app.host.wake_due() == [session.id]
        again = await app.sessions.get(session.id)
        await until(again, GoalEnded)
        assert await reasons(again) == ["done"]
        assert await facts(again, PermissionRequest) == []
        assert len(await facts(again, SessionRestarted)) == 1
        assert await app.host.wake_due() == []
        # One request for each answer, and for the one that the kill cut off.
        assert len(await facts(again, ModelCallStarted)) == 5
        assert await told_modes(app, again.id) == ["accept_edits"]


async def told_modes(app: App, name: SessionId) -> list[str]:
    """The modes that the model was told, one after the other."""
    stored = [decode(record.body) for record in await app.store.read(name)]
    notes = [fact.text for fact in stored if isinstance(fact, SystemNote)]
    return [mode for text in notes for mode in MODES if f"Permission mode: {mode}." in text]


async def test_a_goal_whose_seal_is_not_ours_stays_still(world: World) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]))
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await started(session)
    await until(session, ModelCallStarted)
    await crash(app)
    (world.base / "unattended.key").write_bytes(b"another user's key: 32 letters ..")
    app = world.open(ScriptedModel([write("right"), "Done."]))
    async with app:
        assert await app.host.wake_due() == []
        again = await app.sessions.get(session.id)
        goal = await again.goal()
        assert goal is not None
        assert (goal.status, goal.reason, goal.is_sealed) == ("paused", "unsealed", False)
        assert not (world.project / "answer.txt").exists()
        assert await app.host.wake_due() == []


async def test_a_goal_that_kills_its_process_goes_on_three_times_an_hour(world: World) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]), clock=world.clock)
    await app.__aenter__()
    session = await app.sessions.start_session()
    await started(session)
    await until(session, ModelCallStarted)
    for _ in range(3):
        await crash(app)
        app = world.open(ScriptedModel([Stall(gate="never")]), clock=world.clock)
        await app.__aenter__()
        assert await app.host.wake_due() == [session.id]
        await until_call_of_this_process(await app.sessions.get(session.id))
    await crash(app)
    app = world.open(ScriptedModel(["never"]), clock=world.clock)
    async with app:
        assert await app.host.wake_due() == []
        goal = await (await app.sessions.get(session.id)).goal()
        assert goal is not None
        assert (goal.status, goal.reason) == ("paused", "restarts")


async def until_call_of_this_process(session: Session) -> None:
    [*_, last] = await facts(session, SessionRestarted)
    await until(session, ModelCallStarted, after=last.seq)


async def test_a_goal_ends_when_its_time_is_over_in_the_middle_of_a_turn(world: World) -> None:
    from tests.support.waiting_turns import open_world

    model = ScriptedModel([Stall(gate="never")])
    app, sleep = open_world(world, model)
    async with app:
        session = await app.sessions.start_session()
        await started(session, max_seconds=60.0)
        await until(session, ModelCallStarted)
        sleep.pass_time(61)
        await until(session, GoalEnded)
        assert await reasons(session) == ["max_time"]


async def test_a_time_that_is_edited_counts_for_the_turn_that_runs(world: World) -> None:
    from tests.support.waiting_turns import open_world

    app, sleep = open_world(world, ScriptedModel([Stall(gate="never")]))
    async with app:
        session = await app.sessions.start_session()
        await started(session)
        await until(session, ModelCallStarted)
        await session.edit_goal(max_seconds=60.0)
        await anyio.wait_all_tasks_blocked()
        sleep.pass_time(61)
        await until(session, GoalEnded)
        assert await reasons(session) == ["max_time"]


async def test_a_goal_that_was_paused_for_longer_still_ends_in_time(world: World) -> None:
    from tests.support.waiting_turns import open_world

    app, sleep = open_world(world, ScriptedModel([Stall(gate="never")]))
    async with app:
        session = await app.sessions.start_session()
        await started(session, max_seconds=60.0)
        await until(session, ModelCallStarted)
        await session.pause_goal()
        sleep.pass_time(600)
        await anyio.wait_all_tasks_blocked()
        await session.resume_goal()
        await anyio.wait_all_tasks_blocked()
        sleep.pass_time(61)
        await until(session, GoalEnded)
        assert await reasons(session) == ["max_time"]


async def test_nothing_waits_for_the_time_of_a_goal_that_is_over(world: World) -> None:
    from tests.support.waiting_turns import open_world

    model = ScriptedModel([write("wrong"), "I think so.", write("right"), "Now."])
    app, sleep = open_world(world, model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session, max_seconds=3600.0)
        await until(session, GoalEnded)
        await anyio.wait_all_tasks_blocked()
        assert 3600.0 in sleep.asked
        assert sleep.sleepers == 0


async def test_an_open_goal_needs_a_program_that_knows_goals(world: World) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]))
    async with app:
        session = await app.sessions.start_session()
        await started(session)
        rows = await app.store.due(app.host.now())
        assert [(row.id, row.min_reader) for row in rows] == [(session.id, LOOKS_READER)]


async def test_a_file_that_the_check_goes_by_is_named_when_it_was_changed(world: World) -> None:
    world.write("check.sh", "exit 1\n")
    cheat = CallTool(name="write", args={"path": "check.sh", "content": "exit 0\n"})
    read = CallTool(name="read", args={"path": "check.sh"})
    app = world.open(ScriptedModel([read, cheat, "Done."]))
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session, check="sh check.sh")
        await until(session, GoalEnded)
        goal = await session.goal()
        assert goal is not None
        assert goal.status == "done"
        assert "check.sh" in goal.detail


async def test_a_judge_is_asked_where_the_command_passes(world: World) -> None:
    no = '{"reached": false, "why": "the answer has no reason"}'
    yes = 'Well: {"reached": true, "why": "it is right, with a reason"}'
    judge = ScriptedModel([no, yes], info=JUDGE)
    model = ScriptedModel([write("right"), "Done.", write("right, because"), "Now."])
    app = world.open(model, judge)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session, judge="scripted:judge")
        await until(session, GoalEnded)
        checked = await facts(session, GoalChecked)
        assert [(each.by, each.done) for each in checked] == [("judge", False), ("judge", True)]
        assert "the answer has no reason" in await last_round(session)


async def test_a_judge_that_gives_no_verdict_pauses_the_goal(world: World) -> None:
    judge = ScriptedModel(["It looks fine to me."], info=JUDGE)
    app = world.open(ScriptedModel(["Done."]), judge)
    async with app:
        session = await app.sessions.start_session()
        await started(session, check=None, judge="scripted:judge")
        await until(session, GoalPaused)
        goal = await session.goal()
        assert goal is not None
        assert "no verdict" in goal.detail


async def test_a_goal_goes_on_when_the_budget_of_its_session_is_raised(world: World) -> None:
    dear = Spend(usage=Usage(input_tokens=1_000_000, output_tokens=1))
    model = ScriptedModel([(write("wrong"), dear), "Hm.", write("right"), "Done."], info=PRICED)
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await session.set_budget(usd=0.5)
        await started(session)
        pause = await until(session, GoalPaused)
        assert "budget" in pause.detail
        await session.set_budget(usd=9.0)
        await session.resume_goal()
        await until(session, GoalEnded)
        assert await reasons(session) == ["done"]


async def test_a_judge_keeps_the_budget_of_the_session(world: World) -> None:
    dear = Spend(usage=Usage(input_tokens=1_000_000, output_tokens=1))
    judge = ScriptedModel(['{"reached": true, "why": "it is"}'], info=JUDGE_PRICED)
    app = world.open(ScriptedModel([(SayText(text="Done."), dear)], info=PRICED), judge)
    async with app:
        session = await app.sessions.start_session()
        await session.set_budget(usd=0.5)
        await started(session, check=None, judge="scripted:judge", max_budget_usd=9.0)
        await until(session, GoalPaused)
        assert judge.request_count == 0


async def test_what_was_tried_is_in_the_decision_graph_when_it_ends(world: World) -> None:
    model = ScriptedModel([write("wrong"), "I think so.", write("right"), "Now."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await started(session, check=f"cat answer.txt; {CHECK}")
        await until(session, GoalEnded)
        entries = await app.decisions.nodes()
        found = {(each.kind, each.status): each.title for each in entries}
        assert found["goal", "done"] == "write the right answer"
        assert found["outcome", "done"].startswith("Reached: write the right answer")
        assert found["action", "abandoned"] == "Round 1: wrong"


async def test_a_message_of_a_user_is_never_a_round(world: World) -> None:
    app = world.open(ScriptedModel(["never"]))
    async with app:
        session = await app.sessions.start_session()
        prompt = SendPrompt(parts=(Text(text="hello"),), options={"goal": "gol_1"})
        with pytest.raises(UsageError, match="no round of a goal"):
            await (await session._port()).call(prompt)


async def test_a_goal_that_was_cleared_in_its_round_lends_nothing_to_later_turns(
    world: World,
) -> None:
    run = CallTool(name="shell", args={"command": "touch ran"})
    model = ScriptedModel([HELD, run, "Done."])
    app = world.open(model)
    async with app:
        session = await app.sessions.start_session()
        await started(session, check="touch ran")
        await until(session, ModelCallStarted)
        await session.clear_goal()
        model.gate("works").opened.set()
        await until_idle(session)
        await session.send_prompt("go on")
        await until(session, PermissionRequest)
        assert not (world.project / "ran").exists()


async def begun_check(world: World, session: Session) -> None:
    """A goal whose check has begun, and ends well when its gate is opened."""
    os.mkfifo(world.project / "gate")
    await started(session, check="cat gate")
    await until(session, ToolExecuting)


async def open_gate(world: World) -> None:
    await anyio.to_thread.run_sync((world.project / "gate").write_text, "now\n")


async def test_the_check_of_a_goal_that_was_cleared_does_not_end_the_next_one(
    world: World,
) -> None:
    app = world.open(ScriptedModel(["Done.", write("right"), "Done."]))
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await begun_check(world, session)
        await session.clear_goal()
        await started(session, text="another")
        await open_gate(world)
        await until(session, GoalEnded, after=(await facts(session, GoalEnded))[-1].seq)
        assert await reasons(session) == ["cleared", "done"]
        assert [each.round for each in await facts(session, GoalChecked)] == [1]
        assert world.read("answer.txt") == "right"


async def test_a_goal_that_is_edited_during_its_check_is_checked_as_it_is_now(
    world: World,
) -> None:
    app = world.open(ScriptedModel(["Done.", write("right"), "Done."]))
    async with app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await begun_check(world, session)
        await session.edit_goal(check=CHECK, outside_sandbox=True)
        await open_gate(world)
        await until(session, GoalEnded)
        assert [each.done for each in await facts(session, GoalChecked)] == [False, True]
        assert world.read("answer.txt") == "right"


async def test_a_resume_counts_no_time_in_which_no_process_worked(
    world: World,
) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]), clock=world.clock)
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await started(session, max_seconds=60.0)
    await until(session, ModelCallStarted)
    await crash(app)
    world.clock.advance(3600.0)
    app = world.open(ScriptedModel([write("right"), "Done."]), clock=world.clock)
    async with app:
        again = await app.sessions.get(session.id)
        await again.resume_goal()
        await until(again, GoalEnded)
        assert await reasons(again) == ["done"]


@pytest.mark.parametrize("is_paused", [False, True])
async def test_no_time_counts_before_the_first_thing_that_a_new_process_does(
    world: World, is_paused: bool
) -> None:
    app = world.open(ScriptedModel([Stall(gate="never")]), clock=world.clock)
    await app.__aenter__()
    session = await app.sessions.start_session(permission_mode="accept_edits")
    await started(session, max_seconds=60.0)
    await until(session, ModelCallStarted)
    await crash(app)
    world.clock.advance(3600.0)
    app = world.open(ScriptedModel(["Hello.", write("right"), "Done."]), clock=world.clock)
    async with app:
        again = await app.sessions.get(session.id)
        if is_paused:
            await again.pause_goal()
        else:
            await again.send_prompt("Are you there?")
            await until_idle(again)
        goal = await again.goal()
        assert goal is not None
        assert (goal.seconds, goal.reason) == (0.0, "user" if is_paused else "done")
        assert len(await facts(again, SessionRestarted)) == 1
