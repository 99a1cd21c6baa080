"""A map whose entries are read from a snapshot page by page, when they are first asked for.

A tree of a hundred thousand nodes takes half a second to decode, and a view of it shows a few
dozen.  The map is a dict that holds what was read; what is missing is looked for on the pages.
Nothing is ever removed from it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import cached_property
from itertools import chain
from typing import Any, NoReturn, Protocol, TypeVar
from zlib import crc32

_K = TypeVar("_K", bound=str)
_V = TypeVar("_V")


class PageReader(Protocol):
    """The pages of a snapshot: each has entries of several tables for the same few keys."""

    page_size: int

    def ids(self) -> list[str]:
        """All keys, by their numbers."""
        ...

    def read(self, page: int) -> tuple[Mapping[str, Any], ...]:
        """The entries of each table on a page."""
        ...


class PageBook:
    """Pages, which of them were read, and on which one a key is.

    A number is the place of a key among all: its page, and its place there.
    """

    def __init__(self, reader: PageReader, hashes: array[int], numbers: array[int]) -> None:
        """`hashes` are those of all keys in ascending order, `numbers` the keys' numbers beside
        them.
        """
        self._reader = reader
        self._hashes = hashes
        self._numbers = numbers
        self._ids: list[str] | None = None
        pages = -(-len(numbers) // reader.page_size) if numbers else 0
        self._read: list[tuple[str, ...] | None] = [None] * pages
        """The keys of each page that was read."""
        self.tables: list[PagedMap[Any, Any]] = []
        """The maps that are filled from it, in the order of the tables of a page."""

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def reader(self) -> PageReader:
        """What reads the pages."""
        return self._reader

    @property
    def index(self) -> tuple[array[int], array[int]]:
        """The hashes of all keys in ascending order, and their numbers beside them."""
        return self._hashes, self._numbers

    @property
    def read_pages(self) -> Sequence[tuple[str, ...] | None]:
        """The keys of each page that was read."""
        return self._read

    def ids(self) -> list[str]:
        """All keys by their numbers, without their entries."""
        if self._ids is None:
            self._ids = self._reader.ids()
        return self._ids

    def number(self, key: str) -> int | None:
        """The number of a key, whose page is read then; None where it is on none."""
        wanted, hashes = crc32(key.encode("utf-8", "surrogatepass")), self._hashes
        at = bisect_left(hashes, wanted)
        size = self._reader.page_size
        while at < len(hashes) and hashes[at] == wanted:
            number = self._numbers[at]
            if self._load(number // size)[number % size] == key:
                return number
            at += 1
        return None

    def number_unread(self, key: str) -> int | None:
        """The number of a key, for another thread: no page is read for it."""
        wanted, hashes = crc32(key.encode("utf-8", "surrogatepass")), self._hashes
        at = bisect_left(hashes, wanted)
        while at < len(hashes) and hashes[at] == wanted:
            if self.ids()[self._numbers[at]] == key:
                return self._numbers[at]
            at += 1
        return None

    def _load(self, page: int) -> tuple[str, ...]:
        keys = self._read[page]
        if keys is None:
            tables = self._reader.read(page)
            keys = tuple(tables[0])
            for table, entries in zip(self.tables, tables, strict=True):
                table.take(entries)
            # Last: a thread that writes a snapshot takes what is not marked from the page itself.
            self._read[page] = keys
        return keys

    def entries(self, table: int) -> dict[str, Any]:
        """All entries of a table, by number; nothing is kept of pages that were not read, so that
        another thread may ask.
        """
        found: dict[str, Any] = {}
        for page, keys in enumerate(self._read):
            if keys is None:
                found |= self._reader.read(page)[table]
            else:
                held = self.tables[table]
                found |= {key: dict.__getitem__(held, key) for key in keys if held.holds(key)}
        return found


class _PagedMapMark:
    """No encoder takes it."""


_MARK = "\0pages"
"""No key of a page: ids hold no NUL.  A `str`, because a dict with other keys is larger."""


class PagedMap(dict[_K, _V]):
    """A dict that reads what it does not hold yet.

    Compiled code may walk through the dict itself, where most is missing.  Among what it holds is
    therefore a mark: whoever encodes the map as a dict fails, instead of losing what was not read.
    """

    def __init__(self, book: PageBook, count: int, order: Callable[[], array[int]]) -> None:
        """`order` gives the numbers of its keys, so many, in the order in which they came."""
        super().__init__()
        super().__setitem__(_MARK, _PagedMapMark())  # type: ignore[index, assignment]
        self.book = book
        self._count = count
        self._read_order = order
        self._added: list[_K] = []
        self._table = len(book.tables)
        book.tables.append(self)

    def take(self, entries: Mapping[_K, _V]) -> None:
        """Hold the entries of a page."""
        for key, value in entries.items():
            super().setdefault(key, value)

    def holds(self, key: object) -> bool:
        """Whether the entry of a key was read, or added."""
        return super().__contains__(key)

    def held(self, key: _K) -> _V:
        """The entry of a key that was read, or added."""
        return super().__getitem__(key)

    @property
    def added(self) -> Sequence[_K]:
        """The keys that are on no page, in the order in which they came."""
        return self._added

    @property
    def order(self) -> array[int]:
        """The numbers of the keys that are on pages, in the order in which they came."""
        return self._order

    def unread(self) -> dict[_K, _V]:
        """All of it as a plain dict, in the same order; nothing is read in, for another thread."""
        entries = self.book.entries(self._table)
        ids = self.book.ids()
        plain: dict[_K, _V] = {ids[at]: entries[ids[at]] for at in self._order}  # type: ignore[misc]
        for key in self._added:
            plain[key] = dict.__getitem__(self, key)
        return plain

    @cached_property
    def _order(self) -> array[int]:
        return self._read_order()

    # A dict asks this alone, so that what is there costs what it always does.
    def __missing__(self, key: _K) -> _V:
        if self.book.number(key) is None or not super().__contains__(key):
            raise KeyError(key)
        return super().__getitem__(key)

    def get(self, key: _K, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        is_there = isinstance(key, str) and self.book.number(key) is not None
        return is_there and super().__contains__(key)

    def __setitem__(self, key: _K, value: _V) -> None:
        if key not in self:
            self._added.append(key)
        super().__setitem__(key, value)

    def __len__(self) -> int:
        return self._count + len(self._added)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[_K]:
        stored: Iterator[Any] = map(self.book.ids().__getitem__, self._order)
        return chain(stored, self._added)

    def __reversed__(self) -> Iterator[_K]:
        stored: Iterator[Any] = map(self.book.ids().__getitem__, reversed(self._order))
        return chain(reversed(self._added), stored)

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def copy(self) -> dict[_K, _V]:
        return dict(self.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self.items()) == dict(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return f"<PagedMap of {len(self)} entries>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (self.copy(),)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def update(self, *given: Any, **named: Any) -> None:
        for key, value in dict(*given, **named).items():
            self[key] = value

    def setdefault(self, key: _K, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def _refuse(self, *given: object) -> NoReturn:
        raise TypeError("nothing is removed from a map that is read page by page")

    __delitem__ = pop = popitem = clear = _refuse


class PagedNumbers:
    """The numbers of nodes: of those on pages by their place, of others as they are given."""

    def __init__(self, book: PageBook, given: dict[str, int] | None = None) -> None:
        self._book = book
        self._given = {} if given is None else given

    def copy(self) -> PagedNumbers:
        """Equal numbers that go their own way."""
        return PagedNumbers(self._book, self._given.copy())

    def __contains__(self, node: object) -> bool:
        return node in self._given or (
            isinstance(node, str) and self._book.number(node) is not None
        )

    def __getitem__(self, node: str) -> int:
        number = self._given.get(node)
        if number is None:
            number = self._book.number(node)
            if number is None:
                raise KeyError(node)
        return number

    def __setitem__(self, node: str, number: int) -> None:
        self._given[node] = number

    def __len__(self) -> int:
        return len(self._book) + len(self._given)

    def __iter__(self) -> Iterator[str]:
        yield from self._book.ids()
        yield from self._given
