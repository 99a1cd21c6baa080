"""The index of git: what is staged, and whether the files that say so are whole.

What was staged and never committed is named by an index and by nothing else.  With `git
update-index --split-index` most of it stands in a second file, which the index names by its hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from weft.workspace.git_records import GitRecords, is_checked

_MAGIC: Final = b"DIRC"
_INDEX: Final = re.compile(r"(?P<folder>(?:(?:worktrees|modules)/[^/]+/)*)index")
_SHARED: Final = re.compile(
    r"(?P<folder>(?:worktrees/[^/]+/)?)sharedindex\.(?P<hash>[0-9a-f]{40}(?:[0-9a-f]{24})?)"
)
_LINK: Final = b"link"
_EXTENSION: Final = 8
"""Bytes in front of an extension: its name and its size."""
_HASHES: Final = (20, 32)


def lost_indexes(before: GitRecords, after: GitRecords, changed: Iterable[str]) -> list[str]:
    """The files of an index that were whole, and are gone or damaged."""
    return [
        name
        for name in sorted(changed)
        if (_is_lost_index(after, name) or _is_lost_part(after, name)) and _is_sound(before, name)
    ]


def are_staged(records: GitRecords, objects: Collection[bytes]) -> bool:
    """True when an index names one of the objects, or its cached trees do: `git prune` spares both.

    Every kind of index holds the names as plain bytes, so none is taken apart.
    """
    return any(oid in data for data in _index_data(records) for oid in objects)


def _is_lost_index(after: GitRecords, name: str) -> bool:
    found = _INDEX.fullmatch(name)
    # `git worktree remove` takes a whole working tree away, and its index with it.
    if not found or after.read(f"{found['folder']}HEAD") is None:
        return False
    if not _is_sound(after, name):
        return True
    shared = _shared_part(after.read(name) or b"")
    return bool(shared) and not _is_sound(after, f"{found['folder']}{shared}")


def _is_lost_part(after: GitRecords, name: str) -> bool:
    """True for the second file of an index that still needs it."""
    found = _SHARED.fullmatch(name)
    if not found or _is_sound(after, name):
        return False
    return _shared_part(after.read(f"{found['folder']}index") or b"") == os.path.basename(name)


def _is_sound(records: GitRecords, name: str) -> bool:
    data = records.read(name) or b""
    # With `index.skipHash` git leaves zeros in the place of the checksum.
    return data.startswith(_MAGIC) and (is_checked(data) or not data[-_HASHES[0] :].strip(b"\0"))


def _shared_part(data: bytes) -> str:
    """The name of the file that an index is based on; empty for one that is whole by itself."""
    at = data.find(_LINK)
    while at >= 0:
        for width in _HASHES:
            if _are_extensions(data, at, len(data) - width):
                begin = at + _EXTENSION
                return f"sharedindex.{data[begin : begin + width].hex()}"
        at = data.find(_LINK, at + 1)
    return ""


def _are_extensions(data: bytes, at: int, end: int) -> bool:
    """True when nothing but extensions stands from there to the checksum: the four letters may be
    a part of a file's name.
    """
    while at + _EXTENSION <= end and data[at : at + 4].isalpha():
        at += _EXTENSION + int.from_bytes(data[at + 4 : at + _EXTENSION], "big")
    return at == end


def _index_data(records: GitRecords) -> Iterator[bytes]:
    names = [*os.listdir(records.folder), *records.names("worktrees")]
    for name in names:
        if _INDEX.fullmatch(name) or _SHARED.fullmatch(name):
            yield records.read(name) or b""
