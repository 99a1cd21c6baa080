"""The files that tools of this session changed."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.events import AnyFact, FileTouched

FileAction: TypeAlias = Literal["created", "modified", "deleted"]


class TouchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One changed file, as `touched_files()` shows it."""

    path: str
    action: FileAction
    at: float


class Files(msgspec.Struct):
    """Changed files; the last touched one is last."""

    touched: dict[str, TouchedFile] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if not isinstance(fact, FileTouched):
            return
        earlier = self.touched.pop(fact.path, None)
        action = _net(earlier.action if earlier else None, fact.action)
        if action is not None:
            self.touched[fact.path] = TouchedFile(path=fact.path, action=action, at=fact.at)

    def newest_first(self) -> list[TouchedFile]:
        """All of them, the last touched first."""
        return list(reversed(self.touched.values()))


def _net(earlier: FileAction | None, now: FileAction) -> FileAction | None:
    """What both changes come to, seen from before the first; None when the file is as absent as it was."""
    match earlier, now:
        case "created", "modified":
            return "created"
        case "created", "deleted":
            return None
        case "deleted", "created":
            return "modified"
        case _:
            return now
