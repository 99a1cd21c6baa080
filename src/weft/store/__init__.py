"""Where facts are kept: the `Store` contract and its implementations.

Moves bytes, grants leases, keeps rows, blobs, drafts and snapshots.  Folds nothing and decodes no
fact.  The stores on disk are reached by their own module (`weft.store.sqlite`, `weft.store.jsonl`),
so that only the one in use is imported; `weft.store.location` opens the one that a name or a path
stands for.

For a store of your own there are the parts that ours share: the checks of appends and leases,
followers that sleep on a `FollowerBell`, drafts put together from chunks, and the way that
search reads text (`words`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.store import search_text as words
from weft.store.address import check_address
from weft.store.base import (
    LOOKS_READER,
    PROJECT_STREAM,
    READER_VERSION,
    Append,
    Blob,
    Draft,
    DraftCall,
    DraftChunk,
    Lease,
    LeaseLiveness,
    NodePlace,
    Owner,
    Record,
    RecordStream,
    RowPlace,
    SearchHit,
    SearchText,
    SessionRow,
    Snapshot,
    Store,
    StoreHost,
    needs_lease,
    project_stream,
)
from weft.store.checks import check_appends, check_leasable, check_place, check_reader
from weft.store.drafts import DraftPiece, ends_draft, joined_drafts
from weft.store.follower import FollowerBell, RecordFollower

if TYPE_CHECKING:  # loaded when they are first used
    from weft.store.lost_answer import AppendLog, append_once, is_stored, settle_append
    from weft.store.memory import MemoryData, MemoryStore

__all__ = [
    "LOOKS_READER",
    "PROJECT_STREAM",
    "READER_VERSION",
    "Append",
    "AppendLog",
    "Blob",
    "Draft",
    "DraftCall",
    "DraftChunk",
    "DraftPiece",
    "FollowerBell",
    "Lease",
    "LeaseLiveness",
    "MemoryData",
    "MemoryStore",
    "NodePlace",
    "Owner",
    "Record",
    "RecordFollower",
    "RecordStream",
    "RowPlace",
    "SearchHit",
    "SearchText",
    "SessionRow",
    "Snapshot",
    "Store",
    "StoreHost",
    "append_once",
    "check_address",
    "check_appends",
    "check_leasable",
    "check_place",
    "check_reader",
    "ends_draft",
    "is_stored",
    "joined_drafts",
    "needs_lease",
    "project_stream",
    "settle_append",
    "words",
]

_HOMES = {
    "AppendLog": "lost_answer",
    "append_once": "lost_answer",
    "is_stored": "lost_answer",
    "settle_append": "lost_answer",
    "MemoryData": "memory",
    "MemoryStore": "memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
