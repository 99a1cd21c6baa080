"""Drafts beside a log: one file a session, a chunk on each line.

The file and the log are not written together.  So each chunk says how long the log was, and counts
only when no later line of the log has ended its draft: a crash may leave chunks that are over.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import msgspec

from weft.file_io import write_all
from weft.ids import NodeId
from weft.store.base import Draft, DraftChunk
from weft.store.drafts import DraftPiece, joined_drafts
from weft.store.fsync import make_durable_folder
from weft.store.jsonl import files
from weft.store.jsonl import leases as leasing
from weft.store.jsonl.folder import JsonlFolder
from weft.store.jsonl.log_file import ended_drafts


class _Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One chunk of a draft.

    Void when the log has a line at or behind `log_size` that ended the draft, or a later chunk of
    its node is a `restart`.
    """

    log_size: int
    node: NodeId
    part: str
    chunk: str
    index: int = 0
    tool: str = ""
    restart: bool = False


def save_draft(folder: JsonlFolder, chunk: DraftChunk, process_id: str) -> None:
    """Add a chunk; under an old fence nothing happens."""
    held = leasing.holding(folder, chunk.stream)
    if held.fence != chunk.fence or held.process_id != process_id:
        return
    path = folder.places.draft(chunk.stream)
    stored = _Chunk(
        log_size=folder.log(chunk.stream).size,
        node=chunk.node,
        part=chunk.part,
        chunk=chunk.chunk,
        index=chunk.index,
        tool=chunk.tool,
        restart=chunk.restart,
    )
    make_durable_folder(path.parent)
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, msgspec.json.encode(stored) + b"\n")
    finally:
        os.close(fd)


def load_drafts(folder: JsonlFolder, stream: str) -> list[Draft]:
    """The drafts in flight, as far as their chunks are whole."""
    log = folder.log(stream)
    chunks = [each for each in _chunks(folder, stream) if each.log_size > log.dropped_at]
    if not chunks:
        return []
    ended = ended_drafts(log.path, min(each.log_size for each in chunks))
    kept: list[_Chunk] = []
    for each in chunks:
        if each.log_size <= ended.get(each.node, -1):
            continue
        if each.restart:
            kept = [earlier for earlier in kept if earlier.node != each.node]
        if each.chunk:
            kept.append(each)
    return joined_drafts(
        DraftPiece(each.node, each.part, each.chunk, each.index, each.tool) for each in kept
    )


def _chunks(folder: JsonlFolder, stream: str) -> Iterator[_Chunk]:
    data = files.content(folder.places.draft(stream)) or b""
    for line in data.splitlines(keepends=True):
        try:
            yield msgspec.json.decode(line, type=_Chunk)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return


def forget_drafts(folder: JsonlFolder, stream: str, nodes: Collection[NodeId]) -> None:
    """Leave out the drafts of these nodes, which the log has ended, or the file would only grow."""
    path = folder.places.draft(stream)
    chunks = list(_chunks(folder, stream))
    left = [each for each in chunks if each.node not in nodes]
    if not left:
        files.remove(path)
    elif len(left) < len(chunks):
        files.replace(
            path, b"".join(msgspec.json.encode(each) + b"\n" for each in left), durable=False
        )
