"""Which projects are watched, so that what Weft itself writes is not taken for a command's work."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakValueDictionary


class ProjectWatcher(Protocol):
    """The part that knows what every file of a project looks like."""

    def refresh(self, path: str) -> None:
        """We ourselves have just put something at `path`, relative to the project."""
        ...


WATCHED: WeakValueDictionary[str, ProjectWatcher] = WeakValueDictionary()
"""Root of a project → its watcher in this process."""


def note_own_write(root: str, path: str) -> None:
    """Report that we have written, or put back, what is at `path`; blocks for a moment."""
    watching = WATCHED.get(root)
    if watching is not None:
        watching.refresh(path)
