"""Which nodes of an import are new, and under which ids they are added.

Ids from files are any text, and small numbers are common: that two files both have a node `1` does
not make them one tree.  A file goes on with a tree that is there only where all that both have is
the same; else it becomes a tree of its own, in which ids that are taken elsewhere are replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.events import Fact, NewMessage, NodeMarked, SettingChanged, UsageRecorded
from weft.ids import NodeId, SessionId, derived_id
from weft.loom.model_plan import stored_plan
from weft.loom.node import CHECKED_OUT
from weft.loom.node_record import TreeRecord
from weft.loom.trees.imported_nodes import ImportedNode
from weft.loom.trees.loom_tree import LoomTree
from weft.loom.trees.tree_settings import stored_settings
from weft.messages import Text


def import_units(nodes: Sequence[ImportedNode], *, is_one_tree: bool) -> list[list[ImportedNode]]:
    """The nodes by the trees that they make up, each after its parent; what hangs on nodes that are
    not in the import is by what it hangs on.  With `is_one_tree`, further roots belong to the first
    one's tree.
    """
    tops: dict[NodeId, NodeId] = {}
    units: dict[NodeId, list[ImportedNode]] = {}
    first_root: NodeId | None = None
    for each in nodes:
        if each.parent_id is None:
            first_root = first_root or each.id
            top = first_root if is_one_tree else each.id
        else:
            top = tops.get(each.parent_id, each.parent_id)
        tops[each.id] = top
        units.setdefault(top, []).append(each)
    return list(units.values())


class ImportBeside(Protocol):
    """What becomes durable together with imported nodes, by the ids that these have."""

    def __call__(self, ids: Mapping[NodeId, NodeId], *, is_new: bool) -> list[Fact]: ...


class TreeImport:
    """The nodes of one tree of an import, against the tree of a session."""

    def __init__(
        self,
        unit: Sequence[ImportedNode],
        session_id: SessionId,
        *,
        above: Mapping[NodeId, NodeId] | None = None,
    ) -> None:
        """`above`: the node that it hangs on, by the id that the import has for it.  The root of a
        fork is shown under another id than it is stored by.
        """
        self._unit = unit
        self.session_id = session_id
        self._above = dict(above or {})
        self._ids = dict(self._above)
        """By the ids of the import, those of the nodes that are there."""

    def differing(self, tree: LoomTree) -> NodeId | None:
        """The first node that both have and that is not the same: what it says, or once said, and
        the line that it stands on.  Only where there is none can it be added to this tree, whose
        words must be loaded.
        """
        self._ids = dict(self._above)
        for each in self._unit:
            known = self._known_as(each, tree)
            if known is None:
                continue
            self._ids[each.id] = known
            if not _says(tree, known, _text(each)):
                return each.id
            if not self._stands_right(each, known, tree):
                return each.id
        return None

    def _stands_right(self, each: ImportedNode, known: NodeId, tree: LoomTree) -> bool:
        nodes = tree.tree.nodes
        if each.parent_id is None:
            return nodes[known].parent is None
        parent = self._ids.get(each.parent_id)
        # Not only its parent: nodes may have been split since. One that was joined is hidden.
        if parent is None or parent == known or nodes[parent].hidden:
            return True
        return parent in tree.tree.walk_up(known)

    def _known_as(self, each: ImportedNode, tree: LoomTree) -> NodeId | None:
        nodes = tree.tree.nodes
        if each.parent_id is None and each.id == NodeId(tree.port.session_id):
            return tree.root_id
        for node in (each.id, self._replaced(each.id)):
            if node in nodes:
                return node
        # An export has what a node said before as a node of its own.
        earlier = each.node.metadata.get("revision_of")
        if isinstance(earlier, str):
            now = self._ids.get(NodeId(earlier))
            if now is not None and _says(tree, now, _text(each)):
                return now
        return None

    def _replaced(self, node: NodeId) -> NodeId:
        return NodeId(derived_id("nod", "loom", self.session_id, node))

    @property
    def new(self) -> list[ImportedNode]:
        """Those that are not there."""
        return [each for each in self._unit if each.id not in self._ids]

    def facts(self, taken: Collection[str]) -> list[Fact]:
        """What adds the new ones; `taken` are ids that nodes of other trees have."""
        found: list[Fact] = []
        for each in self.new:
            node_id = self._replaced(each.id) if each.id in taken else each.id
            self._ids[each.id] = node_id
            parent = None if each.parent_id is None else self._ids[each.parent_id]
            node = msgspec.structs.replace(each.node, id=node_id, parent=parent)
            if node_id != each.id:
                node.metadata["imported_id"] = each.id
            found.append(NewMessage(node=node, advance=parent is None, at=each.at))
            if node.usage is not None:
                spent = UsageRecorded(
                    usage=node.usage, model=node.model, purpose="branch", node=node_id, at=each.at
                )
                found.append(spent)
            if each.checked_out and parent is not None:
                found.append(NodeMarked(node=parent, mark=CHECKED_OUT, value=node_id))
        return found

    @property
    def ids(self) -> Mapping[NodeId, NodeId]:
        """By the ids of the import, those that its nodes have."""
        return self._ids


def record_facts(record: TreeRecord, ids: Mapping[NodeId, NodeId], *, is_new: bool) -> list[Fact]:
    """What a record says of its tree besides the nodes: the name, where it was left, and, of a tree
    that is new here, the models that it is to be continued with.
    """
    changes: dict[str, Any] = {"name": record.name} if record.name else {}
    if is_new:
        plan = stored_plan(record.settings.get("model_plan"))
        names = record.settings.get("show_model_names")
        changes |= {"model_plan": plan} if plan else {}
        changes |= {"show_model_names": names} if isinstance(names, bool) else {}
        changes |= {"metadata": dict(record.metadata)} if record.metadata else {}
    stored = stored_settings(changes)
    current = ids.get(NodeId(record.current_id))
    if current is not None:
        stored["loom_active"] = current
    return [SettingChanged(name=name, value=value) for name, value in stored.items()]


def _text(each: ImportedNode) -> str:
    return "".join(part.text for part in each.node.parts if isinstance(part, Text))


def _says(tree: LoomTree, node: NodeId, text: str) -> bool:
    """Whether a node says this, or once did."""
    newest = tree.tree.nodes[node].revision
    return any(tree.text(node, revision) == text for revision in range(newest, -1, -1))
