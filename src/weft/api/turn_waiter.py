"""Waiting for the end of a turn, and withdrawing it, from outside of its session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from weft.api.handle import SessionBase
from weft.api.history import notes_after, rows, whole
from weft.api.results import Reply, TurnTally
from weft.errors import SessionInterrupted, SessionStopped, UsageError
from weft.events import Event, FactBase, SessionStatus, Status, UnknownFact
from weft.ids import EntryId, InputId, NodeId, TurnId
from weft.session import AbortReceipt, AbortTurn, Accepted, RemoveQueued, SessionPort, Subscription
from weft.state import SessionState


async def reply_to(
    port: SessionPort, accepted: Accepted, continued_at: float | None = None
) -> Reply:
    """Wait for the end of the turn that takes up what was accepted; `continued_at` is when one was
    gone on with.

    Raises:
        SessionInterrupted, SessionStopped: no process works on it, or will.
        UsageError: the message was taken back.
    """
    tally = TurnTally(
        port.session_id,
        turn_id=accepted.turn_id,
        entry_id=accepted.entry_id,
        steers=accepted.status == "steering",
    )
    if continued_at is not None:
        tally.go_on(continued_at)
    # From the seq before the message was accepted: a fast turn may have ended before this line.
    async with port.subscribe(after=accepted.seq, live="status") as events:
        events.leave_out_work()
        # Once at first, for a status that was there before the subscription is not sent again.
        _refuse_if_stuck(port, port.status, accepted)
        async for event in events:
            if isinstance(event, SessionStatus):
                _refuse_if_stuck(port, event.status, accepted)
                continue
            reply = _take(tally, event)
            if reply is not None:
                return await _with_messages(reply, port, tally.nodes, accepted.seq)
            if tally.taken_back:
                raise UsageError("the queued message was taken back before it was sent")
    raise SessionStopped(port.session_id, await port.ended())


async def _with_messages(
    reply: Reply, port: SessionPort, nodes: Iterable[NodeId], after: int
) -> Reply:
    """The reply with what was said in its turn, and no more: a long session's whole line would make
    each message dearer than the one before.
    """
    known = port.state.tree.nodes
    line = await port.nodes([node for node in nodes if node in known])
    said = tuple(message for _, message in rows(line, notes_after(port.state, after)))
    return msgspec.structs.replace(reply, messages=said, text=whole(reply.text, said))


def _refuse_if_stuck(port: SessionPort, status: Status, accepted: Accepted) -> None:
    """Do not wait for a turn that no process is working on."""
    if status not in ("interrupted", "error"):
        return
    turn = port.state.turn.open
    if accepted.entry_id or (turn is not None and turn.turn_id == accepted.turn_id):
        raise SessionInterrupted(port.session_id, port.error)


def _take(tally: TurnTally, event: Event) -> Reply | None:
    return tally.take(event) if isinstance(event, (FactBase, UnknownFact)) else None


async def until_free(events: Subscription) -> None:
    """Read on until no turn runs, or the session has ended."""
    async for event in events:
        if isinstance(event, SessionStatus) and event.status in ("idle", "interrupted", "error"):
            return


async def withdraw(
    session: SessionBase, input_id: str, turn_id: TurnId | None, reason: str
) -> bool:
    """Withdraw what was sent under an id; `turn_id` is its turn, where that is known.

    False when it was not accepted yet, or is over.  Turns of others go on: which one runs is
    decided by the state, because the events that a caller has seen may be behind it.
    """
    port = await session._port()
    cause = port.state.inputs.causes.get(InputId(input_id))
    answer: dict[str, Any] = msgspec.to_builtins(cause.answer) if cause is not None else {}
    if turn_id is None and answer.get("status") == "started":
        turn_id = answer.get("turn_id")
    if turn_id is not None:
        return await _abort(port, turn_id, reason)
    entry_id = answer.get("entry_id")
    if entry_id is not None and entry_id in port.state.queue.entries:
        await session._call(RemoveQueued(entry_id=EntryId(entry_id)))
        return True
    if cause is None and _is_alone(session, port.state):
        # It may be on its way into the log at this moment: the abort comes behind it.
        await session._carry(AbortTurn(reason=reason), send_abort)
        return True
    return False


async def send_abort(port: SessionPort, command: AbortTurn) -> AbortReceipt:
    """An abort takes a way of its own: it does not wait behind other commands."""
    return await port.abort(command)


async def _abort(port: SessionPort, turn_id: TurnId, reason: str) -> bool:
    turn = port.state.turn.open
    if turn is None or turn.turn_id != turn_id:
        return False
    await port.abort(AbortTurn(reason=reason, turn_id=turn_id))
    return True


def _is_alone(session: SessionBase, state: SessionState) -> bool:
    """True where the session is ours and no turn of another process can run."""
    return session._host.runs_here(session.id) and state.turn.open is None
