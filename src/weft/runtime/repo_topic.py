"""The topic `repo:updates`: which files of the project have changed."""

from __future__ import annotations

import weakref
from typing import Final, Literal, Self, TypeAlias

import anyio
import msgspec

from weft.repo.indexer_order import FileChanges

MOST_CHANGES: Final = 3_000
"""Changes that wait for one reader; with more it is told that anything may have changed."""
ChangeKind: TypeAlias = Literal["created", "modified", "deleted"]


class RepoUpdated(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="repo_updated"):
    """Files of the project have changed, and the index has read them."""

    changes: dict[str, ChangeKind] = {}
    """By path, relative to the project."""
    is_partial: bool = False
    """There are more than are named: anything may have changed."""


class RepoEvents:
    """An async iterator over the changes of the project's files; leaving the loop at any point is
    safe.

    Changes that come while no one waits are told together, the last of each file.
    """

    def __init__(self) -> None:
        self._changes: dict[str, ChangeKind] = {}
        self._is_partial = False
        self._is_closed = False
        self._arrived = anyio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RepoUpdated:
        while not (self._changes or self._is_partial):
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived = anyio.Event()
            await self._arrived.wait()
        update = RepoUpdated(changes=self._changes, is_partial=self._is_partial)
        self._changes, self._is_partial = {}, False
        return update

    def _put(self, changes: FileChanges) -> None:
        """Add what has changed."""
        for kind in ("created", "modified", "deleted"):
            for path in getattr(changes, kind):
                self._changes[path] = kind
        self._is_partial |= changes.is_partial
        if len(self._changes) > MOST_CHANGES:
            self._changes, self._is_partial = {}, True
        self._arrived.set()

    def close(self) -> None:
        """Stop reading; what waits can still be read."""
        self._is_closed = True
        self._arrived.set()


class RepoTopic:
    """Hands changes on to all who read them."""

    def __init__(self) -> None:
        self._readers: weakref.WeakSet[RepoEvents] = weakref.WeakSet()
        self.is_ready = anyio.Event()
        """Set once the project is watched: later changes are not missed."""

    def subscribe(self) -> RepoEvents:
        """The changes from now on."""
        events = RepoEvents()
        self._readers.add(events)
        return events

    def publish(self, changes: FileChanges) -> None:
        """Tell all readers."""
        self.is_ready.set()
        if changes == FileChanges():
            return
        for events in self._readers:
            events._put(changes)

    def close(self) -> None:
        """End all iterators."""
        for events in self._readers:
            events.close()
