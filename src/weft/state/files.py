"""The files that tools of this session changed."""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.events import AnyFact, FileTouched


class TouchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file, as `touched_files()` shows it."""

    path: str
    action: Literal["created", "modified", "deleted"]
    at: float


class Files(msgspec.Struct):
    """Changed files; the last touched one is last."""

    touched: dict[str, TouchedFile] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if not isinstance(fact, FileTouched):
            return
        earlier = self.touched.pop(fact.path, None)
        made_here = earlier is not None and earlier.action == "created"
        action = "created" if made_here and fact.action == "modified" else fact.action
        if not (made_here and action == "deleted"):
            self.touched[fact.path] = TouchedFile(path=fact.path, action=action, at=fact.at)

    def newest_first(self) -> list[TouchedFile]:
        """All of them, the last touched first."""
        return list(reversed(self.touched.values()))
