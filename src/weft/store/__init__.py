"""Where facts are kept: the `Store` contract and its implementations.

Moves bytes, grants leases, keeps rows, blobs, drafts and snapshots.  Folds nothing and decodes no fact.  The stores on
disk are reached by their own module (`weft.store.sqlite`, `weft.store.jsonl`), so that only the one in use is imported.
"""

from weft.store.base import (
    PROJECT_STREAM,
    READER_VERSION,
    Append,
    Blob,
    Draft,
    DraftChunk,
    Followed,
    Hit,
    Lease,
    Owner,
    Record,
    Said,
    SessionRow,
    Snapshot,
    Store,
    needs_lease,
)
from weft.store.memory import MemoryData, MemoryStore

__all__ = [
    "PROJECT_STREAM",
    "READER_VERSION",
    "Append",
    "Blob",
    "Draft",
    "DraftChunk",
    "Followed",
    "Hit",
    "Lease",
    "MemoryData",
    "MemoryStore",
    "Owner",
    "Record",
    "Said",
    "SessionRow",
    "Snapshot",
    "Store",
    "needs_lease",
]
