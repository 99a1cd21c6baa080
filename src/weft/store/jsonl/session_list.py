"""Lists and search.  A list reads one small side file a session and decodes no fact.

The side file says for which size of the log it holds.  When it is missing, torn, or for another size, it is made again from
the log's newest line with a row; so it never has to be durable.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from weft.errors import Corrupt
from weft.ids import SessionId
from weft.store import words
from weft.store.base import SearchHit, SearchText, SessionRow, needs_lease
from weft.store.jsonl import files
from weft.store.jsonl.folder import JsonlFolder
from weft.store.jsonl.log_file import words_of
from weft.store.jsonl.paths import stream_name


class CachedRow(msgspec.Struct, frozen=True):
    """The side file: the row after so many bytes of the log."""

    size: int
    row: SessionRow | None = None


_decoder = msgspec.json.Decoder(CachedRow)


def keep_row(ground: JsonlFolder, stream: str, row: SessionRow | None) -> None:
    """Bring the side file up to date; with None the row stays and counts for the log's new size."""
    if not needs_lease(stream):
        return
    log = ground.log(stream)
    if row is None:
        kept = _kept(ground.places.row(stream))
        # A crash may have left a side file that is older than the newest row.
        is_newest = kept is not None and kept.size > log.row_at
        row = kept.row if kept is not None and is_newest else log.newest_row()
    # A side file that cannot be written is made again by the next list.
    with contextlib.suppress(OSError):
        files.scribble(ground.places.row(stream), msgspec.json.encode(CachedRow(log.size, row)))


def row(ground: JsonlFolder, session_id: SessionId) -> SessionRow | None:
    """The row of one session."""
    if ground.places.hiding(session_id).exists():
        return None
    try:
        size = os.stat(ground.places.log(session_id)).st_size
    except FileNotFoundError:
        size = 0
    return _row_at(ground, session_id, size)


def _row_at(ground: JsonlFolder, session_id: SessionId, size: int) -> SessionRow | None:
    kept = _kept(ground.places.row(session_id))
    if kept is not None and kept.size == size:
        return kept.row
    return _made_again(ground, session_id) if size else None


def _made_again(ground: JsonlFolder, session_id: SessionId) -> SessionRow | None:
    try:
        found = ground.log(session_id).newest_row()
    except Corrupt as error:
        return SessionRow(id=session_id, damaged=error.detail)
    keep_row(ground, session_id, found)
    return found


def _kept(path: Path) -> CachedRow | None:
    data = files.content(path)
    try:
        return _decoder.decode(data) if data else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def all_rows(ground: JsonlFolder) -> Iterator[SessionRow]:
    """Every row that is not hidden, in no order."""
    hidden = {file.stem for file in ground.places.hidden.iterdir()}
    sizes = {name: entry.stat().st_size for name, entry in ground.streams()}
    # A session that was marked damaged may have a side file and no log at all.
    sizes |= {file.stem: 0 for file in ground.places.rows.iterdir() if file.stem not in sizes}
    for name, size in sizes.items():
        stream = stream_name(name)
        if name not in hidden and needs_lease(stream):
            found = _row_at(ground, SessionId(stream), size)
            if found is not None:
                yield found


def rows(
    ground: JsonlFolder,
    *,
    project_path: str | None,
    query: str | None,
    limit: int,
    archived: bool,
    children: bool,
) -> list[SessionRow]:
    """The list of sessions, last active first.  Goes through the gate by itself, once for each log it has to read."""
    wanted = words.phrases(query or "")
    with ground.entered():
        found = [
            one
            for one in all_rows(ground)
            if (project_path is None or one.project_path == project_path)
            and (archived or not one.archived)
            and (children or not one.is_child)
        ]
    found.sort(key=lambda one: (one.last_active, one.id), reverse=True)
    if wanted:
        mentioning = (one for one in found if _mentions(ground, one, wanted))
        return list(itertools.islice(mentioning, limit))
    return found[:limit]


def _mentions(ground: JsonlFolder, one: SessionRow, wanted: list[str]) -> bool:
    title = words.indexed(one.title)
    missing = [phrase for phrase in wanted if not words.holds(title, phrase)]
    if not missing:
        return True
    spoken = [words.indexed(said.text) for said in _words(ground, ground.places.log(one.id))]
    return all(any(words.holds(index, phrase) for index in spoken) for phrase in missing)


def _words(ground: JsonlFolder, path: Path) -> list[SearchText]:
    """What was said in one log; empty when it is gone meanwhile."""
    with ground.entered():
        return words_of(path) if path.exists() else []


def search(ground: JsonlFolder, query: str, limit: int) -> list[SearchHit]:
    """Places where all the words were said, found by reading every log; goes through the gate once for each."""
    wanted = words.phrases(query)
    hits: list[SearchHit] = []
    if not wanted:
        return hits
    with ground.entered():
        hidden = {file.stem for file in ground.places.hidden.iterdir()}
        logs = [(name, Path(entry.path)) for name, entry in ground.streams() if name not in hidden]
    for name, path in logs:
        for said in _words(ground, path):
            index = words.indexed(said.text)
            if all(words.holds(index, phrase) for phrase in wanted):
                session_id = SessionId(stream_name(name))
                excerpt = words.excerpt(said.text, wanted)
                hits.append(SearchHit(session_id=session_id, node=said.node, excerpt=excerpt))
                if len(hits) == limit:
                    return hits
    return hits


def ids_with_prefix(ground: JsonlFolder, prefix: str, limit: int) -> list[SessionId]:
    """Ids that begin with `prefix`."""
    return sorted(one.id for one in all_rows(ground) if one.id.startswith(prefix))[:limit]


def mark_damaged(ground: JsonlFolder, session_id: SessionId, reason: str) -> None:
    """Write the reason into the side file."""
    if ground.places.hiding(session_id).exists():
        return
    try:
        size = os.stat(ground.places.log(session_id)).st_size
    except FileNotFoundError:
        size = 0
    known = row(ground, session_id) or SessionRow(id=session_id)
    marked = CachedRow(size, msgspec.structs.replace(known, damaged=reason))
    files.replace(ground.places.row(session_id), msgspec.json.encode(marked), durable=True)
