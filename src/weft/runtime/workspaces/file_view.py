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
from weft.runtime.snapshots.node_files import FileAt, files_at, has_path, stored_content
from weft.session import node_at
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
        past = _PastFiles(at, state, store, await changes_since(state, at, store))
        earlier = partial(past.read, path)
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


def message_at(state: SessionState, at: str | int) -> NodeId:
    """The message of this id, or at this index of the history.

    Raises:
        UsageError: there is none.
    """
    node = node_at(state, at)
    if node is None:
        raise UsageError("files are known at a message, and this is before the first")
    return node


class _PastFiles:
    """Files as they were when a message was done."""

    def __init__(
        self, at: NodeId, state: SessionState, store: Store, changed: dict[str, PathSpan]
    ) -> None:
        self._at = at
        self._state = state
        self._store = store
        self._changed = changed
        """What the session has changed since."""

    async def read(self, said: str, path: str) -> FileState | None:
        """The file, by the path relative to the project; None when it is still what it was."""
        # The snapshot first: what the session changed since may have been the user's by then.
        found = await self._in_snapshot(path)
        span = self._changed.get(path)
        if found is not None and not found.is_folder:
            return await self._content(said, path, found)
        if span is None:
            # No snapshot knows what is ignored; what the last one knows was made since.
            if found is None and await self._is_known_now(path):
                raise UsageError(f"there was no file {said!r} at {self._at!r}")
            return None
        target = span.target
        if not target.exists or target.is_folder:
            raise UsageError(f"there was no file {said!r} at {self._at!r}")
        then = FileAt(mode=target.mode, content=target.content, why=span.missing)
        return await self._content(said, path, then)

    async def _in_snapshot(self, path: str) -> FileAt | None:
        """A file that only the user may have changed since."""
        if not self._state.files.snapshots:
            return None  # the session is from before there were any, or has changed nothing
        return (await files_at(self._at, self._state, self._store)).files.get(path)

    async def _is_known_now(self, path: str) -> bool:
        return await has_path(self._state.files.tree, path, self._store)

    async def _content(self, said: str, path: str, then: FileAt) -> FileState:
        data = await stored_content(then, self._store)
        if data is None or then.content is None:
            why = then.why or "the file history had no room for it"
            raise UsageError(f"what {said!r} held at {self._at!r} is not kept: {why}")
        return FileState(path=path, data=data, mode=then.mode, hash=then.content, size=len(data))


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
    blob_id: BlobId, facts: Iterable[AnyFact], seen: Iterable[str], judge: JudgeRead, root: str
) -> None:
    """Refuse a blob that is what a file held which may not be read; `seen` are the paths at which
    snapshots have it.

    Raises:
        UsageError: it is one.
    """
    held = {
        path
        for path, span in spans(facts).items()
        if blob_id in (span.target.content, span.left.content)
    }
    for path in sorted(held.union(seen)):
        decision = judge(path if path.startswith("/") else f"{root}/{path}")
        if decision.verdict != "allow":
            raise UsageError(f"this blob is of {path!r}, which is not read: {decision.reason}")
