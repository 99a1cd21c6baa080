"""The facts of a turn's steps, as pure functions of the state.

What waits and runs is in `turn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.events import (
    Fact,
    InputPromoted,
    ModelCallStarted,
    NewMessage,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
    ToolComplete,
    UsageRecorded,
)
from weft.ids import BlobId, CallUid, NodeId, TurnId, new_node_id
from weft.loop.answer import ModelAnswer
from weft.loop.tool_results import NOT_RUN, STOPPED_WHILE_RUNNING, denial, refused
from weft.messages import Node, Usage
from weft.providers import SentBody
from weft.state import QueueEntry, SessionState


def tip_after(state: SessionState, facts: Sequence[Fact]) -> NodeId | None:
    """Where the turn's line ends once `facts` are in."""
    for fact in reversed(facts):
        if isinstance(fact, NewMessage) and fact.advance:
            return fact.node.id
    if state.turn.open is not None and state.turn.open.tip is not None:
        return state.turn.open.tip
    return state.tree.head


def promote(
    state: SessionState,
    before: Sequence[Fact],
    now: float,
    *,
    follow_up: QueueEntry | None = None,
) -> list[Fact]:
    """All steering that waits, and then this follow-up, become user messages at the tip."""
    # In the order in which they were queued, each with the one before as its parent: two messages
    # of the user must not become siblings.
    waiting = [*state.queue.waiting("steering")]
    if follow_up is not None:
        waiting.append(follow_up)
    if not waiting:
        return []
    facts: list[Fact] = [InputPromoted(entries=tuple(entry.entry_id for entry in waiting))]
    parent = tip_after(state, before)
    for entry in waiting:
        node = Node(
            id=new_node_id(now),
            role="user",
            parts=entry.parts,
            parent=parent,
            parent_revision=revision_of(state, parent),
            metadata={"entry": entry.entry_id, "delivery": entry.delivery},
        )
        facts.append(NewMessage(node=node))
        parent = node.id
    return facts


def revision_of(state: SessionState, node: NodeId | None) -> int:
    """The present revision of a node; 0 for one that is just being made."""
    holder = state.tree.nodes.get(node) if node is not None else None
    return holder.revision if holder is not None else 0


def call_started(
    turn_id: TurnId, model: str, prefix: BlobId | None, now: float, *, digest: str
) -> ModelCallStarted:
    """A request is about to be sent, and its answer has a name already."""
    return ModelCallStarted(
        turn_id=turn_id, node=new_node_id(now), model=model, prefix=prefix, digest=digest
    )


def answer_node(
    state: SessionState, node: NodeId, answer: ModelAnswer, *, model: str, usage: Usage | None
) -> NewMessage:
    """The node that an answer becomes; marked `partial` when the stream broke off."""
    parent = tip_after(state, ())
    return NewMessage(
        node=Node(
            id=node,
            role="assistant",
            parts=answer.parts,
            parent=parent,
            parent_revision=revision_of(state, parent),
            model=model,
            usage=usage,
            metadata=_marks(answer),
        )
    )


def _marks(answer: ModelAnswer) -> dict[str, Any]:
    if answer.stop is None:
        return {"partial": True}
    # The next answer goes on in the middle of its text; without calls that is all that follows.
    return {"cut_off": True} if answer.stop == "length" and not answer.calls else {}


def usage_recorded(
    usage: Usage,
    *,
    turn_id: TurnId,
    node: NodeId,
    model: str,
    estimated: bool = False,
    request_estimate: int = 0,
    sent: SentBody | None = None,
) -> UsageRecorded:
    """The ledger row of one answer."""
    return UsageRecorded(
        usage=usage,
        model=model,
        estimated=estimated,
        turn_id=turn_id,
        node=node,
        request_estimate=request_estimate,
        body="" if sent is None else sent.digest,
        form={} if sent is None else sent.form,
    )


def settle_open_calls(
    state: SessionState, before: Sequence[Fact], *, by: str, reason: str
) -> list[Fact]:
    """Close every request and every call that is still open, so that the history is whole: the turn
    ends here.
    """
    facts: list[Fact] = []
    for request in state.turn.requests.values():
        # Requests of background agents are not the turn's: their agents still wait for the answer.
        if request.outlives_turn:
            continue
        if isinstance(request, QuestionAsked):
            facts.append(QuestionAnswered(request_id=request.request_id, by=by))
        else:
            facts.append(
                PermissionResolved(
                    request_id=request.request_id, action="deny", by=by, reason=reason
                )
            )
    for call_uid, node in open_calls(state, before):
        # The user has answered, and the turn ended before the answer was acted on. The model must
        # read of a denial and not of an abort, or it would ask for the same again.
        if (denied := _denial_on_record(state, call_uid)) is not None:
            facts.append(refused(call_uid, node, denial(denied), status="denied"))
            continue
        # What was intended may have taken effect; what was not, certainly has not. The model reads
        # which, because only the second can be repeated without a look.
        running = call_uid in state.turn.intents
        text = STOPPED_WHILE_RUNNING if running else NOT_RUN
        facts.append(refused(call_uid, node, text, status="aborted"))
    return facts


def _denial_on_record(state: SessionState, call_uid: CallUid) -> PermissionResolved | None:
    """The answer that denied a call, when the turn ends before the call could be settled by it."""
    answered = state.turn.answers.get(call_uid)
    answer = answered.answer if answered is not None else None
    if not isinstance(answer, PermissionResolved) or answer.action != "deny":
        return None
    return answer if answer.instead is None else None


def open_calls(state: SessionState, before: Sequence[Fact]) -> list[tuple[CallUid, NodeId]]:
    """The calls of the line's last answer that have no result, in call order."""
    done = {fact.call_uid for fact in before if isinstance(fact, ToolComplete)}
    for fact in before:
        if isinstance(fact, NewMessage) and fact.node.calls:
            return [
                (call.call_uid, fact.node.id)
                for call in fact.node.calls
                if call.call_uid not in done
            ]
    tip = answer_at_tip(state)
    if tip is None:
        return []
    return [(uid, tip) for uid in state.tree.unsettled(tip) if uid not in done]


def answer_at_tip(state: SessionState) -> NodeId | None:
    """The answer that the turn stands on, if there is one that was made here.

    Only its calls are the turn's to run or to settle.  What hangs open further up, or was made
    elsewhere (in the log that a fork shares, in a conversation that was brought along), is given to
    the model as unknown and never run.
    """
    tip = tip_after(state, ())
    if tip is None:
        return None
    node = state.tree.nodes[tip]
    is_ours = node.at.log == state.session_id and not node.marks.get("seeded")
    return tip if node.role == "assistant" and is_ours else None
