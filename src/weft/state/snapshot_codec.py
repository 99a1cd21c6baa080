"""Snapshots: a state as bytes, in slices, and back.

A snapshot is one JSON document on each line: first the state without its long tables (the nodes of
the tree, the sums of the ledger by turn and node), then these tables, a slice on each line.  No
slice takes long, so that a thread that writes or reads a snapshot lets the event loop run in
between; and what a slice repeats (the id of its log on every node) is freed before the next one is
read.

What is stored is compressed, a tenth of it: it is written again and again while a session grows,
and neither writer nor reader ever holds all of it in full length.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Final, TypeVar

import msgspec

from weft.ids import NodeId, SessionId
from weft.messages import Usage
from weft.state.session import SessionState
from weft.tree import NodeSkeleton

_K = TypeVar("_K")
_V = TypeVar("_V")

READ_AHEAD: Final = 128 * 1024
"""Bytes of a snapshot that are unpacked at a time."""
SLICE: Final = 500
"""Nodes or sums on one line: about a third of a millisecond to encode."""
PAGED_FROM: Final = 10_000
"""Nodes of a session whose snapshot has pages: a shorter one is written in half the time without
them, and decoded in a fortieth of a second."""
PAGE_SIZE: Final = 128
"""Nodes on a page: about half a millisecond to read."""
MAGIC: Final = b"weft-pages\n"
"""What a snapshot with pages begins with."""


class _Slice(msgspec.Struct, omit_defaults=True):
    """A part of the long tables."""

    nodes: dict[NodeId, NodeSkeleton] = {}
    turns: dict[str, Usage] = {}
    paid: dict[NodeId, Usage] = {}


def snapshot(state: SessionState) -> bytes:
    """The state as bytes; equal states give equal bytes.

    The state must not change meanwhile.
    """
    return b"\n".join(_lines(state))


def pack(
    state: SessionState,
    *,
    paged_from: int = PAGED_FROM,
    page_size: int = PAGE_SIZE,
    pause: Callable[[], None] = lambda: None,
) -> bytes:
    """A snapshot as it is stored; that of a session with so many nodes has pages
    (`snapshot_pages`), each with so many of them.  `pause` is called every few milliseconds of a
    long one, and what it raises ends the work.
    """
    if len(state.tree.nodes) >= paged_from:
        return _packed_pages(state, page_size, pause)
    # Level 1: six times as fast as the usual one, and nearly as small for what repeats itself so.
    packer = zlib.compressobj(1)
    pieces = [packer.compress(line + b"\n") for line in _lines(state)]
    return b"".join([*pieces, packer.flush()])


def _packed_pages(state: SessionState, page_size: int, pause: Callable[[], None]) -> bytes:
    from weft.state.page_writer import packed_tables  # few sessions are so long
    from weft.state.snapshot_pages import joined

    tables = packed_tables(state.tree.nodes, state.ledger.nodes, page_size, pause)
    head = b"\n".join(map(_encoder.encode, _head_documents(state)))
    return joined(tables, head, MAGIC)


def _unpacked_pages(data: bytes) -> SessionState:
    from weft.state.snapshot_pages import paged_tables, parted  # as above

    head, stored = parted(data, MAGIC)
    state = restore(head)
    nodes, paid, counts = paged_tables(stored)
    state.tree.nodes, state.ledger.nodes = nodes, paid
    state.tree.__dict__["counts"] = counts
    return state


def _lines(state: SessionState) -> Iterator[bytes]:
    return map(_encoder.encode, _documents(state))


def _documents(state: SessionState) -> Iterator[SessionState | _Slice]:
    head, *turns = _head_documents(state)
    yield head
    for nodes in _sliced(state.tree.nodes):
        yield _Slice(nodes=nodes)
    yield from turns
    for paid in _sliced(state.ledger.nodes):
        yield _Slice(paid=paid)


def _head_documents(state: SessionState) -> Iterator[SessionState | _Slice]:
    """All but what pages have."""
    tree = msgspec.structs.replace(state.tree, nodes={})
    ledger = msgspec.structs.replace(state.ledger, turns={}, nodes={})
    # As the log has it: a folder that was made on this host is on no other one.
    about = msgspec.structs.replace(
        state.about, project_path=state.about.known_path, listed_path=""
    )
    yield msgspec.structs.replace(state, tree=tree, ledger=ledger, about=about)
    for turns in _sliced(state.ledger.turns):
        yield _Slice(turns=turns)


def _sliced(table: Mapping[_K, _V]) -> Iterator[dict[_K, _V]]:
    ahead = iter(table.items())
    while part := dict(islice(ahead, SLICE)):
        yield part


def restore(data: bytes) -> SessionState:
    """A state from its bytes, of the same `FOLD_VERSION`.

    Raises:
        msgspec.MsgspecError: they are no state; the log still is.
    """
    return _from_lines(iter(data.split(b"\n")))


def unpack(data: bytes) -> SessionState:
    """A state from a stored snapshot, of the same `FOLD_VERSION`.

    Raises:
        msgspec.MsgspecError: it is no snapshot; the log still has everything.
    """
    try:
        if data.startswith(MAGIC):
            return _unpacked_pages(data)
        return _from_lines(_unpacked_lines(data))
    except (zlib.error, KeyError, UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(f"no snapshot: {error}") from error


def _unpacked_lines(data: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    rest, waiting = b"", data
    while not unpacker.eof:
        more = unpacker.decompress(waiting, READ_AHEAD)
        waiting = unpacker.unconsumed_tail
        # Without this, bytes that were cut off would be waited for without end.
        if not more and not waiting and not unpacker.eof:
            raise msgspec.DecodeError("the snapshot is cut off")
        *lines, rest = (rest + more).split(b"\n")
        yield from lines


def _from_lines(lines: Iterator[bytes]) -> SessionState:
    try:
        # For bytes that we never wrote msgspec raises two errors of Python itself: broken UTF-8,
        # and nesting that is too deep.
        state = _decoder().decode(next(lines, b""))
        nodes = dict(state.tree.nodes)
        names: dict[NodeId, NodeId] = {}
        logs: dict[SessionId, SessionId] = {}
        for line in lines:
            part = _slice_decoder().decode(line)
            _take_nodes(part, nodes, names, logs)
            state.ledger.turns |= part.turns
            for node, used in part.paid.items():
                state.ledger.nodes[names.get(node, node)] = used
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(f"no state: {error}") from error
    state.tree.nodes = nodes
    return state


def _take_nodes(
    part: _Slice,
    nodes: dict[NodeId, NodeSkeleton],
    names: dict[NodeId, NodeId],
    logs: dict[SessionId, SessionId],
) -> None:
    """Take in the nodes of a slice; of strings that are equal, all hold the same one."""
    share, known = names.setdefault, names.get
    for node, holder in part.nodes.items():
        nodes[share(node, node)] = holder
        log = holder.at.log
        msgspec.structs.force_setattr(holder.at, "log", logs.setdefault(log, log))
        if holder.parent is not None:
            holder.parent = known(holder.parent, holder.parent)
        # A child comes after its parent, and is then called by the same string.
        for child in holder.children:
            share(child, child)


# JSON, as the facts are: MessagePack has no number above 64 bits, and a model's arguments may.
_encoder = msgspec.json.Encoder()


# Made when they are first needed: it takes milliseconds, and a new session has no snapshot.
@cache
def _decoder() -> msgspec.json.Decoder[SessionState]:
    return msgspec.json.Decoder(SessionState)


@cache
def _slice_decoder() -> msgspec.json.Decoder[_Slice]:
    return msgspec.json.Decoder(_Slice)
