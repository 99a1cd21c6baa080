"""Files and blobs for those who look at a session: read under the rules that mentions and the tool
`read` are under.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.ids import BlobId, NodeId
from weft.messages import File, Image
from weft.project.masked_text import masked_in_pieces
from weft.project.mentions import MentionReader
from weft.redact import Redactor
from weft.runtime.snapshots.node_files import FileAt, PathAt, file_at, stored_content
from weft.session import node_at
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
    """`inode/symlink` of a link at a message, whose target is the text."""
    size: int = 0
    """Its bytes on the disk."""
    is_exact: bool = True
    """False of a file at a message whose turn has no snapshot: it may have been changed from
    outside in between."""


async def project_file(reader: MentionReader, path: str) -> ProjectFile:
    """A file as it is now.

    Raises:
        UsageError: it may not be read, or is not there.
    """
    return _as_shown(*await reader.content(path))


async def past_file(
    reader: MentionReader, path: str, state: SessionState, store: Store, at: NodeId
) -> ProjectFile:
    """A file as it was when the message `at` was done: what the log says, whatever is on the disk
    by now.  A link is shown as its target and never followed.

    Raises:
        UsageError: it may not be read, was not there, is not known, or is not kept any more.
    """
    name = await reader.allowed_name(path)
    found = await _PastFile(path, name, at, state, store).find()
    if found.link is not None:
        return ProjectFile(
            path=name,
            text=found.link,
            media_type="inode/symlink",
            size=found.state.size,
            is_exact=found.is_exact,
        )
    shown = _as_shown(found.state, await reader.shown(found.state, path))
    return msgspec.structs.replace(shown, is_exact=found.is_exact)


def _as_shown(found: FileState, shown: tuple[Image | File, ...]) -> ProjectFile:
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


class _FoundFile(msgspec.Struct, frozen=True):
    """What a file was."""

    state: FileState
    is_exact: bool
    link: str | None
    """Where it led, when it was a link."""


class _PastFile:
    """One file as it was when a message was done."""

    def __init__(self, said: str, path: str, at: NodeId, state: SessionState, store: Store) -> None:
        self._said = said
        self._path = path
        self._at = at
        self._state = state
        self._store = store

    async def find(self) -> _FoundFile:
        # The snapshot first, and alone where it is of the message's own turn: what the session
        # found there later may have been the user's by then.
        is_inside = not self._path.startswith("/")
        known = await file_at(self._path, self._at, self._state, self._store) if is_inside else None
        if known is not None and known.file is not None:
            return await self._content(known.file, is_exact=known.is_exact)
        if known is not None and known.is_exact:
            raise self._was_not_there(known)
        found = await self._found_later()
        if found is not None:
            return await self._content(found, is_exact=False)
        if known is not None:
            raise self._was_not_there(known)
        raise UsageError(
            f"what {self._said!r} held at {self._at!r} is not known: no snapshot has it "
            "(the project's files are looked at when a turn has an effect)"
        )

    async def _found_later(self) -> FileAt | None:
        """What the session found there when it next changed it; None where it did not."""
        span = (await changes_since(self._state, self._at, self._store)).get(self._path)
        if span is None:
            return None
        if not span.target.exists:
            raise UsageError(f"there was no file {self._said!r} at {self._at!r}")
        return FileAt(mode=span.target.mode, content=span.target.content, why=span.missing)

    def _was_not_there(self, known: PathAt) -> UsageError:
        start = f"there was no file {self._said!r} at {self._at!r}"
        for folder, found in known.above.items():
            if found.is_link:
                return UsageError(f"{start}: {folder!r} was a link, and links are not followed")
        if known.unknown:
            return UsageError(
                f"what {self._said!r} held at {self._at!r} is not known: the snapshot does not "
                f"say what was in {known.unknown[0]!r}"
            )
        return UsageError(f"{start}, or it was ignored: ignored files are in no snapshot")

    async def _content(self, then: FileAt, *, is_exact: bool) -> _FoundFile:
        if then.is_folder:
            raise UsageError(f"{self._said!r} was a folder at {self._at!r}, not a file")
        data = await stored_content(then, self._store)
        if data is None or then.content is None:
            why = then.why or "the file history had no room for it"
            raise UsageError(f"what {self._said!r} held at {self._at!r} is not kept: {why}")
        state = FileState(
            path=self._path, data=data, mode=then.mode, hash=then.content, size=len(data)
        )
        link = data.decode(errors="replace") if then.is_link else None
        return _FoundFile(state, is_exact, link)


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
