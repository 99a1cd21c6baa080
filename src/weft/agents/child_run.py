"""One child session at work for another: set to work, followed to its end, its requests brought to
the user and the answers back.

The child's own log is what counts.  A run that is begun again, after a crash on either side, finds
the child where it stands: not begun, in the middle of a turn, or done; and takes it from there.  A
request of the child is put on the parent's record under the same id, so an answer needs no table to
find its way, and a request that was open before a crash is the same request after it.

Stopping the parent stops the child first, and puts on record what it had used.  When the whole
process goes, nothing is written: both are interrupted, and go on together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from weft.agents.host import AgentHost, ChildEnd, ChildRequest
from weft.errors import NoPendingRequest, Owned, OwnerLost, SessionBusy, WeftError
from weft.events import (
    Fact,
    FileTouched,
    FinishReason,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionStatus,
    TurnFinished,
    TurnStarted,
)
from weft.ids import CallUid, InputId, SessionId, TurnId
from weft.messages import Part
from weft.session import (
    AbortTurn,
    AnswerQuestion,
    ContinueTurn,
    ForwardRequest,
    RespondToPermission,
    SendPrompt,
    SessionPort,
    WakeTurn,
    child_end,
)
from weft.state import SessionState

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds before a child is looked for again that goes from one process to another."""
MOST_MOVES: Final = 100
"""How often a child may go from one process to another before it is given up."""
STOP_SECONDS: Final = 3.0
"""How long stopping a child may take; after that it is not waited for."""
_Request: TypeAlias = PermissionRequest | QuestionAsked


