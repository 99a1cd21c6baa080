"""Which projects somebody watches, so that what the door itself writes is not taken for a command's work."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakValueDictionary


class ProjectWatcher(Protocol):
    """Somebody who knows what every file of a project looks like."""

    def refresh(self, path: str) -> None:
        """We ourselves have just put something at `path`, relative to the project."""
        ...


WATCHED: WeakValueDictionary[str, ProjectWatcher] = WeakValueDictionary()
"""Root of a project → who watches it in this process."""


def tell(root: str, path: str) -> None:
    """We have written, or put back, what is at `path`; blocks for a moment."""
    watching = WATCHED.get(root)
    if watching is not None:
        watching.refresh(path)
