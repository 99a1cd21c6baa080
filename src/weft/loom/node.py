"""Nodes of a text tree, as programs and screens see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from weft.ids import NodeId
from weft.messages import Usage
from weft.providers import TokenLogprob

LOOM: Final = "loom"
"""The mark of a node of text, as against a message of a conversation: how it was made."""
BOOKMARK: Final = "bookmark"
CHECKED_OUT: Final = "checked_out"
"""The mark that names the child which was selected last."""
CONTEXT: Final = "context"
LOGPROBS: Final = "logprobs"
"""The mark that names the blob with a node's tokens."""
_PRIVATE: Final = frozenset({LOOM, CHECKED_OUT, CONTEXT, LOGPROBS, "unfolded"})

_TELLING: Final = frozenset({"gen_id", "slot", "branched_from", "token", "healed"})
"""Metadata by which a reader could tell models apart."""

NodeKind = Literal["root", "text", "message"]


class LoomNode(msgspec.Struct, frozen=True, kw_only=True):
    """One segment of text, and where it stands."""

    id: NodeId
    parent_id: NodeId | None
    root_id: NodeId
    text: str
    """This segment alone."""
    revision: int = 0
    parent_revision: int = 0
    """The revision of its parent that it grew from, and goes on from."""
    kind: NodeKind = "text"
    """`message` for a message of a coding session."""
    role: str | None = None
    model: str | None = None
    strategy: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    created_at: float = 0.0
    partial: bool = False
    """Its generation broke off, or was cancelled."""
    bookmarked: bool = False
    hidden: bool = False
    rating: int | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    """None: the price is not known, or no model wrote it."""
    metadata: Mapping[str, Any] = {}
    tokens: tuple[TokenLogprob, ...] | None = None
    """The tokens with their probabilities, where the model gave them and they were asked for."""


class TextSegment(msgspec.Struct, frozen=True):
    """A part of a longer text, and the node that has it."""

    text: str
    role: str | None
    node_id: NodeId


def shown_metadata(marks: Mapping[str, Any]) -> dict[str, Any]:
    """The marks of a node under the names that programs know."""
    shown = {name: value for name, value in marks.items() if name not in _PRIVATE}
    if BOOKMARK in shown:
        shown["bookmarked"] = bool(shown.pop(BOOKMARK))
    return shown


def blinded(node: LoomNode) -> LoomNode:
    """A node without what tells who wrote it."""
    metadata = {name: value for name, value in node.metadata.items() if name not in _TELLING}
    return msgspec.structs.replace(
        node,
        model=None,
        strategy=None,
        max_tokens=None,
        temperature=None,
        usage=None,
        cost_usd=None,
        tokens=None,
        metadata=metadata,
    )


def stored_marks(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata under the names that are stored.

    Those that the tree itself uses are left out: they are not a program's to set.
    """
    marks = {name: value for name, value in metadata.items() if name not in _PRIVATE}
    if "bookmarked" in marks:
        marks[BOOKMARK] = bool(marks.pop("bookmarked"))
    return marks
