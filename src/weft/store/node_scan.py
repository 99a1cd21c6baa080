"""Messages by their ids, in stores that have no index of them: every log is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from weft.events import NewMessage, NodeSplit, decode
from weft.ids import NodeId, SessionId

PAGE: Final = 1_000
_KINDS: Final = ("new_message", "node_split")
"""The facts that bring messages."""


class LogReader(Protocol):
    """What is asked of a store; `weft.store.Store` has it."""

    async def rows(self, *, limit: int, archived: bool, children: bool, after: Any) -> Any: ...

    async def read(self, stream: str, *, after: int, limit: int) -> Any: ...


async def scan_nodes(store: LogReader, fits: Callable[[str], bool]) -> list[tuple[str, SessionId]]:
    """Messages whose ids fit, with their sessions, the newest first."""
    found: list[tuple[float, str, SessionId]] = []
    place: tuple[float, SessionId] | None = None
    while page := await store.rows(limit=PAGE, archived=True, children=True, after=place):
        for row in page:
            if not row.damaged:
                found += await _in_session(store, row.id, fits)
        place = page[-1].last_active, page[-1].id
    found.sort(key=lambda one: one[0], reverse=True)
    return [(node, session_id) for _, node, session_id in found]


async def _in_session(
    store: LogReader, session_id: SessionId, fits: Callable[[str], bool]
) -> list[tuple[float, str, SessionId]]:
    found: list[tuple[float, str, SessionId]] = []
    after = 0
    while records := await store.read(session_id, after=after, limit=PAGE):
        found += [
            (record.at, node, session_id)
            for record in records
            if (node := _node_of(record.kind, record.body)) is not None and fits(node)
        ]
        after = records[-1].seq
    return found


def _node_of(kind: str, body: bytes) -> NodeId | None:
    if kind not in _KINDS:
        return None
    try:
        fact = decode(body)
    except msgspec.MsgspecError:
        return None
    if isinstance(fact, NewMessage):
        return fact.node.id
    return fact.tail.id if isinstance(fact, NodeSplit) else None
