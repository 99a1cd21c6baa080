"""Fuzzy file finder: the paths that fit what is being typed, best first, within milliseconds a key.

Paths are held as one text.  A piece of a path is found by a search for it, whatever their number.
Letters in order (`psrv` for `pages/server.py`) cost a pass over all of them, so a key looks at as
much as its time allows, and the next key, which nearly always adds a letter, goes on from there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import Final

MOST_FOUND: Final = 50
KEY_SECONDS: Final = 0.008
"""How long one key looks for letters in order."""
_FEWEST_LETTERS: Final = 3
_PIECE: Final = 100_000
"""Characters that are looked at between two looks at the clock; under two milliseconds."""
_BY_LETTERS: Final = 2
"""The rank of a path whose name only has the letters in order; one more where the path has them."""
_MOST_HITS: Final = 200
"""Of each kind: several times what is shown."""
_MOST_KEPT: Final = 3_000
"""Hits with which a key stops looking: more letters will leave few of them."""


class PathFinder:
    """Finds paths of one listing.  May be used by several threads."""

    def __init__(self, listing: str, clock: Callable[[], float] = time.perf_counter) -> None:
        """`listing` has a NUL behind each path."""
        # With a NUL before the first path as before all others.
        self._listing = f"\0{listing}"
        self._lower = _lowered(self._listing)
        self._clock = clock
        self._lock = Lock()
        self._typed = ""
        self._hits: list[tuple[int, int]] = []
        """Where the paths begin and end that have the letters that were typed."""
        self._next = 1
        """Up to where they were looked for."""

    def find(self, typed: str, touched: Sequence[str] = (), most: int = MOST_FOUND) -> list[str]:
        """The paths that fit: those of `touched` first, then by name, then anywhere in the path,
        then letters in order; shorter ones first.
        """
        wanted = _lowered(typed)
        if not wanted:
            first = self._listing.split("\0", most + 1)[1 : most + 1]
            return list(dict.fromkeys([*touched, *filter(None, first)]))[:most]
        ranked = sorted(
            (rank, end - begin, self._listing[begin:end])
            for begin, end in self._places(wanted, most)
            if (rank := _rank(self._lower[begin:end], wanted)) is not None
        )
        near = [
            (rank, path) for path in touched if (rank := _rank(_lowered(path), wanted)) is not None
        ]
        found: list[str] = []
        # Letters in order are in many paths by chance: that a file was touched says less then.
        for worst in (_BY_LETTERS - 1, _BY_LETTERS, _BY_LETTERS + 1):
            found += [path for rank, path in near if rank <= worst]
            found += [path for rank, _, path in ranked if rank <= worst]
        return list(dict.fromkeys(found))[:most]

    def _places(self, wanted: str, most: int) -> dict[tuple[int, int], None]:
        with self._lock:
            places = self._with_piece(wanted)
            if len(places) < most and len(wanted) >= _FEWEST_LETTERS:
                places += self._with_letters(wanted)
            return dict.fromkeys(places)

    def _with_piece(self, wanted: str) -> list[tuple[int, int]]:
        """Paths that have exactly this in them; of very many, also those that are or begin so."""
        found = list(islice(self._with(wanted), _MOST_HITS))
        if len(found) == _MOST_HITS:
            for piece in (f"\0{wanted}", f"/{wanted}\0", f"/{wanted}"):
                found += islice(self._with(piece), _MOST_HITS)
        return found

    def _with(self, piece: str) -> Iterator[tuple[int, int]]:
        place = self._lower.find(piece)
        while place >= 0:
            begin, end = self._path_at(place + (piece[0] == "\0"))
            yield begin, end
            place = self._lower.find(piece, end)

    def _path_at(self, place: int) -> tuple[int, int]:
        return self._lower.rfind("\0", 0, place) + 1, self._lower.index("\0", place)

    def _with_letters(self, wanted: str) -> list[tuple[int, int]]:
        """Paths that have these letters in this order, as far as the time of a key goes."""
        if not self._typed or not wanted.startswith(self._typed):
            self._hits, self._next = [], 1
        self._typed = wanted
        letters = re.compile(
            "".join(f"[^\0{re.escape(each)}]*+{re.escape(each)}" for each in wanted)
        )
        self._hits = [hit for hit in self._hits if letters.match(self._lower, *hit)]
        until = self._clock() + KEY_SECONDS
        # A path that does not fit is passed over whole, or it would be tried from each letter on.
        either = re.compile(f"({letters.pattern}[^\0]*+)\0|[^\0]*+\0")
        while self._next < len(self._lower) and len(self._hits) < _MOST_KEPT:
            end = self._lower.find("\0", self._next + _PIECE) + 1 or len(self._lower)
            self._hits += [
                match.span(1)
                for match in either.finditer(self._lower, self._next, end)
                if match.lastindex
            ]
            self._next = end
            # After a piece: on a busy machine the time may be over before the first one.
            if self._clock() > until:
                break

        def value(hit: tuple[int, int]) -> tuple[bool, int]:
            name = max(hit[0], self._lower.rfind("/", *hit) + 1)
            return letters.match(self._lower, name, hit[1]) is None, hit[1] - hit[0]

        return sorted(self._hits, key=value)[:_MOST_HITS]


def _lowered(text: str) -> str:
    """A text in small letters, each in the place that it had."""
    # The one letter of Unicode that becomes two: the places behind it would move.
    return text.replace("\u0130", "i").lower()


def _rank(path: str, wanted: str) -> int | None:
    name = path.rpartition("/")[2]
    if path.startswith(wanted) or name.startswith(wanted):
        return 0
    if wanted in path:
        return 1
    if len(wanted) < _FEWEST_LETTERS or not _has_letters(path, wanted):
        return None
    return _BY_LETTERS if _has_letters(name, wanted) else _BY_LETTERS + 1


def _has_letters(text: str, wanted: str) -> bool:
    # Each `in` moves the iterator on, so this tests that the letters come in this order.
    letters = iter(text)
    return all(each in letters for each in wanted)
