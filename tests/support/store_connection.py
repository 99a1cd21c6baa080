"""A second connection to a store's file."""

from __future__ import annotations

from pathlib import Path

import apsw


def open_connection(path: Path) -> apsw.Connection:
    """Open one that waits for locks: the store checkpoints its log whenever no other connection
    writes.
    """
    db = apsw.Connection(str(path))
    db.set_busy_timeout(10_000)
    return db
