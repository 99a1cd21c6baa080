"""The model calls of a session, read from its log and from those that it shares as a fork."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.events import AnyFact, ModelCallStarted, UsageRecorded, decode
from weft.ids import NodeId, SessionId, TurnId
from weft.session.log.load import PAGE, fork_of
from weft.store import Store
from weft.tree import ConversationTree, LogPosition

_KINDS: Final = frozenset({"model_call_started", "usage_recorded"})


class LoggedCall(msgspec.Struct, kw_only=True):
    """One call of a turn, as the log has it."""

    place: LogPosition
    started: ModelCallStarted
    used: UsageRecorded | None = None
    """What it used; None while it runs, and where it failed."""


async def logged_calls(session_id: SessionId, store: Store) -> list[LoggedCall]:
    """The calls for answers on a session's log, oldest first; those of a fork's past come first."""
    found: list[LoggedCall] = []
    by_node: dict[NodeId, LoggedCall] = {}
    async for fact in _facts(session_id, store):
        match fact:
            case ModelCallStarted(purpose="turn", node=node):
                place = LogPosition(fact.session_id, fact.seq)
                call = by_node[node] = LoggedCall(place=place, started=fact)
                found.append(call)
            # An attempt that was given up is entered under the same node; the last one counts.
            case UsageRecorded(node=node) if node in by_node:
                by_node[node].used = fact
            case _:
                pass
    return found


async def _facts(session_id: SessionId, store: Store) -> AsyncIterator[AnyFact]:
    for log, upto in await _logs(session_id, store):
        after = 0
        while (not upto or after < upto) and (
            records := await store.read(log, after=after, limit=PAGE)
        ):
            for record in records:
                after = record.seq
                if record.kind in _KINDS and (not upto or after <= upto):
                    yield decode(record.body, stream=log, seq=after)


async def _logs(session_id: SessionId, store: Store) -> list[tuple[SessionId, int]]:
    """The logs that hold a session, oldest first, each with its last fact (0: all of it)."""
    found = [(session_id, 0)]
    while (fork := await fork_of(found[-1][0], store)) is not None:
        found.append((fork.session_id, fork.seq))
    return found[::-1]


def calls_of_turn(
    calls: list[LoggedCall], tree: ConversationTree, node: NodeId | None
) -> list[LoggedCall]:
    """The calls of the turn that a message belongs to; of None, the first turn's.

    Raises:
        UsageError: it belongs to none.
    """
    turn = _turn_of(calls, tree, node)
    if turn is None:
        raise UsageError("no model was asked for that message: there is no request to show")
    return [call for call in calls if call.started.turn_id == turn]


def _turn_of(calls: list[LoggedCall], tree: ConversationTree, node: NodeId | None) -> TurnId | None:
    answered = next((call for call in calls if call.started.node == node), None)
    if answered is not None:
        return answered.started.turn_id
    if node is None:
        return calls[0].started.turn_id if calls else None
    held = tree.nodes[node]
    first = held.earlier[0] if held.earlier else held.at
    later = (c for c in calls if c.place.log == first.log and c.place.seq > first.seq)
    found = next(later, None)
    return None if found is None else found.started.turn_id
