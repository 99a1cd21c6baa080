"""Uncommitted changes of a git work tree, found by its index: no git is started.

The index holds size and time of every tracked file as git last saw it.  A file that has them still
is unchanged; of one that has others the content decides.  Whether something is staged is told by
the cached tree in the index, which `git add` makes invalid and `git commit` makes whole again.
Files that git does not track are not looked for: that would be a walk through all folders.

It blocks, but for a few milliseconds only: it is looked up before every turn.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from weft.workspace.git_repository import GitRepository

MOST_FILES: Final = 10_000
"""Tracked files; with more, a look at each would be felt before every turn."""
LARGEST_INDEX: Final = 2 * 1024 * 1024
MOST_HASHED: Final = 50
LARGEST_HASHED: Final = 256 * 1024
"""Files whose content is read, and how much of each: in a copied repository all times differ."""
_HEAD: Final = struct.Struct(">4sII")
_ENTRY: Final = struct.Struct(">10I20sH")
_EXTENSION: Final = struct.Struct(">4sI")
_OID_BYTES: Final = 20
# In the first flags: the caller said that the file never changes; there are more flags; a merge.
_ASSUMED_VALID: Final = 0x8000
_EXTENDED: Final = 0x4000
_STAGES: Final = 0x3000
# In the second: not checked out (sparse), added in name only.
_SKIPPED: Final = 0x4000
_SUBMODULE: Final = 0o160000
_SECONDS, _NANOSECONDS, _MODE, _SIZE, _OID, _FLAGS = 2, 3, 6, 9, 10, 11
"""Places in an entry."""
_Suspect: TypeAlias = tuple[bytes, tuple[Any, ...]]
"""The name of a file and its entry."""


class GitChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from the newest commit, among the files that git tracks."""

    files: tuple[str, ...] = ()
    """Changed or deleted since they were staged or committed, by their path from the top."""
    is_staged: bool = False
    """Something is staged."""


class _Unreadable(Exception):
    """The index is of a kind that is not read here."""


def uncommitted_changes(repository: GitRepository) -> GitChanges | None:
    """The changes of a work tree; None where they cannot be told quickly."""
    try:
        data = _index_bytes(f"{repository.records}/index")
        if data is None:
            return None  # nothing was ever added
        suspects, end = _suspects(data, os.fsencode(repository.top))
        is_staged = _is_staged(data, end)
        # A file in conflict has an entry for each side.
        changed = sorted({name for name, fields in _confirmed(suspects, repository.top)})
    except (_Unreadable, OSError, struct.error, ValueError):
        return None
    return GitChanges(files=tuple(map(os.fsdecode, changed)), is_staged=is_staged)


def _index_bytes(path: str) -> bytes | None:
    try:
        # Without blocking: a named pipe in its place would hold us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _Unreadable from error
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_INDEX:
            raise _Unreadable
        return file.read(LARGEST_INDEX)


def _suspects(data: bytes, top: bytes) -> tuple[list[_Suspect], int]:
    """The files that are not as the index has them by size, time and kind, and where the entries
    end.
    """
    magic, version, count = _HEAD.unpack_from(data)
    # Version 4 shortens names by the one before; few repositories have it.
    if magic != b"DIRC" or version not in (2, 3) or count > MOST_FILES:
        raise _Unreadable
    found: list[_Suspect] = []
    at = _HEAD.size
    # Of all files in a project: nothing is made for those that are unchanged.
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, at)
        begin = at + _ENTRY.size
        if fields[_FLAGS] & (_ASSUMED_VALID | _EXTENDED):
            begin, is_skipped = _after_flags(data, begin, fields[_FLAGS])
        else:
            is_skipped = False
        end = data.index(b"\0", begin)
        # One to eight zero bytes fill an entry up to a multiple of eight.
        at += (end - at + 8) // 8 * 8
        name = data[begin:end]
        if not is_skipped and not _is_untouched(b"%b/%b" % (top, name), fields):
            found.append((name, fields))
    return found, at


def _after_flags(data: bytes, at: int, flags: int) -> tuple[int, bool]:
    """Where the name begins, and whether the file is not to be looked at."""
    if not flags & _EXTENDED:
        return at, True
    (more,) = struct.unpack_from(">H", data, at)
    return at + 2, bool(flags & _ASSUMED_VALID or more & _SKIPPED)


def _is_untouched(path: bytes, fields: tuple[Any, ...]) -> bool:
    """Whether time and size are those that git saw."""
    if fields[_MODE] & 0o170000 == _SUBMODULE:
        return True
    try:
        now = os.lstat(path)
    except OSError:
        return False
    return (
        now.st_size & 0xFFFFFFFF == fields[_SIZE]
        and now.st_mtime_ns == fields[_SECONDS] * 1_000_000_000 + fields[_NANOSECONDS]
        and _has_kind(now.st_mode, fields[_MODE])
        and not fields[_FLAGS] & _STAGES
    )


def _is_staged(data: bytes, at: int) -> bool:
    """Whether the cached tree of the top folder is invalid, or there is none."""
    is_whole = False
    while at + _EXTENSION.size <= len(data) - _OID_BYTES:
        name, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        # Small letters: the index cannot be read without knowing it, as when it is split in two.
        if name.islower():
            raise _Unreadable
        if name == b"TREE":
            # The top folder comes first, and its name is empty: NUL, count of entries, space.
            count = data[at + 1 : at + size].partition(b" ")[0]
            is_whole = int(count or b"-1") >= 0
        at += size
    return not is_whole


def _has_kind(now: int, kept: int) -> bool:
    """Whether a mode is the one that git keeps: the kind of a file, and of a regular one whether
    its user may execute it.
    """
    other = now ^ kept
    return not other & 0o170000 and not (other & 0o100 and stat.S_ISREG(now))


def _confirmed(suspects: list[_Suspect], top: str) -> Iterator[_Suspect]:
    """Those whose content is another one; a file may have been touched only."""
    hashed = 0
    for name, fields in suspects:
        path = b"%b/%b" % (os.fsencode(top), name)
        try:
            now = os.lstat(path)
        except OSError:
            yield name, fields
            continue
        is_like = now.st_size & 0xFFFFFFFF == fields[_SIZE] and not fields[_FLAGS] & _STAGES
        if not is_like or not _has_kind(now.st_mode, fields[_MODE]):
            yield name, fields
            continue
        hashed += 1
        if hashed > MOST_HASHED or now.st_size > LARGEST_HASHED:
            raise _Unreadable
        if _oid(path, now) != fields[_OID]:
            yield name, fields


def _oid(path: bytes, now: os.stat_result) -> bytes:
    """The id that git would give the content of a file."""
    try:
        if stat.S_ISLNK(now.st_mode):
            content = os.readlink(path)
        else:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file:
                content = file.read(LARGEST_HASHED + 1)
    except OSError:
        return b""
    import hashlib  # it loads OpenSSL, and few files have to be looked into

    head = b"blob %d\0" % len(content)
    return hashlib.sha1(head + content, usedforsecurity=False).digest()
