"""Ignored files, which the history does not hold: listed before a command that nothing holds back,
and looked at after it, so that what it removed or rewrote can be put back, or at least be named.

What tools make again (`skipped_folders`) is left out, and so is what lies beyond a bound: a data
set may have a million files.  Small files are read before the command, secrets excepted: those
would be stored.  A file that only grew has lost nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Final, NamedTuple

from weft.file_io import read_all
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import ChangedFile
from weft.workspace.safe_open import open_beneath
from weft.workspace.sandbox.secret_names import is_secret_file
from weft.workspace.skipped_folders import SKIPPED_FOLDERS, is_remade

IGNORED: Final = "ignored"
MOST_FILES: Final = 2_000
MOST_LOOKED_AT: Final = 20_000
"""Files among which those that were moved are looked for."""
MOST_READ: Final = 500
"""Files that are read before a command: each costs some ten microseconds."""
MOST_OF_ONE: Final = 1024 * 1024
MOST_HELD: Final = 4 * 1024 * 1024
"""Bytes that are held in memory while a command runs."""
_TAIL: Final = 4096
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def unheld_places(left_out: Mapping[str, str]) -> list[str]:
    """The ignored files and folders (with a slash at their end) among what a history leaves out
    that no tool makes again.
    """
    return [
        path
        for path, why in left_out.items()
        if why == IGNORED and not is_remade(path) and path.rstrip("/") not in SKIPPED_FOLDERS
    ]


class UnheldFile(NamedTuple):
    """A file as it was before a command."""

    mode: int
    inode: int
    size: int
    changed_ns: int
    data: bytes | None = None
    """The content, or a link's target; None where that was not read."""
    tail: bytes | None = None
    """The end of a file whose content is not held, by which it is known when it grows."""


def unheld_files(root: str, places: Iterable[str]) -> dict[str, UnheldFile]:
    """The files at these places below a root.  Blocks."""
    found = dict(islice(_files(root, places), MOST_FILES))
    room = MOST_HELD
    with _opened(root) as base:
        for path in list(islice(found, MOST_READ)):
            found[path] = _with_content(base, path, found[path], room)
            room -= len(found[path].data or b"")
    return found


def lost_files(
    root: str, known: Mapping[str, UnheldFile], places: Iterable[str], changed: Iterable[str]
) -> list[ChangedFile]:
    """Those of the files that were removed or rewritten, with what they held where that was read.

    A file that is at one of these places by now, or among the files that changed, was moved and is
    not lost.  Blocks.
    """
    there = {path: file for path in known for _, file in _file(root, path)}
    lost: list[ChangedFile] = []
    with _opened(root) as base:
        for path, now in there.items():
            if _is_rewritten(base, path, known[path], now):
                lost.append(_rewritten(base, path, known[path], now))
    gone = [path for path in known if path not in there]
    if gone:
        found = chain(islice(_files(root, places), MOST_LOOKED_AT), _named(root, changed))
        inodes = {file.inode for _, file in found}
        lost += [_removed(path, known[path]) for path in gone if known[path].inode not in inodes]
    return sorted(lost, key=lambda change: change.path)


def _removed(path: str, before: UnheldFile) -> ChangedFile:
    return ChangedFile(
        path=path,
        action="deleted",
        before=_hash(before.data),
        data_before=before.data,
        mode_before=before.mode,
        missing=IGNORED if before.data is None else "",
    )


def _rewritten(base: int, path: str, before: UnheldFile, now: UnheldFile) -> ChangedFile:
    return ChangedFile(
        path=path,
        action="modified",
        before=_hash(before.data),
        after=_hash(_content(base, path, now)),
        data_before=before.data,
        mode_before=before.mode,
        mode_after=now.mode,
        missing=IGNORED if before.data is None else "",
    )


def _is_rewritten(base: int, path: str, before: UnheldFile, now: UnheldFile) -> bool:
    """True for a file that does not hold any more what it held."""
    if (now.inode, now.size, now.changed_ns) == (before.inode, before.size, before.changed_ns):
        return False
    if stat.S_IFMT(now.mode) != stat.S_IFMT(before.mode) or now.size < before.size:
        return True
    if stat.S_ISLNK(now.mode):
        return _content(base, path, now) != before.data
    if before.data is not None:
        return _piece(base, path, 0, len(before.data)) != before.data
    if now.size == before.size:
        return True
    # Of what was not read, only the end tells whether it was appended to.
    at = before.size - len(before.tail or b"")
    return bool(before.tail) and _piece(base, path, at, len(before.tail or b"")) != before.tail


def _with_content(base: int, path: str, file: UnheldFile, room: int) -> UnheldFile:
    if file.size <= room and not is_secret_file(os.path.basename(path)):
        file = file._replace(data=_content(base, path, file))
    if file.data is not None or not stat.S_ISREG(file.mode):
        return file
    length = min(file.size, _TAIL)
    return file._replace(tail=_piece(base, path, file.size - length, length))


def _content(base: int, path: str, file: UnheldFile) -> bytes | None:
    """What a small file holds, or where a link leads; None where that cannot be told."""
    if stat.S_ISLNK(file.mode):
        with suppress(OSError):
            return os.fsencode(os.readlink(path, dir_fd=base))
    if not stat.S_ISREG(file.mode) or file.size > MOST_OF_ONE:
        return None
    data = _piece(base, path, 0, file.size + 1)
    return data if data is not None and len(data) == file.size else None


def _piece(base: int, path: str, at: int, length: int) -> bytes | None:
    try:
        # Beneath the project: by now a folder on the way may be a link that leads out of it.
        fd = open_beneath(base, path, _READ_FLAGS)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        os.lseek(fd, at, os.SEEK_SET)
        return read_all(fd, length, length)
    except OSError:
        return None
    finally:
        os.close(fd)


def _hash(data: bytes | None) -> BlobId | None:
    return None if data is None else BlobId(sha256(data).hexdigest())


@contextmanager
def _opened(root: str) -> Iterator[int]:
    base = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield base
    finally:
        os.close(base)


def _named(root: str, paths: Iterable[str]) -> Iterator[tuple[str, UnheldFile]]:
    for path in paths:
        yield from _file(root, path)


def _files(root: str, places: Iterable[str]) -> Iterator[tuple[str, UnheldFile]]:
    for place in places:
        yield from _below(root, place) if place.endswith("/") else _file(root, place)


def _below(root: str, place: str) -> Iterator[tuple[str, UnheldFile]]:
    waiting = [place.rstrip("/")]
    while waiting:
        for path, is_folder in _entries(root, waiting.pop()):
            if not is_folder:
                yield from _file(root, path)
            elif os.path.basename(path) not in SKIPPED_FOLDERS:
                waiting.append(path)


def _entries(root: str, folder: str) -> Iterator[tuple[str, bool]]:
    """What is in a folder, with whether it is one."""
    # Not `os.walk`, which reads a folder to its end before it tells of the first name.
    with suppress(OSError), os.scandir(f"{root}/{folder}") as entries:
        for entry in entries:
            yield f"{folder}/{entry.name}", entry.is_dir(follow_symlinks=False)


def _file(root: str, path: str) -> Iterator[tuple[str, UnheldFile]]:
    try:
        about = os.lstat(f"{root}/{path}")
        path.encode()  # another name can be stored in no record
    except (OSError, UnicodeEncodeError):
        return
    is_file = stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)
    if is_file and not is_remade(path):
        yield path, UnheldFile(about.st_mode, about.st_ino, about.st_size, about.st_mtime_ns)
