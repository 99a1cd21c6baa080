"""File history that is kept within a quota: which blobs go first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from weft.ids import BlobId
from weft.store.base import KeptContent


class HistoryRow(NamedTuple):
    """A blob that a stream names as file history."""

    kept_no: int
    blob_no: int
    size: int
    blob_id: str


def newest_first(rows: Iterable[HistoryRow]) -> list[KeptContent]:
    """Each content once, as the first of these rows has it."""
    found: dict[int, KeptContent] = {}
    for row in rows:
        found.setdefault(row.blob_no, KeptContent(BlobId(row.blob_id), row.size))
    return list(found.values())


def oldest_beyond(
    rows: Sequence[HistoryRow], most_bytes: int, needed: Collection[str]
) -> list[HistoryRow]:
    """Those of these rows, the newest first, that do not fit into so many bytes; what is needed is
    counted first and stays, unless it alone does not fit.
    """
    total = sum({row.blob_no: row.size for row in rows if row.blob_id in needed}.values())
    if total > most_bytes:
        total, needed = 0, ()
    dropped: list[HistoryRow] = []
    seen: set[int] = set()
    for row in rows:
        if row.blob_id in needed:
            continue
        # A blob that several streams name counts once.
        total += 0 if row.blob_no in seen else row.size
        seen.add(row.blob_no)
        if total > most_bytes:
            dropped.append(row)
    return dropped