class ChildRun:
    """A child at work."""

    def __init__(
        self,
        host: AgentHost,
        wanted: ChildRequest,
        prompt: tuple[Part, ...],
        *,
        label: str = "agent",
        outlives_turn: bool = False,
        goes_on: bool = False,
        emit: Callable[[str], None] = lambda chunk: None,
    ) -> None:
        """`goes_on`: a child that was stopped goes on, instead of being done."""
        self._host = host
        self._wanted = wanted
        self._prompt = prompt
        self._label = label
        self._outlives_turn = outlives_turn
        self._goes_on = goes_on
        self._emit = emit
        self._begun: tuple[SessionPort, TurnId | None] | None = None
        self._forwarded: set[str] = set()
        self._text = ""
        self._cut = ""
        """The text of an answer that was cut off; the next one goes on with it."""
        self._files: list[FileTouched] = []
        self._inputs: dict[CallUid, dict[str, Any]] = {}
        """What the child's calls were given, for requests about them."""

    @property
    def child(self) -> SessionId:
        """The child's session."""
        return self._wanted.child

    async def begin(self) -> None:
        """Have the child at work, and its task on its own record.  A cancel waits until that is so.

        Raises:
            WeftError: the child cannot be opened, or not be set to work.
        """
        host = self._host
        host.agent_tree.enter(host.session_id, self._wanted.origin.call_uid, self.child)
        try:
            # Shielded: a cancel between the opening of the child and its first task would leave a
            # session that no one drives.
            with anyio.CancelScope(shield=True):
                handle = await host.open_child(self._wanted)
                self._begun = (handle, await self._set_to_work(handle))
        except WeftError:
            host.agent_tree.exit(self.child)
            raise

    async def run(self) -> ChildEnd:
        """Follow the child to the end of its turn.

        Whatever stops it is part of the end, not raised.
        """
        try:
            end = await self._followed()
        except WeftError as error:
            return ChildEnd(reason="halted", detail=str(error))
        finally:
            self._host.agent_tree.exit(self.child)
        await self._host.close_child(self.child)
        return end

    async def _followed(self) -> ChildEnd:
        """Follow the child, from one process to the next where the one that had it is gone."""
        moves = 0
        while True:
            try:
                if self._begun is None:
                    await self.begin()
                assert self._begun is not None
                return await self._follow(*self._begun)
            # It is on its way to another process, or one has just gone on with it by itself.
            except (OwnerLost, Owned, SessionBusy):
                moves += 1
                if moves > MOST_MOVES or self._host.is_closing:
                    raise
            await anyio.sleep(min(moves * FIRST_PAUSE, LONGEST_PAUSE))
            # Read from the beginning where it is now.
            self._begun, self._text, self._cut, self._files = None, "", "", []
            self._forwarded.clear()

    async def _follow(self, handle: SessionPort, turn_id: TurnId | None) -> ChildEnd:
        try:
            async with anyio.create_task_group() as group:
                end = await self._read(handle, turn_id, group)
                group.cancel_scope.cancel()
            if end is None:
                raise OwnerLost("the process that had the agent is gone")
            return end
        except anyio.get_cancelled_exc_class():
            # Only an abort stops the child. When the whole process closes, both stay open in their
            # logs, to go on together.
            if self._host.is_aborting:
                with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_SECONDS):
                    await self._stop(handle)
            raise

    async def _stop(self, handle: SessionPort) -> None:
        """Stop the child, and put on record what it had used until then."""
        try:
            await handle.abort(AbortTurn(reason="the session it works for was stopped"))
            end = self._end(handle, handle.state.turn.last_reason or "aborted", "it was stopped")
            await self._host.tell(end.report(self.child))
        except WeftError:
            return  # one of the two sessions is gone, and with it the record to write to

    # -- setting to work

    async def _set_to_work(self, handle: SessionPort) -> TurnId | None:
        """Start, continue or find the child's turn."""
        turn = handle.state.turn
        if turn.open is not None and handle.status == "waiting":
            # It may wait in the log alone, since its process died; at work, it goes on as it is.
            await handle.call(WakeTurn())
        if turn.open is not None and handle.status not in ("interrupted", "error"):
            return turn.open.turn_id
        if turn.open is not None or (self._goes_on and turn.last_reason == "aborted"):
            return (await handle.call(ContinueTurn())).turn_id
        if turn.last_turn is not None:
            return turn.last_turn
        for command in self._wanted.first:
            await handle.call(command)
        # With an id made of the child's: a task that was sent right before a crash is not sent
        # again.
        said = SendPrompt(
            parts=self._prompt,
            when_busy="refuse",
            input_id=InputId(f"errand-{self.child}"),
        )
        return (await handle.call(said)).turn_id

    # -- following

    async def _read(
        self, handle: SessionPort, turn_id: TurnId | None, group: TaskGroup
    ) -> ChildEnd | None:
        """How the child's turn ended; None when its process is gone before that."""
        try:
            # From the beginning: a run that is begun again must find the requests and the files
            # from before.
            async with handle.subscribe(after=0, live="status") as events:
                # Looked at after subscribing: a child that got stuck before would send no further
                # event.
                if _is_left(handle, handle.status):
                    return None
                if _is_stuck(handle, handle.status):
                    return self._end(handle, "halted", handle.error)
                async for event in events:
                    if isinstance(event, SessionStatus) and _is_left(handle, event.status):
                        return None
                    if (end := self._end_at(event, handle, turn_id)) is not None:
                        return end
                    await self._take(event, handle, group)
        except OwnerLost:
            return None
        except WeftError as error:
            return self._end(handle, "halted", str(error))
        # A session of this process was closed; one of another process goes on somewhere.
        is_over = handle.lives_here
        return self._end(handle, "halted", "its session was closed") if is_over else None

    def _end_at(
        self, event: object, handle: SessionPort, turn_id: TurnId | None
    ) -> ChildEnd | None:
        """How the run ended, if this event ends it."""
        match event:
            case SessionStatus(status=status) if _is_stuck(handle, status):
                return self._end(handle, "halted", handle.error)
            case TurnFinished(finish_reason=reason, detail=detail) if event.turn_id == turn_id:
                return self._end(handle, reason, detail)
            case _:
                return None

    async def _take(self, event: object, handle: SessionPort, group: TaskGroup) -> None:
        match event:
            case TurnStarted(continued=False):
                self._text = self._cut = ""
            case NewMessage(node=node) if node.role == "assistant":
                self._text = self._cut + node.text or self._text
                self._cut = self._text if node.is_cut_off else ""
                self._inputs = {call.call_uid: call.args for call in node.calls}
                for call in node.calls:
                    self._emit(f"{self._label} ▸ {call.name}\n")
            case FileTouched():
                self._files.append(event)
            case PermissionRequest() | QuestionAsked():
                # Events from the past include requests that were answered long ago.
                if event.request_id in handle.state.turn.requests:
                    self._forwarded.add(event.request_id)
                    # In a task of its own: an answer may take hours, and the events of the child
                    # must be read meanwhile.
                    group.start_soon(self._forward, event, handle)
            case PermissionResolved() | QuestionAnswered():
                if event.request_id in self._forwarded:
                    await self._take_back(event)
            case _:
                pass

    def _end(self, handle: SessionPort, reason: FinishReason, detail: str) -> ChildEnd:
        state = handle.state
        return ChildEnd(
            reason=reason,
            detail=detail,
            text=self._text,
            used=dict(state.ledger.models),
            descendants=self._host.agent_tree.descendants(self.child),
            # What a child did in a copy, or in an overlay, is no change of the parent's project.
            files=()
            if self._wanted.project_path or self._wanted.place
            else _net(self._files, self._wanted),
        )

    # -- requests

    async def _forward(self, request: _Request, handle: SessionPort) -> None:
        """Put a request of the child on the parent's record, and hand the answer on."""
        try:
            shown = self._shown(request)
            await self._host.tell(ForwardRequest(child=self.child, request=shown))
            answer = await self._host.resolution(request.request_id)
            await handle.call(_handed_on(answer))
        except NoPendingRequest:
            pass  # the child was answered, or stopped, meanwhile
        except WeftError as error:
            self._emit(f"{self._label}: a request could not be passed on: {error}\n")

    def _shown(self, request: _Request) -> _Request:
        """A request of the child as the parent's record is to have it."""
        copied = msgspec.structs.replace(
            request,
            node=self._wanted.origin.node or request.node,
            child=self.child,
            outlives_turn=self._outlives_turn,
        )
        if isinstance(copied, PermissionRequest):
            name = f"{self._label} ▸ {copied.tool_name}"
            args = copied.args if copied.args is not None else self._inputs.get(copied.call_uid)
            return msgspec.structs.replace(copied, tool_name=name, args=args)
        return copied

    async def _take_back(self, answer: PermissionResolved | QuestionAnswered) -> None:
        """The child's request was settled at the child: it is settled with the parent too."""
        if answer.request_id in self._host.state.turn.requests:
            await self._host.tell(ForwardRequest(child=self.child, answer=answer))


