"""Writing snapshots with pages: what was not read is copied as it is.

It runs in a thread while the event loop goes on: no call into C takes long, and no page is decoded
that need not be.  Each node has a slot here: its number in the snapshot that it was read from, or a
place behind all of these.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from weft.ids import NodeId
from weft.messages import Usage
from weft.state.snapshot_pages import NodePage, PagedTables, StoredPages
from weft.tree import LayeredMap, NodeSkeleton, PageBook, PagedMap

ID_PART: Final = 10_000
"""Ids that are encoded at a time."""
LATER_SHARE: Final = 4
"""All nodes are numbered anew when those that came since are more than this part of the others."""
LATER_PAGES: Final = 8
"""And more than so many pages."""
_BUCKET_BITS: Final = 8
_STRIDE: Final = 16_384
"""Steps of a loop between two pauses."""


class _RawPage(msgspec.Struct):
    """A page whose entries stay bytes."""

    nodes: dict[str, msgspec.Raw] = {}
    paid: dict[str, msgspec.Raw] = {}


class _Slots(msgspec.Struct):
    """The tables as lists; an entry may be one that was decoded, or its bytes."""

    ids: list[Any]
    nodes: list[Any]
    """None for those on a page that is copied."""
    above: array[int]
    hidden: bytearray
    order: array[int]
    paid_order: array[int]
    paid: Mapping[str, Any]
    stored: StoredPages | None = None
    book: PageBook | None = None
    kept: int = 0
    """So many of them keep their numbers."""
    pause: Callable[[], None] = lambda: None
    """Called every few milliseconds of work; it may raise."""


def packed_tables(
    nodes: Mapping[NodeId, NodeSkeleton],
    paid: Mapping[NodeId, Usage],
    page_size: int,
    pause: Callable[[], None],
) -> PagedTables:
    """The nodes of a tree and what was used for them, as pages and what leads to them.

    Neither must change meanwhile.  `pause` is called every few milliseconds, and may raise.
    """
    base, over = _base_of(nodes)
    slots = (
        _plain_slots(over, plain_table(paid), pause)
        if base is None
        else _paged_slots(base, over, paid, page_size)
    )
    slots.pause = pause
    numbers = _place(slots)
    pause()
    hashes, hashed = _index(slots)
    pause()
    sections = {"hashes": _bytes_of(hashes), "numbers": _bytes_of(hashed)}
    made: dict[str, Callable[[], array[int]]] = {
        "order": lambda: _renumbered(slots.order, numbers, slots.kept),
        "paid": lambda: _renumbered(slots.paid_order, numbers, slots.kept),
        "above": lambda: slots.above,
        "below": lambda: _below(slots),
        "hidden": lambda: array("i", [at for at, is_so in enumerate(slots.hidden) if is_so]),
    }
    for name, numbers_of in made.items():
        found = numbers_of()
        pause()
        sections[name] = _packed(found)
        pause()
    return PagedTables(
        sections,
        ids=list(_id_parts(slots)),
        pages=list(_pages(slots, page_size)),
        page_size=page_size,
        paid_count=len(slots.paid_order),
        numbered=slots.stored.numbered if slots.stored and slots.kept else len(slots.ids),
    )


# --- what there is ----------------------------------------------------------------------


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


def _base_of(table: Mapping[Any, Any]) -> tuple[PagedMap[Any, Any] | None, Mapping[Any, Any]]:
    """The map below that is read page by page, if there is one, and what is above it."""
    if isinstance(table, PagedMap):
        return table, {}
    if isinstance(table, LayeredMap) and isinstance(base := table.all_layers[-1], PagedMap):
        over: dict[Any, Any] = {}
        for layer in reversed(table.all_layers[:-1]):
            over |= layer
        return base, over
    return None, plain_table(table)


def _plain_slots(
    nodes: Mapping[str, NodeSkeleton], paid: Mapping[str, Usage], pause: Callable[[], None]
) -> _Slots:
    ids, held = list(nodes), list(nodes.values())
    places: dict[str, int] = {}
    for start in _paused(range(0, len(ids), _STRIDE), pause, every=1):
        places.update((node, start + at) for at, node in enumerate(ids[start : start + _STRIDE]))
    above = array("i")
    for start in _paused(range(0, len(ids), _STRIDE), pause, every=1):
        parents = [each.parent for each in held[start : start + _STRIDE]]
        above.extend([-1 if each is None else places.get(each, -1) for each in parents])
    pause()
    hidden = bytearray([each.hidden for each in nodes.values()])
    pause()
    return _Slots(
        ids=ids,
        nodes=held,
        above=above,
        hidden=hidden,
        order=array("i", range(len(nodes))),
        paid_order=array("i", (places[NodeId(node)] for node in paid)),
        paid=paid,
    )


def _paged_slots(
    base: PagedMap[Any, Any], over: Mapping[Any, Any], paid: Mapping[Any, Any], page_size: int
) -> _Slots:
    book = base.book
    stored = book.reader
    assert isinstance(stored, StoredPages)
    # A copy: the loop may read more of them meanwhile.
    read = list(book.read_pages)
    known, count = _known(read, stored.page_size), len(book)
    new = [*base.added, *(key for key in over if key not in known and not base.holds(key))]
    known.update((key, slot) for slot, key in enumerate(new, count))
    slots = _Slots(
        ids=[*book.ids(), *new],
        nodes=[None] * (count + len(new)),
        above=stored.unpacked("above"),
        hidden=bytearray(count + len(new)),
        order=base.order + array("i", range(count, count + len(new))),
        paid_order=array("i"),
        paid={},
        stored=stored,
        book=book,
    )
    slots.above.extend([-1] * len(new))
    for slot in stored.unpacked("hidden"):
        slots.hidden[slot] = True
    _take_read(slots, base, over, known)
    shares_paid = isinstance(paid, PagedMap) and paid.book is book
    if shares_paid and stored.page_size == page_size and _keeps_numbers(slots, known, count):
        slots.kept = count
    _take_paid(slots, paid, known)
    _take_unread(slots, read, shares_paid=shares_paid)
    return slots


def _known(read: Sequence[tuple[str, ...] | None], size: int) -> dict[str, int]:
    """The slots of the nodes that were read."""
    return {
        key: slot
        for page, keys in enumerate(read)
        if keys is not None
        for slot, key in enumerate(keys, page * size)
    }


def _take_read(
    slots: _Slots, base: PagedMap[Any, Any], over: Mapping[Any, Any], known: Mapping[str, int]
) -> None:
    nodes, hidden, above = slots.nodes, slots.hidden, slots.above
    for key, slot in known.items():
        held = over[key] if key in over else base.held(key)
        nodes[slot], hidden[slot] = held, held.hidden
        above[slot] = _slot_above(held.parent, above[slot], known, base.book)


def _slot_above(parent: str | None, before: int, known: Mapping[str, int], book: PageBook) -> int:
    if parent is None:
        return -1
    slot = known.get(parent)
    if slot is None:
        # What hangs on another node now was hung there by someone who has read that one.
        slot = before if before >= 0 else book.number_unread(parent)
    return -1 if slot is None else slot


def _keeps_numbers(slots: _Slots, known: Mapping[str, int], stored: int) -> bool:
    """Whether new nodes can have numbers behind those that are stored."""
    assert slots.stored is not None
    numbered = slots.stored.numbered
    most = max(numbered // LATER_SHARE, LATER_PAGES * slots.stored.page_size)
    # One that hangs on a node that came later would have a smaller number than that one.
    return len(slots.ids) - numbered <= most and all(
        slots.above[slot] < slot for slot in known.values() if slot < stored
    )


def _take_paid(slots: _Slots, paid: Mapping[Any, Any], known: Mapping[str, int]) -> None:
    book = slots.book
    if isinstance(paid, PagedMap) and paid.book is book:
        slots.paid = {key: paid.held(key) for key in known if paid.holds(key)}
        slots.paid_order = paid.order + array("i", (known[key] for key in paid.added))
        return
    slots.paid = plain_table(paid)
    for key in slots.paid:
        slot = known[key] if key in known or book is None else book.number_unread(key)
        assert slot is not None
        slots.paid_order.append(slot)


def _take_unread(
    slots: _Slots, read: Sequence[tuple[str, ...] | None], *, shares_paid: bool
) -> None:
    """Take in, as bytes, what is on pages that were not read and will not be copied."""
    stored, paid = slots.stored, dict(slots.paid)
    assert stored is not None
    assert slots.book is not None
    size, count = stored.page_size, len(slots.book)
    for page, keys in enumerate(read):
        is_full = (page + 1) * size <= count or len(slots.ids) == count
        if keys is not None or (slots.kept and is_full):
            continue
        found = _raw_decoder().decode(zlib.decompress(stored.pages[page]))
        for slot, entry in enumerate(found.nodes.values(), page * size):
            slots.nodes[slot] = entry
        if shares_paid:
            paid.update(found.paid)
    slots.paid = paid


@cache
def _raw_decoder() -> msgspec.json.Decoder[_RawPage]:
    return msgspec.json.Decoder(_RawPage)


# --- their numbers ----------------------------------------------------------------------


def _place(slots: _Slots) -> list[int]:
    """Put all into the order of their numbers; gives the number of each that gets one."""
    kept, above = slots.kept, slots.above
    inner = [parent - kept if parent >= kept else -1 for parent in above[kept:]]
    slots.pause()
    numbers = [kept + number for number in _numbered(inner, slots.pause)]
    slots.pause()
    places = [0] * len(numbers)
    for slot, number in enumerate(numbers, kept):
        places[number - kept] = slot
    slots.pause()
    moved = [above[slot] for slot in places]
    slots.pause()
    above[kept:] = array("i", [n if n < kept else numbers[n - kept] for n in moved])
    slots.pause()
    ids, nodes, hidden = slots.ids, slots.nodes, slots.hidden
    ids[kept:] = [ids[slot] for slot in places]
    slots.pause()
    nodes[kept:] = [nodes[slot] for slot in places]
    slots.pause()
    hidden[kept:] = bytearray([hidden[slot] for slot in places])
    return numbers


def _renumbered(order: array[int], numbers: Sequence[int], kept: int) -> array[int]:
    return array("i", [slot if slot < kept else numbers[slot - kept] for slot in order])


def _numbered(parents: Sequence[int], pause: Callable[[], None]) -> list[int]:
    """The number of each node: greater than that of its parent, and the largest subtree of a node
    right behind it.
    """
    count = len(parents)
    downward = _downward(parents)
    pause()
    sizes = [1] * count
    for at in _paused(reversed(downward), pause):
        if (parent := parents[at]) >= 0:
            sizes[parent] += sizes[at]
    largest = [-1] * count
    for at in _paused(downward, pause):
        parent = parents[at]
        if parent >= 0 and (largest[parent] < 0 or sizes[at] > sizes[largest[parent]]):
            largest[parent] = at
    numbers, free, next_root = [0] * count, [0] * count, 0
    for at in _paused(downward, pause):
        parent, child = parents[at], largest[at]
        if parent < 0:
            numbers[at], next_root = next_root, next_root + sizes[at]
        elif largest[parent] == at:
            numbers[at] = numbers[parent] + 1
        else:
            numbers[at], free[parent] = free[parent], free[parent] + sizes[at]
        # Behind the largest one.
        free[at] = numbers[at] + 1 + (sizes[child] if child >= 0 else 0)
    pause()
    return numbers


def _paused(
    places: Iterable[int], pause: Callable[[], None], every: int = _STRIDE
) -> Iterator[int]:
    """The same places, with a pause before each of so many."""
    for step, at in enumerate(places):
        if not step % every:
            pause()
        yield at


def _downward(parents: Sequence[int]) -> Sequence[int]:
    """All places, each behind that of its parent."""
    if all(parent < at for at, parent in enumerate(parents)):
        return range(len(parents))
    # The second half of a message that was split is younger than what hangs on it.
    found: list[int] = []
    is_found = bytearray(len(parents))
    for at in range(len(parents)):
        line: list[int] = []
        while at >= 0 and not is_found[at]:
            is_found[at] = True
            line.append(at)
            at = parents[at]
        found += reversed(line)
    return found


def _below(slots: _Slots) -> array[int]:
    hidden, above = slots.hidden, slots.above
    below = array("i", bytes(4 * len(above)))
    for number in _paused(range(len(above) - 1, -1, -1), slots.pause):
        if not hidden[number] and (parent := above[number]) >= 0:
            below[parent] += 1 + below[number]
    return below


# --- as bytes ---------------------------------------------------------------------------


def _index(slots: _Slots) -> tuple[array[int], array[int]]:
    """The hashes of all ids in ascending order, and their numbers beside them."""
    # In buckets: a single sort of all of them would stop the loop for as long as it takes.
    buckets: list[list[int]] = [[] for _ in range(1 << _BUCKET_BITS)]
    new, hash_of = slots.ids[slots.kept :], zlib.crc32
    for number, node in enumerate(new, slots.kept):
        if not number % _STRIDE:
            slots.pause()
        hashed = hash_of(node.encode("utf-8", "surrogatepass"))
        buckets[hashed >> 32 - _BUCKET_BITS].append(hashed << 32 | number)
    slots.pause()
    for bucket in buckets:
        bucket.sort()
    slots.pause()
    hashes = array("I", [each >> 32 for bucket in buckets for each in bucket])
    slots.pause()
    numbers = array("I", [each & 0xFFFFFFFF for bucket in buckets for each in bucket])
    if slots.kept and slots.book is not None:
        return _merged(slots.book.index, (hashes, numbers))
    return hashes, numbers


def _merged(
    old: tuple[array[int], array[int]], new: tuple[array[int], array[int]]
) -> tuple[array[int], array[int]]:
    hashes, numbers = array("I"), array("I")
    at = 0
    for hashed, number in zip(*new, strict=True):
        end = bisect_left(old[0], hashed, at)
        hashes += old[0][at:end]
        numbers += old[1][at:end]
        hashes.append(hashed)
        numbers.append(number)
        at = end
    return hashes + old[0][at:], numbers + old[1][at:]


def _id_parts(slots: _Slots) -> Iterator[bytes | memoryview]:
    if slots.kept and slots.stored is not None:
        yield from slots.stored.id_parts
    for start in range(slots.kept, len(slots.ids), ID_PART):
        slots.pause()
        yield zlib.compress(msgspec.json.encode(slots.ids[start : start + ID_PART]), 1)


def _pages(slots: _Slots, page_size: int) -> Iterator[bytes | memoryview]:
    for page, start in enumerate(range(0, len(slots.ids), page_size)):
        slots.pause()
        if slots.nodes[start] is None:
            assert slots.stored is not None
            yield slots.stored.pages[page]
            continue
        keys = slots.ids[start : start + page_size]
        entries = NodePage(
            nodes=dict(zip(keys, slots.nodes[start : start + page_size], strict=True)),
            paid={node: slots.paid[node] for node in keys if node in slots.paid},
        )
        yield zlib.compress(msgspec.json.encode(entries), 1)


def _bytes_of(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _packed(numbers: array[int]) -> bytes:
    return zlib.compress(_bytes_of(numbers), 1)
