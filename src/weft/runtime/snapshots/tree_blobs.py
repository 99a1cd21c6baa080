"""All that a tree of files names, for exports: a file that goes elsewhere must hold what its hashes
mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from weft.events import LeftOutFile
from weft.ids import BlobId
from weft.store import Store
from weft.workspace.history.project_tree import entries_of


class _NamedBlob(NamedTuple):
    """What a tree names at a path."""

    path: str
    blob_id: BlobId
    is_listing: bool


class _TreeWalk:
    """A way through a tree, past the contents that were left out."""

    def __init__(self, tree: BlobId, left_out: Iterable[tuple[str, BlobId | None]]) -> None:
        self._left_out = frozenset(left_out)
        self._above = {folder for path, _ in self._left_out for folder in _folders_above(path)}
        self._waiting = [_NamedBlob("", tree, is_listing=True)]
        self._seen: set[tuple[BlobId, bool]] = set()
        self.passed: list[_NamedBlob] = []
        """What was left out."""

    def __iter__(self) -> Iterator[_NamedBlob]:
        """Each blob that must be there; `enter` goes on in one."""
        while self._waiting:
            named = self._waiting.pop()
            if not named.is_listing and (named.path, named.blob_id) in self._left_out:
                self.passed.append(named)
            elif self._is_new(named):
                yield named

    def _is_new(self, named: _NamedBlob) -> bool:
        # A few listings that name one another twice are more paths than can be walked.  Only where
        # something was left out below does the path matter.
        if named.is_listing and named.path in self._above:
            return True
        key = (named.blob_id, named.is_listing)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def enter(self, named: _NamedBlob, data: bytes) -> None:
        """Go on in what a blob holds."""
        for entry in entries_of(data).values() if named.is_listing else ():
            path = f"{named.path}/{entry.name}" if named.path else entry.name
            if entry.hash:
                self._waiting.append(_NamedBlob(path, BlobId(entry.hash), entry.is_folder))


async def stored_blobs(
    tree: BlobId, store: Store, left_out: Mapping[tuple[str, BlobId | None], str]
) -> tuple[dict[BlobId, bytes], tuple[LeftOutFile, ...]] | None:
    """The listings and contents of a stored tree, and those of its files whose content is among
    those that were left out; None where another one is not stored.
    """
    held: dict[BlobId, bytes] = {}
    walk = _TreeWalk(tree, left_out)
    for named in walk:
        data = await store.blob(named.blob_id)
        if data is None:
            return None
        held[named.blob_id] = data
        walk.enter(named, data)
    return held, tuple(
        LeftOutFile(path=path, why=left_out[path, content], content=content)
        for path, content, _ in walk.passed
    )


def named_blobs(
    tree: BlobId, held: Mapping[BlobId, bytes], left_out: Iterable[LeftOutFile]
) -> set[BlobId]:
    """The listings and contents that a tree names, without those that were left out: these are
    read nowhere (`stored_content`).

    Raises:
        ValueError: one of them is not among those that are held, or is no listing.
    """
    known: set[BlobId] = set()
    walk = _TreeWalk(tree, ((each.path, each.content) for each in left_out))
    for named in walk:
        if named.blob_id not in held:
            # Taken on trust, it would be what another session has under this hash.
            raise ValueError(f"it does not hold {named.blob_id[:64]!r}")
        known.add(named.blob_id)
        walk.enter(named, held[named.blob_id])
    return known


def _folders_above(path: str) -> Iterator[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
