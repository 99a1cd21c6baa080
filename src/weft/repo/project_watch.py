"""Watching a project: which of its files change, told by inotify.

One watch for each folder that has files, none for what is ignored.  A file that changes is named;
a folder that comes or goes, a new ignore file, a name that was not listed, and a queue that
overflowed mean that the project has to be listed again.  Where there is no inotify, or no more of
it for this user, nothing is told: then the project has to be looked at from time to time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Set
from typing import Final

from weft.repo.file_paths import IGNORE_FILES, IgnoredPaths
from weft.workspace import FolderWatches, InotifyEvent, InotifyWatcher

QUIET_SECONDS: Final = 0.02
"""How long nothing may happen before a change is taken for whole: an editor's save is three events
within a millisecond."""
FLOOD_QUIET_SECONDS: Final = 0.2
"""The same where much happens: a checkout pauses now and then."""
MOST_SECONDS: Final = 2.0
"""After so long what has come is taken, though more comes: a build may write for hours."""
LOOK_SECONDS: Final = 10.0
"""How often there is a look for what no watch tells of: commits, and ignore files elsewhere."""
SOON_SECONDS: Final = 0.5
"""The same after a change: git moves its head when the files of a checkout are there."""
_PAUSE_FACTOR: Final = 50
"""A project that cannot be watched is looked at again after so many times what a look took."""
_FLOOD: Final = 100
_MOST_UNLISTED: Final = 10_000

WaitReadable = Callable[[float, int], bool]


class ProjectWatch:
    """The watches on a project's folders."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._watches = FolderWatches(_new_watcher())
        self._ignored = IgnoredPaths(project)
        self._unlisted: set[str] = set()
        """Names that a listing left out for a reason that we cannot see, a setting of git's."""
        self._followed: set[str] = set()
        self.changed: set[str] = set()
        """Paths that something happened to since they were last taken."""
        self.is_unsure = False
        """The project has to be listed again."""

    @property
    def fd(self) -> int | None:
        """Readable when something has happened; None when nothing is told."""
        return None if self._watches.watcher is None else self._watches.watcher.fd

    @property
    def is_whole(self) -> bool:
        """False when the project has to be looked at."""
        return self._watches.watcher is not None

    def follow(self, folders: Iterable[str]) -> None:
        """Watch these folders, relative to the project; those that are watched stay so."""
        before, self._followed = self._followed, set(folders)
        for folder in before - self._followed:
            self._watches.remove(folder)
        for folder in self._followed:
            # When there are more than this user may watch, all are given back: others need some.
            self._watches.add(folder, f"{self._project}/{folder}")

    def collect(self, known: Set[str], wait: WaitReadable) -> None:
        """Take in what has happened, until it is quiet; `known` are the files that are listed."""
        until = time.monotonic() + MOST_SECONDS
        while (watcher := self._watches.watcher) is not None:
            seen = False
            for event in watcher.events():
                seen = True
                self._note(event, known)
                if self._watches.watcher is None:
                    return
            quiet = FLOOD_QUIET_SECONDS if len(self.changed) > _FLOOD else QUIET_SECONDS
            if time.monotonic() > until or (not seen and not wait(quiet, watcher.fd)):
                return

    def take(self) -> set[str]:
        """What has changed, which is then forgotten."""
        changed, self.changed, self.is_unsure = self.changed, set(), False
        return changed

    def leave_out(self, paths: Iterable[str]) -> None:
        """These were not listed, though they are there: what happens to them does not matter."""
        if len(self._unlisted) > _MOST_UNLISTED:
            self._unlisted.clear()
        self._unlisted.update(paths)

    def read_rules(self) -> None:
        """Forget what is ignored: an ignore file has changed."""
        self._ignored = IgnoredPaths(self._project)
        self._unlisted.clear()
        self.is_unsure = True

    def close(self) -> None:
        """Watch nothing any more."""
        self._watches.stop()

    def _note(self, event: InotifyEvent, known: Set[str]) -> None:
        if event.is_overflow:
            self.read_rules()  # an ignore file may be among what was not told
            return
        folder = self._watches.folder_of(event.watch)
        if event.is_dropped:
            self._watches.dropped(event.watch)
            if folder == "":
                # The project itself is gone; no one tells when there is another in its place.
                self._watches.stop()
                self.is_unsure = True
            return
        if folder is None or not event.name:
            return
        path = f"{folder}/{event.name}" if folder else event.name
        if event.is_folder:
            self._note_folder(path, event)
        elif event.name in IGNORE_FILES:
            self.changed.add(path)
            self.read_rules()
        elif path in known:
            self.changed.add(path)
        elif path not in self._unlisted and not self._ignored.holds(path, is_folder=False):
            self.changed.add(path)
            self.is_unsure = True

    def _note_folder(self, path: str, event: InotifyEvent) -> None:
        # One that could not be watched may be opened by now.
        is_closed = path in self._followed and not self._watches.has(path)
        if not (event.comes_or_goes or is_closed) or self._ignored.holds(path, is_folder=True):
            return
        # Watched at once: files may be put into it before the project is listed again.
        self._watches.add(path, f"{self._project}/{path}")
        # An empty one that comes and goes, as tools make them for a moment, changes nothing.
        is_known = path in self._followed and not is_closed
        if is_known or _holds_something(f"{self._project}/{path}"):
            self.is_unsure = True


class LookTimer:
    """Knows when the next look is due.  All times are of one clock, in seconds."""

    def __init__(self, now: float) -> None:
        self._due = now + LOOK_SECONDS

    def left(self, now: float) -> float:
        """How long until then."""
        return max(0.0, self._due - now)

    def changed(self, now: float) -> None:
        """The watch has told something: a look is due soon."""
        self._due = min(self._due, now + SOON_SECONDS)

    def looked(self, began: float, now: float, *, is_watched: bool) -> None:
        """A look has ended.  Of a project that is watched it costs next to nothing, however long
        what it found took.
        """
        pause = LOOK_SECONDS if is_watched else max(LOOK_SECONDS, _PAUSE_FACTOR * (now - began))
        self._due = now + pause


def _new_watcher() -> InotifyWatcher | None:
    try:
        return InotifyWatcher()
    except OSError:
        return None


def _holds_something(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
