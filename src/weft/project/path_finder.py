"""Fuzzy file finder: the paths that fit what is being typed, best first, within milliseconds a key.

Paths are held as one text.  A piece of a path is found by a search for it, whatever their number.
Letters in order (`psrv` for `pages/server.py`) cost a pass over all of them, so a key looks at as
much as its time allows, and the next key, which nearly always adds a letter, goes on from there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Final

MOST_FOUND: Final = 50
KEY_SECONDS: Final = 0.008
"""How long one key looks for letters in order."""
_FEWEST_LETTERS: Final = 3
_PIECE: Final = 100_000
"""Characters that are looked at between two looks at the clock; under two milliseconds."""
_MOST_HITS: Final = 500
_MOST_KEPT: Final = 3_000
"""Hits with which a key stops looking: more letters will leave few of them."""


class PathFinder:
    """Finds paths of one listing.  Used by one thread."""

    def __init__(self, listing: str, clock: Callable[[], float] = time.perf_counter) -> None:
        """`listing` has a NUL behind each path."""
        self._listing = listing
        self._lower = listing.lower()
        if len(self._lower) != len(listing):
            # A few letters get longer when they are made small: then the two texts do not fit.
            self._lower = listing
        self._clock = clock
        self._typed = ""
        self._hits: list[tuple[int, int]] = []
        """Where the paths begin and end that have the letters that were typed."""
        self._next = 0
        """Up to where they were looked for."""

    def find(self, typed: str, touched: Sequence[str] = (), most: int = MOST_FOUND) -> list[str]:
        """The paths that fit: those of `touched` first, then by name, then anywhere in the path,
        then letters in order; shorter ones first.
        """
        wanted = typed.lower()
        if not wanted:
            first = self._listing.split("\0", most)[:most]
            return list(dict.fromkeys([*touched, *filter(None, first)]))[:most]
        near = [path for path in touched if _rank(path.lower(), wanted) is not None]
        places = self._with_piece(wanted)
        if len(places) < most and len(wanted) >= _FEWEST_LETTERS:
            places += self._with_letters(wanted)
        ranked = sorted(
            (rank, end - begin, self._listing[begin:end])
            for begin, end in dict.fromkeys(places)
            if (rank := _rank(self._lower[begin:end], wanted)) is not None
        )
        return list(dict.fromkeys([*near, *(path for _, _, path in ranked)]))[:most]

    def _with_piece(self, wanted: str) -> list[tuple[int, int]]:
        """Paths that have exactly this in them; those whose name begins so before the others."""
        found: list[tuple[int, int]] = []
        for piece in (f"/{wanted}", f"\0{wanted}", wanted):
            place = self._lower.find(piece)
            while place >= 0 and len(found) < _MOST_HITS:
                path = self._path_at(place + (piece[0] == "\0"))
                found.append(path)
                place = self._lower.find(piece, path[1])
        if self._lower.startswith(wanted) and self._listing:
            found.append(self._path_at(0))
        return found

    def _path_at(self, place: int) -> tuple[int, int]:
        return self._lower.rfind("\0", 0, place) + 1, self._lower.index("\0", place)

    def _with_letters(self, wanted: str) -> list[tuple[int, int]]:
        """Paths that have these letters in this order, as far as the time of a key goes."""
        if not self._typed or not wanted.startswith(self._typed):
            self._hits, self._next = [], 0
        self._typed = wanted
        letters = re.compile(
            "".join(f"[^\0{re.escape(each)}]*+{re.escape(each)}" for each in wanted)
        )
        self._hits = [hit for hit in self._hits if letters.match(self._lower, *hit)]
        until = self._clock() + KEY_SECONDS
        # A path that does not fit is passed over whole, or it would be tried from each letter on.
        either = re.compile(f"({letters.pattern}[^\0]*+)\0|[^\0]*+\0")
        while (
            self._next < len(self._lower) and len(self._hits) < _MOST_KEPT and self._clock() < until
        ):
            end = self._lower.find("\0", self._next + _PIECE) + 1 or len(self._lower)
            self._hits += [
                match.span(1)
                for match in either.finditer(self._lower, self._next, end)
                if match.lastindex
            ]
            self._next = end
        return self._hits[:_MOST_HITS]


def _rank(path: str, wanted: str) -> int | None:
    name = path.rpartition("/")[2]
    if path.startswith(wanted) or name.startswith(wanted):
        return 0
    if wanted in path:
        return 1
    # Each `in` moves the iterator on, so this tests that the letters come in this order.
    letters = iter(path)
    has_letters = len(wanted) >= _FEWEST_LETTERS and all(each in letters for each in wanted)
    return 2 if has_letters else None