def finished(state: SessionState, child: SessionId, end: ChildEnd) -> tuple[Fact, ...]:
    """The facts with which a child's end goes on the parent's record.

    None when it is there already.
    """
    return child_end(state, end.report(child))


def _is_left(handle: SessionPort, status: str) -> bool:
    """True for a child of another process that is to be set to work there again."""
    is_open = handle.state.turn.open is not None
    return not handle.lives_here and status == "interrupted" and is_open


def _is_stuck(handle: SessionPort, status: str) -> bool:
    # An open turn that nothing works on never ends by itself.
    return status in ("interrupted", "error") and handle.state.turn.open is not None


def _handed_on(
    answer: PermissionResolved | QuestionAnswered,
) -> RespondToPermission | AnswerQuestion:
    if isinstance(answer, QuestionAnswered):
        return AnswerQuestion(request_id=answer.request_id, answer=answer.answer)
    return RespondToPermission(
        action=answer.action,
        request_id=answer.request_id,
        reason=answer.reason,
        instead=answer.instead,
    )


def _net(files: list[FileTouched], wanted: ChildRequest) -> tuple[FileTouched, ...]:
    """What all changes of a file come to, for the parent's record."""
    call_uid: CallUid | None = wanted.origin.call_uid
    first: dict[str, FileTouched] = {}
    last: dict[str, FileTouched] = {}
    certain: dict[str, bool] = {}
    for touched in files:
        first.setdefault(touched.path, touched)
        last[touched.path] = touched
        certain[touched.path] = certain.get(touched.path, True) and touched.is_certain
    found: list[FileTouched] = []
    for path, end in last.items():
        begin = first[path]
        was_there, is_there = begin.action != "created", end.action != "deleted"
        # Made and removed again: for the parent nothing has happened.
        if not was_there and not is_there:
            continue
        found.append(
            FileTouched(
                path=path,
                action="deleted" if not is_there else "modified" if was_there else "created",
                before=begin.before,
                after=end.after,
                call_uid=call_uid,
                mode_before=begin.mode_before,
                mode_after=end.mode_after,
                missing=begin.missing,
                is_certain=certain[path],
            )
        )
    return tuple(found)
