"""Pages of the present line: so much of a long history as is looked at, and no more is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from weft.api.history import note_id, rows
from weft.errors import UsageError
from weft.ids import CallUid, NodeId
from weft.session import CallRecord, SessionPort
from weft.state import SessionState
from weft.tree import TreeNote
from weft.view.snapshot import HistoryMessage


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some messages of a line, oldest first, and where there are more."""

    items: tuple[tuple[str, HistoryMessage], ...]
    """Each message with its id."""
    before: str | None = None
    """Hand this to `line(before=…)` for the messages before; None when these are the first."""
    after: str | None = None
    """Hand this to `line(after=…)` for the messages after; None when these are the last."""
    seq: int = 0
    """The last fact that these messages know of: `subscribe(after=page.seq)` goes on from here."""


async def line_page(port: SessionPort, before: str | None, after: str | None, limit: int) -> Page:
    """The last `limit` messages; those just before one of them, or just after one.

    Raises:
        UsageError: both places are given, the limit is not positive, or the line has no such
            message.
    """
    if before is not None and after is not None:
        raise UsageError("give the page either `before` or `after`, not both")
    if limit < 1:
        raise UsageError(f"a page has at least one message, not {limit}")
    # In one moment with the window: the session goes on while the words are read.
    seq = port.state.seq
    found, more_before, more_after = _window(port.state, before, after, limit)
    ids = [row for row, _ in found]
    # Notes that were said before the first message belong to no node.
    nodes = list(dict.fromkeys(node for _, node in reversed(found) if node is not None))
    line = await port.nodes(nodes)
    tree = port.state.tree
    read = dict(rows(line, tree.notes, from_start=True, excluded=tree.excluded))
    went = await port.call_records(nodes)
    # One that is gone was deleted or given other results while the words were read.
    items = tuple((row, _with_record(read[row], went)) for row in reversed(ids) if row in read)
    return Page(
        items=items,
        before=ids[-1] if ids and more_before else None,
        after=ids[0] if more_after else None,
        seq=seq,
    )


def _with_record(message: HistoryMessage, records: Mapping[CallUid, CallRecord]) -> HistoryMessage:
    record = records.get(CallUid(message.tool_call_id or ""))
    if record is None:
        return message
    return msgspec.structs.replace(message, duration_ms=record.duration_ms, allowed=record.allowed)


def _window(
    state: SessionState, before: str | None, after: str | None, limit: int
) -> tuple[list[tuple[str, NodeId | None]], bool, bool]:
    """The messages of a page, newest first, and whether there are any before and after them."""
    ahead = _newest_first(state)
    place = before if after is None else after
    newer = [] if place is None else _newer_than(place, ahead)
    if after is not None:
        return newer[-limit:], True, len(newer) > limit
    found = list(islice(ahead, limit + 1))
    return found[:limit], len(found) > limit, before is not None


def _newer_than(
    place: str, ahead: Iterator[tuple[str, NodeId | None]]
) -> list[tuple[str, NodeId | None]]:
    """The messages after `place`, newest first; `ahead` goes on with the one before it."""
    newer: list[tuple[str, NodeId | None]] = []
    for row in ahead:
        if row[0] == place:
            return newer
        newer.append(row)
    raise UsageError(f"there is no message {place!r} on the present line")


def _newest_first(state: SessionState) -> Iterator[tuple[str, NodeId | None]]:
    """The id of each message of the present line and the node that it belongs to; nothing is
    read for it.
    """
    tree = state.tree
    notes: dict[NodeId | None, list[TreeNote]] = {}
    for note in tree.notes:
        notes.setdefault(note.node, []).append(note)
    for node in tree.ancestors(tree.head):
        holder = tree.nodes[node]
        yield from ((note_id(note), node) for note in reversed(notes.get(node, ())))
        yield from ((uid, node) for uid in reversed(holder.calls) if uid in holder.results)
        yield node, node
    yield from ((note_id(note), None) for note in reversed(notes.get(None, ())))
