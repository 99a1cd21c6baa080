"""The JSON of basemode-loom, version 1: a flat list of nodes, contexts among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.loom.formats.assembly import assembled
from weft.loom.formats.plain_json import (
    Json,
    amount,
    as_id,
    as_list,
    as_table,
    as_text,
    iso_time,
    plain_metadata,
    rating,
    seconds,
    short_text,
    shown,
    whole,
)
from weft.loom.node_record import NodeRecord, TreeRecord
from weft.sha256 import sha256

NAME: Final = "basemode"
_MARKS: Final = ("bookmarked", "hidden", "rating", "role", "usage", "partial")
"""What stands among the metadata there and has a field here."""


def is_basemode(value: Any) -> bool:
    """Whether the value looks like such a file: nodes with `parent_id`."""
    nodes = value.get("nodes") if isinstance(value, dict) else None
    first = nodes[0] if isinstance(nodes, list) and nodes else None
    return isinstance(first, dict) and "parent_id" in first


def parse_basemode(value: Any) -> tuple[TreeRecord, ...]:
    """The trees of such a file.

    Raises:
        UsageError: it is of another version, or its nodes make no tree.
    """
    version = value.get("version", 1)
    if version != 1:
        raise UsageError(f"the file is of version {shown(version)} of basemode-loom; 1 can be read")
    rows = [as_table(row, "a node") for row in as_list(value["nodes"], "nodes")]
    contexts = {
        as_id(row.get("id"), "a context"): as_text(row.get("text"), "a context")
        for row in rows
        if row.get("kind") == "context"
    }
    own = [row for row in rows if row.get("kind") != "context"]
    pointers = {as_id(row.get("id"), "a node"): row.get("context_id") for row in own}
    return assembled((_node(row, contexts, pointers) for row in own), NAME)


def _node(row: Json, contexts: dict[str, str], pointers: dict[str, Any]) -> NodeRecord:
    node_id = as_id(row.get("id"), "a node")
    where = f"node {node_id!r}"
    parent = None if row.get("parent_id") is None else as_id(row["parent_id"], f"{where}'s parent")
    metadata = plain_metadata(row.get("metadata"))
    # Children repeat the pointer of their parent there; here a context stands where it begins.
    begins = row.get("context_id") != pointers.get(parent or "")
    usage = metadata.get("usage")
    return NodeRecord(
        id=node_id,
        parent_id=parent,
        text=as_text(row.get("text"), where),
        role=short_text(metadata.get("role")),
        model=short_text(row.get("model")),
        strategy=short_text(row.get("strategy")),
        max_tokens=whole(row.get("max_tokens")) or None,
        temperature=amount(row.get("temperature")),
        created_at=seconds(row.get("created_at")),
        context=contexts.get(str(row.get("context_id")), "") if begins else "",
        partial=metadata.get("partial") is True,
        bookmarked=metadata.get("bookmarked") is True,
        hidden=metadata.get("hidden") is True,
        checked_out=row.get("checked_out") in (True, 1),
        rating=rating(metadata.get("rating")),
        usage=usage if isinstance(usage, dict) else None,
        metadata={key: each for key, each in metadata.items() if key not in _MARKS},
    )


def dump_basemode(trees: Iterable[TreeRecord]) -> bytes:
    """The trees as a file that basemode-loom reads."""
    rows: list[Json] = []
    for tree in trees:
        rows += _rows(tree)
    text = msgspec.json.encode({"version": 1, "nodes": rows})
    return msgspec.json.format(text, indent=2) + b"\n"


def _rows(tree: TreeRecord) -> list[Json]:
    rows: list[Json] = []
    effective: dict[str | None, str | None] = {}
    roots: dict[str, str] = {}
    for node in tree.nodes:
        # There, a second root is a tree of its own.
        roots[node.id] = node.id if node.parent_id is None else roots[node.parent_id]
        context_id = effective.get(node.parent_id)
        if node.context:
            # Made of what it belongs to, so that a second export has the same ids.
            given = f"{tree.root_id}\0{node.id}\0{node.context}".encode()
            context_id = sha256(given).hexdigest()[:32]
            rows.append(_row(roots[node.id], node, "context", context_id))
        effective[node.id] = context_id
        kind = "root" if node.parent_id is None else "text"
        rows.append(_row(roots[node.id], node, kind, context_id))
    return rows


def _row(tree_id: str, node: NodeRecord, kind: str, context_id: str | None) -> Json:
    is_context = kind == "context"
    return {
        "id": context_id if is_context else node.id,
        "parent_id": None if is_context else node.parent_id,
        "tree_id": tree_id,
        "kind": kind,
        "text": node.context if is_context else node.text,
        "context_id": None if is_context else context_id,
        "model": None if is_context else node.model or None,
        "strategy": None if is_context else node.strategy or None,
        "max_tokens": None if is_context else node.max_tokens,
        "temperature": None if is_context else node.temperature,
        "checked_out": False if is_context else node.checked_out,
        "created_at": iso_time(node.created_at),
        "metadata": {} if is_context else _metadata(node),
    }


def _metadata(node: NodeRecord) -> Json:
    marks = {
        "bookmarked": node.bookmarked or None,
        "hidden": node.hidden or None,
        "partial": node.partial or None,
        "rating": node.rating,
        "role": node.role or None,
        "usage": node.usage,
    }
    return {**node.metadata, **{key: each for key, each in marks.items() if each is not None}}
