"""`weft_ask`: a turn of a session for another agent, with the questions that come up on the way.

The turn belongs to the session and not to the call: a client that is asked by the end of a call, or
that goes away, leaves it running, and the call that is made again under the same input waits on.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

import anyio
import msgspec

from weft.api import Session
from weft.app import App
from weft.errors import NoPendingRequest, UsageError, WeftError
from weft.events import PermissionRequest, QuestionAsked, ToolExecuting
from weft.mcp_server.catalogue import CallClient, ElicitationReply, InputNeeded

MOST_OPEN: Final = 1_000
"""Calls that ended with a question and may be made again."""
MOST_PREVIEW: Final = 6_000
MOST_DENIED: Final = 20
"""Calls that were denied for want of someone to ask, which are named."""
_ALLOW: Final = "allow"
_ALLOW_TURN: Final = "allow for the rest of this turn"
_DENY: Final = "deny"
_NO_ONE: Final = "the program that asked cannot ask its user (it has no elicitation)"


class _OpenAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ended with a question."""

    session_id: str
    prompt: str
    input_id: str
    after: int
    """The place in the log of the question."""
    request_id: str
    is_permission: bool


class AskTool:
    """Carries out `weft_ask`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._open: dict[str, _OpenAsk] = {}

    async def run(self, args: dict[str, Any], client: CallClient) -> str:
        """What the model of the session answers at the end of the turn.

        Raises:
            UsageError: an argument is wrong.
            InputNeeded: a newer client has to be asked.
        """
        if client.state:
            ask = self._open.pop(client.state, None)
            if ask is None:
                raise UsageError("this call does not wait for an answer; begin a new one")
            session = await self._app.sessions.get(ask.session_id)
            await _answered(session, ask, client.reply)
            return await self._waited(session, ask.prompt, ask.input_id, ask.after, client)
        session = await self._session(args)
        prompt = str(args["prompt"])
        after = await _end_of(session)
        return await self._waited(session, prompt, secrets.token_hex(16), after, client)

    async def _session(self, args: dict[str, Any]) -> Session:
        if session_id := args.get("session_id"):
            return await self._app.sessions.get(str(session_id))
        folder = args.get("cwd")
        return await self._app.sessions.start_session(model=args.get("model"), project_path=folder)

    async def _waited(
        self, session: Session, prompt: str, input_id: str, after: int, client: CallClient
    ) -> str:
        """Wait for the end of the turn, and put its questions to the client's user meanwhile."""
        found: list[str] = []
        denied: list[str] = []
        needed: list[InputNeeded] = []
        failed: list[WeftError] = []

        async def wait() -> None:
            try:
                # Under the same id it is one message, however often it is sent.  Never queued
                # behind another's turn, whose questions are not for this client's user.
                reply = await session.send_message(prompt, queue=False, input_id=input_id)
                found.append(_told(session, reply, denied))
            except WeftError as error:
                failed.append(error)
            group.cancel_scope.cancel()

        async def watch() -> None:
            try:
                async with await session.subscribe(after=after) as events:
                    async for event in events:
                        if isinstance(event, ToolExecuting):
                            client.progress(f"runs {event.tool_name} {event.target}"[:300].strip())
                        if isinstance(event, (PermissionRequest, QuestionAsked)):
                            ask = _open(event, session, prompt, input_id)
                            await self._put(ask, event, session, client, denied)
            except InputNeeded as error:
                needed.append(error)
                group.cancel_scope.cancel()
            except WeftError as error:
                failed.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            group.start_soon(wait)
        if needed:
            raise needed[0]
        if failed:
            raise failed[0]
        return found[0]

    async def _put(
        self,
        ask: _OpenAsk,
        event: PermissionRequest | QuestionAsked,
        session: Session,
        client: CallClient,
        denied: list[str],
    ) -> None:
        """Put a question to the client's user, and hand on the answer; `denied` is told what nobody
        could be asked about."""
        if not client.can_be_asked:
            denied.append(_denied(event))
            await _answered(session, ask, None, why=f"denied: {_NO_ONE}")
            return
        message, schema = _shown(event)
        state = secrets.token_urlsafe(24)
        self._remember(state, ask)
        try:
            reply = await client.ask(message, schema, state)
        except InputNeeded:
            raise
        except BaseException:
            self._open.pop(state, None)
            raise
        self._open.pop(state, None)
        await _answered(session, ask, reply)

    def _remember(self, state: str, ask: _OpenAsk) -> None:
        if len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._open[state] = ask


def _open(
    event: PermissionRequest | QuestionAsked, session: Session, prompt: str, input_id: str
) -> _OpenAsk:
    return _OpenAsk(
        session_id=session.id,
        prompt=prompt,
        input_id=input_id,
        after=event.seq,
        request_id=event.request_id,
        is_permission=isinstance(event, PermissionRequest),
    )


async def _end_of(session: Session) -> int:
    """Where its log ends: questions behind that are ours."""
    joined = await session.join()
    joined.events.close()
    return joined.seq


def _shown(event: PermissionRequest | QuestionAsked) -> tuple[str, dict[str, Any]]:
    """What the user is asked, and the form of the answer."""
    if isinstance(event, QuestionAsked):
        answer: dict[str, Any] = {"type": "string", "title": "Answer"}
        if event.options:
            answer["enum"] = list(event.options)
        return event.question, _form("answer", answer)
    preview = event.preview[:MOST_PREVIEW] or event.tool_path
    why = f" ({event.reason})" if event.reason else ""
    choice = {"type": "string", "title": "Allow it?", "enum": [_ALLOW, _ALLOW_TURN, _DENY]}
    return f"Weft asks: allow {event.tool_name}?{why}\n{preview}", _form("decision", choice)


def _form(name: str, field: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: field}, "required": [name]}


async def _answered(
    session: Session, ask: _OpenAsk, reply: ElicitationReply | None, why: str = ""
) -> None:
    """Hand on the user's answer; anything but a clear yes is a no."""
    content = (reply.content or {}) if reply is not None and reply.action == "accept" else {}
    try:
        if not ask.is_permission:
            said = content.get("answer")
            answer = said if isinstance(said, str) else why or "the user gave no answer"
            await session.answer_question(ask.request_id, answer)
            return
        match content.get("decision"):
            case "allow":
                await session.respond_to_permission("allow_once", request_id=ask.request_id)
            case "allow for the rest of this turn":
                await session.respond_to_permission("allow_turn", request_id=ask.request_id)
            case _:
                reason = {"reason": why or "the user of the program that asked said no"}
                await session.respond_to_permission("deny", request_id=ask.request_id, meta=reason)
    except NoPendingRequest:
        pass  # someone else has answered, or the turn is over


def _denied(event: PermissionRequest | QuestionAsked) -> str:
    """A line for the model of the other side, which cannot see that something was denied."""
    if isinstance(event, QuestionAsked):
        return f"[not answered: {event.question[:300]}: {_NO_ONE}]"
    return f"[not allowed: {event.tool_name} {event.tool_path[:300]}: {_NO_ONE}]"


def _told(session: Session, reply: Any, denied: list[str]) -> str:
    """The answer of a turn, for the model of the other side."""
    lines = [reply.text or "(no text)", *denied[:MOST_DENIED]]
    if reply.finish_reason not in ("stop", "submitted"):
        lines.append(f"[the turn ended with: {reply.finish_reason}]")
    lines.append(f"[session {session.id}; hand it over as session_id to go on]")
    return "\n\n".join(lines)
