"""Edit boundaries: the ranges of lines that edits must stay in.

A boundary has a name: the number of the fact that set it.  A fact that only moves a range along
names the boundary that it moves, and counts for no other: one that was lifted or set anew meanwhile
is not brought back by what a call reports late.
"""

from __future__ import annotations

import msgspec

from weft.events import AnyFact, BoundaryChanged
from weft.ids import BlobId


class EditBoundary(msgspec.Struct, frozen=True, kw_only=True):
    """Lines `first` to `last` of a file, from 0, both included.

    Empty when `last` is `first - 1`.
    """

    path: str
    first: int
    last: int
    base: BlobId | None = None
    """The version of the file that these lines are of."""
    name: int = 0
    """Number of the fact that set it."""


class EditBoundaries(msgspec.Struct):
    """The boundaries in force, by path."""

    held: dict[str, EditBoundary] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if not isinstance(fact, BoundaryChanged):
            return
        if fact.first is None or fact.last is None:
            self.held.pop(fact.path, None)
            return
        known = self.held.get(fact.path)
        if fact.moves and (known is None or known.name != fact.moves):
            return
        self.held[fact.path] = EditBoundary(
            path=fact.path,
            first=fact.first,
            last=fact.last,
            base=fact.base,
            # `seq` begins at 1, so 0 in `moves` can mean a boundary of its own.
            name=fact.moves or fact.seq,
        )
