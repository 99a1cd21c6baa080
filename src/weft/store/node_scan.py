"""Messages by their ids, in stores that have no index of them: every log is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from weft.events import NewMessage, NodeSplit, decode
from weft.ids import NodeId
from weft.store.base import NodePlace, Record, RowPlace

if TYPE_CHECKING:
    from weft.ids import SessionId
    from weft.store.base import Store

PAGE: Final = 1_000
_KINDS: Final = ("new_message", "node_split")
"""The facts that bring messages."""


async def scan_nodes(store: Store, prefix: str, limit: int) -> list[NodePlace]:
    """Messages whose ids begin with `prefix`, the newest first."""
    found: list[tuple[float, NodePlace]] = []
    place: RowPlace | None = None
    while page := await store.rows(limit=PAGE, archived=True, children=True, after=place):
        for row in page:
            if not row.damaged:
                found += await _in_session(store, row.id, prefix)
        place = page[-1].last_active, page[-1].id
    found.sort(key=lambda one: (one[1].node == prefix, one[0]), reverse=True)
    return [each for _, each in found[:limit]]


async def _in_session(
    store: Store, session_id: SessionId, prefix: str
) -> list[tuple[float, NodePlace]]:
    found: list[tuple[float, NodePlace]] = []
    after = 0
    while records := await store.read(session_id, after=after, limit=PAGE):
        for record in records:
            node = _node_of(record)
            if node is not None and node.startswith(prefix):
                found.append((record.at, NodePlace(node, session_id)))
        after = records[-1].seq
    return found


def _node_of(record: Record) -> NodeId | None:
    if record.kind not in _KINDS:
        return None
    try:
        fact = decode(record.body)
    except msgspec.MsgspecError:
        return None
    if isinstance(fact, NewMessage):
        return fact.node.id
    return fact.tail.id if isinstance(fact, NodeSplit) else None
