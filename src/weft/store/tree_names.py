"""What trees of files name: listings and contents, found from the first listing of each.

A session names the trees of its snapshots; the listings and contents in them are named by the
listings alone.  So a store keeps each once for a project, however many sessions have it, and finds
by this walk what may go with a session.  The form of a listing is in `docs/formats/facts.md`.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from weft.ids import BlobId


class TreeNames(NamedTuple):
    """What some trees name."""

    listings: set[BlobId]
    """The trees themselves too."""
    contents: set[BlobId]


def named_by_trees(trees: Iterable[BlobId], load: Callable[[BlobId], bytes | None]) -> TreeNames:
    """All that these trees name, as far as it is stored; each listing is read once."""
    found = TreeNames(set(), set())
    waiting = list(trees)
    while waiting:
        digest = waiting.pop()
        if digest in found.listings:
            continue
        found.listings.add(digest)
        for is_folder, blob_id in listing_entries(load(digest)):
            if is_folder:
                waiting.append(blob_id)
            else:
                found.contents.add(blob_id)
    return found


def listing_entries(data: bytes | None) -> list[tuple[bool, BlobId]]:
    """What a listing names: whether each is a folder, and its blob."""
    try:
        listed: Any = [] if data is None else msgspec.json.decode(data)
        # What is no listing names nothing: it may come from an import.
        return [
            (stat.S_ISDIR(mode & 0o177777), BlobId(blob_id))
            for _, mode, blob_id in listed
            if blob_id
        ]
    except (msgspec.MsgspecError, TypeError, ValueError):
        return []
