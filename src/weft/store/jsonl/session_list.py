"""Lists and search.  A list reads one small side file a session and decodes no fact.

The side file says for which size of the log it holds.  When it is missing, torn, or for another
size, it is made again from the log's newest line with a row; so it never has to be durable.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from weft.errors import Corrupt
from weft.ids import SessionId
from weft.store import words
from weft.store.base import SearchHit, SearchText, SessionRow, due_rows, needs_lease
from weft.store.jsonl import files
from weft.store.jsonl.folder import JsonlFolder
from weft.store.jsonl.log_file import words_of
from weft.store.jsonl.paths import stream_name
from weft.store.session_rows import RowQuery, found_ids, hits


class CachedRow(msgspec.Struct, frozen=True):
    """The side file: the row after so many bytes of the log."""

    size: int
    row: SessionRow | None = None


_decoder = msgspec.json.Decoder(CachedRow)


def keep_row(folder: JsonlFolder, stream: str, row: SessionRow | None) -> None:
    """Bring the side file up to date; with None the row stays and counts for the log's new size."""
    if not needs_lease(stream):
        return
    log = folder.log(stream)
    if row is None:
        kept = _kept(folder.places.row(stream))
        # A crash may have left a side file that is older than the newest row.
        is_newest = kept is not None and kept.size > log.row_at
        row = kept.row if kept is not None and is_newest else log.newest_row()
    # A side file that cannot be written is made again by the next list.
    with contextlib.suppress(OSError):
        files.scribble(folder.places.row(stream), msgspec.json.encode(CachedRow(log.size, row)))


def row(folder: JsonlFolder, session_id: SessionId) -> SessionRow | None:
    """The row of one session."""
    if folder.places.hiding(session_id).exists():
        return None
    try:
        size = os.stat(folder.places.log(session_id)).st_size
    except FileNotFoundError:
        size = 0
    return _row_at(folder, session_id, size)


def _row_at(folder: JsonlFolder, session_id: SessionId, size: int) -> SessionRow | None:
    kept = _kept(folder.places.row(session_id))
    if kept is not None and kept.size == size:
        return kept.row
    return _made_again(folder, session_id) if size else None


def _made_again(folder: JsonlFolder, session_id: SessionId) -> SessionRow | None:
    try:
        found = folder.log(session_id).newest_row()
    except Corrupt as error:
        return SessionRow(id=session_id, damaged=error.detail)
    keep_row(folder, session_id, found)
    return found


def _kept(path: Path) -> CachedRow | None:
    data = files.content(path)
    try:
        return _decoder.decode(data) if data else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def all_rows(folder: JsonlFolder) -> Iterator[SessionRow]:
    """Every row that is not hidden, in no order."""
    hidden = {file.stem for file in folder.places.hidden.iterdir()}
    # One stat for each session, no log is opened: the side file names the size that it holds for.
    sizes = {name: entry.stat().st_size for name, entry in folder.streams()}
    # A session that was marked damaged may have a side file and no log at all.
    sizes |= {file.stem: 0 for file in folder.places.rows.iterdir() if file.stem not in sizes}
    for name, size in sizes.items():
        stream = stream_name(name)
        if name not in hidden and needs_lease(stream):
            found = _row_at(folder, SessionId(stream), size)
            if found is not None:
                yield found


def rows(folder: JsonlFolder, wanted: RowQuery) -> list[SessionRow]:
    """A list of sessions.  Goes through the lock by itself, once for each log it has to read."""
    with folder.entered():
        found = list(all_rows(folder))
    return wanted.page(
        found, lambda name: (index for _, index in _said(folder, folder.places.log(name)))
    )


def search(folder: JsonlFolder, query: str, limit: int) -> list[SearchHit]:
    """Places where all the words were said, found by reading every log.

    Goes through the lock once for each.
    """
    with folder.entered():
        hidden = {file.stem for file in folder.places.hidden.iterdir()}
        logs = [(name, Path(entry.path)) for name, entry in folder.streams() if name not in hidden]
    said = (
        (SessionId(stream_name(name)), each, index)
        for name, path in logs
        for each, index in _said(folder, path)
    )
    return hits(query, limit, said)


def _said(folder: JsonlFolder, path: Path) -> Iterator[tuple[SearchText, str]]:
    """What was said in one log, and `indexed`; nothing when it is gone meanwhile."""
    # The lock is taken for each file and not for the whole search: appends go on in between.
    with folder.entered():
        found = words_of(path) if path.exists() else []
    return ((each, words.indexed(each.text)) for each in found)


def mark_wait(folder: JsonlFolder, stream: str) -> None:
    """Let `due` look at the row of this session from now on."""
    path = folder.places.wait(stream)
    if not path.exists():
        files.replace(path, b"", durable=True)


def due(
    folder: JsonlFolder, before: float, project_path: str | None, limit: int
) -> list[SessionRow]:
    """Sessions whose wait is over by this time; reads the rows of those that wait alone."""
    if not folder.places.waits.exists():
        return []
    names = [stream_name(file.name) for file in folder.places.waits.iterdir()]
    found = (row(folder, SessionId(name)) for name in names)
    return due_rows((one for one in found if one is not None), before, project_path)[:limit]


def ids_with_prefix(folder: JsonlFolder, prefix: str, limit: int) -> list[SessionId]:
    """Ids that begin with `prefix`."""
    return found_ids(all_rows(folder), prefix, limit)


def mark_damaged(folder: JsonlFolder, session_id: SessionId, reason: str) -> None:
    """Write the reason into the side file."""
    if folder.places.hiding(session_id).exists():
        return
    try:
        size = os.stat(folder.places.log(session_id)).st_size
    except FileNotFoundError:
        size = 0
    known = row(folder, session_id) or SessionRow(id=session_id)
    marked = CachedRow(size, msgspec.structs.replace(known, damaged=reason))
    files.replace(folder.places.row(session_id), msgspec.json.encode(marked), durable=True)
