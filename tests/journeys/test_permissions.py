"""Leave: who may do what, who is asked, and what an answer counts for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import weft
from tests.support.world import (
    World,
    facts,
    message_lines,
    request_lines,
    running,
    until,
    until_idle,
    until_status,
)
from weft.api.session import Session
from weft.errors import NoPendingRequest, UsageError
from weft.events import (
    PermissionAction,
    PermissionRequest,
    PermissionResolved,
    SessionStatus,
    ToolComplete,
    ToolExecuting,
)
from weft.providers.script import CallTogether, CallTool, ScriptedAnswer, Step
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def write(path: str, content: str = "x") -> CallTool:
    return CallTool(name="write", args={"path": path, "content": content})


def shell(command: str) -> CallTool:
    return CallTool(name="shell", args={"command": command})


async def asked(session: Session) -> PermissionRequest:
    """The request that waits."""
    await until_status(session, "awaiting_permission")
    [request] = (await session.editor_snapshot()).requests
    assert isinstance(request, PermissionRequest)
    return request


# --- what is shown of it -------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [write("a.txt"), CallTool(name="ask", args={"question": "Which?"})]
)
async def test_readers_hear_once_that_a_request_waits(world: World, step: Step) -> None:
    async with world.open(ScriptedModel([step, "ok"])) as app:
        session = await app.sessions.start_session()
        heard: list[str] = []
        async with await session.subscribe() as events:
            await session.send_prompt("go")
            async for event in events:
                if isinstance(event, SessionStatus):
                    heard.append(event.status)
                if isinstance(event, SessionStatus) and event.status == "awaiting_permission":
                    [request] = (await session.editor_snapshot()).requests
                    if isinstance(request, PermissionRequest):
                        await session.respond_to_permission("allow_once")
                    else:
                        await session.answer_question(request.request_id, "this")
                if isinstance(event, SessionStatus) and event.status == "idle":
                    break
        assert heard.count("awaiting_permission") == 1
        assert all(one != other for one, other in pairwise(heard))


# --- answers -------------------------------------------------------------------------------


async def test_the_user_is_shown_exactly_what_would_happen(world: World) -> None:
    model = ScriptedModel([write("a.txt", "hello\n"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("write it")
        request = await asked(session)
        assert (request.tool_name, request.tool_path) == ("write", "a.txt")
        assert "+hello" in request.preview
        assert request.always_pattern == "write(a.txt)"
        snapshot = await session.editor_snapshot()
        assert snapshot.pending_approval == request
        assert not (world.project / "a.txt").exists()
        assert await facts(session, ToolExecuting) == []
        await session.respond_to_permission("allow_once", request_id=request.request_id)
        await until_idle(session)
    assert world.read("a.txt") == "hello\n"


@pytest.mark.process
@pytest.mark.requirement("session:respond_to_permission")
async def test_permission_for_once_is_for_once(world: World) -> None:
    model = ScriptedModel([shell("echo 1"), shell("echo 1"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        first = await asked(session)
        await session.respond_to_permission("allow_once")
        second = await until_asked_again(session, first)
        await session.respond_to_permission("allow_once", request_id=second.request_id)
        await until_idle(session)
        assert len(await facts(session, PermissionRequest)) == 2


async def until_asked_again(session: Session, before: PermissionRequest) -> PermissionRequest:
    """The next request after this one."""
    return await until(session, PermissionRequest, after=before.seq)


@pytest.mark.process
@pytest.mark.requirement("session:respond_to_permission")
async def test_permission_for_the_turn_ends_with_the_turn(world: World) -> None:
    model = ScriptedModel([shell("echo 1"), shell("echo 1"), "ok", shell("echo 1"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_permission("allow_turn")
        await until_idle(session)
        assert len(await facts(session, PermissionRequest)) == 1
        await session.send_prompt("again")
        await asked(session)
        await session.respond_to_permission("deny")
        await until_idle(session)


@pytest.mark.process
@pytest.mark.requirement("session:respond_to_permission", "session:respond_to_approval")
async def test_permission_for_always_covers_that_very_action_and_no_other(world: World) -> None:
    model = ScriptedModel([shell("echo 1"), "ok", shell("echo 1"), shell("echo 2"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_approval("approve_all")
        await until_idle(session)
        await session.send_prompt("again")
        request = await asked(session)
        assert request.tool_path == "echo 2"
        await session.respond_to_approval("reject")
        await until_idle(session)


@pytest.mark.process
async def test_permission_does_not_outlive_its_process(world: World) -> None:
    model = ScriptedModel([shell("echo 1"), "ok", shell("echo 1"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_permission("allow_always")
        await until_idle(session)
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        await session.send_prompt("again")
        await asked(session)


@pytest.mark.process
async def test_permission_and_mode_outlive_the_unloading_of_an_idle_session(world: World) -> None:
    """Only the process counts: that nobody looked for a while takes nothing back."""
    model = ScriptedModel([shell("echo 1"), "ok", shell("echo 1"), "ok"])
    async with world.open(model) as app:
        asking = await app.sessions.start_session(session_id="asking")
        await asking.send_prompt("go")
        await asked(asking)
        await asking.respond_to_permission("allow_always")
        await until_idle(asking)
        await app.sessions.start_session(session_id="free", permission_mode="bypass")
        assert await app.sessions.unload_idle(0) == 2
        await asking.send_message("again")
        assert len(await facts(asking, PermissionRequest)) == 1
        free = await app.sessions.get("free")
        assert (await free.editor_snapshot()).permission_mode == "bypass"


@pytest.mark.requirement("session:respond_to_permission")
async def test_a_denial_reaches_the_model_with_its_reason_and_nothing_runs(world: World) -> None:
    model = ScriptedModel([shell("touch made"), "I will not."])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_permission("deny", meta={"reason": "too risky"})
        await until_idle(session)
        [complete] = await facts(session, ToolComplete)
        assert complete.result.status == "denied"
        assert await facts(session, ToolExecuting) == []
    assert not (world.project / "made").exists()
    assert (
        request_lines(model.last_request)[-1] == "result: Denied by the user. They said: too risky"
    )


@pytest.mark.process
@pytest.mark.requirement("session:respond_to_permission:late")
async def test_late_unknown_and_second_answers_approve_nothing(world: World) -> None:
    model = ScriptedModel([shell("echo 1"), shell("touch made"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        with pytest.raises(NoPendingRequest, match="nothing waits"):
            await session.respond_to_permission("allow_once")
        await session.send_prompt("go")
        first = await asked(session)
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once", request_id="req_unknown")
        assert await session.get_status() == "awaiting_permission"
        await session.respond_to_permission("allow_once", request_id=first.request_id)
        await until_asked_again(session, first)
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_always", request_id=first.request_id)
        assert await session.get_status() == "awaiting_permission"
        await session.respond_to_permission("deny")
        await until_idle(session)
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once", request_id=first.request_id)
    assert not (world.project / "made").exists()


@pytest.mark.requirement("fault:answer-crashes")
async def test_an_answer_that_is_no_answer_is_refused(world: World) -> None:
    async with world.open(ScriptedModel([shell("echo 1")])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        with pytest.raises(UsageError, match="allow_once"):
            await session.respond_to_permission("yes")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="approve"):
            await session.respond_to_approval("yes")  # type: ignore[arg-type]
        assert await session.get_status() == "awaiting_permission"


@pytest.mark.process
@pytest.mark.requirement("fault:stale-approval")
async def test_of_two_answers_at_once_exactly_one_counts(world: World) -> None:
    model = ScriptedModel([shell("echo 1"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        request = await asked(session)
        refused: list[str] = []

        async def answer(action: Any) -> None:
            try:
                await session.respond_to_permission(action, request_id=request.request_id)
            except NoPendingRequest:
                refused.append(action)

        async with running(lambda: answer("allow_once"), lambda: answer("deny")):
            pass
        await until_idle(session)
        [resolved] = await facts(session, PermissionResolved)
        assert refused == [{"allow_once": "deny", "deny": "allow_once"}[resolved.action]]


@pytest.mark.process
@pytest.mark.requirement("fault:second-turn")
async def test_speaking_to_a_session_that_waits_for_permission_starts_no_second_turn(
    world: World,
) -> None:
    model = ScriptedModel([shell("echo 1"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        request = await asked(session)
        assert (await session.send_prompt("hello?")).status == "steering"
        assert (await session.editor_snapshot()).pending_approval == request
        await session.respond_to_permission("allow_once")
        await until_idle(session)
    assert request_lines(model.last_request)[-1] == "user: hello?"


# --- modes ---------------------------------------------------------------------------------


async def outcome(world: World, call: Step, **settings: Any) -> str:
    """What becomes of a call: "ran", "denied" or "asked"."""
    model = ScriptedModel([ScriptedAnswer(steps=(call,)), "ok"])
    async with world.open(model, config=settings.pop("config", None)) as app:
        session = await app.sessions.start_session(**settings)
        await session.send_prompt("go")
        kinds: list[type[PermissionRequest | ToolComplete]] = [PermissionRequest, ToolComplete]
        came = await until(session, *kinds)
        if isinstance(came, PermissionRequest):
            return "asked"
        return "denied" if came.result.status == "denied" else "ran"


@pytest.mark.process
@pytest.mark.requirement("session:set_permission_mode")
@pytest.mark.parametrize(
    ("mode", "reads", "writes", "runs"),
    [
        ("plan", "ran", "denied", "denied"),
        ("default", "ran", "asked", "asked"),
        ("accept_edits", "ran", "ran", "asked"),
        ("bypass", "ran", "ran", "ran"),
    ],
)
async def test_each_mode_lets_through_what_it_says(
    plain_world: World, mode: str, reads: str, writes: str, runs: str
) -> None:
    world = plain_world
    world.write("there.txt", "text")
    read = CallTool(name="read", args={"path": "there.txt"})
    assert await outcome(world, read, permission_mode=mode) == reads
    assert await outcome(world, write("new.txt"), permission_mode=mode) == writes
    assert await outcome(world, shell("true"), permission_mode=mode) == runs


@pytest.mark.parametrize("mode", ["default", "accept_edits", "bypass"])
async def test_deny_beats_ask_beats_allow_in_every_mode(plain_world: World, mode: str) -> None:
    both = {"permissions.allow": ["write"], "permissions.ask": ["write"]}
    all_three = {**both, "permissions.deny": ["write(secret*)"]}
    settings = {"permission_mode": mode}
    assert await outcome(plain_world, write("a"), config=both, **settings) == "asked"
    assert await outcome(plain_world, write("secret1"), config=all_three, **settings) == "denied"
    allowed = {"permissions.allow": ["write"]}
    assert await outcome(plain_world, write("b"), config=allowed, **settings) == "ran"


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
async def test_a_rule_that_names_no_tool_refuses_the_session(
    plain_world: World, verdict: str
) -> None:
    async def deploy(where: str) -> str:
        """Deploy."""
        return where

    config = {f"permissions.{verdict}": ["deploy(prod)"]}
    async with plain_world.open(ScriptedModel(["x"]), config=config) as app:
        with pytest.raises(UsageError, match="there is no tool 'deploy'"):
            await app.sessions.start_session()
        assert not await app.sessions.list_saved()
        # Of a program that brings the tool, the same rule is one.
        await app.sessions.start_session(tools=["all", deploy])
    later = {f"permissions.{verdict}": ["deploy*"]}
    async with plain_world.open(ScriptedModel(["x"]), config=later) as app:
        await app.sessions.start_session()


async def test_a_wrong_rule_of_an_untrusted_folder_stops_nothing_and_is_named(
    plain_world: World,
) -> None:
    plain_world.write(
        ".weft/config.toml", '[permissions]\ndeny = ["Reed(x)", "write(b)", "Bash(ls:*)"]\n'
    )
    assert await outcome(plain_world, write("b")) == "denied"
    async with plain_world.open(ScriptedModel(["x"])) as app:
        [problem] = await app.project_problems()
    assert "'Reed(x)'" in problem
    assert "line 2" in problem


@pytest.mark.requirement("manager:start_session:auto_approve")
async def test_auto_approve_answers_every_ask_but_no_deny(plain_world: World) -> None:
    rules = {"permissions.deny": ["shell"]}
    settings = {"config": rules, "auto_approve": True}
    assert await outcome(plain_world, write("a"), **settings) == "ran"
    assert await outcome(plain_world, shell("true"), **settings) == "denied"


async def test_without_a_user_to_ask_the_model_is_told_at_once(world: World) -> None:
    model = ScriptedModel([shell("touch made"), "Then not."])
    async with world.open(model) as app:
        session = await app.sessions.start_session(asking="no")
        reply = await session.send_message("go")
        assert reply.finish_reason == "stop"
        assert await facts(session, PermissionRequest) == []
    assert "there is no one to ask" in request_lines(model.last_request)[-1]
    assert not (world.project / "made").exists()


@pytest.mark.requirement("session:set_permission_mode")
@pytest.mark.parametrize("mode", ["auto", "bypass"])
async def test_a_mode_that_asks_nothing_does_not_outlive_its_process(
    world: World, mode: str
) -> None:
    model = ScriptedModel([shell("true"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(session_id="s", permission_mode=mode)
        assert (await session.editor_snapshot()).permission_mode == mode
    async with world.open(model) as app:
        session = await app.sessions.get("s")
        assert (await session.editor_snapshot()).permission_mode == "default"
        await session.send_prompt("go")
        await asked(session)
        await session.abort()
        fork = await app.sessions.fork_session("s")
        assert (await fork.editor_snapshot()).permission_mode == "default"
        await session.set_permission_mode(mode)
        assert (await session.editor_snapshot()).permission_mode == mode


@pytest.mark.requirement("session:set_permission_mode")
async def test_the_mode_can_be_changed_while_the_session_runs(world: World) -> None:
    model = ScriptedModel([write("a"), "ok", write("b"), "ok"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="plan")
        await session.send_message("go")
        assert not (world.project / "a").exists()
        await session.set_permission_mode("accept_edits")
        await session.send_message("go")
        assert (world.project / "b").exists()
        with pytest.raises(UsageError, match="there are plan, default"):
            await session.set_permission_mode("yolo")


async def test_a_mode_that_does_not_exist_is_refused_at_the_start(world: World) -> None:
    async with world.open() as app:
        with pytest.raises(UsageError, match="there are plan, default"):
            await app.sessions.start_session(permission_mode="yolo")
        assert await app.sessions.list_saved() == []


async def test_writing_what_programs_obey_asks_even_where_edits_are_accepted(
    plain_world: World,
) -> None:
    call = write(".git/hooks/pre-commit", "rm -rf ~")
    assert await outcome(plain_world, call, permission_mode="accept_edits") == "asked"


async def test_reading_outside_the_project_asks(plain_world: World) -> None:
    (plain_world.base / "outside.txt").write_text("secret")
    read = CallTool(name="read", args={"path": str(plain_world.base / "outside.txt")})
    assert await outcome(plain_world, read) == "asked"


async def test_every_call_of_a_batch_is_judged_by_itself(world: World) -> None:
    model = ScriptedModel([CallTogether(calls=(write("a"), shell("touch b"), write("c"))), "ok"])
    rules = {"permissions.deny": ["shell"]}
    async with world.open(model, config=rules) as app:
        session = await app.sessions.start_session(permission_mode="accept_edits")
        await session.send_message("go")
        statuses = [each.result.status for each in await facts(session, ToolComplete)]
        assert statuses == ["done", "denied", "done"]
    assert (world.project / "c").exists()
    assert not (world.project / "b").exists()


async def test_a_function_is_taken_to_have_an_effect_unless_it_says_otherwise(
    plain_world: World,
) -> None:
    async def mystery() -> str:
        return "done"

    call = CallTool(name="mystery")
    assert await outcome(plain_world, call, tools=[mystery]) == "asked"
    pure = weft.tool(effect="pure")(mystery)
    assert await outcome(plain_world, call, tools=[pure]) == "ran"


async def test_a_denied_call_does_not_end_the_conversation(world: World) -> None:
    model = ScriptedModel([shell("a"), "understood", "hello"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="plan")
        await session.send_message("go")
        await session.send_message("hi")
        assert (await message_lines(session))[-1] == "assistant: hello"


# --- for good -------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.requirement("session:respond_to_permission:save")
async def test_what_is_saved_is_a_rule_for_later_sessions_on_the_project(world: World) -> None:
    async with world.open(ScriptedModel([write("a[1].txt"), shell("echo hi"), "ok"])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_permission("allow_always", meta={"save": True})
        request = await asked(session)
        assert request.tool_name == "shell"
        await session.respond_to_permission("allow_always", meta={"save": True})
        await until_idle(session)
        assert [each.saved for each in await facts(session, PermissionResolved)] == [True, True]
    wants = [write("a[1].txt", "y"), shell("echo hi"), write("a1.txt"), shell("echo hi there")]
    other = world.base / "other"
    other.mkdir()
    async with world.open(ScriptedModel([*wants, "ok"])) as app:
        session = await app.sessions.start_session(asking="no")
        await session.send_message("go")
        done = [each.result.status for each in await facts(session, ToolComplete)]
        assert done == ["done", "done", "denied", "denied"]
    async with world.open(ScriptedModel([shell("echo hi"), "ok"])) as app:
        session = await app.sessions.start_session(asking="no", project_path=other)
        await session.send_message("go")
        assert [each.result.status for each in await facts(session, ToolComplete)] == ["denied"]


@pytest.mark.process
async def test_a_saved_rule_overrules_neither_deny_nor_ask(world: World) -> None:
    async with world.open(ScriptedModel([shell("echo hi"), "ok"])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        await session.respond_to_permission("allow_always", meta={"save": True})
        await until_idle(session)
    for verdict in ("deny", "ask"):
        rules = {f"permissions.{verdict}": ["shell"]}
        async with world.open(ScriptedModel([shell("echo hi"), "ok"]), config=rules) as app:
            session = await app.sessions.start_session(asking="no")
            await session.send_message("go")
            assert [each.result.status for each in await facts(session, ToolComplete)] == ["denied"]


async def test_only_what_is_allowed_always_is_saved_and_a_rule_that_cannot_be_kept_allows_nothing(
    world: World,
) -> None:
    async with world.open(ScriptedModel([write("a.txt"), "ok"])) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("go")
        await asked(session)
        others: list[PermissionAction] = ["allow_once", "allow_turn", "deny"]
        for action in others:
            with pytest.raises(UsageError, match="only what is allowed always"):
                await session.respond_to_permission(action, meta={"save": True})
        (world.base / ".config").write_text("in the way")
        with pytest.raises(UsageError, match="cannot be saved"):
            await session.respond_to_permission("allow_always", meta={"save": True})
        assert await session.get_status() == "awaiting_permission"
        assert not (world.project / "a.txt").exists()


async def test_writing_the_memory_asks_wherever_it_lies(plain_world: World) -> None:
    world = plain_world
    config = world.base / ".config" / "weft"
    config.mkdir(parents=True)
    (config / "MEMORY.md").symlink_to(world.project / "notes.md")
    (world.base / "memory").symlink_to(world.write("kept/p.md", "- use tabs\n").parent)
    for path in ("notes.md", "kept/new.md"):
        assert await outcome(world, write(path), permission_mode="accept_edits") == "asked"
    assert await outcome(world, write("kept.md"), permission_mode="accept_edits") == "ran"
