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
    # Other children keep reading the revision that they grew from: their text must not change.
    carries: tuple[NodeId, ...] = ()
    """Children that go on from this revision: those of the line that was edited."""


class MovedNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node that hangs on another one from now on."""

    node: NodeId
    revision: int = 0
    """The revision of its new parent that it goes on from."""


# Both halves in one fact: a reader that knew of the one and not of the other would show the text
# twice, or lose a part of it.
class NodeSplit(FactBase, frozen=True, tag="node_split"):
    """A node was cut in two: it keeps the first part as a new revision, `tail` has the rest.

    Also the undoing of a join: `tail` may be a node that was there before.
    """

    node: NodeId
    revision: int
    tail: Node
    parts: tuple[Part, ...] = ()
    moves: tuple[MovedNode, ...] = ()
    """The children that hang on `tail` from now on."""


class NodesJoined(FactBase, frozen=True, tag="nodes_joined"):
    """A node took in one of its children, which is hidden from now on."""

    node: NodeId
    revision: int
    child: NodeId
    parts: tuple[Part, ...] = ()
    # Each with its revision: those that grew from an earlier text of `child` still read it.
    moves: tuple[MovedNode, ...] = ()
    """The children of `child` that hang on `node` from now on."""


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


# --- branches that are generated --------------------------------------------------------


class BranchSlot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One branch of a generation, as it was planned."""

    # Made before the first token: draft, tokens and node share it, so that a crash leaves nothing
    # that belongs nowhere.
    node_id: NodeId
    model: str
    """`provider:model`."""
    strategy: str = ""
    """How the model is made to continue a text."""
    max_tokens: int = 0
    temperature: float | None = None
    seed: int | None = None


class BranchesStarted(FactBase, frozen=True, tag="branches_started"):
    """Branches of a node are being generated, all at once."""

    gen_id: str
    source: NodeId
    source_revision: int = 0
    plan: tuple[BranchSlot, ...] = ()
    input_tokens: int = 0
    """About how many tokens each of them is sent; counted for those that a crash cuts off."""


class BranchFailed(FactBase, frozen=True, tag="branch_failed"):
    """A branch came to nothing, or broke off."""

    gen_id: str
    slot: int
    """Its place in the plan."""
    category: str
    status: int | None = None
    """The HTTP status, where there was one."""
    incident_id: str = ""
    """Names it in the program's log, where the details are."""
    sentence: str = ""


class BranchesEnded(FactBase, frozen=True, tag="branches_ended"):
    """No branch of a generation is open any more."""

    gen_id: str
    reason: Literal["complete", "failed", "cancelled", "stopped", "interrupted"] = "complete"
    """`stopped`: by the rule of a race.  `interrupted`: its process died."""
