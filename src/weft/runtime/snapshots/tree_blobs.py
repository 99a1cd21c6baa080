"""All that a tree of files names, for exports: a file that goes elsewhere must hold what its hashes
mean.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ids import BlobId
from weft.store import Store
from weft.workspace.history.project_tree import entries_of


async def stored_blobs(tree: BlobId, store: Store) -> dict[BlobId, bytes] | None:
    """The listings and contents of a stored tree; None where one of them is not stored."""
    held: dict[BlobId, bytes] = {}
    waiting = [(tree, True)]
    while waiting:
        blob_id, is_listing = waiting.pop()
        if blob_id in held:
            continue
        data = await store.blob(blob_id)
        if data is None:
            return None
        held[blob_id] = data
        waiting += _named(data) if is_listing else ()
    return held


def named_blobs(tree: BlobId, held: Mapping[BlobId, bytes]) -> set[BlobId]:
    """The listings and contents that a tree names.

    Raises:
        ValueError: one of them is not among those that are held, or is no listing.
    """
    known: set[BlobId] = set()
    waiting = [(tree, True)]
    while waiting:
        blob_id, is_listing = waiting.pop()
        if blob_id in known:
            continue
        if blob_id not in held:
            # Taken on trust, it would be what another session has under this hash.
            raise ValueError(f"it does not hold {blob_id[:64]!r}")
        known.add(blob_id)
        waiting += _named(held[blob_id]) if is_listing else ()
    return known


def _named(listing: bytes) -> list[tuple[BlobId, bool]]:
    return [
        (BlobId(entry.hash), entry.is_folder)
        for entry in entries_of(listing).values()
        if entry.hash
    ]
