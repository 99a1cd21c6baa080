"""Queries on a connection, with every cursor drained.

A cursor that is left open holds a read transaction, and statements behind the first row would not
run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw


def fetch(db: apsw.Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of one statement; strict tables make sure of their types."""
    return db.execute(sql, values).fetchall()
