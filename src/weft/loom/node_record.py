"""Trees outside a store: what imports give and exports take."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node of a tree.  Ids are any text: those of other programs are kept as they are."""

    id: str
    parent_id: str | None = None
    text: str = ""
    """The segment that this node adds; a message's own words where `kind` is `message`."""
    kind: Literal["root", "text", "message"] = "text"
    role: str = ""
    """Who wrote it: `user`, `assistant`, `system`, `tool`, or empty where that is not known."""
    model: str = ""
    strategy: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    created_at: float | None = None
    """Seconds since 1970; None where it is not known."""
    context: str = ""
    """What models are to know below this node, where it begins to hold."""
    partial: bool = False
    bookmarked: bool = False
    hidden: bool = False
    checked_out: bool = False
    """It is the one child of its parent that was chosen last."""
    rating: float | None = None
    usage: dict[str, Any] | None = None
    cost_usd: float | None = None
    metadata: dict[str, Any] = {}


class TreeRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tree: its nodes, each behind its parent, the root first."""

    root_id: str
    nodes: tuple[NodeRecord, ...]
    name: str = ""
    current_id: str = ""
    """Where the tree was left; empty where that is not known."""
    created_at: float | None = None
    source: str = ""
    """The format that it was read from."""
    settings: dict[str, Any] = {}
    metadata: dict[str, Any] = {}

    def line(self, node_id: str = "") -> tuple[NodeRecord, ...]:
        """The nodes from the root down to a node, or along the chosen children where none is named.

        Raises:
            KeyError: there is no such node.
        """
        by_id = {node.id: node for node in self.nodes}
        if not node_id:
            node_id = self.current_id if self.current_id in by_id else self._chosen_leaf()
        line = [by_id[node_id]]
        while (parent := line[-1].parent_id) is not None:
            line.append(by_id[parent])
        return tuple(reversed(line))

    def _chosen_leaf(self) -> str:
        chosen: dict[str, str] = {}
        for node in self.nodes:
            # The first child, unless a later one is the chosen one.
            if node.parent_id is not None and (node.checked_out or node.parent_id not in chosen):
                chosen[node.parent_id] = node.id
        leaf = self.root_id
        while leaf in chosen:
            leaf = chosen[leaf]
        return leaf
