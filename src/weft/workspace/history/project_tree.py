"""The project's files as a tree of listings, one a folder, each named by its hash.

A listing names what is in a folder: names, modes, hashes of contents, and for a folder the hash of
its own listing.  So the hash of the first one, the tree hash, stands for every file of the project,
two trees are compared by reading the folders that differ, and what did not change is stored once.
The form is for ever, since hashes are: `docs/formats/facts.md` describes it.
"""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

import msgspec

from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.skipped_folders import skipped_for

MOST_PATHS: Final = 250_000
"""Files, links and folders of one tree: ours have fewer (`index.MAX_FILES`), and a few listings
that name one another twice could stand for any number.
"""
_HIGHEST_MODE: Final = 0o177777
_NEVER: Final = frozenset(skipped_for("version control"))


class TreeEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One name in a listing."""

    name: str
    mode: int
    """As `tree_mode` has it."""
    hash: str = ""
    """Of the content, of a link's target, of a folder's listing; empty where it is not known."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


class FolderListing(msgspec.Struct, frozen=True):
    """What is in one folder, as it is stored."""

    digest: BlobId
    data: bytes


class ProjectTree(msgspec.Struct, frozen=True):
    """All folders of a project at one instant, by path; the project's own is ``""``."""

    folders: Mapping[str, FolderListing]

    @property
    def digest(self) -> BlobId:
        """The tree hash."""
        return self.folders[""].digest


class TreeChange(NamedTuple):
    """A path that differs between two trees; None: nothing is there."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


# A tree hash is of the files: times, limits of ours and permissions that depend on a umask would
# make two copies of one project differ.
@cache
def tree_mode(mode: int) -> int:
    """A mode of `lstat` as git has it: 100644, 100755, 120000, 040000; of what is no file, link or
    folder, the kind alone."""
    if stat.S_ISREG(mode):
        return stat.S_IFREG | (0o755 if mode & stat.S_IXUSR else 0o644)
    return stat.S_IFMT(mode)


def listing(entries: Iterable[TreeEntry]) -> FolderListing:
    """The listing of a folder; equal folders give equal bytes."""
    return listing_of((entry.name, entry.mode, entry.hash) for entry in entries)


def listing_of(fields: Iterable[tuple[str, int, str]]) -> FolderListing:
    """The listing of a folder, from the fields of its entries."""
    # By the names' letters, which is the order of their bytes in UTF-8, too.  No two are equal.
    data = _encode(sorted(fields))
    return FolderListing(BlobId(sha256(data).hexdigest()), data)


def entries_of(data: bytes) -> dict[str, TreeEntry]:
    """The names in a listing.

    Raises:
        ValueError: it is none.
    """
    # A listing may come from an import, its names become paths, and its modes those of files.
    found: dict[str, TreeEntry] = {}
    for entry in _decode(data):
        if entry.name in ("", ".", "..") or not {"/", "\0"}.isdisjoint(entry.name):
            raise ValueError(f"{entry.name!r} is no name in a folder")
        # git runs programs that a `.git` names, and no snapshot of ours has one.
        if entry.name in _NEVER:
            raise ValueError(f"{entry.name!r} is version control's own")
        if entry.name in found:
            raise ValueError(f"{entry.name!r} stands in a folder twice")
        # The range first: what is beyond it is no mode to the system's own functions.
        if not 0 <= entry.mode <= _HIGHEST_MODE or tree_mode(entry.mode) != entry.mode:
            raise ValueError(f"{entry.mode:o} is no mode of a file")
        found[entry.name] = entry
    return found


def folders_above(path: str) -> Iterator[str]:
    """The folders that hold a path, the nearest first, without the project's own."""
    while path := path.rpartition("/")[0]:
        yield path


async def changed_since(
    before: BlobId | None, now: ProjectTree, load: Callable[[BlobId], Awaitable[bytes | None]]
) -> tuple[list[TreeChange], list[FolderListing]]:
    """What differs from an earlier tree, by path, and the listings that this tree does not share
    with it; only folders that differ are looked at.

    A folder's entry is a change where it came or went, or what is in it became known.
    """
    changes: list[TreeChange] = []
    fresh: list[FolderListing] = []
    waiting: list[tuple[str, BlobId | None]] = [("", before)]
    while waiting:
        path, old = waiting.pop()
        found = now.folders.get(path)
        if found is not None and found.digest == old:
            continue
        if found is not None:
            fresh.append(found)
        here = entries_of(found.data) if found is not None else {}
        there = await _loaded(old, load)
        for name in there.keys() | here.keys():
            was, is_now = there.get(name), here.get(name)
            if was == is_now:
                continue
            full = f"{path}/{name}" if path else name
            if not _is_same_folder(was, is_now):
                changes.append(TreeChange(full, was, is_now))
            if (was and was.is_folder) or (is_now and is_now.is_folder):
                is_folder = was is not None and was.is_folder
                waiting.append((full, BlobId(was.hash) if was and is_folder else None))
    changes.sort(key=lambda change: change.path)
    return changes, fresh


async def files_of(
    tree: BlobId, load: Callable[[BlobId], Awaitable[bytes | None]]
) -> dict[str, TreeEntry]:
    """Every path of a stored tree.

    Raises:
        LookupError: one of its listings is not stored.
        ValueError: it has too many, or one of its listings is none.
    """
    found: dict[str, TreeEntry] = {}
    waiting = [("", tree)]
    while waiting:
        path, digest = waiting.pop()
        data = await load(digest)
        if data is None:
            raise LookupError(digest)
        for name, entry in entries_of(data).items():
            full = f"{path}/{name}" if path else name
            found[full] = entry
            if entry.is_folder and entry.hash:
                waiting.append((full, BlobId(entry.hash)))
        if len(found) > MOST_PATHS:
            raise ValueError(f"it has more than {MOST_PATHS} files")
    return dict(sorted(found.items()))


async def entries_along(
    tree: BlobId, path: str, load: Callable[[BlobId], Awaitable[bytes | None]]
) -> dict[str, TreeEntry]:
    """A path of a stored tree and the folders above it, as far as they are there; costs a listing
    for each folder, however large the tree is.

    Raises:
        LookupError: one of these listings is not stored.
    """
    found: dict[str, TreeEntry] = {}
    above, digest = "", tree
    for name in path.split("/"):
        data = await load(digest)
        if data is None:
            raise LookupError(digest)
        entry = entries_of(data).get(name)
        if entry is None:
            break
        above = f"{above}/{name}" if above else name
        found[above] = entry
        if not entry.is_folder or not entry.hash:
            break
        digest = BlobId(entry.hash)
    return found


async def _loaded(
    digest: BlobId | None, load: Callable[[BlobId], Awaitable[bytes | None]]
) -> dict[str, TreeEntry]:
    if not digest:
        return {}
    data = await load(digest)
    # Gone: all that is in the folder counts as new, which stores more than is needed and loses
    # nothing.
    return {} if data is None else entries_of(data)


def _is_same_folder(was: TreeEntry | None, is_now: TreeEntry | None) -> bool:
    """True for a folder that is only known to hold something else."""
    if was is None or is_now is None or not (was.is_folder and is_now.is_folder):
        return False
    return bool(was.hash) == bool(is_now.hash)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[TreeEntry]).decode
