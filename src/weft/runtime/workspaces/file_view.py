"""Files and blobs for those who look at a session: read under the rules that mentions and the tool
`read` are under.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.events import AnyFact
from weft.ids import BlobId, NodeId
from weft.messages import Image
from weft.project.masked_text import masked_in_pieces
from weft.project.mentions import JudgeRead, MentionReader
from weft.redact import Redactor
from weft.session.rewind.plan import PathSpan, spans
from weft.session.rewind.work import changes_since
from weft.state import SessionState
from weft.store import Store
from weft.tools.text import decode
from weft.workspace import FileState

BLOB_ID_LENGTH: Final = 64
"""Hexadecimal digits of a SHA-256."""


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, as it may be shown."""

    path: str
    """Relative to the project; absolute when it lies outside."""
    text: str | None
    """What it says, with secrets masked; None when it is no text."""
    data: bytes = b""
    """What it holds when it is no text."""
    media_type: str = "text/plain"
    size: int = 0
    """Its bytes on the disk."""


async def project_file(
    reader: MentionReader, path: str, state: SessionState, store: Store, at: NodeId | None
) -> ProjectFile:
    """A file as it is now, or as it was when the message `at` was done.

    Raises:
        UsageError: it may not be read, was not there, or is not kept any more.
    """
    earlier = None
    if at is not None:
        earlier = partial(_as_it_was, await changes_since(state, at, store), path, at, store)
    found, shown = await reader.content(path, earlier)
    first = shown[0]
    # As it is on the disk: models are sent a smaller one where it is large, screens need not be.
    if isinstance(first, Image):
        return ProjectFile(
            path=found.path,
            text=None,
            data=found.data,
            media_type=first.media_type,
            size=found.size,
        )
    return ProjectFile(path=found.path, text=first.text, size=found.size)


async def _as_it_was(
    changed: dict[str, PathSpan], said: str, at: NodeId, store: Store, path: str
) -> FileState | None:
    span = changed.get(path)
    if span is None:
        return None  # the session has not changed it since
    target = span.target
    if not target.exists or target.is_folder:
        raise UsageError(f"there was no file {said!r} at {at!r}")
    data = None if target.content is None else await store.blob(target.content)
    if data is None or target.content is None:
        why = span.missing or "the file history had no room for it"
        raise UsageError(f"what {said!r} held at {at!r} is not kept: {why}")
    return FileState(path=path, data=data, mode=target.mode, hash=target.content, size=len(data))


# --- blobs -----------------------------------------------------------------------------


async def shown_blob(blob_id: BlobId, stores: Iterable[Store], redact: Redactor) -> bytes:
    """The content of a blob; secrets in a text are masked.

    Raises:
        UsageError: no store has it.
    """
    is_name = len(blob_id) == BLOB_ID_LENGTH and set(blob_id) <= set("0123456789abcdef")
    for store in stores if is_name else ():
        data = await store.blob(blob_id)
        if data is not None:
            text = decode(data)
            # A picture or another binary is what it is: in those nothing can be masked.
            if text is None:
                return data
            masked = await masked_in_pieces(redact, text.text)
            return data if masked == text.text else masked.encode()
    raise UsageError(f"there is no blob {blob_id!r}")


def refuse_forbidden(
    blob_id: BlobId, facts: Iterable[AnyFact], judge: JudgeRead, root: str
) -> None:
    """Refuse a blob that is what a file held which may not be read.

    Raises:
        UsageError: it is one.
    """
    for path, span in spans(facts).items():
        if blob_id in (span.target.content, span.left.content):
            decision = judge(path if path.startswith("/") else f"{root}/{path}")
            if decision.verdict != "allow":
                raise UsageError(f"this blob is of {path!r}, which is not read: {decision.reason}")
