"""What is kept beside the logs: snapshots and blobs.

And what becomes of it when a session is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from weft.errors import Corrupt
from weft.ids import BlobId, SessionId
from weft.sha256 import sha256
from weft.store.base import KeptContent, Owner, Record, Snapshot
from weft.store.jsonl import files
from weft.store.jsonl import leases as leasing
from weft.store.jsonl import session_list as listing
from weft.store.jsonl.folder import JsonlFolder
from weft.store.jsonl.log_file import blobs_of
from weft.store.jsonl.paths import stream_name
from weft.store.tree_names import TreeNames, named_by_trees


class _Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a snapshot's file; the data follow."""

    seq: int
    version: str
    sha256: str


class _Hiding(msgspec.Struct, frozen=True):
    """What is left of a deleted session whose log is still read."""

    parent: SessionId | None = None


# -- snapshots


def save_snapshot(folder: JsonlFolder, stream: str, snapshot: Snapshot) -> None:
    """Keep the newest; one from beyond the stream's end is of a log that is not this one."""
    if snapshot.seq > folder.log(stream).last_seq or snapshot.seq < 1:
        return
    kept = _load(folder, stream)
    if kept is not None and kept.version == snapshot.version and kept.seq > snapshot.seq:
        return
    head = _Snapshot(
        seq=snapshot.seq,
        version=snapshot.version,
        sha256=sha256(snapshot.data).hexdigest(),
    )
    data = msgspec.json.encode(head) + b"\n" + snapshot.data
    files.replace(folder.places.snapshot(stream), data, durable=False)


def load_snapshot(folder: JsonlFolder, stream: str, version: str) -> Snapshot | None:
    """The snapshot of this version of the fold; one that a crash has spoilt counts as none."""
    kept = _load(folder, stream)
    return kept if kept is not None and kept.version == version else None


def _load(folder: JsonlFolder, stream: str) -> Snapshot | None:
    first, _, data = (files.content(folder.places.snapshot(stream)) or b"").partition(b"\n")
    try:
        head = msgspec.json.decode(first, type=_Snapshot)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if sha256(data).hexdigest() != head.sha256:
        return None
    return Snapshot(head.seq, head.version, data)


# -- blobs


def blob(folder: JsonlFolder, blob_id: BlobId) -> bytes | None:
    """The content of a blob, if it still is what its name says."""
    data = files.content(folder.places.blob(blob_id))
    if data is not None and sha256(data).hexdigest() != blob_id:
        raise Corrupt(f"blob {blob_id}", "its content is not what was stored")
    return data


def missing_blobs(folder: JsonlFolder, blob_ids: Collection[BlobId]) -> set[BlobId]:
    """Those of these that are not there."""
    return {each for each in blob_ids if not folder.places.blob(each).exists()}


def sweep_blobs(folder: JsonlFolder) -> int:
    """Drop blobs that no log names, found by reading every log; returns their bytes."""
    named = _named_blobs(folder)
    freed = 0
    for file in folder.places.blobs.glob("*/*"):
        # Half-written ones (`.new`) are in no log either, and go the same way.
        if stream_name(file.name) not in named:
            freed += 0 if file.suffix else file.stat().st_size
            file.unlink()
    return freed


def _named_blobs(folder: JsonlFolder) -> set[BlobId]:
    named: set[BlobId] = set()
    trees: set[BlobId] = set()
    for _, entry in folder.streams():
        names = blobs_of(Path(entry.path))
        named.update(names.plain, names.history)
        trees |= names.trees
    return named.union(*_named_by(folder, trees))


def _named_by(folder: JsonlFolder, trees: Iterable[BlobId]) -> TreeNames:
    return named_by_trees(trees, lambda blob_id: files.content(folder.places.blob(blob_id)))


def trim_history(
    folder: JsonlFolder, project_path: str, most_bytes: int, newest: BlobId | None
) -> int:
    """Drop the oldest file history of a project beyond so many bytes, found by reading every log;
    returns the bytes freed.

    The lines go on naming what was dropped; reading it gives None.
    """
    newest_first = _history_files(folder, project_path)
    kept = _named_by(folder, [newest] if newest else []).contents
    total, freed = sum(size for *_, size, path in newest_first if path.name in kept), 0
    if total > most_bytes:
        total, kept = 0, set()
    for _, size, path in newest_first:
        if path.name in kept:
            continue
        total += size
        if total > most_bytes and size:
            files.remove(path)
            freed += size
    return freed


def history_contents(folder: JsonlFolder, project_path: str) -> list[KeptContent]:
    """The contents that a project has as file history, the newest first."""
    found = _history_files(folder, project_path)
    return [KeptContent(BlobId(path.name), size) for _, size, path in found if size]


