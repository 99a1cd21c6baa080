"""Care of the store that the application keeps: backup, vacuum, and a check of all that is in it.

What the file itself needs is in `store/sqlite/maintenance.py`; here its logs are folded as well.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from weft.errors import Corrupt
from weft.events import decode
from weft.ids import SessionId
from weft.session import replay_log
from weft.store.sqlite.maintenance import RecordReader, VacuumReport, backup, problems, vacuum

__all__ = ["StoreCheck", "VacuumReport", "backup", "checked", "vacuum"]

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
    """Check a store: the file, every blob, and every log from its first fact on."""
    found = StoreCheck(path=str(path), problems=list(problems(path)))
    with closing(RecordReader(path)) as reader:
        found.blobs = reader.blob_count
        for stream in reader.streams:
            found.logs += 1
            try:
                found.facts += await _replayed(stream, reader)
            except Corrupt as error:
                found.problems.append(f"log {stream}: {error.detail}")
    return found


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
