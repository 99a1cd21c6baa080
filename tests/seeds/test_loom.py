"""Loom: "Session API" and its complete example.

Start, subscribe, send, permission, history, architect, stop; and what went wrong there (`seeds.md`
6.1) does not here: a session that waits for leave still answers, a second message starts no second
loop, and an answer that nobody asked for breaks nothing.
"""

from __future__ import annotations

import anyio
import pytest

from tests.support.scripted_stage import ScriptedStage
from tests.support.world import (
    request_lines,
    running,
    until,
    until_idle,
    until_queued,
    until_status,
)
from weft.api.session import Session
from weft.errors import NoPendingRequest, SessionNotFound, UsageError
from weft.events import (
    ArchitectPlan,
    ArchitectStep,
    Event,
    FactBase,
    ModeChanged,
    NewMessage,
    PermissionRequest,
    SessionStatus,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.providers.script import CallTool, SayText, Stall

pytestmark = pytest.mark.anyio

SONNET = "anthropic:claude-sonnet-4-6"
AUTH = """\
defmodule Auth do
  def token(user), do: user.name
end
"""
SAFER = AUTH.replace("user.name", "Token.sign(user)")


def read(path: str) -> CallTool:
    return CallTool(name="read", args={"path": path})


def write(path: str, content: str) -> CallTool:
    return CallTool(name="write", args={"path": path, "content": content})


@pytest.mark.requirement("session:update_model")
async def test_the_life_of_a_session(stage: ScriptedStage) -> None:
    """Start, find, list, send, history, another model, stop; and its record is still there."""
    stage.plays(SONNET, "It adds two numbers.")
    gpt = stage.plays("openai:gpt-4", "As I said: two numbers.")
    async with stage.open() as app:
        manager = app.sessions
        session = await manager.start_session(
            session_id="my-session-123",
            model=SONNET,
            project_path=stage.world.project,
            tools=["read", "write"],
            auto_approve=False,
        )
        again = await manager.start_session(session_id="my-session-123")
        assert again.id == session.id == "my-session-123"
        found = await manager.find_session("my-session-123")
        assert found is not None
        assert await manager.find_session("nobody") is None
        [active] = await manager.list_active()
        assert (active.id, active.status) == ("my-session-123", "idle")

        reply = await found.send_message("Explain this function")
        assert reply.text == "It adds two numbers."
        history = await session.get_history()
        assert [(message.role, message.content) for message in history] == [
            ("user", "Explain this function"),
            ("assistant", "It adds two numbers."),
        ]

        await session.update_model("openai:gpt-4")
        assert (await session.send_message("Again?")).text == "As I said: two numbers."
        assert request_lines(gpt.last_request) == [
            "user: Explain this function",
            "assistant: It adds two numbers.",
            "user: Again?",
        ]

        await manager.stop_session("my-session-123")
        assert await manager.find_session("my-session-123") is None
        assert await manager.list_active() == []
        with pytest.raises(SessionNotFound):
            await manager.stop_session("nobody")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="my-session-123")
        assert len(await session.get_history()) == 4
        assert (await session.metadata()).model == "openai:gpt-4"


async def test_what_a_subscriber_is_told(stage: ScriptedStage) -> None:
    """Every event of the documented `receive`, with what it carries."""
    stage.plays(SONNET, (SayText(text="Writing."), write("a.txt", "hello\n")), "Written.")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="my-session-123")
        seen: list[Event] = []
        listens = anyio.Event()

        async def listen() -> None:
            async with await session.subscribe() as events:
                listens.set()
                async for event in events:
                    seen.append(event)
                    if isinstance(event, PermissionRequest):
                        await session.respond_to_permission("allow_once")
                    if isinstance(event, TurnFinished):
                        return

        async with running(listen):
            await listens.wait()
            await session.set_mode("architect")
            await session.set_mode("normal")
            await session.send_prompt("Write it.")
        said = [event.node for event in seen if isinstance(event, NewMessage)]
        assert [node.role for node in said] == ["user", "assistant", "assistant"]
        statuses = [event.status for event in seen if isinstance(event, SessionStatus)]
        assert {"thinking", "awaiting_permission", "executing_tool"} <= set(statuses)
        [asked] = [event for event in seen if isinstance(event, PermissionRequest)]
        assert (asked.tool_name, asked.tool_path) == ("write", "a.txt")
        [executing] = [event for event in seen if isinstance(event, ToolExecuting)]
        assert executing.tool_name == "write"
        [complete] = [event for event in seen if isinstance(event, ToolComplete)]
        assert complete.call_uid == executing.call_uid
        modes = [event.mode for event in seen if isinstance(event, ModeChanged)]
        assert modes == ["architect", "normal"]
        stored = [event for event in seen if isinstance(event, FactBase)]
        assert {event.session_id for event in stored} == {"my-session-123"}
        assert [event.seq for event in stored] == sorted({event.seq for event in stored})


