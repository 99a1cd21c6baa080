"""All that trees of files name, for exports and imports: a file that goes elsewhere must hold what
its hashes mean, and what comes in a file is believed in nothing.

A few listings that name one another twice stand for more paths than can be walked.  So each listing
is read once, however many trees share it, and what a tree comes to is added up from its folders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from weft.events import LeftOutFile, SnapshotChange, WorkspaceSnapshot
from weft.ids import BlobId
from weft.store import Store
from weft.workspace.history.project_tree import (
    MOST_PATHS,
    TreeEntry,
    entries_of,
    folders_above,
)

LONGEST_PATH: Final = 4096
"""Bytes of a path; the system opens no longer one."""
MOST_CHANGES: Final = 10_000
"""Changes that an imported snapshot may list; ours list a tenth of that."""
_LONGEST_WORD: Final = 200
_hash: Final = re.compile(r"[0-9a-f]{64}")
_PathContent: TypeAlias = tuple[str, BlobId | None]
_ReadListing: TypeAlias = Callable[[BlobId], dict[str, TreeEntry]]


# --- exports -----------------------------------------------------------------------------


class TreeCollector:
    """Gathers what the trees of one session name."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.held: dict[BlobId, bytes] = {}
        """The listings and contents so far."""
        self._listings: dict[BlobId, dict[str, TreeEntry] | None] = {}
        self._walked: set[tuple[str, BlobId]] = set()
        self._gone: set[BlobId] = set()
        """Contents that are not stored any more."""
        self._lacking: dict[BlobId, tuple[_PathContent, ...]] = {}

    async def add(
        self, tree: BlobId, left_out: Mapping[_PathContent, str]
    ) -> tuple[LeftOutFile, ...] | None:
        """Gather a tree, without the contents that were left out; returns its files whose content
        is not in `held`.  None where one of its listings is not stored or is none.
        """
        try:
            if not await self._walk(tree, left_out):
                return None
            lost = dict.fromkeys(self._lacking_in(tree), "quota")
        except ValueError:
            return None
        named = {each: why for each, why in left_out.items() if self._has(tree, *each)}
        return tuple(
            LeftOutFile(path=path, why=why, content=content)
            for (path, content), why in sorted({**lost, **named}.items(), key=_by_path)
        )

    async def _walk(self, tree: BlobId, left_out: Mapping[_PathContent, str]) -> bool:
        # Only above what was left out does it matter by which path a listing is reached.
        above = {folder for path, _ in left_out for folder in ("", *folders_above(path))}
        waiting = [("", tree)]
        while waiting:
            path, digest = waiting.pop()
            key = (path if path in above else "*", digest)
            if key in self._walked:
                continue
            self._walked.add(key)
            entries = await self._read(digest)
            if entries is None:
                return False
            for name, entry in entries.items():
                full, blob_id = _join(path, name), BlobId(entry.hash)
                if entry.is_folder and entry.hash:
                    waiting.append((full, blob_id))
                elif entry.hash and (full, blob_id) not in left_out:
                    await self._take(blob_id)
        return True

    async def _read(self, digest: BlobId) -> dict[str, TreeEntry] | None:
        if digest not in self._listings:
            data = await self._store.blob(digest)
            self._listings[digest] = None if data is None else entries_of(data)
            if data is not None:
                self.held[digest] = data
        return self._listings[digest]

    async def _take(self, content: BlobId) -> None:
        if content in self.held or content in self._gone:
            return
        data = await self._store.blob(content)
        if data is None:
            self._gone.add(content)
        else:
            self.held[content] = data

    def _lacking_in(self, tree: BlobId) -> tuple[_PathContent, ...]:
        """The paths of a tree whose content is gone."""
        if not self._gone:
            return ()
        for digest, entries in _innermost_first(tree, self._known, self._lacking):
            found: list[_PathContent] = []
            for name, entry in entries.items():
                if entry.is_folder:
                    below = self._lacking.get(BlobId(entry.hash), ())
                    found += [(f"{name}/{path}", content) for path, content in below]
                elif entry.hash in self._gone:
                    found.append((name, BlobId(entry.hash)))
            if len(found) > MOST_PATHS:
                raise ValueError("too many files")
            self._lacking[digest] = tuple(found)
        return self._lacking[tree]

    def _known(self, digest: BlobId) -> dict[str, TreeEntry]:
        return self._listings.get(digest) or {}

    def _has(self, tree: BlobId, path: str, content: BlobId | None) -> bool:
        return _is_content(_entry_at(tree, path, self._known), content)


# --- imports -----------------------------------------------------------------------------


def checked_blobs(
    snapshots: Iterable[WorkspaceSnapshot], held: Mapping[BlobId, bytes]
) -> Collection[BlobId]:
    """The listings and contents that snapshots of an untrusted file name, of those that it holds.

    Raises:
        ValueError: a tree is none or too large, names what is neither held nor left out, or the
            rest of a snapshot does not agree with its tree.
    """
    trees = _HeldTrees(held)
    for snapshot in snapshots:
        trees.check(snapshot)
    return trees.named


class _TreeSum(NamedTuple):
    """What a listing comes to, with all below it."""

    paths: int
    longest: int
    """Bytes of the longest path."""
    lacking: int
    """Paths whose content is not held."""


