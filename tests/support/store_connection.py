"""A connection to a store's file beside the store's own."""

from __future__ import annotations

from pathlib import Path

import apsw


def open_connection(path: Path) -> apsw.Connection:
    """Waits for its turn, as every neighbour must: the store tends its log whenever nobody else writes."""
    db = apsw.Connection(str(path))
    db.set_busy_timeout(10_000)
    return db
