"""A tree as a record of data, for files and other programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import anyio.lowlevel
import msgspec

from weft.ids import NodeId
from weft.loom.formats.earlier_texts import REVISION, REVISION_OF
from weft.loom.loom_state import TreeSettings
from weft.loom.model_plan import stored_plan
from weft.loom.node import CONTEXT, LoomNode
from weft.loom.node_record import NodeRecord, TreeRecord
from weft.loom.trees.loom_tree import PART, LoomTree

_FIELDS: Final = frozenset({"bookmarked", "hidden", "rating", "partial", "role"})
"""What stands among a node's metadata and has a field in a record."""


async def tree_record(tree: LoomTree, read_settings: Callable[[], TreeSettings]) -> TreeRecord:
    """All nodes of a tree that are not deleted, each behind its parent, as they are at one moment.

    Others get their turn meanwhile; where one of them changes the tree, it is read in one go.
    """
    edition, found = tree.edition, list[NodeRecord]()
    for number, _ in enumerate(_Records(tree).walk(found), start=1):
        if number % PART:
            continue
        await anyio.lowlevel.checkpoint()
        if tree.edition != edition:
            found = []
            deque(_Records(tree).walk(found), maxlen=0)
            break
    return _record(tree, read_settings(), found)


def _record(tree: LoomTree, settings: TreeSettings, nodes: Sequence[NodeRecord]) -> TreeRecord:
    return TreeRecord(
        root_id=tree.tree_id,
        nodes=tuple(nodes),
        name=settings.name,
        current_id=tree.shown_id(tree.active_node()),
        created_at=nodes[0].created_at,
        settings={
            # The default of this machine is no choice of the tree's.
            **({"model_plan": plan} if (plan := _own_plan(tree)) else {}),
            "show_model_names": settings.show_model_names,
        },
        metadata=_plain(dict(settings.metadata)),
    )


def _own_plan(tree: LoomTree) -> list[Any]:
    return [msgspec.to_builtins(each) for each in stored_plan(tree.setting("model_plan"))]


class _Records:
    """The records of one tree.

    A node that was edited after others grew from it is written twice: as it is now, and, for those
    that still read as they grew, as it was.
    """

    def __init__(self, tree: LoomTree) -> None:
        self._tree = tree
        self._parents: dict[tuple[NodeId, int], str] = {}
        """The record that stands for each revision of a node."""
        self._newest: dict[str, NodeRecord] = {}

    def walk(self, found: list[NodeRecord]) -> Iterator[None]:
        """Add the records of all nodes, with a stop behind each."""
        tree = self._tree
        # A text that was written anew from its first word on stands beside the first root; the one
        # that the tree is named by comes first.
        others = [root for root in tree.tree.children(None) if root != tree.root_id]
        for each in (node for root in (tree.root_id, *others) for node in tree.subtree(root)):
            node = tree.node(each)
            self._newest[node.id] = self._record(each, node, self._above(each, found))
            found.append(self._newest[node.id])
            self._parents[each, node.revision] = node.id
            yield

    def _above(self, node: NodeId, found: list[NodeRecord]) -> str | None:
        held = self._tree.tree.nodes[node]
        if held.parent is None:
            return None
        key = (held.parent, held.parent_revision)
        if key not in self._parents:
            was = self._tree.node(held.parent, held.parent_revision)
            name = f"{was.id}~{held.parent_revision}"
            now = self._newest[was.id]
            old = {REVISION_OF: was.id, REVISION: held.parent_revision}
            found.append(
                msgspec.structs.replace(
                    now,
                    id=name,
                    text=was.text,
                    checked_out=False,
                    metadata=now.metadata | old,
                    usage=None,
                    cost_usd=None,
                )
            )
            self._parents[key] = name
        return self._parents[key]

    def _record(self, inner: NodeId, node: LoomNode, parent: str | None) -> NodeRecord:
        tree = self._tree
        above = tree.parent(inner)
        # Its own mark, and not what holds there: that would be looked for up the whole line.
        context = tree.marks(inner).get(CONTEXT)
        metadata = {name: each for name, each in node.metadata.items() if name not in _FIELDS}
        return NodeRecord(
            id=node.id,
            parent_id=parent,
            text=node.text,
            kind=node.kind,
            role=node.role or "",
            model=node.model or "",
            strategy=node.strategy or "",
            max_tokens=node.max_tokens,
            temperature=node.temperature,
            created_at=node.created_at or None,
            context=context if isinstance(context, str) else "",
            partial=node.partial,
            bookmarked=node.bookmarked,
            hidden=node.hidden,
            checked_out=above is not None and tree.checked_out_child(above) == inner,
            rating=node.rating,
            usage=None if node.usage is None else msgspec.to_builtins(node.usage),
            cost_usd=node.cost_usd,
            metadata=_plain(metadata),
        )


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(metadata)
    return plain
