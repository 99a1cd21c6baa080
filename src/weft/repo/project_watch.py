"""Watching a project: which of its files change, told by inotify.

One watch for each folder that has files, none for what is ignored.  A file that changes is named;
a folder that comes or goes, a new ignore file, a name that was not listed, and a queue that
overflowed mean that the project has to be listed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Set
from typing import Final

from weft.repo.project_files import OWN_IGNORE
from weft.workspace import SKIPPED_FOLDERS, FolderWatches, InotifyEvent, InotifyWatcher

QUIET_SECONDS: Final = 0.02
"""How long nothing may happen before a change is taken for whole: an editor's save is three events
within a millisecond."""
FLOOD_QUIET_SECONDS: Final = 0.2
"""The same where much happens: a checkout pauses now and then."""
MOST_SECONDS: Final = 2.0
"""After so long what has come is taken, though more comes: a build may write for hours."""
_FLOOD: Final = 100
_IGNORE_FILES: Final = (".gitignore", OWN_IGNORE)

WaitReadable = Callable[[float, int], bool]


class ProjectWatch:
    """The watches on a project's folders.

    Raises:
        OSError: there is no inotify here.
    """

    def __init__(self, project: str) -> None:
        self._project = project
        self._watcher = InotifyWatcher()
        self._watches = FolderWatches(self._watcher)
        self.changed: set[str] = set()
        """Paths that something happened to since they were last taken."""
        self.is_unsure = False
        """The project has to be listed again."""

    @property
    def fd(self) -> int:
        """Readable when something has happened."""
        return self._watcher.fd

    @property
    def is_whole(self) -> bool:
        """False when there are more folders than this user may watch."""
        return self._watches.watcher is not None

    def follow(self, folders: Iterable[str]) -> None:
        """Watch these folders, relative to the project; those that are watched stay so."""
        for folder in folders:
            self._watches.add(folder, f"{self._project}/{folder}")

    def collect(self, known: Set[str], wait: WaitReadable) -> None:
        """Take in what has happened, until it is quiet; `known` are the files that are listed."""
        until = time.monotonic() + MOST_SECONDS
        while True:
            seen = self._read(known)
            quiet = FLOOD_QUIET_SECONDS if len(self.changed) > _FLOOD else QUIET_SECONDS
            if time.monotonic() > until or (not seen and not wait(quiet, self.fd)):
                return

    def take(self) -> set[str]:
        """What has changed, which is then forgotten."""
        changed, self.changed, self.is_unsure = self.changed, set(), False
        return changed

    def close(self) -> None:
        """Watch nothing any more."""
        self._watches.stop()

    def _read(self, known: Set[str]) -> bool:
        seen = False
        for event in self._watcher.events():
            seen = True
            self._note(event, known)
        return seen

    def _note(self, event: InotifyEvent, known: Set[str]) -> None:
        if event.is_overflow:
            self.is_unsure = True
            return
        if event.is_dropped:
            self._watches.dropped(event.watch)
            return
        folder = self._watches.folder_of(event.watch)
        if folder is None or not event.name:
            return
        path = f"{folder}/{event.name}" if folder else event.name
        if event.is_folder:
            if event.comes_or_goes and event.name not in SKIPPED_FOLDERS:
                # Watched at once: files may be put into it before the project is listed again.
                self._watches.add(path, f"{self._project}/{path}")
                self.is_unsure = True
            return
        self.changed.add(path)
        if path not in known or event.name in _IGNORE_FILES:
            self.is_unsure = True
