"""Withdrawal of one message: its turn is aborted, or it is taken out of the queue."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.api.session import Session
from weft.ids import EntryId, InputId, TurnId
from weft.session import AbortTurn, SessionPort
from weft.state import SessionState


async def withdraw(session: Session, input_id: str, turn_id: TurnId | None, reason: str) -> bool:
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
        await session.remove_queued(EntryId(entry_id))
        return True
    if cause is None and _is_alone(session, port.state):
        # It may be on its way into the log at this moment: the abort comes behind it.
        await session.abort(reason)
        return True
    return False


async def _abort(port: SessionPort, turn_id: TurnId, reason: str) -> bool:
    turn = port.state.turn.open
    if turn is None or turn.turn_id != turn_id:
        return False
    await port.abort(AbortTurn(reason=reason, turn_id=turn_id))
    return True


def _is_alone(session: Session, state: SessionState) -> bool:
    """True where the session is ours and no turn of another process can run."""
    return session._host.runs_here(session.id) and state.turn.open is None
