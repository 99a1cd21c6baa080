"""Our own JSON: trees with all that is known of them, the same bytes each time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.loom.formats.assembly import assembled
from weft.loom.formats.plain_json import (
    amount,
    as_id,
    as_list,
    as_table,
    as_text,
    plain_metadata,
    rating,
    seconds,
    shown,
    whole,
)
from weft.loom.node_record import NodeRecord, TreeRecord

NAME: Final = "weft-loom"
VERSION: Final = 1


class _TreeFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    format: str
    version: int
    trees: tuple[TreeRecord, ...]


def is_own(value: Any) -> bool:
    return isinstance(value, dict) and value.get("format") == NAME


def parse_own(value: Any) -> tuple[TreeRecord, ...]:
    """The trees of a file of ours.

    Raises:
        UsageError: it is of a later version, or not as we write it.
    """
    version = as_table(value, "the file").get("version")
    if version != VERSION:
        raise UsageError(f"the file is of version {shown(version)}; this program reads {VERSION}")
    for tree in as_list(value.get("trees"), "trees"):
        for node in as_list(as_table(tree, "a tree").get("nodes"), "nodes"):
            named = as_id(as_table(node, "a node").get("id"), "a node")
            as_text(node.get("text"), f"node {named!r}")
            if node.get("parent_id") is not None:
                as_id(node["parent_id"], f"the parent of node {named!r}")
    try:
        found = msgspec.convert(value, _TreeFile)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"the file is not a tree as Weft writes it: {error}") from None
    return tuple(_checked(_in_range(tree)) for tree in found.trees)


def _in_range(tree: TreeRecord) -> TreeRecord:
    """The tree without numbers that are none, or that cannot be what they stand for."""
    return msgspec.structs.replace(
        tree,
        nodes=tuple(map(_node_in_range, tree.nodes)),
        created_at=seconds(tree.created_at),
        settings=plain_metadata(tree.settings),
        metadata=plain_metadata(tree.metadata),
    )


def _node_in_range(node: NodeRecord) -> NodeRecord:
    return msgspec.structs.replace(
        node,
        created_at=seconds(node.created_at),
        max_tokens=whole(node.max_tokens) or None,
        temperature=amount(node.temperature),
        rating=rating(node.rating),
        cost_usd=amount(node.cost_usd),
        usage=None if node.usage is None else plain_metadata(node.usage),
        metadata=plain_metadata(node.metadata),
    )


def _checked(tree: TreeRecord) -> TreeRecord:
    """The tree with each node behind its parent, as it is unless it was written by others."""
    # A text that was written anew from its first word on has a second root beside the first.
    trees = assembled(tree.nodes, NAME)
    if trees[0].root_id != tree.root_id:
        raise UsageError(f"the tree {tree.root_id!r} has other nodes than its root leads to")
    behind: set[str | None] = {None}
    for node in tree.nodes:
        if node.parent_id not in behind:
            nodes = tuple(node for each in trees for node in each.nodes)
            return msgspec.structs.replace(tree, nodes=nodes)
        behind.add(node.id)
    return tree


def dump_own(trees: Iterable[TreeRecord]) -> bytes:
    """The trees as a file of ours."""
    value = _TreeFile(format=NAME, version=VERSION, trees=tuple(trees))
    text = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(text, indent=1) + b"\n"
