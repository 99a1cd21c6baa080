"""Hooks that a program hands over: called in its own process, held to the same contract as those
that are started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.hook_project import (
    HookProject,
    decides,
    facts,
    results,
    results_in,
    shell,
    write,
)
from tests.support.role_models import agent_call, role_model
from weft.app import App
from weft.errors import HookRefused, UsageError
from weft.events import ErrorRaised, PermissionRequest, ToolExecuting, TurnFinished
from weft.hooks.config import HookTable, read_callbacks
from weft.providers import ScriptedModel
from weft.providers.script import CallTool

pytestmark = [pytest.mark.anyio, pytest.mark.process]


class Program:
    """A program with one callback, which keeps what it is told."""

    def __init__(self, place: HookProject, *answers: Any) -> None:
        self._place = place
        self._answers = list(answers)
        self.heard: list[dict[str, Any]] = []
        self.called = anyio.Event()
        self._book = HookTable()

    def hands_over(self, event: str, **entry: Any) -> None:
        """Have the callback called at a moment."""
        table = {event: [{"hookCallbackIds": ["hook_0"], **entry}]}
        self._book.add(read_callbacks(table, "the program", self._call))

    async def _call(self, callback_id: str, told: Mapping[str, Any]) -> Any:
        assert callback_id == "hook_0"
        self.heard.append(dict(told))
        self.called.set()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        if answer == "never":
            await anyio.sleep_forever()
        return answer

    def open(self, config: dict[str, Any] | None = None) -> App:
        """The application that it drives."""
        return self._place.open(config, hooks=self._book)


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


DENY = specific(permissionDecision="deny", permissionDecisionReason="not downloaded")


async def test_a_callback_is_told_what_is_about_to_happen_and_its_deny_counts(
    place: HookProject,
) -> None:
    program = Program(place, DENY)
    program.hands_over("PreToolUse", matcher="Bash")
    model = ScriptedModel([[*shell("touch made"), CallTool(name="list", args={})], "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    [told] = program.heard
    assert (told["hook_event_name"], told["tool_name"]) == ("PreToolUse", "shell")
    assert told["tool_input"] == {"command": "touch made"}
    assert (told["session_id"], told["cwd"]) == (session.id, str(place.project))
    assert "not downloaded" in results(model)[0]
    assert not (place.project / "made").exists()


BROKEN: list[Any] = [
    RuntimeError("oops"),
    UsageError("the program has hung up"),
    BrokenPipeError(),
    None,
    "yes",
    [],
    specific(permissionDecision="Deny"),
    specific(permissionDecision="defer"),
    {"continue": "no"},
    {"hookSpecificOutput": ["deny"]},
    {"permissionDecision": "deny"},
    {"Decision": "block"},
    {"continue_": False},
    {"hook_specific_output": {"permissionDecision": "deny"}},
    specific(permission_decision="deny"),
    specific(updated_input={"command": "touch other"}),
    "never",
]


@pytest.mark.parametrize("broken", BROKEN, ids=str)
async def test_a_callback_that_breaks_blocks_the_call_and_the_message(
    place: HookProject, broken: Any
) -> None:
    program = Program(place, broken)
    program.hands_over("PreToolUse", timeout=0.05)
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        [error] = await facts(session, ErrorRaised)
        assert (error.where, error.error) == ("hook", "broken")
        program.hands_over("UserPromptSubmit", timeout=0.05)
        with pytest.raises(HookRefused, match="it failed"):
            await session.send_prompt("again")
    assert "has to approve this, and it failed" in results(model)[0]
    assert not (place.project / "made").exists()


@pytest.mark.parametrize(
    "answer",
    [{}, {"async": True}, {"reason": None, "unknown": 1}, {"suppressOutput": True}],
    ids=str,
)
async def test_an_answer_without_an_opinion_lets_the_call_pass(
    place: HookProject, answer: Any
) -> None:
    program = Program(place, answer)
    program.hands_over("PreToolUse")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        assert await facts(session, ErrorRaised) == []
    assert (place.project / "made").exists()


@pytest.mark.parametrize(
    ("event", "on_failure", "is_made"),
    [("PreToolUse", "continue", True), ("PermissionRequest", "block", False)],
)
async def test_a_program_may_say_what_its_failures_come_to(
    place: HookProject, event: str, on_failure: str, is_made: bool
) -> None:
    program = Program(place, RuntimeError("oops"))
    program.hands_over(event, onFailure=on_failure)
    model = ScriptedModel([shell("touch made"), "ok"])
    mode = "bypass" if event == "PreToolUse" else "default"
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode=mode)
        await session.send_message("go")
    assert (place.project / "made").exists() == is_made


async def test_an_input_that_a_callback_changes_is_judged_and_run(place: HookProject) -> None:
    program = Program(place, specific(updatedInput={"command": "touch other"}))
    program.hands_over("PreToolUse")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        [ran] = await facts(session, ToolExecuting)
    assert ran.args == {"command": "touch other"}
    assert [each.name for each in place.project.iterdir()] == ["other"]


async def test_the_users_own_hooks_speak_first_and_judge_what_a_callback_makes(
    place: HookProject,
) -> None:
    place.on("PreToolUse", "if grep -q other; then echo never >&2; exit 2; fi")
    program = Program(place, specific(updatedInput={"command": "touch other"}))
    program.hands_over("PreToolUse")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert "never" in results(model)[0]
    assert not list(place.project.iterdir())


async def test_a_callback_may_answer_a_request_with_another_input(place: HookProject) -> None:
    first = specific(decision={"behavior": "allow", "updatedInput": {"command": "touch other"}})
    program = Program(place, first, specific(decision={"behavior": "allow"}))
    program.hands_over("PermissionRequest")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("go")
        assert await facts(session, PermissionRequest) == []
    assert [each["tool_input"] for each in program.heard] == [
        {"command": "touch made"},
        {"command": "touch other"},
    ]
    assert [each.name for each in place.project.iterdir()] == ["other"]


async def test_inputs_that_never_settle_come_to_an_end(place: HookProject) -> None:
    answers = [
        specific(decision={"behavior": "allow", "updatedInput": {"command": f"touch {number}"}})
        for number in range(20)
    ]
    program = Program(place, *answers)
    program.hands_over("PermissionRequest")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("go")
    assert "never agreed on" in results(model)[0]
    assert not list(place.project.iterdir())


async def test_a_callback_may_deny_a_request_and_end_the_turn(place: HookProject) -> None:
    decision = {"behavior": "deny", "message": "enough", "interrupt": True}
    program = Program(place, specific(decision=decision))
    program.hands_over("PermissionRequest")
    model = ScriptedModel([shell("touch made"), "never said"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model)
        reply = await session.send_message("go")
    assert (reply.finish_reason, len(model.requests)) == ("halted", 1)


async def test_permissions_that_a_callback_would_update_answer_nothing(place: HookProject) -> None:
    decision = {"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "plan"}]}
    program = Program(place, specific(decision=decision))
    program.hands_over("PermissionRequest")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, asking="no")
        await session.send_message("go")
        [error] = await facts(session, ErrorRaised)
    assert "updatedPermissions" in error.message
    assert not (place.project / "made").exists()


async def test_a_callback_hears_of_success_and_of_failure_by_their_own_moments(
    place: HookProject,
) -> None:
    program = Program(place, {})
    program.hands_over("PostToolUse")
    program.hands_over("PostToolUseFailure")
    model = ScriptedModel([shell("true"), shell("echo no; false"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert [each["hook_event_name"] for each in program.heard] == [
        "PostToolUse",
        "PostToolUseFailure",
    ]
    assert "no" in program.heard[1]["error"]


@pytest.mark.parametrize("field", ["updatedToolOutput", "updatedMCPToolOutput"])
async def test_an_output_that_a_callback_would_replace_is_not_read_by_the_model(
    place: HookProject, field: str
) -> None:
    program = Program(place, specific(**{field: "[redacted]"}))
    program.hands_over("PostToolUse")
    model = ScriptedModel([shell("echo secret"), "never said"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        reply = await session.send_message("go")
        [finished] = await facts(session, TurnFinished)
    assert (reply.finish_reason, len(model.requests)) == ("halted", 1)
    assert "not supported" in finished.detail


async def test_context_at_the_end_lets_the_model_go_on_with_it(place: HookProject) -> None:
    program = Program(place, specific(additionalContext="the tests fail"), {})
    program.hands_over("Stop")
    model = ScriptedModel(["done", "really"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model)
        reply = await session.send_message("go")
    assert reply.text == "really"
    assert "the tests fail" in str(model.last_request.messages)


async def test_callbacks_hold_for_agents_too(place: HookProject) -> None:
    program = Program(place, DENY)
    program.hands_over("PreToolUse", matcher="Bash")
    model = role_model({"ask": [agent_call("do it"), "ok"], "do it": [shell("touch made"), "done"]})
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("ask")
        [child] = await session.children()
    [told] = program.heard
    assert (told["agent_id"], told["agent_type"]) == (child.id, "general")
    assert "not downloaded" in results_in(model.requests[2])[0]


async def test_a_hook_that_is_handed_over_later_counts_from_then_on(place: HookProject) -> None:
    program = Program(place, DENY)
    model = ScriptedModel([write("one"), "ok", write("two"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        program.hands_over("PreToolUse")
        await session.send_message("go")
    assert [each.name for each in place.project.iterdir()] == ["one"]


async def test_a_cancel_gives_the_call_up(place: HookProject) -> None:
    program = Program(place, "never")
    program.hands_over("PreToolUse")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_prompt("go")
        with anyio.fail_after(5):
            await program.called.wait()
            await session.abort()
    assert not (place.project / "made").exists()


@pytest.mark.parametrize(
    ("matcher", "tool", "matches"),
    [
        (None, "shell", True),
        ("", "shell", True),
        ("*", "shell", True),
        ("Bash", "shell", True),
        ("shell", "shell", True),
        ("Write|Edit", "edit", True),
        ("Write|Edit", "multi_edit", True),
        ("Write|Edit", "read", False),
        ("Bas", "shell", False),
        ("Ba.*", "shell", True),
        ("^(Write|Edit)$", "write", True),
        ("(Edit)", "multi_edit", True),
        ("Agent", "agent", True),
        ("Task", "agent", True),
        ("Bash", "", True),
    ],
)
def test_a_matcher_of_a_callback_means_what_it_means_where_it_comes_from(
    matcher: str | None, tool: str, matches: bool
) -> None:
    async def call(callback_id: str, told: Mapping[str, Any]) -> Any:
        raise AssertionError

    table = {"PreToolUse": [{"matcher": matcher, "hookCallbackIds": ["hook_0"]}]}
    [hook] = read_callbacks(table, "the program", call)
    assert hook.matches(tool) == matches


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"Notification": []}, "there is no hook event 'Notification'"),
        ({"PreToolUse": [{"matcher": "("}]}, "hooks.PreToolUse is not right"),
        ({"PreToolUse": [{"matcher": "(", "hookCallbackIds": ["a"]}]}, "not a regular expression"),
        ({"PreToolUse": [{"hookCallbackIds": ["a"], "timeout": 0}]}, "hooks.PreToolUse"),
        ({"PreToolUse": [{"hookCallbackIds": ["a"], "onFailure": "shrug"}]}, "onFailure"),
        ({"PreToolUse": [{"hookCallbackIds": ["a"], "if": "x"}]}, "`if`"),
        ({"PreToolUse": 3}, "hooks.PreToolUse"),
    ],
)
def test_what_is_handed_over_and_cannot_be_read_is_refused(
    table: dict[str, Any], said: str
) -> None:
    async def call(callback_id: str, told: Mapping[str, Any]) -> Any:
        raise AssertionError

    with pytest.raises(UsageError, match="the program: ") as refused:
        read_callbacks(table, "the program", call)
    assert said in str(refused.value)


async def test_a_program_and_the_user_may_both_decide(place: HookProject) -> None:
    place.on("PreToolUse", decides("allow"))
    program = Program(place, DENY)
    program.hands_over("PreToolUse")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with program.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("go")
    assert not (place.project / "made").exists()
