"""Nodes that were edited after others grew from them: written twice to files, and one when read."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import msgspec

from weft.loom.node_record import NodeRecord, TreeRecord

REVISION_OF: Final = "revision_of"
REVISION: Final = "revision"


class LaterText(msgspec.Struct, frozen=True):
    """What a node says since it was edited, and the children that grew from that."""

    node_id: str
    revision: int
    text: str
    children: tuple[str, ...]


def with_one_node_each(tree: TreeRecord) -> tuple[TreeRecord, list[LaterText]]:
    """The tree with each node once, as it was first, and what became of those that were edited.

    Nodes that only claim to be an earlier text of another one stay what they are.
    """
    by_id = {node.id: node for node in tree.nodes}
    earlier: dict[str, list[NodeRecord]] = defaultdict(list)
    for node in tree.nodes:
        now = by_id.get(_now_id(node))
        if now is not None and now.parent_id == node.parent_id and not _now_id(now):
            earlier[now.id].append(node)
    if not earlier:
        return tree, []
    stands_for = {node.id: name for name, nodes in earlier.items() for node in nodes}
    below: dict[str, list[str]] = defaultdict(list)
    found: list[NodeRecord] = []
    for node in tree.nodes:
        below[node.parent_id or ""].append(node.id)
        if node.id in stands_for:
            continue
        parent = stands_for.get(node.parent_id or "", node.parent_id)
        first = min(earlier[node.id], key=_revision).text if node.id in earlier else node.text
        found.append(msgspec.structs.replace(node, parent_id=parent, text=first))
    later: list[LaterText] = []
    for name, nodes in earlier.items():
        ordered = [*sorted(nodes, key=_revision), by_id[name]]
        later += [
            LaterText(name, number, node.text, tuple(below[node.id]))
            for number, node in enumerate(ordered)
            if number
        ]
    return msgspec.structs.replace(tree, nodes=tuple(found)), later


def _now_id(node: NodeRecord) -> str:
    """The node whose earlier text this is; empty for any other."""
    now = node.metadata.get(REVISION_OF)
    return now if isinstance(now, str) and node.id == f"{now}~{_revision(node)}" else ""


def _revision(node: NodeRecord) -> int:
    found = node.metadata.get(REVISION)
    return found if isinstance(found, int) else -1
