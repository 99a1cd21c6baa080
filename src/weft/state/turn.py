"""The open turn: what had begun and not ended, which is all that recovery needs to know."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from weft.events import (
    AnyFact,
    Compacted,
    FinishReason,
    ModelCallStarted,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    SessionRestarted,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnParked,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
)
from weft.ids import CallUid, NodeId, RequestId, TurnId

Request: TypeAlias = PermissionRequest | QuestionAsked


class ModelCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that was sent, as far as we know, and not answered."""

    node: NodeId
    model: str
    attempt: int = 1
    is_held: bool = False
    """Room is made for it first: it is not sent before that."""
    digest: str = ""
    """Which request it is, as far as that was known when it went on record."""


GONE_ON_BY_USER: Final = "the user had it continue"
"""The reason of a restart that does not count: the user has looked at what came before."""
REMEMBERED_RESTARTS: Final = 10


class AnsweredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request and what was answered, until its call is settled."""

    request: Request
    answer: PermissionResolved | QuestionAnswered


class OpenTurn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A turn between its start and its end."""

    turn_id: TurnId
    tip: NodeId | None = None
    """The last node of the turn's own line."""
    options: dict[str, Any] = {}
    iterations: int = 0
    """Answers the model has given in this turn."""
    calls: int = 0
    """Tool calls that they hold."""
    seconds: float = 0.0
    """How long it was worked on, until `since`."""
    since: float | None = None
    """From when on time counts that is not in `seconds`; None while it does not."""
    restarts: tuple[float, ...] = ()
    """When it went on by itself in another process."""
    parked: str = ""
    """Why it does not go on by itself; empty where it may."""
    call: ModelCall | None = None


