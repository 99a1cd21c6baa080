"""Inotify: the kernel's own list of what changed, one watch per folder.

An event is queued before the call that caused it returns, so once a command has been reaped
everything it did is in the queue.  Only a write through a hard link that lies outside the watched
folders is not seen.  When more happens than the queue holds, the kernel says so (`OVERFLOW`) and
the caller looks for itself.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

MODIFY: Final = 0x2
ATTRIB: Final = 0x4
CLOSE_WRITE: Final = 0x8
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
IS_FOLDER: Final = 0x40000000
_ONLY_FOLDERS = 0x01000000
_DONT_FOLLOW = 0x02000000
_EXCLUDE_UNLINKED = 0x04000000
_MASK = MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
_HEAD = struct.Struct("iIII")
_CHUNK = 64 * 1024


class InotifyEvent(NamedTuple):
    """Something happened to an entry of a watched folder."""

    watch: int
    mask: int
    name: str
    """Empty when it happened to the folder itself, or to the queue."""

    @property
    def is_overflow(self) -> bool:
        """More happened than the queue holds."""
        return bool(self.mask & OVERFLOW)

    @property
    def is_dropped(self) -> bool:
        """The folder is watched no longer: it is gone."""
        return bool(self.mask & IGNORED)

    @property
    def is_folder(self) -> bool:
        """It happened to a folder in the watched one."""
        return bool(self.mask & IS_FOLDER)

    @property
    def comes_or_goes(self) -> bool:
        """The entry was made, moved or removed."""
        return bool(self.mask & (CREATE | MOVED_TO | MOVED_FROM | DELETE))


class InotifyWatcher:
    """One inotify queue.

    Raises:
        OSError: the system has no inotify, or no more queues for this user.
    """

    def __init__(self) -> None:
        calls = _calls()
        self._add, self._remove = calls.inotify_add_watch, calls.inotify_rm_watch
        self.fd = _checked(calls.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify")

    def add(self, folder: str) -> int:
        """Watch a folder; one that is watched already keeps its number, whatever its name was.

        Raises:
            OSError: `ENOSPC` when this user may watch no more, else as for opening it.
        """
        # Without events for unlinked files: a program that keeps a deleted file open and writes to
        # it would fill the queue.
        mask = _MASK | _ONLY_FOLDERS | _DONT_FOLLOW | _EXCLUDE_UNLINKED
        return _checked(self._add(self.fd, os.fsencode(folder), mask), folder)

    def remove(self, watch: int) -> None:
        """Watch a folder no longer; one that is gone is not watched anyway."""
        self._remove(self.fd, watch)

    def read(self) -> bytes:
        """One portion of the queue as it is, empty when nothing is in it; never waits."""
        try:
            return os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return b""

    def events(self) -> Iterator[InotifyEvent]:
        """All that is in the queue; never waits."""
        while raw := self.read():
            yield from events(raw)

    def close(self) -> None:
        """Give the queue back."""
        os.close(self.fd)


class FolderWatches:
    """Which folder each watch of a project is on; paths are relative to the project."""

    def __init__(self, watcher: InotifyWatcher | None) -> None:
        self.watcher = watcher
        """None when changes have to be looked for."""
        self._folders: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def folder_of(self, watch: int) -> str | None:
        """The folder that a watch is on."""
        return self._folders.get(watch)

    def has(self, path: str) -> bool:
        """Whether a folder is watched under this name."""
        return path in self._numbers

    def add(self, path: str, absolute: str) -> None:
        """Watch what has this name now.

        Call it at every visit: a folder may have been moved away, with its watch, and another be in
        its place.
        """
        if self.watcher is None:
            return
        try:
            watch = self.watcher.add(absolute)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # gone already; or a folder that we may not look into
        except OSError:
            self.stop()  # no more watches for this user: from now on changes are looked for
            return
        if watch == self._numbers.get(path) and self._folders.get(watch) == path:
            return
        self.remove(path)
        # The kernel gives one number to one folder, so the same number under another path means
        # that the folder was moved here.
        moved_from = self._folders.get(watch)
        if moved_from is not None and self._numbers.get(moved_from) == watch:
            del self._numbers[moved_from]
        self._numbers[path] = watch
        self._folders[watch] = path

    def remove(self, path: str) -> None:
        """Watch what had this name no longer, unless it is watched under another one by now."""
        watch = self._numbers.pop(path, None)
        if watch is not None and self.watcher is not None and self._folders.get(watch) == path:
            self.watcher.remove(watch)
            del self._folders[watch]

    def dropped(self, watch: int) -> None:
        """Forget a watch that the kernel has dropped: its folder is gone."""
        path = self._folders.pop(watch, None)
        if path is not None and self._numbers.get(path) == watch:
            del self._numbers[path]

    def stop(self) -> None:
        """Watch nothing any more: from now on changes have to be looked for."""
        if self.watcher is not None:
            self.watcher.close()
        self.watcher = None
        self._folders.clear()
        self._numbers.clear()


def events(raw: bytes) -> Iterator[InotifyEvent]:
    """The events of a portion of the queue."""
    place = 0
    while place < len(raw):
        watch, mask, _, length = _HEAD.unpack_from(raw, place)
        place += _HEAD.size
        # The kernel pads names with NUL to align the next event.
        name = raw[place : place + length].rstrip(b"\0")
        place += length
        yield InotifyEvent(watch, mask, os.fsdecode(name))


def _checked(result: int, what: str) -> int:
    if result >= 0:
        return result
    import ctypes  # loaded already: `_calls` did

    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), what)


@cache
def _calls() -> Any:
    # Loading ctypes costs milliseconds, so it waits for the first command that is watched.
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    try:
        library.inotify_init1.argtypes = (ctypes.c_int,)
        library.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
        library.inotify_rm_watch.argtypes = (ctypes.c_int, ctypes.c_int)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), "inotify") from None
    return library
