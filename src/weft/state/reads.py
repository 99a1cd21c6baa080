"""File reads: which version of each file the model has seen, so that it still counts after a restart."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.events import AnyFact, ToolComplete
from weft.ids import BlobId

REMEMBERED: Final = 10_000
"""How many files are remembered; the one seen longest ago goes first."""


class FileReads(msgspec.Struct):
    """Path → the hash that the model knows; the last seen is last."""

    seen: dict[str, BlobId] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if not isinstance(fact, ToolComplete):
            return
        # `data` is open: a tool from elsewhere may use the name for something else.
        read = fact.result.data.get("read")
        for path, digest in read.items() if isinstance(read, dict) else ():
            self._saw(path, digest)

    def _saw(self, path: str, digest: BlobId) -> None:
        # Out and in again: the order of a dict is that of the first insertion, and the oldest goes
        # first.
        self.seen.pop(path, None)
        self.seen[path] = digest
        if len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]