class OpenTurnState(msgspec.Struct, kw_only=True):
    """The open turn, intents and requests; and how the last turn ended."""

    open: OpenTurn | None = None
    intents: dict[CallUid, ToolExecuting] = {}
    """Effects that were intended and not settled."""
    requests: dict[RequestId, Request] = {}
    """Permission requests and questions that wait for the user."""
    answers: dict[CallUid, AnsweredRequest] = {}
    """Answers whose call has not been settled yet."""
    wait: TurnWaiting | None = None
    """What the turn waits for; the wait is not over before its call is settled."""
    woken: TurnWoken | None = None
    """How that wait ended."""
    last_turn: TurnId | None = None
    last_reason: FinishReason | None = None
    last_detail: str = ""
    last_at: float = 0.0
    """When the last fact of its work was written."""

    def copied(self) -> OpenTurnState:
        """An equal one that can be folded on, to look ahead."""
        return msgspec.structs.replace(
            self,
            open=None if self.open is None else msgspec.structs.replace(self.open),
            intents=dict(self.intents),
            requests=dict(self.requests),
            answers=dict(self.answers),
        )

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        # The most frequent kinds first: a session is opened by folding all that it has.
        match fact:
            case ToolComplete(call_uid=call_uid, at=at):
                self._settled(call_uid, at)
            # An import adds nodes without moving the head: they are no answers of this turn.
            case NewMessage(advance=True):
                self._node_added(fact)
            case ToolExecuting(call_uid=call_uid):
                self.intents[call_uid] = fact
            case TurnStarted(turn_id=turn_id, node=node, options=options):
                # Intents and requests stay: a turn that goes on has to settle them.
                self.open = OpenTurn(turn_id=turn_id, tip=node, options=options)
                self.last_reason = None
                self.last_detail = ""
                self._hold_time(fact.at)
            case ModelCallStarted(purpose="turn"):
                if self.wait is not None and self.wait.call_uid is None:
                    # No call waited: it is over when the model is asked.
                    self.wait = self.woken = None
                    self._hold_time(fact.at)
                if self.open is not None:
                    self.open.call = ModelCall(
                        node=fact.node,
                        model=fact.model,
                        attempt=fact.attempt,
                        digest=fact.digest,
                    )
            case TurnFinished(turn_id=turn_id, finish_reason=reason, detail=detail):
                self._finished(turn_id, reason, detail)
            case ModelCallStarted(purpose="compaction", turn_id=turn_id):
                self._hold_call(turn_id)
                return
            case Compacted():
                self._hold_call(None)
                return
            case PermissionRequest(request_id=request_id) | QuestionAsked(request_id=request_id):
                self.requests[request_id] = fact
                self._hold_time(fact.at)
            case (
                PermissionResolved(request_id=request_id) | QuestionAnswered(request_id=request_id)
            ):
                # An answer to a request that is not open approves nothing: it came twice, or too
                # late.
                if (request := self.requests.pop(request_id, None)) is not None:
                    self.answers[request.call_uid] = AnsweredRequest(request=request, answer=fact)
                self._hold_time(fact.at)
            case SessionRestarted() if self.open is not None:
                self._restarted(self.open, fact)
            case TurnParked(detail=detail) if self.open is not None:
                self.open.parked = detail
            case TurnWaiting():
                self.wait, self.woken = fact, None
                self._hold_time(fact.at)
            case TurnWoken(wait_id=wait_id):
                if self.wait is not None and self.wait.wait_id == wait_id:
                    self.woken = fact
                self._hold_time(fact.at)
            case _:
                return
        # Not of what users have done beside it: nobody may be at work on it then.
        self.last_at = fact.at

    def _hold_call(self, turn_id: TurnId | None) -> None:
        """A compaction of the turn holds its model call.

        When it is done (None) the call is sent, if no other comes in its place.
        """
        if self.open is not None and self.open.call is not None:
            is_held = turn_id == self.open.turn_id
            self.open.call = msgspec.structs.replace(self.open.call, is_held=is_held)

    def _node_added(self, fact: NewMessage) -> None:
        if self.open is None:
            return
        self.open.tip = fact.node.id
        if fact.node.role == "assistant":
            self.open.call = None
            # A partial answer is asked for again; counted, it would use up the limit of iterations
            # twice.
            if not fact.node.is_partial:
                self.open.iterations += 1
                self.open.calls += len(fact.node.calls)

    @property
    def asleep(self) -> TurnWaiting | None:
        """The wait that nothing has ended yet."""
        return self.wait if self.woken is None else None

    def _restarted(self, turn: OpenTurn, fact: SessionRestarted) -> None:
        turn.parked = ""
        is_by_user = fact.reason == GONE_ON_BY_USER
        turn.restarts = () if is_by_user else (*turn.restarts, fact.at)[-REMEMBERED_RESTARTS:]
        if turn.since is not None:
            # Between the last fact of a process and the first of the next one nothing was done.
            turn.seconds += max(0.0, self.last_at - turn.since)
            turn.since = fact.at

    @property
    def is_held(self) -> bool:
        """Whether it waits, or asks the user: that time does not count."""
        if any(not each.outlives_turn for each in self.requests.values()):
            return True
        return self.asleep is not None

    def worked(self, now: float) -> float:
        """How many seconds the open turn was worked on."""
        turn = self.open
        if turn is None:
            return 0.0
        return turn.seconds + (max(0.0, now - turn.since) if turn.since is not None else 0.0)

    def _hold_time(self, at: float) -> None:
        # Only where it may begin or end to count: a look at each fact is felt in a long log.
        turn = self.open
        if turn is None:
            return
        if not self.is_held:
            turn.since = at if turn.since is None else turn.since
        elif turn.since is not None:
            turn.seconds += max(0.0, at - turn.since)
            turn.since = None

    def _settled(self, call_uid: CallUid, at: float) -> None:
        may_hold = self.wait is not None or bool(self.requests)
        if self.wait is not None and self.wait.call_uid == call_uid:
            self.wait = self.woken = None
        self.intents.pop(call_uid, None)
        self.answers.pop(call_uid, None)
        # A call that was settled without its answer (aborted, recovered) has nothing left to ask.
        if self.requests:
            self.requests = {k: v for k, v in self.requests.items() if v.call_uid != call_uid}
        if may_hold:
            self._hold_time(at)

    def _finished(self, turn_id: TurnId, reason: FinishReason, detail: str) -> None:
        self.open = None
        # A call that belongs to no node is not the turn's: it may run on, and a crash must find it.
        if self.intents:
            self.intents = {k: v for k, v in self.intents.items() if not v.node}
        # Background children ask on after the turn.
        if self.requests:
            self.requests = {k: v for k, v in self.requests.items() if v.outlives_turn}
        self.answers = {}
        self.wait = self.woken = None
        self.last_turn = turn_id
        self.last_reason = reason
        self.last_detail = detail