class _HeldTrees:
    """Trees in a file."""

    def __init__(self, held: Mapping[BlobId, bytes]) -> None:
        self._held = held
        self._listings: dict[BlobId, dict[str, TreeEntry]] = {}
        self._sums: dict[BlobId, _TreeSum] = {}
        self.named: set[BlobId] = set()

    def check(self, snapshot: WorkspaceSnapshot) -> None:
        tree = snapshot.tree
        if tree is None:
            raise ValueError("a snapshot has no tree")
        lacking = self._sum(tree).lacking
        left_out = [self._left_out(tree, each) for each in snapshot.left_out]
        if len({each.path for each in snapshot.left_out}) != len(left_out):
            raise ValueError("a file is left out twice")
        # Each of them is another path of the tree, so that equal numbers mean the same paths.  What
        # is lacking and not named would be what another session has under this hash.
        if sum(left_out) != lacking:
            raise ValueError(f"{lacking - sum(left_out)} contents are neither in it nor left out")
        self._check_changes(tree, snapshot)

    def _left_out(self, tree: BlobId, left: LeftOutFile) -> bool:
        """Whether the content of a file that was left out is lacking."""
        if not _is_content(_entry_at(tree, left.path, self._listing), left.content):
            raise ValueError(f"{left.path[:60]!r} is left out of a tree that does not have it")
        _check_word(left.why)
        return bool(left.content) and left.content not in self._held

    def _check_changes(self, tree: BlobId, snapshot: WorkspaceSnapshot) -> None:
        changes = snapshot.changes
        if len(changes) > MOST_CHANGES:
            raise ValueError(f"a snapshot lists more than {MOST_CHANGES} changes")
        if len({each.path for each in changes}) != len(changes):
            raise ValueError("a file is changed twice in one snapshot")
        if changes and snapshot.after == tree:
            raise ValueError("a snapshot lists changes and has the tree of the one before")
        if snapshot.after is not None and not _hash.fullmatch(snapshot.after):
            raise ValueError(f"{snapshot.after[:64]!r} is no tree")
        for each in changes:
            self._check_change(tree, each)

    def _check_change(self, tree: BlobId, change: SnapshotChange) -> None:
        _check_path(change.path)
        _check_word(change.by)
        entry = _entry_at(tree, change.path, self._listing)
        mode = 0 if entry is None else entry.mode
        content = "" if entry is None or entry.is_folder else entry.hash
        if (change.mode, change.content or "") != (mode, content):
            raise ValueError(f"the change of {change.path[:60]!r} is not what the tree has there")

    def _listing(self, digest: BlobId) -> dict[str, TreeEntry]:
        if digest not in self._listings:
            if digest not in self._held:
                raise ValueError(f"it does not hold {digest[:64]!r}")
            self._listings[digest] = entries_of(self._held[digest])
        return self._listings[digest]

    def _sum(self, tree: BlobId) -> _TreeSum:
        for digest, entries in _innermost_first(tree, self._listing, self._sums):
            paths = longest = lacking = 0
            for name, entry in entries.items():
                below = self._sums[BlobId(entry.hash)] if entry.is_folder and entry.hash else None
                length = len(name.encode())
                if below is not None:
                    length += 1 + below.longest
                    paths += below.paths
                    lacking += below.lacking
                elif entry.hash in self._held:
                    self.named.add(BlobId(entry.hash))
                elif entry.hash:
                    lacking += 1
                paths += 1
                longest = max(longest, length)
            if paths > MOST_PATHS:
                raise ValueError(f"a tree has more than {MOST_PATHS} files")
            if longest > LONGEST_PATH:
                raise ValueError(f"a tree has a path of more than {LONGEST_PATH} bytes")
            self.named.add(digest)
            self._sums[digest] = _TreeSum(paths, longest, lacking)
        return self._sums[tree]


# --- both --------------------------------------------------------------------------------


def _innermost_first(
    tree: BlobId, read: _ReadListing, done: Collection[BlobId]
) -> Iterator[tuple[BlobId, dict[str, TreeEntry]]]:
    """The listings of a tree that are not done yet, each once, those below a listing before it; the
    caller makes each one done.

    Without a call for each folder in another: a file can nest more of them than calls can be.
    """
    waiting = [tree]
    entered: set[BlobId] = set()
    while waiting:
        digest = waiting[-1]
        if digest in done:
            waiting.pop()
            continue
        entries = read(digest)
        below = [BlobId(each.hash) for each in entries.values() if each.is_folder and each.hash]
        if digest not in entered and below:
            entered.add(digest)
            waiting += [each for each in below if each not in done]
            continue
        waiting.pop()
        yield digest, entries


def _entry_at(tree: BlobId, path: str, read: _ReadListing) -> TreeEntry | None:
    *above, name = path.split("/")
    digest = tree
    for folder in above:
        entry = read(digest).get(folder)
        if entry is None or not entry.is_folder or not entry.hash:
            return None
        digest = BlobId(entry.hash)
    return read(digest).get(name)


def _is_content(entry: TreeEntry | None, content: BlobId | None) -> bool:
    """Whether a file has this content; a folder of which nothing is known has none."""
    if entry is None or (entry.is_folder and entry.hash):
        return False
    return entry.hash == (content or "")


def _check_path(path: str) -> None:
    parts = path.split("/") if len(path) <= LONGEST_PATH and "\0" not in path else [""]
    if not {"", ".", ".."}.isdisjoint(parts):
        raise ValueError(f"{path[:60]!r} is no path in a project")


def _check_word(word: str) -> None:
    if len(word) > _LONGEST_WORD or not word.isprintable():
        raise ValueError(f"{word[:60]!r} is no reason")


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _by_path(named: tuple[_PathContent, str]) -> str:
    return named[0][0]
