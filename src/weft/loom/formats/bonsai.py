"""The files of Bonsai: a flat list of nodes that name their parents."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from weft.loom.formats.assembly import assembled
from weft.loom.formats.plain_json import (
    Json,
    as_id,
    as_list,
    as_table,
    as_text,
    plain_metadata,
    rating,
    seconds,
    short_text,
)
from weft.loom.node_record import NodeRecord, TreeRecord

NAME: Final = "bonsai"


def is_bonsai(value: Any) -> bool:
    """Whether the value looks like such a file: nodes with `parentIds`."""
    nodes = value.get("nodes") if isinstance(value, dict) else None
    rows = nodes if isinstance(nodes, list) else ()
    return any(isinstance(row, dict) and "parentIds" in row for row in rows)


def parse_bonsai(value: Any) -> tuple[TreeRecord, ...]:
    """The trees of such a file.

    Raises:
        UsageError: its nodes make no tree.
    """
    rows = [as_table(row, "a node") for row in as_list(value["nodes"], "nodes")]
    return tuple(_segments(tree) for tree in assembled(map(_node, rows), NAME))


def _node(row: Json) -> NodeRecord:
    node_id = as_id(row.get("id"), "a node")
    where = f"node {node_id!r}"
    named = as_list(row.get("parentIds") or [], f"the parents of {where}")
    parents = [as_id(each, f"{where}'s parent") for each in named]
    # A node that was woven of several lines goes on with the first.
    more = {"source_parents": parents[1:]} if len(parents) > 1 else {}
    return NodeRecord(
        id=node_id,
        parent_id=parents[0] if parents else None,
        text=as_text(row.get("text"), where),
        model=short_text(row.get("model")) or short_text(row.get("type")),
        created_at=seconds(row.get("createdAt")),
        bookmarked=row.get("bookmarked") is True,
        hidden=row.get("hidden") is True,
        rating=rating(row.get("rating")),
        metadata={**plain_metadata(row.get("metadata")), **more},
    )


def _segments(tree: TreeRecord) -> TreeRecord:
    """The tree with the text that each node adds.

    Bonsai's nodes may hold their whole line.  One that does not begin with its parent's shows that
    they do not.
    """
    by_id = {node.id: node.text for node in tree.nodes}
    below = [node for node in tree.nodes if node.parent_id is not None]
    if not all(node.text.startswith(by_id[node.parent_id or ""]) for node in below):
        return tree
    nodes = tuple(
        msgspec.structs.replace(
            node, text=node.text.removeprefix(by_id.get(node.parent_id or "", ""))
        )
        for node in tree.nodes
    )
    return msgspec.structs.replace(tree, nodes=nodes)
