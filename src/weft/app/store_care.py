"""Care of the store that the application keeps: backup, vacuum, and a check of all that is in it.

What the file itself needs is in `store/sqlite/maintenance.py`; here its logs are folded as well.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from weft.errors import Corrupt, StoreUnavailable
from weft.events import decode
from weft.ids import SessionId
from weft.session import replay_log
from weft.store.location import copy_store, is_postgres, migrate_postgres
from weft.store.sqlite.maintenance import RecordReader, VacuumReport, backup, problems, vacuum

__all__ = [
    "StoreCheck",
    "VacuumReport",
    "backup",
    "checked",
    "copy_store",
    "is_postgres",
    "migrate_postgres",
    "vacuum",
]

SESSION = "ses_"
"""Begins the log of a session; others are those of projects."""


class StoreCheck(msgspec.Struct, kw_only=True):
    """What a check of a store has found."""

    path: str
    logs: int = 0
    facts: int = 0
    blobs: int = 0
    problems: list[str] = []


async def checked(path: Path) -> StoreCheck:
    """Check a store: the file, every blob, and every log from its first fact on.

    Raises:
        StoreUnavailable: it cannot be read at all, or is no store.
    """
    found = StoreCheck(path=str(path), problems=list(problems(path)))
    try:
        with closing(RecordReader(path)) as reader:
            found.blobs = reader.blob_count
            for stream, last in reader.streams.items():
                found.logs += 1
                found.facts += await _checked_log(stream, last, reader, found.problems)
    except Corrupt as error:
        if not any(each.startswith("the file: ") for each in found.problems):
            found.problems.append(f"the file: {error.detail}")
    return found


async def _checked_log(stream: str, last: int, reader: RecordReader, wrong: list[str]) -> int:
    """Fold one log; returns how many facts it has."""
    try:
        count = await _replayed(stream, reader)
    except Corrupt as error:
        wrong.append(f"log {stream}: {error.detail}")
    except StoreUnavailable:
        raise
    except Exception as error:  # whatever facts that were damaged do to the fold is damage
        wrong.append(f"log {stream}: it cannot be folded ({type(error).__name__}: {error})")
    else:
        if count != last:
            wrong.append(f"log {stream}: it ends with fact {count}, and {last} were stored")
        return count
    return 0


async def _replayed(stream: str, reader: RecordReader) -> int:
    if stream.startswith(SESSION):
        return await replay_log(SessionId(stream), reader)
    seq = 0
    while records := await reader.read(stream, after=seq):
        for record in records:
            if record.seq != seq + 1:
                raise Corrupt(stream, f"fact {seq + 1} is missing", seq=seq + 1)
            decode(record.body, stream=stream, seq=record.seq)
            seq = record.seq
    return seq
