"""The tree of a session as people see it: every message with its beginning, the names, and the
sessions that worked for it.

The words of the present line are read in one go.  Those of other lines are read message by message,
the newest first, up to a bound; what is beyond it is there without words, so that a tree of any
size can be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from weft.ids import NodeId
from weft.messages import File, Image, Part, Text
from weft.session import branches
from weft.state import SessionState
from weft.tree import NodeSkeleton
from weft.view.tree import CheckpointInfo, TreeMessage, TreeView

if TYPE_CHECKING:
    from weft.session import SessionPort

BEGINNING: Final = 200
"""Characters of a message that the tree shows."""
MOST_READ: Final = 500
"""Messages beside the present line whose words are read."""


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
