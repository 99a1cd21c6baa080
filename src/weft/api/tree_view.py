"""The tree of a session as people see it: every message with its beginning, the names, and the sessions that worked for it.

The words of the present line are read in one go.  Those of other lines are read message by message, the newest first, up to a bound; what is
beyond it is there without words, so that a tree of any size can be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from weft.ids import NodeId
from weft.messages import File, Image, Part, Role, Text
from weft.session import Branch, branches
from weft.state import SessionState
from weft.tree import NodeSkeleton

if TYPE_CHECKING:
    from weft.runtime.port import SessionPort

BEGINNING: Final = 200
"""Characters of a message that the tree shows."""
MOST_READ: Final = 500
"""Messages beside the present line whose words are read."""


class TreeMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the tree."""

    id: NodeId
    parent: NodeId | None
    role: Role
    text: str = ""
    """The beginning of what it says, in one line."""
    calls: int = 0
    is_partial: bool = False
    is_pinned: bool = False
    revision: int = 0
    """How often it was edited."""


class CheckpointInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A named place."""

    name: str
    node: NodeId | None


class TreeView(msgspec.Struct, frozen=True, kw_only=True):
    """All messages of a session, parents before their children, and the names in it."""

    messages: tuple[TreeMessage, ...]
    head: NodeId | None
    """Where the conversation stands."""
    branches: tuple[Branch, ...]
    checkpoints: tuple[CheckpointInfo, ...] = ()
    summarized_to: NodeId | None = None
    """What the model is told as a summary ends here; None when it is told everything."""


async def tree_view(port: SessionPort) -> TreeView:
    """The tree of a session."""
    state = port.state
    tree = state.tree
    shown = [node for node in tree.nodes if not tree.is_hidden(node)]
    words = await _words(port, state, shown)
    compaction = tree.compaction_for(tree.head)
    return TreeView(
        messages=tuple(_message(node, tree.nodes[node], words.get(node, "")) for node in shown),
        head=tree.head,
        branches=tuple(branches(state)),
        checkpoints=tuple(
            CheckpointInfo(name=name, node=ref.node)
            for name, ref in tree.refs.items()
            if ref.ref == "checkpoint"
        ),
        summarized_to=None if compaction is None else compaction.upto,
    )


def _message(node: NodeId, held: NodeSkeleton, text: str) -> TreeMessage:
    return TreeMessage(
        id=node,
        parent=held.parent,
        role=held.role,
        text=text,
        calls=len(held.calls),
        is_partial=held.partial,
        is_pinned=bool(held.marks.get("pin")),
        revision=held.revision,
    )


async def _words(
    port: SessionPort, state: SessionState, shown: Sequence[NodeId]
) -> dict[NodeId, str]:
    line = await port.line() if state.tree.head is not None else []
    found = {entry.node.id: _beginning(entry.node.parts) for entry in line}
    others = [node for node in reversed(shown) if node not in found]
    for node in others[:MOST_READ]:
        found[node] = _beginning((await port.revisions(node))[-1])
    return found


def _beginning(parts: Sequence[Part]) -> str:
    text = " ".join(part.text for part in parts if isinstance(part, Text) and part.text.strip())
    if not text:
        text = ", ".join(part.name for part in parts if isinstance(part, File | Image))
    return " ".join(text[: 4 * BEGINNING].split())[:BEGINNING]
