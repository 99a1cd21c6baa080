"""What an answer to a request for permission may say besides yes and no: another input, rules for
the session, and that the turn is to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.hook_project import HookProject, decides, facts, results, shell, write
from tests.support.role_models import agent_call, role_model
from weft import faults
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import (
    PermissionRequest,
    PermissionResolved,
    SessionRestarted,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.permissions import PermissionRule
from weft.providers import ScriptedModel
from weft.providers.script import CallTool

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


async def next_request(session: Session, after: int = 0) -> PermissionRequest:
    """The request that waits, which is the one behind `after` others."""
    with anyio.fail_after(5):
        async with await session.subscribe(after=0) as events:
            async for event in events:
                if isinstance(event, PermissionRequest):
                    if not after:
                        return event
                    after -= 1
    raise AssertionError("the session ended without a request")


async def ended(session: Session) -> TurnFinished:
    with anyio.fail_after(5):
        async with await session.subscribe(after=0) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    return event
    raise AssertionError("the session ended without an end of its turn")


async def answer(session: Session, action: Any, **meta: Any) -> TurnFinished:
    """Answer what waits, and wait for the end of the turn."""
    request = await next_request(session)
    await session.respond_to_permission(action, request_id=request.request_id, meta=meta)
    return await ended(session)


# --- another input --------------------------------------------------------------------------


async def test_another_input_is_what_runs_and_what_the_log_and_the_model_are_told(
    place: HookProject,
) -> None:
    model = ScriptedModel([write("a.txt", "original"), "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", input={"path": "a.txt", "content": "other"})
        [ran] = await facts(session, ToolExecuting)
        [note] = await facts(session, SystemNote)
    assert (place.project / "a.txt").read_text() == "other"
    assert ran.args == {"path": "a.txt", "content": "other"}
    assert note.to_model
    assert "The user changed the input" in note.text
    assert '"content":"other"' in note.text


async def test_another_input_is_judged_by_the_rules_again(place: HookProject) -> None:
    model = ScriptedModel([write("a.txt"), "done"])
    async with place.open({"permissions.deny": ["write(b.txt)"]}) as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", input={"path": "b.txt", "content": "x"})
    assert "write(b.txt)" in results(model)[0]
    assert not list(place.project.iterdir())


async def test_another_input_is_held_to_the_boundaries(place: HookProject) -> None:
    place.write("a.txt", "one\ntwo\n")
    read = CallTool(name="read", args={"path": "a.txt"})
    edit = CallTool(name="edit", args={"path": "a.txt", "old_string": "one", "new_string": "first"})
    model = ScriptedModel([[read], [edit], "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.set_boundary("a.txt", 0, 0)
        await session.send_prompt("go")
        given = {"path": "a.txt", "old_string": "two", "new_string": "second"}
        await answer(session, "allow_once", input=given)
    assert (place.project / "a.txt").read_text() == "one\ntwo\n"
    assert "Denied" not in results(model)[1]


@pytest.mark.process
async def test_another_input_is_judged_by_the_hooks_again(place: HookProject) -> None:
    check = 'if grep -q "rm -rf" ; then echo "too bold" >&2; exit 2; fi'
    place.on("PreToolUse", check)
    model = ScriptedModel([shell("touch made"), "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", input={"command": "rm -rf ."})
    assert "too bold" in results(model)[0]


@pytest.mark.process
async def test_another_input_that_does_not_fit_the_tool_runs_nothing(place: HookProject) -> None:
    model = ScriptedModel([shell("touch made"), "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", input={"commando": "touch other"})
        [done] = await facts(session, ToolComplete)
    assert done.result.status == "invalid"
    assert not list(place.project.iterdir())


@pytest.mark.process
async def test_what_a_hook_makes_of_another_input_is_asked_about(place: HookProject) -> None:
    changed = decides("ask", updatedInput={"command": "touch by-hook"})
    place.on("PreToolUse", f"if grep -q by-user; then {changed}; else cat > /dev/null; fi")
    model = ScriptedModel([shell("touch made"), "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        first = await next_request(session)
        await session.respond_to_permission(
            "allow_once",
            request_id=first.request_id,
            meta={"input": {"command": "touch by-user"}},
        )
        second = await next_request(session, after=1)
        await session.respond_to_permission("allow_once", request_id=second.request_id)
        await ended(session)
    assert (first.args, second.args) == (None, {"command": "touch by-hook"})
    assert [each.name for each in place.project.iterdir()] == ["by-hook"]


async def test_a_program_that_does_not_know_of_inputs_reads_a_denial(place: HookProject) -> None:
    """What is stored for another input must not be taken for leave for the one that was shown."""
    model = ScriptedModel([write("a.txt"), "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", input={"path": "b.txt", "content": "x"})
        [resolved] = await facts(session, PermissionResolved)
    assert (resolved.action, resolved.instead) == ("deny", {"path": "b.txt", "content": "x"})


@pytest.mark.process
async def test_after_a_crash_the_other_input_runs_and_never_the_one_that_was_shown(
    place: HookProject,
) -> None:
    def crash(name: str) -> None:
        raise RuntimeError(name)

    model = ScriptedModel([shell("touch shown"), "done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await next_request(session)
        faults.arm("loop.intent.before", action=crash)
        await answer(session, "allow_once", input={"command": "touch other"})
        assert len(await facts(session, SessionRestarted)) == 1
        assert len(await facts(session, PermissionRequest)) == 1
    assert [each.name for each in place.project.iterdir()] == ["other"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("action", "meta"),
    [
        ("allow_always", {"input": {"command": "ls"}}),
        ("deny", {"input": {"command": "ls"}}),
        ("allow_once", {"input": "ls"}),
        ("allow_once", {"interrupt": True}),
        ("allow_once", {"rules": ["Bash"]}),
    ],
)
async def test_an_answer_that_contradicts_itself_is_refused_and_approves_nothing(
    place: HookProject, action: Any, meta: dict[str, Any]
) -> None:
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel([shell("touch made"), "x"]))
        await session.send_prompt("go")
        await next_request(session)
        with pytest.raises(UsageError):
            await session.respond_to_permission(action, meta=meta)
        await session.abort()
    assert not (place.project / "made").exists()


# --- the end of the turn --------------------------------------------------------------------


@pytest.mark.process
async def test_a_denial_may_end_the_turn_and_the_next_one_tells_the_model_why(
    place: HookProject,
) -> None:
    model = ScriptedModel([[*shell("touch made"), *write("later.txt")], "next"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="accept_edits")
        await session.send_prompt("go")
        finished = await answer(session, "deny", interrupt=True, reason="hands off")
        assert (finished.reason, finished.detail) == ("aborted", "hands off")
        assert len(model.requests) == 1
        await session.send_message("and now?")
    assert "They said: hands off" in results(model)[0]
    assert not list(place.project.iterdir())


@pytest.mark.process
async def test_a_denial_that_ends_the_turn_ends_that_of_an_agents_session_too(
    place: HookProject,
) -> None:
    model = role_model(
        {"user": [agent_call("touch it")], "touch it": [shell("touch made"), "went on"]}
    )
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("user")
        finished = await answer(session, "deny", interrupt=True, reason="hands off")
        assert finished.reason == "aborted"
    assert not (place.project / "made").exists()


# --- requests of agents ---------------------------------------------------------------------


@pytest.mark.process
async def test_a_request_of_an_agent_says_what_input_it_is_about_and_takes_another(
    place: HookProject,
) -> None:
    model = role_model(
        {"user": [agent_call("touch it"), "fine"], "touch it": [shell("touch made"), "done"]}
    )
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("user")
        request = await next_request(session)
        assert request.args == {"command": "touch made"}
        await session.respond_to_permission(
            "allow_once",
            request_id=request.request_id,
            meta={"input": {"command": "touch other"}},
        )
        await ended(session)
    assert [each.name for each in place.project.iterdir()] == ["other"]


# --- rules ----------------------------------------------------------------------------------


@pytest.mark.process
async def test_rules_of_an_answer_hold_for_the_session(place: HookProject) -> None:
    looks = [CallTool(name="list", args={})]
    model = ScriptedModel([shell("touch one"), shell("touch two"), looks, "done"])
    allow = PermissionRule(verdict="allow", tool="shell", pattern="touch two", is_exact=True)
    deny = PermissionRule(verdict="deny", tool="list")
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", rules=[allow, deny])
        other = await app.sessions.start_session(model=ScriptedModel([shell("touch two"), "x"]))
        await other.send_prompt("go")
        await next_request(other)
        await other.abort()
    assert {each.name for each in place.project.iterdir()} == {"one", "two"}
    assert "deny list" in results(model)[2]


@pytest.mark.parametrize(
    "rule",
    [
        PermissionRule(verdict="deny", tool="shell", pattern="* rm"),
        PermissionRule(verdict="deny", tool="Reed"),
    ],
    ids=str,
)
async def test_an_answer_with_a_rule_that_would_do_nothing_approves_nothing(
    place: HookProject, rule: PermissionRule
) -> None:
    async with place.open() as app:
        model = ScriptedModel([[CallTool(name="write", args={"path": "a", "content": "x"})], "x"])
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        request = await next_request(session)
        with pytest.raises(UsageError, match="cannot be taken"):
            await session.respond_to_permission(
                "allow_once", request_id=request.request_id, meta={"rules": [rule]}
            )
        await session.abort()
    assert not (place.project / "a").exists()


@pytest.mark.process
async def test_what_an_answer_denies_is_denied_to_agents_too(place: HookProject) -> None:
    model = role_model(
        {
            "user": [shell("touch one"), agent_call("write it"), "fine"],
            "write it": [write("a.txt"), "tried"],
        }
    )
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="default")
        await session.send_prompt("user")
        request = await next_request(session)
        await session.set_permission_mode("accept_edits")
        await session.respond_to_permission(
            "allow_once",
            request_id=request.request_id,
            meta={"rules": [PermissionRule(verdict="deny", tool="write")]},
        )
        await ended(session)
    assert not (place.project / "a.txt").exists()


@pytest.mark.process
async def test_rules_of_an_answer_do_not_outlive_the_process(
    place: HookProject, tmp_path: Path
) -> None:
    store = tmp_path / "weft.db"
    allow = PermissionRule(verdict="allow", tool="shell", pattern="touch two", is_exact=True)
    async with place.open(store=store) as app:
        model = ScriptedModel([shell("touch one"), "done"])
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await answer(session, "allow_once", rules=[allow])
    async with place.open(store=store) as app:
        again = ScriptedModel([shell("touch two"), "done"])
        session = await app.sessions.start_session(session_id=session.id, model=again)
        await session.send_prompt("go")
        await next_request(session, after=1)
        await session.abort()
    assert not (place.project / "two").exists()
