"""Hooks: the person's own programs, and what their word counts for in a session."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.support.hook_project import (
    KEEP,
    HookProject,
    decides,
    facts,
    results,
    results_in,
    says,
    shell,
    write,
)
from tests.support.role_models import AnswerSteps, agent_call, role_model
from tests.support.source_code import ROOT
from weft.api.session import Session
from weft.errors import HookRefused, SessionError, UsageError
from weft.events import (
    Compacted,
    ErrorRaised,
    PermissionRequest,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.hooks.config import EVENTS, read_hooks
from weft.hooks.process import HookOutput
from weft.providers import ScriptedModel
from weft.providers.script import CallTool

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


# --- before a call -------------------------------------------------------------------------


async def test_a_hook_is_told_what_is_about_to_happen(place: HookProject) -> None:
    place.on("PreToolUse", KEEP, matcher="shell")
    model = ScriptedModel([shell("echo 1"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    [told] = place.heard()
    assert told.pop("tool_use_id")
    assert told == {
        "session_id": session.id,
        "cwd": str(place.project),
        "permission_mode": "bypass",
        "hook_event_name": "PreToolUse",
        "tool_name": "shell",
        "tool_input": {"command": "echo 1"},
    }


async def test_exit_code_2_blocks_and_the_model_reads_why(place: HookProject) -> None:
    place.on("PreToolUse", "echo no touching >&2; exit 2", matcher="shell")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        assert await facts(session, ToolExecuting) == []
        [done] = await facts(session, ToolComplete)
    assert done.result.status == "denied"
    assert results(model) == ["Denied: a hook blocked it: no touching."]
    assert not (place.project / "made").exists()


@pytest.mark.parametrize(
    ("matcher", "blocks"),
    [
        ("", True),
        ("*", True),
        ("shell|write", True),
        ("Bash", True),
        ("she", False),
        ("w.*", False),
    ],
)
async def test_a_matcher_means_the_whole_name_of_a_tool(
    place: HookProject, matcher: str, blocks: bool
) -> None:
    place.on("PreToolUse", "exit 2", matcher=matcher)
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert (place.project / "made").exists() is not blocks


@pytest.mark.parametrize(
    "command",
    [
        "kill -9 $$",
        "exec /no/such/program",
        "no-such-command-here",
        "echo '{not json'",
        'echo \'{"hookSpecificOutput": {"permissionDecision": "perhaps"}}\'',
        'echo \'{"permissionDecision": "deny"}\'',
        'echo \'{"hookSpecificOutput": {"permission_decision": "deny"}}\'',
        "sh -c 'kill -9 $$'; exit 137",
    ],
)
async def test_a_veto_that_breaks_blocks_and_says_so_once(place: HookProject, command: str) -> None:
    place.on("PreToolUse", command)
    model = ScriptedModel([shell("touch made"), shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        [raised] = await facts(session, ErrorRaised)
    assert raised.where == "hook"
    assert not (place.project / "made").exists()
    assert all("has to approve this, and it failed" in text for text in results(model))


async def test_a_hook_that_hangs_is_killed_with_all_it_started_and_blocks(
    place: HookProject,
) -> None:
    place.on(
        "PreToolUse",
        'sleep 300 & echo $! > "$WEFT_PROJECT_DIR/child"; trap "" TERM; wait',
        timeout=0.2,
    )
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        with anyio.fail_after(20):
            await session.send_message("go")
    child = int((place.project / "child").read_text())
    assert not _is_alive(child)
    assert "it took longer than 0.2 s and was killed" in results(model)[0]
    assert not (place.project / "made").exists()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


async def test_another_exit_code_is_reported_once_and_blocks_nothing(place: HookProject) -> None:
    place.on("PreToolUse", "echo oops >&2; exit 1")
    model = ScriptedModel([shell("touch made"), shell("touch made2"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        [raised] = await facts(session, ErrorRaised)
    assert "exit code 1: oops" in raised.message
    assert (place.project / "made2").exists()


async def test_a_hook_that_must_succeed_blocks_with_any_exit_code(place: HookProject) -> None:
    place.on("PreToolUse", "exit 1", must_succeed=True)
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert not (place.project / "made").exists()


async def test_a_hook_may_answer_what_the_mode_asks(place: HookProject) -> None:
    place.on("PreToolUse", decides("allow", "it is harmless"), matcher="shell")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("go")
        assert await facts(session, PermissionRequest) == []
    assert (place.project / "made").exists()


@pytest.mark.parametrize("verdict", ["ask", "deny"])
async def test_no_hook_lifts_a_rule_of_the_user(place: HookProject, verdict: str) -> None:
    place.on("PreToolUse", decides("allow"))
    place.on("PermissionRequest", decides("allow"))
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open({f"permissions.{verdict}": ["shell"]}) as app:
        session = await app.sessions.start_session(
            model=model, asking="no", permission_mode="bypass"
        )
        await session.send_message("go")
    assert not (place.project / "made").exists()


async def test_deny_beats_allow_whichever_hook_speaks_first(tmp_path: Path) -> None:
    for number, order in enumerate([("allow", "deny"), ("deny", "allow")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        place = HookProject(folder)
        for decision in order:
            place.on("PreToolUse", decides(decision))
        model = ScriptedModel([shell("touch made"), "ok"])
        async with place.open() as app:
            session = await app.sessions.start_session(model=model)
            await session.send_message("go")
        assert not (place.project / "made").exists()


async def test_a_hook_may_ask_where_the_mode_does_not(place: HookProject) -> None:
    place.on("PreToolUse", decides("ask", "look at it first"))
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(
            model=model, permission_mode="bypass", asking="no"
        )
        await session.send_message("go")
    assert "there is no one to ask" in results(model)[0]
    assert not (place.project / "made").exists()


async def test_a_changed_input_is_what_runs_what_is_judged_and_what_is_told(
    place: HookProject,
) -> None:
    changed = {"command": "touch changed"}
    place.on("PreToolUse", decides("allow", updatedInput=changed), matcher="shell")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        [intent] = await facts(session, ToolExecuting)
        notes = [note.text for note in await facts(session, SystemNote)]
    assert intent.args == changed
    assert (place.project / "changed").exists()
    assert not (place.project / "made").exists()
    assert any("A hook changed the input" in note and "touch changed" in note for note in notes)
    assert "touch changed" in str(model.last_request.messages)


async def test_a_changed_input_is_judged_by_the_rules_again(place: HookProject) -> None:
    place.on("PreToolUse", decides("allow", updatedInput={"path": "secret", "content": "x"}))
    model = ScriptedModel([write("harmless"), "ok"])
    async with place.open({"permissions.deny": ["write(secret)"]}) as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert "Denied: the rule" in results(model)[0]
    assert not (place.project / "secret").exists()


async def test_a_changed_input_is_judged_by_the_hooks_that_spoke_before(place: HookProject) -> None:
    forbid = "grep -q evil && { echo evil >&2; exit 2; }; exit 0"
    place.on("PreToolUse", forbid)
    place.on("PreToolUse", decides("allow", updatedInput={"command": "touch evil"}))
    model = ScriptedModel([shell("touch good"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert results(model) == ["Denied: a hook blocked it: evil."]
    assert not (place.project / "evil").exists()


async def test_a_changed_input_that_does_not_fit_the_tool_runs_nothing(place: HookProject) -> None:
    place.on("PreToolUse", decides("allow", updatedInput={"nonsense": 1}))
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    assert done.result.status == "invalid"
    assert not (place.project / "made").exists()


async def test_what_is_denied_anyway_runs_no_hook(place: HookProject) -> None:
    place.on("PreToolUse", KEEP)
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="plan")
        await session.send_message("go")
    assert place.heard() == []


async def test_a_hook_may_end_the_turn(place: HookProject) -> None:
    place.on("PreToolUse", says({"continue": False, "stopReason": "enough for today"}))
    model = ScriptedModel([shell("touch made"), "never said"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        reply = await session.send_message("go")
        [finished] = await facts(session, TurnFinished)
    assert reply.finish_reason == "halted"
    assert "enough for today" in finished.detail
    assert len(model.requests) == 1
    assert not (place.project / "made").exists()


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
async def test_a_hook_that_ends_the_turn_lets_no_later_call_run(
    place: HookProject, event: str
) -> None:
    place.on(event, says({"continue": False, "stopReason": "enough"}), matcher="shell|list")
    later = [*write("later.txt"), CallTool(name="read", args={"path": "kept.txt"})]
    place.write("kept.txt", "what was kept")
    for first in (shell("true"), [CallTool(name="list", args={})]):
        model = ScriptedModel([[*first, *later], "never said"])
        async with place.open() as app:
            session = await app.sessions.start_session(model=model, permission_mode="bypass")
            reply = await session.send_message("go")
            done = await facts(session, ToolComplete)
        assert reply.finish_reason == "halted"
        assert not (place.project / "later.txt").exists()
        assert [each.result.status for each in done[1:]] == ["aborted", "aborted"]
        assert "what was kept" not in done[2].result.text


async def test_a_hook_that_ends_the_turn_stops_calls_that_had_permission_already(
    place: HookProject,
) -> None:
    place.on("PreToolUse", says({"continue": False, "stopReason": "enough"}), matcher="list")
    place.write("kept.txt", "what was kept")
    together = [CallTool(name="read", args={"path": "kept.txt"}), CallTool(name="list", args={})]
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel([together, "never said"]))
        await session.send_message("go")
        done = {each.result.status for each in await facts(session, ToolComplete)}
    assert done == {"aborted", "denied"}


async def test_what_a_hook_says_holds_no_secret_that_we_hold(place: HookProject) -> None:
    place.on(
        "PreToolUse",
        "echo the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 >&2; exit 2",
    )
    model = ScriptedModel([shell("true"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert "a hook blocked it: the key is" in results(model)[0]
    assert "abcdefghijklmnop" not in results(model)[0]


# --- before a person is asked --------------------------------------------------------------


@pytest.mark.parametrize("behavior", ["allow", "deny"])
async def test_a_hook_may_answer_a_request_in_the_users_place(
    place: HookProject, behavior: str
) -> None:
    answer = {"hookSpecificOutput": {"decision": {"behavior": behavior, "message": "I know it"}}}
    place.on("PermissionRequest", says(answer))
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("go")
        assert await facts(session, PermissionRequest) == []
    assert (place.project / "made").exists() is (behavior == "allow")


async def test_a_broken_hook_before_asking_leaves_the_answer_to_the_user(
    place: HookProject,
) -> None:
    place.on("PermissionRequest", "kill -9 $$")
    model = ScriptedModel([shell("touch made"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await _until(session, PermissionRequest)
        await session.respond_to_permission("deny")


# --- after a call --------------------------------------------------------------------------


async def test_what_a_hook_says_about_a_result_reaches_the_model(place: HookProject) -> None:
    place.on("PostToolUse", f"{KEEP}; echo please format it >&2; exit 2", matcher="write")
    model = ScriptedModel([write("a.py", "x=1"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="accept_edits")
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    [told] = place.heard()
    assert told["tool_response"]["is_error"] is False
    assert done.result.status == "done"
    assert "please format it" in str(model.last_request.messages)
    assert (place.project / "a.py").read_text() == "x=1"


async def test_an_effect_is_on_record_before_a_hook_sees_its_result(place: HookProject) -> None:
    """Looked at through another reader of the same file, from inside the hook."""
    reader = place.write(
        "look.py",
        "import sqlite3, sys, os\n"
        "db = sqlite3.connect(os.environ['WEFT_PROJECT_DIR'] + '/../weft.db')\n"
        "rows = [row[0] for row in db.execute('select kind from facts order by seq')]\n"
        "open(os.environ['WEFT_PROJECT_DIR'] + '/kinds', 'w').write(' '.join(rows))\n",
    )
    place.on("PostToolUse", f"{sys.executable} {reader}")
    model = ScriptedModel([write("a.py"), "ok"])
    async with place.open(store=place.project.parent / "weft.db") as app:
        session = await app.sessions.start_session(model=model, permission_mode="accept_edits")
        await session.send_message("go")
        assert await facts(session, ErrorRaised) == []
    kinds = (place.project / "kinds").read_text().split()
    assert "tool_complete" in kinds


async def test_a_broken_hook_after_a_call_changes_nothing(place: HookProject) -> None:
    place.on("PostToolUse", "kill -9 $$")
    model = ScriptedModel([write("a.py"), write("b.py"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="accept_edits")
        reply = await session.send_message("go")
        [raised] = await facts(session, ErrorRaised)
    assert reply.finish_reason == "stop"
    assert "signal 9" in raised.message


# --- stopping ------------------------------------------------------------------------------


async def test_a_hook_may_send_the_model_back_to_work_but_not_for_ever(place: HookProject) -> None:
    place.on("Stop", f"{KEEP}; echo the tests still fail >&2; exit 2")
    model = ScriptedModel(["done", "done again", "really", "now"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        reply = await session.send_message("go")
    assert reply.finish_reason == "stop"
    assert reply.text == "now"
    assert [told["stop_hook_active"] for told in place.heard()] == [False, True, True]
    assert place.heard()[0]["last_assistant_message"] == "done"
    assert "the tests still fail" in str(model.requests[1].messages)


async def test_a_hook_that_lets_it_stop_costs_no_further_answer(place: HookProject) -> None:
    place.on("Stop", "exit 0")
    model = ScriptedModel(["done"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        reply = await session.send_message("go")
    assert (reply.text, len(model.requests)) == ("done", 1)


# --- what is said --------------------------------------------------------------------------


async def test_a_hook_may_keep_a_message_out(place: HookProject) -> None:
    place.on("UserPromptSubmit", "grep -q password && { echo no passwords >&2; exit 2; }; exit 0")
    model = ScriptedModel(["ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        with pytest.raises(HookRefused, match="no passwords"):
            await session.send_message("my password is 1234")
        assert await session.messages() == []
        assert (await session.send_message("hello")).text == "ok"


async def test_every_way_to_say_something_passes_the_hook(place: HookProject) -> None:
    place.on("UserPromptSubmit", "grep -q bad && exit 2; exit 0")
    model = ScriptedModel([shell("touch made"), "ok", "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_prompt("go")
        await _until(session, PermissionRequest)
        entry = await session.queue_follow_up("good")
        for attempt in (
            session.send_prompt("bad"),
            session.queue_steering("bad"),
            session.queue_follow_up("bad"),
            session.edit_queued(str(entry.entry_id), "bad"),
            session.send_message("bad", queue=False),
        ):
            with pytest.raises(HookRefused):
                await attempt
        steering, follow_up = await session.get_queued_messages()
        assert steering == ()
        assert session.combine_queue_entries_to_text(follow_up) == "good"
        await session.respond_to_permission("deny")


async def test_a_hook_may_add_to_a_message_without_changing_what_was_said(
    place: HookProject,
) -> None:
    place.on("UserPromptSubmit", "cat > /dev/null; echo the build is red")
    place.on(
        "UserPromptSubmit", says({"hookSpecificOutput": {"additionalContext": "it is Monday"}})
    )
    model = ScriptedModel(["ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("hello")
        said = (await session.messages())[0].content
        assert said.startswith("hello")
        assert "red" not in said
    told = str(model.last_request.messages)
    assert "the build is red" in told
    assert "it is Monday" in told


async def test_a_repeated_input_runs_no_hook_and_gets_the_first_answer(place: HookProject) -> None:
    place.on("UserPromptSubmit", f"{KEEP}; date +%N")
    model = ScriptedModel(["ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        first = await session.send_prompt("hello", input_id="one")
        again = await session.send_prompt("hello", input_id="one")
        assert first == again
        with pytest.raises(UsageError, match="already used"):
            await session.send_prompt("other", input_id="one")
    assert len(place.heard()) == 1


async def test_a_message_that_was_refused_may_be_sent_again_under_its_id(
    place: HookProject,
) -> None:
    place.on("UserPromptSubmit", 'test -e "$WEFT_PROJECT_DIR/open" || exit 2')
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        with pytest.raises(HookRefused):
            await session.send_prompt("hello", input_id="one")
        place.write("open", "")
        assert (await session.send_prompt("hello", input_id="one")).status == "started"


DEEP = (
    """printf '{"hookSpecificOutput":{"updatedInput":{"a":'; """
    """head -c 100000 /dev/zero | tr '\\0' '['"""
)
"""JSON that is nested deeper than any reader follows."""


@pytest.mark.parametrize("command", ["kill -9 $$", "no-such-command-here", "echo '{'", DEEP])
async def test_a_broken_hook_keeps_every_message_out(place: HookProject, command: str) -> None:
    place.on("UserPromptSubmit", command)
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        for _ in range(2):
            with pytest.raises(HookRefused, match="it failed"):
                await session.send_prompt("hello")
        assert len(await facts(session, ErrorRaised)) == 1


async def test_a_hook_that_takes_its_time_keeps_nothing_else_waiting(place: HookProject) -> None:
    """Both are in flight: the hook waits for a file that is made only after the other call has
    returned.
    """
    place.on(
        "UserPromptSubmit",
        'cd "$WEFT_PROJECT_DIR"; touch waiting; until test -e open; do sleep 0.02; done',
    )
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(session.send_message, "hello")
                await place.until("waiting")
                await session.set_thinking_level("high")
                await session.abort()
                assert await session.get_status() == "idle"
                place.write("open", "")
        assert (await session.messages())[-1].content == "ok"


async def test_a_cancel_while_a_hook_runs_sends_nothing(place: HookProject) -> None:
    place.on("UserPromptSubmit", 'touch "$WEFT_PROJECT_DIR/waiting"; sleep 300')
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(session.send_message, "hello")
                await place.until("waiting")
                group.cancel_scope.cancel()
        assert await session.messages() == []


async def test_a_viewer_cannot_make_hooks_run(place: HookProject) -> None:
    place.on("UserPromptSubmit", KEEP)
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        viewer = await app.sessions.get(session.id)
        await viewer.attach("viewer")
        with pytest.raises(UsageError, match="only watches"):
            await viewer.send_prompt("hello")
    assert place.heard() == []


# --- a session's life ----------------------------------------------------------------------


async def test_the_hooks_of_start_and_end_frame_what_was_said(place: HookProject) -> None:
    place.on("SessionStart", f"{KEEP}; echo the house rule is tabs")
    place.on("SessionEnd", KEEP)
    model = ScriptedModel(["ok", "ok", "ok"])
    store = place.project.parent / "weft.db"
    async with place.open(store=store) as app:
        session = await app.sessions.start_session(model=model)
        assert place.heard() == []
        await session.send_message("one")
        assert "the house rule is tabs" in str(model.last_request.messages)
        await session.send_message("two")
        assert await app.sessions.unload_idle(0) == 1
        await session.send_message("three")
    async with place.open(store=store) as app:
        again = await app.sessions.start_session(session_id=session.id, model=ScriptedModel(["ok"]))
        await again.send_message("four")
    told = [(each["hook_event_name"], each.get("source")) for each in place.heard()]
    assert told == [
        ("SessionStart", "startup"),
        ("SessionEnd", None),
        ("SessionStart", "resume"),
        ("SessionEnd", None),
    ]


async def test_a_session_that_was_never_spoken_to_runs_nothing(place: HookProject) -> None:
    place.on("SessionStart", KEEP)
    place.on("SessionEnd", KEEP)
    async with place.open() as app:
        await app.sessions.start_session(model=ScriptedModel(["ok"]))
    assert place.heard() == []


async def test_a_hook_cannot_hold_up_the_end(
    place: HookProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.hooks.session_hooks.ENDING_SECONDS", 0.2)
    place.on("SessionEnd", "sleep 300")
    with anyio.fail_after(10):
        async with place.open() as app:
            session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
            await session.send_message("hello")


# --- compaction ----------------------------------------------------------------------------


async def test_compaction_is_framed_by_hooks_and_may_be_refused(place: HookProject) -> None:
    place.on("PreCompact", f'{KEEP}; test -e "$WEFT_PROJECT_DIR/open" || exit 2')
    place.on("PostCompact", f"{KEEP}; {says({'hookSpecificOutput': {'additionalContext': 'ctx'}})}")
    model = ScriptedModel(["one", "the summary", "two"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("hello")
        with pytest.raises(SessionError, match="a hook blocked it"):
            await session.compact("the door")
        assert len(model.requests) == 1
        place.write("open", "")
        await session.compact()
        assert len(await facts(session, Compacted)) == 1
        await session.send_message("go on")
    events = [(told["hook_event_name"], told["trigger"]) for told in place.heard()]
    assert events == [("PreCompact", "manual")] * 2 + [("PostCompact", "manual")]
    assert place.heard()[0]["custom_instructions"] == "the door"
    assert place.heard()[2]["summary"] == "the summary"
    assert "ctx" in str(model.last_request.messages)


# --- sessions that work for others, and sessions of others ---------------------------------


async def test_hooks_hold_for_agents_and_frame_their_work(place: HookProject) -> None:
    context = says({"hookSpecificOutput": {"additionalContext": "the house rule is tabs"}})
    place.on("SubagentStart", f"{KEEP}; {context}", matcher="general")
    place.on("SubagentStop", f"{KEEP}; test -e once && exit 0; touch once; exit 2")
    place.on("UserPromptSubmit", KEEP)
    place.on("Stop", KEEP)
    place.on("PreToolUse", "echo not here >&2; exit 2", matcher="shell")
    roles: dict[str, Sequence[AnswerSteps]] = {
        "ask": [agent_call("do it"), "ok"],
        "do it": [shell("touch made"), "done", "really"],
    }
    model = role_model(roles)
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("ask")
        [child] = await session.children()
        assert await facts(session, ErrorRaised) == []
    told = [(each["hook_event_name"], each.get("agent_type")) for each in place.heard()]
    assert told == [
        ("UserPromptSubmit", None),
        ("SubagentStart", "general"),
        ("SubagentStop", "general"),
        ("SubagentStop", "general"),
        ("Stop", None),
    ]
    assert place.heard()[1]["prompt"] == "do it"
    assert place.heard()[1]["session_id"] == child.id
    assert "the house rule is tabs" in str(model.requests[1].messages)
    assert results_in(model.requests[2]) == ["Denied: a hook blocked it: not here."]
    assert results(model) == ["really"]


async def test_another_process_does_not_get_round_the_hooks_of_the_one_that_has_the_session(
    place: HookProject,
) -> None:
    place.on("UserPromptSubmit", "grep -q bad && { echo not that >&2; exit 2; }; exit 0")
    store = place.project.parent / "weft.db"
    async with place.open(store=store) as owner:
        session = await owner.sessions.start_session(model=ScriptedModel(["ok"]))
        place.hooks = {}
        async with place.open(store=store) as other:
            away = await other.sessions.get(session.id)
            with pytest.raises(HookRefused, match="not that"):
                await away.send_prompt("bad")
            assert (await away.send_message("good")).text == "ok"


# --- written down --------------------------------------------------------------------------


def test_without_hooks_nothing_of_them_is_loaded(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, weft\n"
        "from weft.providers import ScriptedModel\n"
        "async def main():\n"
        "    async with weft.open('.', store='memory') as app:\n"
        "        session = await app.sessions.start_session(model=ScriptedModel(['ok']))\n"
        "        await session.send_message('hello')\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith(('weft.app.hook', "
        "'weft.project.trust'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("hooks", "sentence"),
    [
        ({"PreTool": [{"command": "x"}]}, "did you mean 'PreToolUse'"),
        ({"PreToolUse": [{"comand": "x"}]}, "comand"),
        ({"PreToolUse": [{"matcher": "("}]}, "not a regular expression"),
        ({"PreToolUse": [{"matcher": "a"}]}, "has no command"),
        ({"PreToolUse": [{"command": "x", "timeout": 0}]}, "timeout"),
        ({"PreToolUse": [{"hooks": [{"type": "prompt", "command": "x"}]}]}, "prompt"),
    ],
)
async def test_hooks_that_cannot_be_read_are_refused_with_a_sentence(
    place: HookProject, hooks: dict[str, Any], sentence: str
) -> None:
    async with place.open({"hooks": hooks}) as app:
        with pytest.raises(UsageError, match=sentence):
            await app.sessions.start_session(model=ScriptedModel(["ok"]))


async def test_hooks_are_read_from_the_users_files_in_both_shapes(place: HookProject) -> None:
    place.config.mkdir(parents=True)
    (place.config / "config.toml").write_text(
        f"[[hooks.PreToolUse]]\nmatcher = 'shell'\ncommand = '''{KEEP}'''\ntimeout = 5\n"
    )
    inner = {"type": "command", "command": KEEP}
    nested = {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [inner]}]}}
    (place.config / "hooks.json").write_text(json.dumps(nested))
    model = ScriptedModel([shell("true"), "ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model, permission_mode="bypass")
        await session.send_message("go")
    assert [told["hook_event_name"] for told in place.heard()] == ["PreToolUse", "PostToolUse"]


async def _until(session: Session, kind: type[Any]) -> Any:
    """The first event of this kind."""
    with anyio.fail_after(5):
        async with await session.subscribe(after=0) as events:
            return await anext(event async for event in events if isinstance(event, kind))


# --- documented ----------------------------------------------------------------------------

DOCUMENT = (ROOT / "docs" / "hooks.md").read_text("utf-8")


def test_every_moment_and_every_field_is_documented() -> None:
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", DOCUMENT))))
    assert set(EVENTS) <= named
    assert {"matcher", "command", "timeout", "must_succeed", "ask_timeout", "hooks"} <= named


def test_the_settings_in_the_document_can_be_read() -> None:
    [toml] = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    nested, answer = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    hooks = read_hooks(tomllib.loads(toml)["hooks"], "the document")
    assert [hook.event for hook in hooks] == ["PreToolUse", "UserPromptSubmit"]
    [hook] = read_hooks(json.loads(nested)["hooks"], "the document")
    assert hook.matches("edit")
    output = msgspec.json.decode(answer, type=HookOutput)
    assert output.specific.updated_input == {"command": "git diff"}
    assert set(json.loads(answer)) == {
        field.encode_name for field in msgspec.structs.fields(HookOutput)
    }


@pytest.mark.parametrize("matcher", ["edit", "Edit", "Write|Edit", "apply_patch", "*"])
def test_a_hook_that_watches_edits_hears_of_patches(matcher: str) -> None:
    table = {"PreToolUse": [{"matcher": matcher, "command": "true"}]}
    [hook] = read_hooks(table, "a test")
    assert hook.matches("apply_patch")
    assert hook.matches("rename") or matcher == "apply_patch"
