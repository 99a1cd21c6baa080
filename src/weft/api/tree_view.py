"""The tree of a session as people see it: every message with its beginning, the names, and the
sessions that worked for it.

The words are read in one go, those of the present line first, then those of other lines, the newest
first, up to a bound; what is beyond it is there without words, so that a tree of any size can be
drawn.  `nodes_view` has the words of any messages that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from weft.ids import NodeId
from weft.loop import LineEntry
from weft.messages import File, Image, Part, Text
from weft.session import branches
from weft.state import SessionState
from weft.tree import NodeSkeleton
from weft.view.tree import CheckpointInfo, TreeMessage, TreeView

if TYPE_CHECKING:
    from weft.session import SessionPort

BEGINNING: Final = 200
"""Characters of a message that the tree shows."""
MOST_READ: Final = 1_000
"""Messages whose words are read for one view of the tree."""


async def tree_view(port: SessionPort) -> TreeView:
    """The tree of a session."""
    state = port.state
    tree = state.tree
    shown = {node: held for node, held in tree.nodes.items() if not held.hidden}
    read = await _read(port, _with_words(state, shown))
    compaction = tree.compaction_for(tree.head)
    return TreeView(
        messages=tuple(_message(node, held, read.get(node)) for node, held in shown.items()),
        head=tree.head,
        branches=tuple(branches(state)),
        checkpoints=tuple(
            CheckpointInfo(name=name, node=ref.node)
            for name, ref in tree.refs.items()
            if ref.ref == "checkpoint"
        ),
        summarized_to=None if compaction is None else compaction.upto,
        can_undo_compaction=tree.undoable_for(tree.head) is not None,
    )


async def nodes_view(port: SessionPort, wanted: Sequence[NodeId]) -> list[TreeMessage]:
    """These messages of the tree, each with its beginning.

    Raises:
        UsageError: the session has no such message.
    """
    tree = port.state.tree
    for node in wanted:
        tree.require(node)
    read = await _read(port, wanted)
    return [_message(node, tree.nodes[node], read[node]) for node in wanted]


def _message(node: NodeId, held: NodeSkeleton, entry: LineEntry | None) -> TreeMessage:
    usage = None if entry is None else entry.node.usage
    return TreeMessage(
        id=node,
        parent=held.parent,
        role=held.role,
        text="" if entry is None else _beginning(entry.node.parts),
        calls=len(held.calls),
        is_partial=held.partial,
        is_pinned=held.marked is not None and bool(held.marked.get("pin")),
        revision=held.revision,
        at=0.0 if entry is None else entry.at,
        cost_usd=None if usage is None else usage.cost_usd,
    )


def _with_words(state: SessionState, shown: dict[NodeId, NodeSkeleton]) -> list[NodeId]:
    """The messages whose words are read: the newest of the present line, then the newest."""
    tree = state.tree
    # A deleted message may still be on the present line; it is not shown.
    on_line = filter(shown.__contains__, tree.ancestors(tree.head))
    chosen = dict.fromkeys(islice(on_line, MOST_READ))
    others = (node for node in reversed(shown) if node not in chosen)
    return [*chosen, *islice(others, MOST_READ - len(chosen))]


async def _read(port: SessionPort, wanted: Sequence[NodeId]) -> dict[NodeId, LineEntry]:
    # The log has more of a long text than is shown of it.
    return {entry.node.id: entry for entry in await port.beginnings(wanted)}


def _beginning(parts: Sequence[Part]) -> str:
    said = [part.typed or part.text for part in parts if isinstance(part, Text)]
    text = " ".join(each for each in said if each.strip())
    if not text:
        text = ", ".join(part.name for part in parts if isinstance(part, File | Image))
    return " ".join(text[: 4 * BEGINNING].split())[:BEGINNING]