async def test_the_three_answers_to_a_permission_request(stage: ScriptedStage) -> None:
    """Once is once, always holds for the session, and a denial is told to the model."""
    stage.plays(
        SONNET,
        write("a.txt", "1"),
        "one",
        write("a.txt", "2"),
        write("a.txt", "3"),
        "two",
        CallTool(name="shell", args={"command": "echo hi"}),
        "three",
    )
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="my-session-123")
        await session.send_prompt("first")
        await until_status(session, "awaiting_permission")
        await session.respond_to_permission("allow_once", meta={})
        await until_idle(session)
        assert stage.world.read("a.txt") == "1"

        await session.send_prompt("second")
        await until_status(session, "awaiting_permission")
        await session.respond_to_permission("allow_always", meta={})
        await until_idle(session)
        assert stage.world.read("a.txt") == "3"

        await session.send_prompt("third")
        await until_status(session, "awaiting_permission")
        await session.respond_to_permission("deny", meta={})
        await until_idle(session)
        assert (await session.get_history())[-2].is_error
        assert "Denied" in (await session.get_history())[-2].content


async def test_a_session_that_waits_for_permission_still_answers_and_takes_no_second_loop(
    stage: ScriptedStage,
) -> None:
    stage.plays(SONNET, write("a.txt", "1"), "first done", "second done")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="my-session-123")
        await session.send_prompt("first")
        await until_status(session, "awaiting_permission")
        assert len(await session.get_history()) == 2
        replies: list[str] = []

        async def send() -> None:
            replies.append((await session.send_message("second")).text)

        async with running(send):
            await until_queued(session)
            assert await session.get_status() == "awaiting_permission"
            await session.respond_to_permission("allow_once")
        assert replies == ["second done"]
        roles = [message.role for message in await session.get_history()]
        assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_an_answer_that_no_one_asked_for_breaks_nothing(stage: ScriptedStage) -> None:
    stage.plays(SONNET, "fine")
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="my-session-123")
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("allow_once")
        with pytest.raises(UsageError):
            # That is the point.
            await session.respond_to_permission("perhaps")  # type: ignore[arg-type]
        assert (await session.send_message("Still there?")).text == "fine"


@pytest.mark.process
async def test_the_complete_example(stage: ScriptedStage) -> None:
    """A code review, then a refactoring in architect mode: one model plans, another carries out,
    the person approves.
    """
    stage.world.write("lib/auth.ex", AUTH)
    step = {
        "action": "edit",
        "file": "lib/auth.ex",
        "description": "sign the token",
        "details": "Replace user.name in token/1 by Token.sign(user).",
        "boundary": {"first": 1, "last": 1},
    }
    plan = {"summary": "Use signed tokens.", "steps": [step]}
    stage.plays(
        SONNET,
        read("lib/auth.ex"),
        CallTool(name="grep", args={"pattern": "token"}),
        "The token is the user's name: anybody can forge it.",
        CallTool(name="submit", args=plan),
    )
    haiku = stage.plays(
        "anthropic:claude-haiku",
        read("lib/auth.ex"),
        CallTool(
            name="edit",
            args={
                "path": "lib/auth.ex",
                "old_string": "user.name",
                "new_string": "Token.sign(user)",
            },
        ),
        "The token is signed now.",
    )
    config = {"model.architect": SONNET, "model.editor": "anthropic:claude-haiku"}
    async with stage.open(config) as app:
        session = await app.sessions.start_session(
            session_id="code-review-session",
            model=SONNET,
            project_path=stage.world.project,
            tools=["read", "write", "edit", "grep"],
            permission_mode="accept_edits",
        )
        seen: list[Event] = []

        async def listen() -> None:
            async with await session.subscribe() as events:
                seen.extend([event async for event in events])

        async with running(listen):
            reply = await session.send_message("Review the authentication logic in lib/auth.ex")
            assert "forge" in reply.text
            history = await session.get_history()
            assert [message.role for message in history] == [
                "user",
                "assistant",
                "tool",
                "assistant",
                "tool",
                "assistant",
            ]
            await session.set_mode("architect")
            assert await session.get_mode() == "architect"
            await session.send_prompt("Refactor the auth module to use a more secure token system")
            await _approve(session)
            await until_idle(session)
            await app.sessions.stop_session("code-review-session")
        assert stage.world.read("lib/auth.ex") == SAFER
        [proposed] = [event for event in seen if isinstance(event, ArchitectPlan)]
        assert proposed.plan["summary"] == "Use signed tokens."
        steps = [(event.index, event.status) for event in seen if isinstance(event, ArchitectStep)]
        assert steps == [(0, "started"), (0, "passed")]
        assert haiku.request_count == 3
        assert await app.sessions.find_session("code-review-session") is None
        record = await app.sessions.read_session("code-review-session")
        assert "1 of 1 steps done" in record.messages[-1].content


async def _approve(session: Session) -> None:
    """See the plan, and approve it."""
    await until(session, ArchitectPlan)
    await until_status(session, "awaiting_permission")
    plan = (await session.editor_snapshot()).pending_plan
    assert plan is not None
    assert plan["steps"][0]["file"] == "lib/auth.ex"
    await session.approve_plan()


async def test_a_running_session_can_be_asked_and_stopped_at_any_time(stage: ScriptedStage) -> None:
    """There the loop ran inside the session: status, history and cancel did not answer while it
    worked.
    """
    model = stage.plays(SONNET, (SayText(text="thinking about it"), Stall(gate="g")))
    async with stage.open() as app:
        session = await app.sessions.start_session(session_id="my-session-123")
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        assert await session.get_status() == "thinking"
        assert (await session.get_history())[0].content == "go"
        [active] = await app.sessions.list_active()
        assert active.status == "thinking"
        await app.sessions.stop_session("my-session-123")
        record = await app.sessions.read_session("my-session-123")
        assert [message.content for message in record.messages] == ["go", "thinking about it"]
