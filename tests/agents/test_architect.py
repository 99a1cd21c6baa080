"""Architect mode: planned by one model, approved by a person, carried out step by step by
another.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.support.role_models import AnswerSteps, RoleAnswers, role_model
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    request_lines,
    until,
    until_idle,
    until_status,
)
from weft.agents import PlanStep, WorkPlan
from weft.api.session import Session
from weft.app import App
from weft.errors import NoPendingRequest, StaleInput, UsageError
from weft.events import (
    ArchitectPhase,
    ArchitectPlan,
    ArchitectStep,
    ChildFinished,
    ChildStarted,
    ModeChanged,
    PermissionRequest,
    PlanDecided,
    PlanEdited,
    SessionCreated,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.messages import Usage
from weft.providers.script import CallTool, SayText, Spend, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def step(number: int, **more: Any) -> dict[str, Any]:
    """A step that creates a file."""
    return {
        "action": "create",
        "file": f"{number}.txt",
        "description": f"make file {number}",
        "details": f"It holds {number}.",
        **more,
    }


def submit(*steps: dict[str, Any], summary: str = "Make files.") -> CallTool:
    return CallTool(name="submit", args={"summary": summary, "steps": list(steps)})


def write(number: int) -> CallTool:
    return CallTool(name="write", args={"path": f"{number}.txt", "content": f"{number}\n"})


def planner(*answers: AnswerSteps) -> ScriptedModel:
    return role_model({"make": answers}, "script")


def editor(**roles: Sequence[AnswerSteps]) -> ScriptedModel:
    """The fast model; `make_1` plays the step that makes file 1."""
    plain: RoleAnswers = {f"make file {n}": [write(n), f"Made {n}."] for n in range(1, 5)}
    named = {name.replace("_", " file "): answers for name, answers in roles.items()}
    return role_model({**plain, **named}, "fast")


FAST = {"model.editor": "scripted:fast"}
LEAVES = pytest.mark.parametrize("leave", [crash, App.aclose])
"""How the program ends amid a turn."""


async def start(app: App, **settings: Any) -> Session:
    session = await app.sessions.start_session(session_id="s", **settings)
    await session.set_mode("architect")
    return session


def statuses(steps: list[ArchitectStep]) -> list[tuple[int, str]]:
    return [(each.index, each.status) for each in steps]


# --- from beginning to end -----------------------------------------------------------------


@pytest.mark.requirement("session:get_mode", "event:ArchitectPlan", "event:ArchitectStep")
async def test_a_plan_is_made_by_one_model_and_carried_out_by_the_other(world: World) -> None:
    strong = planner(CallTool(name="list"), submit(step(1), step(2)))
    fast = editor()
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        assert await session.get_mode() == "architect"
        reply = await session.send_message("make them")
        assert reply.finish_reason == "stop"
        assert reply.text.splitlines() == [
            "Make files.",
            "",
            "1. ✓ create 1.txt: make file 1 — Made 1.",
            "2. ✓ create 2.txt: make file 2 — Made 2.",
            "",
            "2 of 2 steps done.",
        ]
        assert (world.read("1.txt"), world.read("2.txt")) == ("1\n", "2\n")
        assert reply.deliverable["steps"] == {"0": "passed", "1": "passed"}
        assert (strong.request_count, fast.request_count) == (2, 4)
        [plan] = await facts(session, ArchitectPlan)
        assert [each["file"] for each in plan.plan["steps"]] == ["1.txt", "2.txt"]
        assert statuses(await facts(session, ArchitectStep)) == [
            (0, "started"),
            (0, "passed"),
            (1, "started"),
            (1, "passed"),
        ]
        assert {file.path for file in await session.touched_files()} == {"1.txt", "2.txt"}


@pytest.mark.parametrize(
    ("settings", "options", "levels"),
    [
        ({}, {}, ("default", "default")),
        ({"thinking": "low"}, {}, ("low", "low")),
        ({"plan_model": "scripted:script:max", "thinking": "low"}, {}, ("max", "low")),
        ({}, {"edit_model": "scripted/fast:off", "thinking": "high"}, ("high", "off")),
        ({"thinking": "off"}, {"plan_model": "scripted:script:default"}, ("default", "off")),
    ],
)
async def test_planner_and_editor_think_as_hard_as_their_names_say(
    world: World, settings: dict[str, Any], options: dict[str, Any], levels: tuple[str, str]
) -> None:
    strong, fast = planner(submit(step(1))), editor()
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True, **settings)
        await session.send_message("make it", **options)
    assert [request.thinking for request in strong.requests] == [levels[0]]
    assert {request.thinking for request in fast.requests} == {levels[1]}


async def test_the_configured_planner_and_editor_think_as_hard_as_their_names_say(
    world: World,
) -> None:
    strong, fast = planner(submit(step(1))), editor()
    config = {"model.architect": "scripted:script:high", "model.editor": "scripted/fast:minimal"}
    async with world.open(strong, fast, config=config) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make it")
    assert {request.thinking for request in strong.requests} == {"high"}
    assert {request.thinking for request in fast.requests} == {"minimal"}


async def test_the_planner_can_change_nothing_and_a_step_sees_nothing_but_itself(
    world: World,
) -> None:
    strong = planner(submit(step(1), step(2, action="run", file="", check="")))
    fast = editor(make_2=["Ran."])
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make them")
        offered = {tool.name for tool in strong.requests[0].tools}
        assert offered == {"read", "list", "find", "grep", "todo", "ask", "submit"}
        assert "You are the architect" in strong.requests[0].system
        first, _, second = fast.requests
        assert {tool.name for tool in first.tools} == {
            *("read", "write", "edit", "multi_edit", "list", "find", "grep")
        }
        assert {tool.name for tool in second.tools} == {
            *("read", "list", "find", "grep", "shell", "shell_output", "shell_stop")
        }
        [prompt] = request_lines(first)
        assert "It holds 1." in prompt
        assert "It holds 2." not in prompt
        assert "You carry out one step" in first.system


async def test_a_plan_without_steps_is_an_answer(world: World) -> None:
    strong = planner(submit(summary="It is fine as it is."))
    async with world.open(strong) as app:
        session = await start(app)
        reply = await session.send_message("make sense of it")
        assert (reply.finish_reason, reply.text) == ("stop", "It is fine as it is.")


async def test_a_plan_that_is_none_is_sent_back_to_the_planner(world: World) -> None:
    nowhere = step(1, file="")
    strong = planner(submit(nowhere), submit({"action": "guess"}), submit(step(1)))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, auto_approve=True)
        assert (await session.send_message("make it")).finish_reason == "stop"
        problems = [fact.result.text for fact in await facts(session, ToolComplete)][:2]
        assert "step 1 names no file" in problems[0]
        assert len(await facts(session, ArchitectPlan)) == 1


async def test_a_planner_that_never_hands_in_a_plan_ends_the_turn(world: World) -> None:
    bad = submit({"action": "guess"})
    async with world.open(planner(bad, bad, bad)) as app:
        session = await start(app)
        assert (await session.send_message("make it")).finish_reason == "schema_failed"


async def test_the_next_turn_sees_what_was_done(world: World) -> None:
    strong = planner(submit(step(1)), "unused", submit(summary="As I said."))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make it")
        await session.send_message("what did you do?")
        assert "1 of 1 steps done." in "\n".join(request_lines(strong.last_request))


async def test_one_message_can_be_planned_in_a_normal_session(world: World) -> None:
    strong = planner("Just an answer.")
    smart = role_model({"make": ["x", submit(summary="Planned.")]}, "smart")
    async with world.open(strong, smart) as app:
        session = await app.sessions.start_session()
        assert (await session.send_message("make it")).text == "Just an answer."
        reply = await session.send_message(
            "make it again", mode="architect", plan_model="scripted:smart"
        )
        assert reply.text == "Planned."
        assert await session.get_mode() == "normal"


@pytest.mark.requirement("session:set_mode")
async def test_modes_are_facts_and_others_are_refused(world: World) -> None:
    async with world.open(planner()) as app:
        session = await start(app)
        with pytest.raises(UsageError, match="no mode 'genius'; there are normal, architect"):
            await session.set_mode("genius")
        await session.set_mode("normal")
        assert [fact.mode for fact in await facts(session, ModeChanged)] == ["architect", "normal"]
        with pytest.raises(UsageError, match="leave out the schema"):
            await session.send_message("make", mode="architect", schema={"type": "object"})


# --- approval ------------------------------------------------------------------------------


@pytest.mark.requirement(
    "session:approve_plan", "session:edit_plan", "event:PlanEdited", "event:PlanDecided"
)
async def test_a_plan_waits_for_approval_and_can_be_edited_before_it(world: World) -> None:
    async with world.open(planner(submit(step(1), step(2))), editor(), config=FAST) as app:
        session = await start(app, permission_mode="accept_edits")
        await session.send_prompt("make them")
        await until_status(session, "awaiting_permission")
        pending = (await session.editor_snapshot()).pending_plan
        assert pending is not None
        assert len(pending["steps"]) == 2
        assert await facts(session, ArchitectStep) == []
        other = PlanStep(action="create", file="3.txt", description="make file 3", details="3")
        await session.edit_plan(WorkPlan(summary="Only one.", steps=(other,)))
        with pytest.raises(UsageError, match="invalid plan"):
            await session.edit_plan({"steps": []})
        await session.approve_plan()
        await until_idle(session)
        assert world.read("3.txt") == "3\n"
        assert not (world.project / "1.txt").exists()
        [edited] = await facts(session, PlanEdited)
        [decided] = await facts(session, PlanDecided)
        assert (edited.plan_id, decided.approved, decided.by) == (decided.plan_id, True, "person")
        with pytest.raises(NoPendingRequest):
            await session.approve_plan()


async def test_a_word_on_a_plan_that_comes_again_is_not_a_word_on_the_next(world: World) -> None:
    strong = planner(submit(step(1)), "x", submit(step(2)))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, permission_mode="accept_edits")
        for turn in ("make it", "make another"):
            await session.send_prompt(turn)
            await until_status(session, "awaiting_permission")
            await session.edit_plan(WorkPlan(summary="None.", steps=()), input_id="e")
            await session.reject_plan("no", input_id="r")
            if turn == "make it":
                await until_idle(session)
        assert len(await facts(session, PlanEdited)) == 1
        assert len(await facts(session, PlanDecided)) == 1
        assert await session.get_status() == "awaiting_permission"
        with pytest.raises(StaleInput):
            await session.approve_plan(input_id="r")
        await session.approve_plan(input_id="a")
        await until_idle(session)
        await session.approve_plan(input_id="a")
        assert world.read("2.txt") == "2\n"


@pytest.mark.requirement("session:reject_plan")
async def test_a_plan_that_is_turned_down_is_not_carried_out(world: World) -> None:
    strong = planner(submit(step(1)), "x", submit(summary="Understood."))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, permission_mode="accept_edits")
        await session.send_prompt("make it")
        await until_status(session, "awaiting_permission")
        await session.reject_plan("too simple")
        await until_idle(session)
        [finished] = await facts(session, TurnFinished)
        assert (finished.reason, finished.detail) == (
            "halted",
            "the plan was turned down: too simple",
        )
        assert not (world.project / "1.txt").exists()
        await session.send_message("then what?")
        assert any("too simple" in line for line in request_lines(strong.last_request))


async def test_without_a_user_a_plan_counts_as_turned_down(world: World) -> None:
    async with world.open(planner(submit(step(1)))) as app:
        session = await start(app, asking="no")
        reply = await session.send_message("make it")
        assert reply.finish_reason == "halted"
        assert "there is no user to approve it" in reply.text


async def test_there_is_no_plan_to_decide_on_where_none_waits(world: World) -> None:
    async with world.open(planner()) as app:
        session = await start(app)
        plan = WorkPlan(summary="x")
        for call in (session.approve_plan(), session.edit_plan(plan), session.reject_plan()):
            with pytest.raises(NoPendingRequest, match="no plan waits"):
                await call


async def test_what_a_plan_does_not_name_is_asked_for_on_the_sessions_record(
    world: World,
) -> None:
    other = step(1, file="other.txt")
    async with world.open(planner(submit(other)), editor(), config=FAST) as app:
        session = await start(app)
        await session.send_prompt("make it")
        await until_status(session, "awaiting_permission")
        await session.approve_plan()
        asked = await until(session, PermissionRequest)
        assert asked.tool_name == "step 1 ▸ write"
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        assert world.read("1.txt") == "1\n"


# --- checks and planning anew --------------------------------------------------------------


@pytest.mark.process
async def test_a_check_that_passes_lets_the_step_pass(world: World) -> None:
    strong = planner(submit(step(1, check="grep -q 1 1.txt")))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, auto_approve=True)
        assert (await session.send_message("make it")).finish_reason == "stop"
        [intent] = await facts(session, ToolExecuting)
        [complete] = [
            fact for fact in await facts(session, ToolComplete) if fact.call_uid == intent.call_uid
        ]
        assert (intent.tool_name, intent.target) == ("check", "grep -q 1 1.txt")
        assert intent.seq < complete.seq
        assert not complete.is_error


@pytest.mark.process
async def test_a_check_passes_the_gate_like_any_command(world: World) -> None:
    strong = planner(submit(step(1, check="touch checked.txt")), "x")
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, permission_mode="accept_edits")
        await session.send_prompt("make it")
        await until_status(session, "awaiting_permission")
        await session.approve_plan()
        asked = await until(session, PermissionRequest)
        assert (asked.tool_name, asked.tool_path) == ("check", "touch checked.txt")
        assert asked.preview == "# without a sandbox: it is switched off\ntouch checked.txt"
        assert not (world.project / "checked.txt").exists()
        await session.respond_to_permission("allow_once")
        await until_idle(session)
        assert (world.project / "checked.txt").exists()


@pytest.mark.process
async def test_the_answer_to_a_check_may_give_it_another_command(world: World) -> None:
    strong = planner(submit(step(1, check="touch checked.txt")))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, permission_mode="accept_edits")
        await session.send_prompt("make it")
        await until_status(session, "awaiting_permission")
        await session.approve_plan()
        asked = await until(session, PermissionRequest)
        assert asked.args == {"command": "touch checked.txt", "timeout_seconds": 600.0}
        await session.respond_to_permission(
            "allow_once", meta={"input": {"command": "touch other.txt"}}
        )
        await until_idle(session)
        names = {each.name for each in world.project.iterdir()}
        assert {"checked.txt", "other.txt"} & names == {"other.txt"}


@pytest.mark.process
async def test_a_hook_before_commands_judges_a_check_too(world: World) -> None:
    strong = planner(submit(step(1, check="touch checked.txt")), submit(summary="Unchecked, then."))
    hook = {"matcher": "Bash", "command": "echo hands off >&2; exit 2"}
    async with world.open(
        strong, editor(), config={**FAST, "hooks": {"PreToolUse": [hook]}}
    ) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make it")
        assert "hands off" in request_lines(strong.last_request)[-1]
    assert "checked.txt" not in {each.name for each in world.project.iterdir()}


@pytest.mark.process
async def test_a_failed_check_goes_back_to_the_planner_and_what_is_done_stays_done(
    world: World,
) -> None:
    strong = planner(
        submit(step(1), step(2, check="echo it is wrong; exit 3"), step(3)),
        submit(step(4), summary="Another way."),
    )
    fast = editor()
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        reply = await session.send_message("make them")
        assert reply.finish_reason == "stop"
        failure = request_lines(strong.last_request)[-1]
        assert "Step 2 of the plan failed" in failure
        assert "it is wrong" in failure
        assert "1. create 1.txt: make file 1" in failure
        assert statuses(await facts(session, ArchitectStep)) == [
            (0, "started"),
            (0, "passed"),
            (1, "started"),
            (1, "replanned"),
            (0, "started"),
            (0, "passed"),
        ]
        assert len(await facts(session, ArchitectPlan)) == 2
        assert (world.project / "4.txt").exists()
        assert not (world.project / "3.txt").exists()
        assert "1. ✓ create 1.txt" in reply.text
        assert "2. ✓ create 4.txt" in reply.text


@pytest.mark.process
async def test_a_new_plan_has_to_be_approved_like_the_first(world: World) -> None:
    strong = planner(submit(step(1, check="false")), submit(step(2)))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, permission_mode="bypass")
        await session.set_permission_mode("accept_edits")
        await session.send_prompt("make it")
        await until_status(session, "awaiting_permission")
        await session.approve_plan()
        await until(session, PermissionRequest)
        await session.respond_to_permission("allow_once")
        second = await until(
            session, ArchitectPlan, after=(await facts(session, ArchitectPlan))[0].seq
        )
        await until_status(session, "awaiting_permission")
        assert not (world.project / "2.txt").exists()
        await session.approve_plan()
        await until_idle(session)
        assert world.read("2.txt") == "2\n"
        assert (await facts(session, PlanDecided))[-1].plan_id == second.plan_id


@pytest.mark.process
async def test_a_step_that_keeps_failing_ends_the_turn(world: World) -> None:
    bad = submit(step(1, check="echo no; false"))
    strong = planner(bad, bad, bad, "never")
    async with world.open(strong, editor(make_1=["I did not."]), config=FAST) as app:
        session = await start(app, auto_approve=True)
        reply = await session.send_message("make it")
        assert reply.finish_reason == "halted"
        assert "step 1 failed" in reply.detail
        assert "✗ create 1.txt" in reply.text
        last = [status for _, status in statuses(await facts(session, ArchitectStep))]
        assert last == ["started", "replanned"] * 2 + ["started", "failed"]
        assert strong.request_count == 3


async def test_a_step_that_does_not_finish_goes_back_to_the_planner(world: World) -> None:
    strong = planner(submit(step(1)), submit(summary="Then not."))
    fast = editor(make_1=[CallTool(name="list"), CallTool(name="list"), "x"])
    config = {**FAST, "agents.step_turns": 2}
    async with world.open(strong, fast, config=config) as app:
        session = await start(app, auto_approve=True)
        assert (await session.send_message("make it")).text.startswith("Then not.")
        [failed] = [f for f in await facts(session, ArchitectStep) if f.status == "replanned"]
        assert "max_turns" in failed.detail


async def test_a_denied_check_counts_as_failed(world: World) -> None:
    strong = planner(submit(step(1, check="true")), submit(summary="Unchecked, then."))
    async with world.open(strong, editor(), config={**FAST, "permissions.deny": ["shell"]}) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make it")
        assert "was not run. Denied" in request_lines(strong.last_request)[-1]


# --- money ---------------------------------------------------------------------------------


async def test_steps_are_paid_from_the_sessions_budget(world: World) -> None:
    spend = Spend(usage=Usage(input_tokens=600))
    strong = planner((spend, submit(step(1), step(2))))
    fast = editor(make_1=[(spend, write(1)), "never"])
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True, budget={"max_tokens": 1_000})
        reply = await session.send_message("make them")
        assert reply.finish_reason == "max_budget"
        assert (strong.request_count, fast.request_count) == (1, 1)
        assert (await session.usage()).by_model["scripted:fast"].input_tokens == 600
        assert reply.usage.input_tokens == 1_200


# --- stopping and coming back --------------------------------------------------------------


@LEAVES
async def test_killed_or_closed_in_its_second_step_of_four_it_goes_on_there(
    world: World, leave: Callable[[App], Awaitable[None]]
) -> None:
    strong = planner(submit(*(step(n) for n in range(1, 5))))
    stalled = editor(make_2=[write(2), Stall()])
    app = await world.open(strong, stalled, config=FAST).__aenter__()
    session = await start(app, auto_approve=True)
    await session.send_prompt("make them")
    await stalled.gate().reached.wait()
    children = await session.children()
    await leave(app)
    (world.project / "1.txt").write_text("kept")
    fast = editor()
    async with world.open(strong, fast, config=FAST) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        assert await session.get_status() == "interrupted"
        reply = await session.continue_and_wait()
        assert reply.finish_reason == "stop"
        assert "4 of 4 steps done." in reply.text
        assert world.read("1.txt") == "kept", "the first step is not run again"
        assert strong.request_count == 1
        assert fast.request_count == 1 + 2 + 2, "the second step goes on after its write"
        assert [child.id for child in await session.children()][:2] == [c.id for c in children]
        assert len(await facts(session, ChildStarted)) == 4
        assert len(await facts(session, ChildFinished)) == 4


@LEAVES
async def test_killed_or_closed_while_it_waits_for_approval_it_waits_again(
    world: World, leave: Callable[[App], Awaitable[None]]
) -> None:
    strong = planner(submit(step(1)))
    app = await world.open(strong, editor(), config=FAST).__aenter__()
    session = await start(app, permission_mode="accept_edits")
    await session.send_prompt("make it")
    await until_status(session, "awaiting_permission")
    await leave(app)
    async with world.open(strong, editor(), config=FAST) as app:
        session = await app.sessions.get("s")
        await session.continue_turn()
        await until_status(session, "awaiting_permission")
        await session.approve_plan()
        await until_idle(session)
        assert world.read("1.txt") == "1\n"
    assert strong.request_count == 1


async def test_a_plan_approved_while_no_turn_ran_is_carried_out_when_it_goes_on(
    world: World,
) -> None:
    strong = planner(submit(step(1)))
    app = await world.open(strong, editor(), config=FAST).__aenter__()
    session = await start(app, permission_mode="accept_edits")
    await session.send_prompt("make it")
    await until_status(session, "awaiting_permission")
    await crash(app)
    async with world.open(strong, editor(), config=FAST) as app:
        session = await app.sessions.get("s")
        await session.approve_plan()
        assert (await session.continue_and_wait()).finish_reason == "stop"
        assert world.read("1.txt") == "1\n"


@LEAVES
async def test_killed_or_closed_while_planning_it_plans_on(
    world: World, leave: Callable[[App], Awaitable[None]]
) -> None:
    stalled = planner((SayText(text="Let me"), Stall()))
    app = await world.open(stalled, editor(), config=FAST).__aenter__()
    session = await start(app, auto_approve=True)
    await session.send_prompt("make it")
    await stalled.gate().reached.wait()
    await leave(app)
    strong = planner(submit(step(1)), submit(step(1)))  # whether or not it sees its first words
    async with world.open(strong, editor(), config=FAST) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        assert (await session.continue_and_wait()).finish_reason == "stop"
        assert "You are the architect" in strong.last_request.system
        assert world.read("1.txt") == "1\n"


@pytest.mark.process
async def test_killed_while_a_check_ran_the_user_is_told_and_it_is_run_again(
    world: World,
) -> None:
    wait = "echo run >> runs.txt; test -e go || cat started"
    strong = planner(submit(step(1, check=wait)))
    os.mkfifo(world.project / "started")  # opening it waits until the check does
    app = await world.open(strong, editor(), config=FAST).__aenter__()
    session = await start(app, auto_approve=True)
    await session.send_prompt("make it")
    started = await anyio.to_thread.run_sync(open, world.project / "started", "w")
    await crash(app)
    started.close()
    world.write("go", "")
    fast = editor()
    async with world.open(strong, fast, config=FAST) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        assert (await session.continue_and_wait()).finish_reason == "stop"
        assert world.read("runs.txt") == "run\nrun\n"
        notes = [note.text for note in await facts(session, SystemNote)]
        assert any("was interrupted" in note for note in notes)
        assert any("is run again" in note for note in notes)
        assert fast.request_count == 0


async def test_aborted_in_a_step_it_goes_on_with_that_step_and_counts_it_once(
    world: World,
) -> None:
    spend = Spend(usage=Usage(input_tokens=1_000))
    strong = planner(submit(step(1), step(2)))
    roles: dict[str, Any] = {
        "make file 1": [write(1), "Made 1."],
        "make file 2": [(spend, write(2)), (SayText(text="half"), Stall())],
    }
    fast = role_model(roles, "fast")
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_prompt("make them")
        await fast.gate().reached.wait()
        await session.abort()
        assert await session.get_status() == "idle"
        [finished] = await facts(session, TurnFinished)
        assert finished.reason == "aborted"
        after_abort = (await session.usage()).total.input_tokens
        roles["make file 2"] = [(spend, write(2)), "x", "Made 2."]
        reply = await session.continue_and_wait()
        assert reply.finish_reason == "stop"
        assert "2 of 2 steps done." in reply.text
        assert len(await session.children()) == 2
        ends = [fact.reason for fact in await facts(session, ChildFinished)]
        assert ends == ["stop", "aborted", "stop"]
        second = await app.sessions.get((await session.children())[1].id)
        used = (await second.usage()).total.input_tokens
        mine = (await session.usage()).total.input_tokens
        told_of_second = [
            fact.usage.input_tokens
            for fact in await facts(session, ChildFinished)
            if fact.child == second.id and fact.usage is not None
        ]
        assert sum(told_of_second) == used
        assert mine > after_abort


async def test_stopped_after_a_step_the_plan_goes_on_with_the_next_one(world: World) -> None:
    strong = planner(submit(step(1), step(2)))
    roles: dict[str, Any] = {
        "make file 1": [(write(1), Stall()), "Made 1."],
        "make file 2": [write(2), "Made 2."],
    }
    fast = role_model(roles, "fast")
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_prompt("make them")
        await fast.gate().reached.wait()
        assert await session.stop_after_step()
        fast.gate().opened.set()
        await until_idle(session)
        [finished] = await facts(session, TurnFinished)
        assert (finished.reason, finished.detail) == (
            "aborted",
            "stopped before step 2, as you asked",
        )
        assert statuses(await facts(session, ArchitectStep)) == [(0, "started"), (0, "passed")]
        reply = await session.continue_and_wait()
        assert "2 of 2 steps done." in reply.text
        assert len(await session.children()) == 2


async def test_aborted_while_it_waits_or_plans_it_ends_like_any_turn(world: World) -> None:
    strong = planner((SayText(text="Thinking about it"), Stall()))
    async with world.open(strong) as app:
        session = await start(app)
        await session.send_prompt("make it")
        await strong.gate().reached.wait()
        await session.abort()
        assert await message_lines(session) == ["user: make it", "assistant: Thinking about it"]
        [finished] = await facts(session, TurnFinished)
        assert finished.reason == "aborted"


async def test_continuing_after_a_plan_is_done_plans_something_new(world: World) -> None:
    strong = planner(submit(step(1)), "x", submit(summary="Nothing more."))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make it")
        assert (await session.continue_and_wait()).text == "Nothing more."


async def test_what_is_said_during_a_step_starts_the_next_turn(world: World) -> None:
    strong = planner(submit(step(1)), "x", submit(summary="Heard."))
    fast = editor(make_1=[(Stall(), write(1)), "Made 1."])
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_prompt("make it")
        await fast.gate().reached.wait()
        assert (await session.queue_steering("one more thing")).status == "steering"
        fast.gate().opened.set()
        await until(session, TurnFinished)
        await until_idle(session)
        assert (await message_lines(session))[-1] == "assistant: Heard."


# --- the rest ------------------------------------------------------------------------------


async def test_a_step_is_a_child_of_the_session_and_held_to_its_boundary(world: World) -> None:
    world.write("1.txt", "a\nb\nc\n")
    bounded = step(1, action="edit", boundary={"first": 1, "last": 1})
    strong = planner(submit(bounded))
    read = CallTool(name="read", args={"path": "1.txt"})
    outside = CallTool(name="edit", args={"path": "1.txt", "old_string": "a", "new_string": "A"})
    inside = CallTool(name="edit", args={"path": "1.txt", "old_string": "b", "new_string": "B"})
    fast = editor(make_1=[read, outside, inside, "Done."])
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.send_message("make it")
        [info] = await session.children()
        assert (info.purpose, info.name, info.reason) == ("step", "step 1", "stop")
        child = await app.sessions.get(info.id)
        [created] = await facts(child, SessionCreated)
        assert created.parent is not None
        assert created.parent.session_id == "s"
        assert [fact.is_error for fact in await facts(child, ToolComplete)] == [False, True, False]
        assert world.read("1.txt") == "a\nB\nc\n"


async def test_a_boundary_of_the_session_holds_for_its_steps(world: World) -> None:
    world.write("1.txt", "a\nb\nc\n")
    strong = planner(submit(step(1, action="edit")))
    read = CallTool(name="read", args={"path": "1.txt"})
    outside = CallTool(name="edit", args={"path": "1.txt", "old_string": "a", "new_string": "A"})
    fast = editor(make_1=[read, outside, "I may not."])
    async with world.open(strong, fast, config=FAST) as app:
        session = await start(app, auto_approve=True)
        await session.set_boundary("1.txt", 1, 1)
        await session.send_message("make it")
        child = await app.sessions.get((await session.children())[0].id)
        refused = (await facts(child, ToolComplete))[-1]
        assert "only line 2" in refused.result.text
        assert world.read("1.txt") == "a\nb\nc\n"


@pytest.mark.process
@pytest.mark.requirement("event:ArchitectPhase")
async def test_the_phases_are_shown_as_they_come(world: World) -> None:
    strong = planner(submit(step(1, check="true")))
    async with world.open(strong, editor(), config=FAST) as app:
        session = await start(app, permission_mode="bypass")
        phases: list[tuple[str, int | None]] = []
        async with await session.subscribe() as events:
            await session.send_prompt("make it")
            with anyio.fail_after(10):
                async for event in events:
                    if isinstance(event, ArchitectPhase):
                        phases.append((event.phase, event.step))
                    if isinstance(event, TurnFinished):
                        break
        assert phases == [("planning", None), ("executing", 0), ("checking", 0), ("done", None)]
