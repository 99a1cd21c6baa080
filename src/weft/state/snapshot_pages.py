"""Snapshots of long sessions: pages that are read when a node on them is asked for.

A snapshot is a header, and sections behind it: the state without its long tables, the ids of all
nodes, an index from hashes of ids to numbers, how many nodes are below each, and the pages.  A
number is the place of a node among all of them, and nodes that are asked for together have
neighboring numbers: each line goes down into the largest subtree first (heavy paths), so that any
line of the tree lies on few pages.  A page has the nodes, and what was used for each.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from weft.ids import NodeId
from weft.messages import Usage
from weft.tree import (
    LayeredMap,
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
    pages: list[bytes]
    page_size: int
    paid_count: int


class _Header(msgspec.Struct):
    sections: dict[str, int]
    """How many bytes each has."""
    pages: list[int]
    page_size: int
    paid_count: int


def joined(tables: PagedTables, head: bytes, magic: bytes) -> bytes:
    """The tables with the rest of the state, as they are stored."""
    sections = {"head": zlib.compress(head, 1), **tables.sections}
    body = b"".join([*sections.values(), *tables.pages])
    header = _Header(
        {name: len(data) for name, data in sections.items()},
        [len(page) for page in tables.pages],
        tables.page_size,
        tables.paid_count,
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
    sections: dict[str, memoryview] = {}
    at = 0
    for name, length in header.sections.items():
        sections[name] = body[at : at + length]
        at += length
    pages: list[memoryview] = []
    for length in header.pages:
        pages.append(body[at : at + length])
        at += length
    return zlib.decompress(sections.pop("head")), StoredPages(
        sections, pages, header.page_size, header.paid_count
    )


# --- writing ----------------------------------------------------------------------------


def packed_tables(
    nodes: Mapping[NodeId, NodeSkeleton], paid: Mapping[NodeId, Usage], page_size: int
) -> PagedTables:
    """The nodes of a tree and what was used for them, as pages and what leads to them.

    Neither must change meanwhile.
    """
    plain, sums = plain_table(nodes), plain_table(paid)
    came = list(plain)
    places = {node: place for place, node in enumerate(came)}
    held = list(plain.values())
    parents = [-1 if each.parent is None else places.get(each.parent, -1) for each in held]
    numbers = _numbered(parents, [each.depth for each in held])
    ids, ordered = [NodeId("")] * len(came), held.copy()
    for place, number in enumerate(numbers):
        ids[number], ordered[number] = came[place], held[place]
    above = array("i", bytes(4 * len(came)))
    for number, parent in zip(numbers, parents, strict=True):
        above[number] = -1 if parent < 0 else numbers[parent]
    hashed = sorted(zlib.crc32(_encoded(node)) << 32 | at for at, node in enumerate(ids))
    sections = {
        "ids": zlib.compress(msgspec.json.encode(ids), 1),
        "hashes": _bytes_of(array("I", [each >> 32 for each in hashed])),
        "numbers": _bytes_of(array("I", [each & 0xFFFFFFFF for each in hashed])),
        "order": _packed(array("i", numbers)),
        "paid": _packed(array("i", [numbers[places[node]] for node in sums])),
        "above": _packed(above),
        "below": _packed(_below([each.hidden for each in ordered], above)),
    }
    pages = list(_pages(ids, ordered, sums, page_size))
    return PagedTables(sections, pages, page_size, len(sums))


def _pages(
    ids: Sequence[NodeId],
    nodes: Sequence[NodeSkeleton],
    sums: Mapping[NodeId, Usage],
    page_size: int,
) -> Iterator[bytes]:
    for start in range(0, len(ids), page_size):
        keys = ids[start : start + page_size]
        page = NodePage(
            nodes=dict(zip(keys, nodes[start : start + page_size], strict=True)),
            paid={node: sums[node] for node in keys if node in sums},
        )
        yield zlib.compress(msgspec.json.encode(page), 1)


def plain_table(table: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A table that can be read in another thread."""
    if isinstance(table, PagedMap):
        return table.unread()
    if isinstance(table, LayeredMap):
        merged: dict[Any, Any] = {}
        for layer in reversed(table.all_layers):
            merged |= plain_table(layer)
        return merged
    return table


def _numbered(parents: Sequence[int], depths: Sequence[int]) -> list[int]:
    """The number of each node: greater than that of its parent, and the largest subtree of a node
    right behind it.
    """
    count = len(parents)
    downward: Sequence[int] = range(count)
    if any(parent >= at for at, parent in enumerate(parents)):
        # The second half of a message that was split is younger than what hangs on it.
        downward = sorted(downward, key=depths.__getitem__)
    sizes = [1] * count
    for at in reversed(downward):
        if (parent := parents[at]) >= 0:
            sizes[parent] += sizes[at]
    largest = [-1] * count
    for at in downward:
        parent = parents[at]
        if parent >= 0 and (largest[parent] < 0 or sizes[at] > sizes[largest[parent]]):
            largest[parent] = at
    numbers, free, next_root = [0] * count, [0] * count, 0
    for at in downward:
        parent, child = parents[at], largest[at]
        if parent < 0:
            numbers[at], next_root = next_root, next_root + sizes[at]
        elif largest[parent] == at:
            numbers[at] = numbers[parent] + 1
        else:
            numbers[at], free[parent] = free[parent], free[parent] + sizes[at]
        # Behind the largest one.
        free[at] = numbers[at] + 1 + (sizes[child] if child >= 0 else 0)
    return numbers


def _below(hidden: Sequence[bool], above: array[int]) -> array[int]:
    below = array("i", bytes(4 * len(above)))
    for number in range(len(above) - 1, -1, -1):
        if not hidden[number] and (parent := above[number]) >= 0:
            below[parent] += 1 + below[number]
    return below


def _encoded(node: str) -> bytes:
    return node.encode("utf-8", "surrogatepass")


def _bytes_of(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _packed(numbers: array[int]) -> bytes:
    return zlib.compress(_bytes_of(numbers), 1)


# --- reading ----------------------------------------------------------------------------


class StoredPages:
    """The pages of a snapshot, unpacked one at a time."""

    def __init__(
        self,
        sections: Mapping[str, memoryview],
        pages: Sequence[memoryview],
        page_size: int,
        paid_count: int,
    ) -> None:
        self._sections = sections
        self._pages = pages
        self.page_size = page_size
        self.paid_count = paid_count
        """How many nodes have used something."""

    def ids(self) -> list[str]:
        """All nodes, by their numbers."""
        found: list[str] = msgspec.json.decode(
            zlib.decompress(self._sections["ids"]), type=list[str]
        )
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
        found = _page_decoder().decode(zlib.decompress(self._pages[page]))
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
