"""Snapshots of long sessions: pages that are read when a node on them is asked for.

A snapshot is a header, and sections behind it: the state without its long tables, the ids of all
nodes, an index from hashes of ids to numbers, how many nodes are below each, and the pages.  A
number is the place of a node among all of them, and nodes that are asked for together have
neighboring numbers: each line goes down into the largest subtree first (heavy paths), so that any
line of the tree lies on few pages.  Nodes that came since then have numbers behind all others,
until there are many of them.  A page has the nodes, and what was used for each.

`page_writer` writes them.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from weft.ids import NodeId
from weft.messages import Usage
from weft.tree import (
    NodeSkeleton,
    PageBook,
    PagedMap,
    PagedNumbers,
    SubtreeCounts,
)


class NodePage(msgspec.Struct, omit_defaults=True):
    """A page as it is stored."""

    nodes: dict[NodeId, NodeSkeleton] = {}
    paid: dict[NodeId, Usage] = {}


class PagedTables(msgspec.Struct, frozen=True):
    """The long tables of a state as bytes."""

    sections: dict[str, bytes]
    ids: list[bytes | memoryview]
    """The ids of all nodes, in parts."""
    pages: list[bytes | memoryview]
    page_size: int
    paid_count: int
    numbered: int


class _Header(msgspec.Struct):
    schema: str
    """What the types of a page were when it was written."""
    sections: dict[str, int]
    """How many bytes each has."""
    ids: list[int]
    pages: list[int]
    page_size: int
    paid_count: int
    numbered: int


def joined(tables: PagedTables, head: bytes, magic: bytes) -> bytes:
    """The tables with the rest of the state, as they are stored."""
    sections = {"head": zlib.compress(head, 1), **tables.sections}
    body = b"".join([*sections.values(), *tables.ids, *tables.pages])
    header = _Header(
        page_schema(),
        {name: len(data) for name, data in sections.items()},
        [len(part) for part in tables.ids],
        [len(page) for page in tables.pages],
        tables.page_size,
        tables.paid_count,
        tables.numbered,
    )
    front = msgspec.json.encode(header)
    rest = b"".join([len(front).to_bytes(4, "little"), front, body])
    # Of all that is behind it: what is read later is known to be right.
    return b"".join([magic, zlib.adler32(rest).to_bytes(4, "little"), rest])


def parted(data: bytes, magic: bytes) -> tuple[bytes, StoredPages]:
    """The rest of the state, and the pages.

    Raises:
        msgspec.DecodeError: they are not as they were written.
    """
    whole = memoryview(data)[len(magic) :]
    rest = whole[4:]
    if zlib.adler32(rest) != int.from_bytes(whole[:4], "little"):
        raise msgspec.DecodeError("the snapshot is not as it was written")
    end = 4 + int.from_bytes(rest[:4], "little")
    header, body = msgspec.json.decode(rest[4:end], type=_Header), rest[end:]
    # A page is decoded in the middle of a turn, when it is too late to read the log instead.
    if header.schema != page_schema():
        raise msgspec.DecodeError("the pages are of another form than those of today")
    at = 0

    def cut(length: int) -> memoryview:
        nonlocal at
        at += length
        return body[at - length : at]

    sections = {name: cut(length) for name, length in header.sections.items()}
    ids, pages = [cut(length) for length in header.ids], [cut(length) for length in header.pages]
    return zlib.decompress(sections.pop("head")), StoredPages(header, sections, ids, pages)


class StoredPages:
    """The pages of a snapshot, unpacked one at a time."""

    def __init__(
        self,
        header: _Header,
        sections: Mapping[str, memoryview],
        ids: Sequence[memoryview],
        pages: Sequence[memoryview],
    ) -> None:
        self._sections = sections
        self.id_parts = ids
        """The ids of all nodes, in parts."""
        self.pages = pages
        self.page_size = header.page_size
        self.paid_count = header.paid_count
        """How many nodes have used something."""
        self.numbered = header.numbered
        """How many nodes there were when all were numbered; those that came later are behind."""

    def ids(self) -> list[str]:
        """All nodes, by their numbers."""
        found: list[str] = []
        for part in self.id_parts:
            found += msgspec.json.decode(zlib.decompress(part), type=list[str])
        return found

    def numbers(self, name: str) -> array[int]:
        """A section of numbers that is stored as it is."""
        found = array("I")
        found.frombytes(self._sections[name])
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def unpacked(self, name: str) -> array[int]:
        """A section of numbers that is stored compressed."""
        found = array("i")
        found.frombytes(zlib.decompress(self._sections[name]))
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def read(self, page: int) -> tuple[Mapping[str, Any], ...]:
        """The nodes of a page, and what was used for them."""
        found = _page_decoder().decode(zlib.decompress(self.pages[page]))
        # Ids repeat from node to node, and there is one string for each of them then.
        nodes: dict[str, NodeSkeleton] = {}
        for node, held in found.nodes.items():
            nodes[sys.intern(node)] = held
            msgspec.structs.force_setattr(held.at, "log", sys.intern(held.at.log))
            if held.parent is not None:
                held.parent = NodeId(sys.intern(held.parent))
            if held.children:
                held.children = tuple(NodeId(sys.intern(child)) for child in held.children)
        return nodes, {sys.intern(node): used for node, used in found.paid.items()}


def paged_tables(
    stored: StoredPages,
) -> tuple[PagedMap[NodeId, NodeSkeleton], PagedMap[NodeId, Usage], SubtreeCounts]:
    """The tables of a snapshot, of which nothing is read yet, and the counts of its nodes."""
    book = PageBook(stored, stored.numbers("hashes"), stored.numbers("numbers"))
    nodes: PagedMap[NodeId, NodeSkeleton] = PagedMap(
        book, len(book), lambda: stored.unpacked("order")
    )
    paid: PagedMap[NodeId, Usage] = PagedMap(
        book, stored.paid_count, lambda: stored.unpacked("paid")
    )
    counts = SubtreeCounts.restored(
        PagedNumbers(book), lambda: (stored.unpacked("below"), stored.unpacked("above"))
    )
    return nodes, paid, counts


@cache
def _page_decoder() -> msgspec.json.Decoder[NodePage]:
    return msgspec.json.Decoder(NodePage)


@cache
def page_schema() -> str:
    """A hash of the types of a page."""
    schema = msgspec.json.encode(msgspec.json.schema(NodePage), order="sorted")
    return hashlib.sha256(schema).hexdigest()
