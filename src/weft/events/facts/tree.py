"""Facts of the conversation tree: nodes, revisions, marks, refs, the head, and rewinds."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.events.base import FactBase
from weft.ids import BlobId, NodeId
from weft.messages import Node, Part


class NewMessage(FactBase, frozen=True, tag="new_message"):
    """A node was added; with `advance` the head moves to it."""

    node: Node
    advance: bool = True


class NodeEdited(FactBase, frozen=True, tag="node_edited"):
    """A node has a new revision; earlier ones are kept."""

    node: NodeId
    revision: int
    parts: tuple[Part, ...] = ()


class NodeMarked(FactBase, frozen=True, tag="node_marked"):
    """A mark of a node changed: bookmark, pin, label, rating, hidden, …; None removes it."""

    node: NodeId
    mark: str
    value: Any = None


# The log only grows: a deletion is one more fact, and so is its undoing.
class SubtreeDeleted(FactBase, frozen=True, tag="subtree_deleted"):
    """A node and all below it are hidden; can be undone."""

    node: NodeId


class SubtreeRestored(FactBase, frozen=True, tag="subtree_restored"):
    """A deleted subtree is back."""

    node: NodeId


class HeadMoved(FactBase, frozen=True, tag="head_moved"):
    """The next turn starts at another node; None is before the first one."""

    node: NodeId | None = None


class RefMoved(FactBase, frozen=True, tag="ref_moved"):
    """A named ref points at a node: a branch or a checkpoint."""

    name: str
    node: NodeId | None = None
    ref: Literal["branch", "checkpoint"] = "branch"


class RefDeleted(FactBase, frozen=True, tag="ref_deleted"):
    """A named ref is gone; its nodes are not."""

    name: str


class FileChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file, link or folder before and after; no content and no mode is "not there"."""

    path: str
    before: BlobId | None = None
    """Content, or a link's target; None for a folder, and for what is too large to be stored."""
    after: BlobId | None = None
    # With the bits of the file's type, so no file has the mode 0.
    mode_before: int = 0
    """Kind and permissions, as `lstat` has them."""
    mode_after: int = 0


class Rewound(FactBase, frozen=True, tag="rewound"):
    """Conversation, files or both go back to a node.

    With files it is the intent: they are restored after it is durable, and a second fact settles
    it.
    """

    to: NodeId | None = None
    conversation: bool = True
    files: tuple[FileChange, ...] = ()
    """What is to be restored; in a fact that settles, what turned out otherwise."""
    undoes: int = 0
    """`seq` of the rewind that this undoes."""
    # The head alone would not tell: undoing a rewind has to find the line that was left.
    left: NodeId | None = None
    """Where the conversation stood before."""
    settles: int = 0
    """`seq` of the rewind whose files have been restored with this."""
