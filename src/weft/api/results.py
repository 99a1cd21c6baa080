"""What comes of a turn, gathered from its events."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.events import (
    AnyFact,
    ChildFinished,
    Fact,
    FinishReason,
    InputPromoted,
    InputRemoved,
    NewMessage,
    QueuesRecalled,
    ToolComplete,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from weft.evidence import Receipt
from weft.ids import EntryId, NodeId, SessionId, TurnId
from weft.messages import NOTHING_USED, Node, Usage
from weft.view.snapshot import HistoryMessage


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn (or a whole run) ended."""

    text: str
    """The model's last words."""
    finish_reason: FinishReason
    session_id: SessionId
    model: str = ""
    usage: Usage = NOTHING_USED
    cost_usd: float | None = None
    """None: the price is not known."""
    duration_ms: int = 0
    iterations: int = 0
    """Answers of the model."""
    tool_calls_made: int = 0
    messages: tuple[HistoryMessage, ...] = ()
    """What was said in this turn, oldest first; `Session.messages()` has the whole line."""
    deliverable: Any = None
    detail: str = ""
    """One sentence where the reason alone says too little."""
    turn_id: TurnId | None = None
    receipts: tuple[Receipt, ...] = ()
    """What the answer claims about tests, builds, checks and searches, beside what is on record;
    those of another answer: `Session.receipts(turn)`.
    """


Reply = Result
"""The same thing: what `send_message` gives back."""


class TurnTally:
    """Follows a session's facts until one turn ends, and adds up what it did."""

    def __init__(
        self,
        session_id: SessionId,
        *,
        turn_id: TurnId | None,
        entry_id: EntryId | None,
        steers: bool = False,
    ) -> None:
        """`steers`: the message is for the turn that runs, or for the next if that ends first."""
        self._steered = turn_id if steers else None
        self._session_id = session_id
        self._turn_id = turn_id if entry_id is None else None
        self._entry_id = entry_id
        self._promoted = False
        self._started_at = 0.0
        self._text = ""
        self._cut = ""
        """The text of an answer that was cut off; the next one goes on with it."""
        self._model = ""
        self._usage = NOTHING_USED
        self._calls = 0
        self.nodes: dict[NodeId, bool] = {}
        """The nodes of the turn so far, oldest first."""
        self.taken_back = False
        """The queued message that this waited for was removed from the queue."""

    def take(self, fact: AnyFact) -> Result | None:
        """Take one more fact in; the result, when the turn is over."""
        match fact:
            case InputPromoted(entries=entries) if self._entry_id in entries:
                self._promoted = True
                self._join_steered(fact)
            case InputRemoved(entry_id=entry_id):
                self.taken_back = self.taken_back or entry_id == self._entry_id
            case QueuesRecalled(entries=entries):
                self.taken_back = self.taken_back or self._entry_id in entries
            case TurnStarted(turn_id=turn_id):
                self._turn_started(turn_id, fact)
            case NewMessage(node=node, advance=True) if not self._started_at:
                self.nodes[node.id] = True
            # The messages that begin a turn come between the end of the one before and its start.
            case TurnFinished() if not self._started_at:
                self.nodes.clear()
                self._steered = None
            # What came before the start belongs to the turn before it, which may still be writing.
            case _ if self._turn_id is not None and self._started_at:
                return self._during(fact)
            case _:
                pass
        return None

    def _turn_started(self, turn_id: TurnId, fact: Fact) -> None:
        # The first turn after the message left the queue is its turn: both facts are in one append.
        if self._turn_id is None and self._promoted:
            self._turn_id = turn_id
        if turn_id == self._turn_id:
            self._started_at = fact.at

    def _join_steered(self, fact: Fact) -> None:
        if self._steered is not None and not self._started_at:
            self._turn_id, self._started_at = self._steered, fact.at
            self.nodes.clear()

    def go_on(self, at: float) -> None:
        """The turn had started before; count from here."""
        self._started_at = at

    def _during(self, fact: AnyFact) -> Result | None:
        match fact:
            case NewMessage(node=node):
                self._take_message(node, advances=fact.advance)
            case UsageRecorded(usage=usage) | ChildFinished(usage=Usage() as usage):
                self._usage = self._usage + usage
            case ToolComplete(node=holder):
                self._calls += 1
                # A turn that is continued may settle a call of an answer before it.
                self.nodes[holder] = True
            case TurnFinished(turn_id=turn_id) if turn_id == self._turn_id:
                return self._result(fact)
            case _:
                pass
        return None

    def _take_message(self, node: Node, *, advances: bool) -> None:
        if advances:
            self.nodes[node.id] = True
        if node.role == "assistant":
            self._text = self._cut + node.text or self._text
            self._cut = self._text if node.is_cut_off else ""
            self._model = node.model

    def _result(self, finished: TurnFinished) -> Result:
        return Result(
            text=self._text,
            finish_reason=finished.finish_reason,
            session_id=self._session_id,
            model=self._model,
            usage=self._usage,
            cost_usd=self._usage.cost_usd,
            duration_ms=int((finished.at - self._started_at) * 1000),
            iterations=finished.iterations,
            tool_calls_made=self._calls,
            deliverable=finished.deliverable,
            detail=finished.detail,
            turn_id=finished.turn_id,
        )
