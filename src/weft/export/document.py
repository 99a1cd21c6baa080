"""Export document: the conversation of a session as one value, which an export writes and an import
reads.

`docs/formats/export.md` describes every field.  The value is complete and stands alone: nodes that
a fork shares with another log are written in full, and what the store keeps as blobs is inside.  It
holds the conversation and nothing else, unless the project's files were asked for; what the session
had besides is only counted, in `left_out`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from weft.events import KeptRecord, LeftOutFile, SnapshotChange, StoredReason, Todo
from weft.ids import BlobId, CallUid, NodeId, SessionId, TurnId
from weft.messages import Image, Part, Role, Usage

FORMAT: Final = "weft-session"
"""The word by which an export is known."""
TRANSCRIPT: Final = "Weft transcript"
"""The words by which an export for reading (Markdown, HTML) is known; it cannot be imported."""
VERSION: Final = 1
"""Grows when an older program would misread what this one writes."""


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all parts of the document share: fields at their default are not written."""


class ExportedSession(_Value, frozen=True):
    """The session itself.  No path: where the exporter's project lay is private."""

    id: SessionId
    title: str = ""
    model: str = ""
    thinking: str = ""
    created: float = 0.0


class ExportedRevision(_Value, frozen=True):
    """The words of a node at one time."""

    number: int = 0
    at: float = 0.0
    parts: tuple[Part, ...] = ()


class ExportedResult(_Value, frozen=True):
    """What a tool answered to one call of the node."""

    call_uid: CallUid
    at: float = 0.0
    text: str = ""
    images: tuple[Image, ...] = ()
    is_error: bool = False
    status: Literal["done", "denied", "aborted", "interrupted", "invalid"] = "done"
    full_text: str | None = None
    """The whole output, where `text` was cut."""
    full_base64: str | None = None
    """The same, where it is not UTF-8."""
    data: dict[str, Any] = {}
    duration_ms: int = 0


def kept_data(data: dict[str, Any]) -> dict[str, Any]:
    """A result's data as exports have it: what ran beside one session does not run beside
    another.
    """
    return {name: value for name, value in data.items() if name != "background"}


class ExportedNode(_Value, frozen=True):
    """One position of the tree, with all its revisions (oldest first) and the results of
    its calls.
    """

    id: NodeId
    role: Role
    revisions: tuple[ExportedRevision, ...]
    parent: NodeId | None = None
    parent_revision: int = 0
    model: str = ""
    usage: Usage | None = None
    metadata: dict[str, Any] = {}
    """Marks as they are now: bookmark, pin, label, rating, partial, …"""
    results: tuple[ExportedResult, ...] = ()


class ExportedRef(_Value, frozen=True):
    """A name for a node."""

    name: str
    node: NodeId | None = None
    ref: Literal["branch", "checkpoint"] = "branch"


class ExportedNote(_Value, frozen=True):
    """A line of the system's, said after `node`."""

    text: str
    at: float = 0.0
    node: NodeId | None = None
    level: Literal["info", "warning", "error"] = "info"
    to_model: bool = False


class ExportedCompaction(_Value, frozen=True):
    """A summary that the model reads in place of the line up to `upto`."""

    upto: NodeId
    summary: str
    at: float = 0.0
    carried: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    kept: KeptRecord | None = None
    struck: tuple[str, ...] = ()


class ExportedClearing(_Value, frozen=True):
    """Results that the model reads a line in the place of; they are whole in their nodes."""

    upto: NodeId
    results: dict[CallUid, Annotated[int, Meta(ge=0)]]
    at: float = 0.0
    tokens_before: int = 0
    tokens_after: int = 0
    compactions: int = 0
    """How many of the document's were made before it."""


class ExportedTurn(_Value, frozen=True):
    """One turn, from its start to its end."""

    id: TurnId
    reason: StoredReason
    at: float = 0.0
    ended: float = 0.0
    node: NodeId | None = None
    continued: bool = False
    iterations: int = 0
    retries: int = 0
    detail: str = ""
    deliverable: Any = None
    exact: str = ""
    """The reason where `reason` has no word for it."""


class ExportedFiles(_Value, frozen=True):
    """The project's files at the end of a turn."""

    node: NodeId
    """The last node of the turn."""
    tree: BlobId
    """Hash of the listing of the project's folder; it is in `blobs`, with all that it names."""
    after: BlobId | None = None
    changes: tuple[SnapshotChange, ...] = ()
    left_out: tuple[LeftOutFile, ...] = ()
    at: float = 0.0


class ExportedBlob(_Value, frozen=True):
    """A listing of a folder, or the content of a file."""

    base64: str


class ExportDocument(_Value, frozen=True, kw_only=True):
    """A whole conversation."""

    format: str = ""
    version: int = 0
    session: ExportedSession
    head: NodeId | None = None
    nodes: tuple[ExportedNode, ...] = ()
    """A node comes after its parent."""
    refs: tuple[ExportedRef, ...] = ()
    deleted: tuple[NodeId, ...] = ()
    """Tops of hidden subtrees; their nodes are in `nodes`."""
    notes: tuple[ExportedNote, ...] = ()
    compactions: tuple[ExportedCompaction, ...] = ()
    clearings: tuple[ExportedClearing, ...] = ()
    turns: tuple[ExportedTurn, ...] = ()
    todos: tuple[Todo, ...] = ()
    files: tuple[ExportedFiles, ...] = ()
    """Only where they were asked for."""
    blobs: tuple[ExportedBlob, ...] = ()
    left_out: dict[str, int] = {}
    """What the session had besides, by name, and how much of it."""
