"""Sessions to files and back: the part of export and import that touches the disk."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

from anyio import to_thread

from weft.errors import UsageError
from weft.export import (
    LARGEST,
    ExportDocument,
    RestoredFacts,
    gather,
    parse,
    restore,
    to_html,
    to_json,
    to_jsonl,
    to_md,
    too_large,
)
from weft.ids import SessionId
from weft.runtime.snapshots.tree_blobs import TreeCollector, checked_blobs
from weft.sha256 import sha256
from weft.store import Store

TellMissing: TypeAlias = Callable[[tuple[str, ...]], None]
"""Takes what is not in an export, each with the reason."""
_WRITERS = {"json": to_json, "jsonl": to_jsonl, "md": to_md, "html": to_html}


async def export(
    session_id: SessionId,
    store: Store,
    format: str,
    path: str | os.PathLike[str] | None,
    *,
    files: bool = False,
    missing: TellMissing | None = None,
) -> str:
    """The session as text; with `path` also written there, whole or not at all.

    With `files`, the project's files at the end of each turn are in it; `missing` is called once,
    where some of them are not.

    Raises:
        UsageError: there is no such format, the file cannot be written, or it would have none of
            the files that were asked for.
    """
    if format not in _WRITERS:
        raise UsageError(f"no export format {format!r}; there are {', '.join(_WRITERS)}")
    if files and format not in ("json", "jsonl"):
        raise UsageError(f"an export as {format!r} is for reading and has no room for files")
    document = await gather(session_id, store, TreeCollector(store) if files else None)
    if files:
        _tell_missing(document, missing)
    text = await to_thread.run_sync(partial(_WRITERS[format], document))
    if path is not None:
        await to_thread.run_sync(_write, Path(path), text.encode())
    return text


def _tell_missing(document: ExportDocument, missing: TellMissing | None) -> None:
    """Say which files are not in a document.

    Raises:
        UsageError: it has none.
    """
    lost = document.left_out.get("snapshots", 0)
    if not document.files:
        raise UsageError(
            "the store has no snapshot of the project's files for this session, so there are none "
            "to export; export it without files"
        )
    named = {each.path: each.why for files in document.files for each in files.left_out}
    said = [f"{path} ({why})" for path, why in sorted(named.items())]
    if lost:
        said.append(f"{lost} of {lost + len(document.files)} snapshots, whose trees are gone")
    if said and missing is not None:
        missing(tuple(said))


async def read_export(path: str | os.PathLike[str]) -> tuple[RestoredFacts, str]:
    """The facts of the export in a file, and the SHA-256 of what it holds.

    Raises:
        UsageError: it cannot be read, or is no export.
        TooNew, Corrupt: a newer program wrote it; it is damaged.
    """

    def read() -> tuple[RestoredFacts, str]:
        name, data = os.fspath(path), _read(Path(path))
        return restore(parse(data, name), name, checked_blobs), sha256(data).hexdigest()

    return await to_thread.run_sync(read)


def _read(path: Path) -> bytes:
    """A regular file, and no more of it than may be imported (and one byte, to tell that there is
    more).
    """
    try:
        # Not blocking, because opening a pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise UsageError(f"{str(path)!r} is not a file")
            if about.st_size > LARGEST:
                raise UsageError(too_large(str(path)))
            return file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _write(path: Path, data: bytes) -> None:
    """Put the file in place in one step, readable by its owner alone: a conversation is private."""
    try:
        # In the same folder, for a rename does not cross file systems; `mkstemp` makes it 0600.
        handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                # Before the rename: after a power cut the name must not lead to an empty file.
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from error