def _history_files(folder: JsonlFolder, project_path: str) -> list[tuple[int, int, Path]]:
    """The files of a project's file history, the newest first, each with its time and size; of what
    is needed besides the size is 0."""
    rows = {row.id: row.project_path for row in listing.all_rows(folder)}
    needed: set[BlobId] = set()
    history: set[BlobId] = set()
    for stream, entry in folder.streams():
        names = blobs_of(Path(entry.path))
        is_meant = rows.get(SessionId(stream_name(stream))) == project_path
        in_trees = _named_by(folder, names.trees)
        needed |= names.plain | in_trees.listings
        (history if is_meant else needed).update(names.history, in_trees.contents)
    newest_first: list[tuple[int, int, Path]] = []
    for blob_id in history:
        path = folder.places.blob(blob_id)
        if path.exists():
            about = path.stat()
            newest_first.append((about.st_mtime_ns, about.st_size, path))
            if blob_id in needed:
                newest_first[-1] = (about.st_mtime_ns, 0, path)
    return sorted(newest_first, reverse=True)


# -- deleting


def overwrite(folder: JsonlFolder, stream: str, records: Sequence[Record]) -> None:
    """Write the log of a stream anew, with these records in the place of those they replace.

    Raises:
        Corrupt: one of them is not there; nothing was changed.
    """
    log = folder.log(stream)
    for record in records:
        if not 1 <= record.seq <= log.last_seq:
            raise Corrupt(stream, "there is no such record", seq=record.seq)
    path = folder.places.log(stream)
    # By a new file: other processes see by its number that they have to read it anew.
    files.replace(path, log.rewritten(records), durable=True)
    # What a torn write left may hold the words, too.
    files.remove(path.with_suffix(".torn"))


def delete(folder: JsonlFolder, session_id: SessionId, owner: Owner) -> None:
    """Remove a session, or hide it while a fork still reads its log.

    The lease's file stays, with its fence: an earlier holder can never write under this name again.

    Raises:
        Owned: a living process elsewhere holds it.
    """
    held = leasing.holding(folder, session_id)
    known = listing.row(folder, session_id)
    log = folder.places.log(session_id)
    if not held.fence and known is None and not log.exists():
        return
    leasing.check_free(folder, session_id, held, owner)
    leasing.put(folder, session_id, leasing.LeaseFile(fence=held.fence))
    parent = known.parent_id if known is not None else _hidden_parent(folder, session_id)
    blobs: set[BlobId] = set()
    if log.exists() and _is_named(folder, session_id):
        hiding = msgspec.json.encode(_Hiding(parent))
        files.replace(folder.places.hiding(session_id), hiding, durable=True)
    else:
        blobs |= _remove_log(folder, session_id)
    for path in (
        folder.places.row(session_id),
        folder.places.draft(session_id),
        folder.places.snapshot(session_id),
        folder.places.wait(session_id),
    ):
        files.remove(path)
        # A crash between writing and renaming leaves the new content under this name.
        files.remove(path.with_name(f"{path.name}.new"))
    if parent is not None and not log.exists():
        blobs |= _remove_unnamed(folder, parent)
    _remove_blobs(folder, blobs)


def _remove_log(folder: JsonlFolder, session_id: SessionId) -> set[BlobId]:
    """Remove what was recorded; returns the blobs that it named."""
    log = folder.places.log(session_id)
    names = blobs_of(log) if log.exists() else None
    blobs = set[BlobId]() if names is None else names.plain | names.history
    if names is not None and names.trees:
        blobs.update(*_named_by(folder, names.trees))
    # The log goes first: what is left beside a log that is gone is never shown.
    files.remove(log, durable=True)
    files.remove(log.with_suffix(".torn"))
    files.remove(folder.places.hiding(session_id))
    return blobs


def _remove_blobs(folder: JsonlFolder, blobs: set[BlobId]) -> None:
    """Remove those of these that no log names any more, found by reading every log."""
    if not blobs:
        return
    left = blobs - _named_blobs(folder)
    for blob_id in left:
        files.remove(folder.places.blob(blob_id))


def _remove_unnamed(folder: JsonlFolder, session_id: SessionId) -> set[BlobId]:
    """Remove hidden logs that no fork reads any more, up the line; returns their blobs."""
    blobs: set[BlobId] = set()
    name: SessionId | None = session_id
    while name is not None and folder.places.hiding(name).exists() and not _is_named(folder, name):
        above = _hidden_parent(folder, name)
        blobs |= _remove_log(folder, name)
        name = above
    return blobs


def _is_named(folder: JsonlFolder, session_id: SessionId) -> bool:
    if any(row.parent_id == session_id for row in listing.all_rows(folder)):
        return True
    hidden = (stream_name(file.stem) for file in folder.places.hidden.iterdir())
    return any(_hidden_parent(folder, SessionId(name)) == session_id for name in hidden)


def _hidden_parent(folder: JsonlFolder, session_id: SessionId) -> SessionId | None:
    kept = files.content(folder.places.hiding(session_id))
    return msgspec.json.decode(kept, type=_Hiding).parent if kept else None
