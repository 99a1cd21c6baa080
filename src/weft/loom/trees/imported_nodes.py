"""Nodes from other programs: read as data, their ids kept, nothing of them trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.ids import NodeId
from weft.loom.formats.plain_json import amount, plain_metadata, rating, seconds, whole
from weft.loom.model_plan import stored_plan
from weft.loom.node import CHECKED_OUT, CONTEXT
from weft.loom.trees.tree_edits import text_node
from weft.messages import Node, Usage

LONGEST_ID: Final = 200
_OF_MODEL: Final = ("model", "n_branches", "max_tokens", "temperature")
_COUNTS: Final = (
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
    *("reasoning_tokens", "long_cache_tokens"),
)
_COUNTED: Final = {"input_tokens": ("prompt_tokens",), "output_tokens": ("completion_tokens",)}
"""The names that other programs have for some of them."""
_SETTINGS: Final = (*_OF_MODEL, "model_plan", "name", "context", "show_model_names")


class ImportedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of an import, checked."""

    id: NodeId
    parent_id: NodeId | None
    node: Node
    at: float
    checked_out: bool = False
    settings: Mapping[str, Any] = {}
    """Of its tree, where it is a root that carries them as other programs store them."""


def checked_nodes(records: Iterable[Any]) -> list[ImportedNode]:
    """The nodes of an import, each after its parent where both are in it.

    Raises:
        UsageError: a record is no node, an id is there twice, or they go round in a circle.
    """
    found: dict[NodeId, ImportedNode] = {}
    for number, record in enumerate(records):
        fields = msgspec.to_builtins(record) if isinstance(record, msgspec.Struct) else record
        if not isinstance(fields, Mapping):
            raise UsageError(f"node {number} of the import is no map of fields")
        if fields.get("kind") == "context":
            continue
        node = _checked(fields, number)
        if node.id in found:
            raise UsageError(f"the node {node.id!r} is in the import twice")
        found[node.id] = node
    return _parents_first(found)


def _checked(fields: Mapping[str, Any], number: int) -> ImportedNode:
    node_id = _id(fields.get("id"), f"node {number} of the import")
    parent = fields.get("parent_id")
    parent_id = None if parent in (None, "") else _id(parent, f"the parent of {node_id!r}")
    text = fields.get("text") or ""
    if not isinstance(text, str):
        raise UsageError(f"the text of {node_id!r} is not text")
    model, strategy = fields.get("model"), fields.get("strategy")
    metadata = _metadata(fields)
    settings = _taken_settings(metadata) if parent_id is None else {}
    node = text_node(
        node_id,
        text,
        parent=parent_id,
        model=model if isinstance(model, str) else "",
        strategy=strategy if isinstance(strategy, str) and strategy else None,
        max_tokens=whole(fields.get("max_tokens")) or None,
        temperature=amount(fields.get("temperature")),
        metadata=metadata,
        usage=_usage(fields),
    )
    context = fields.get("context") or settings.pop("context", "")
    if isinstance(context, str) and context:
        node.metadata[CONTEXT] = context
    return ImportedNode(
        id=node_id,
        parent_id=parent_id,
        node=node,
        at=seconds(fields.get("created_at")) or 0.0,
        checked_out=bool(fields.get(CHECKED_OUT)),
        settings=settings,
    )


def _usage(fields: Mapping[str, Any]) -> Usage | None:
    """What a node cost its writer; None where the record says nothing of it."""
    given = fields.get("usage")
    told = given if isinstance(given, Mapping) else {}
    counts = {
        name: max(whole(told.get(each)) or 0 for each in (name, *_COUNTED.get(name, ())))
        for name in _COUNTS
    }
    costs = (amount(each.get("cost_usd")) for each in (fields, told))
    cost = next((each for each in costs if each is not None), None)
    if not any(counts.values()) and cost is None:
        return None
    return Usage(**counts, cost_usd=cost)


def _taken_settings(metadata: dict[str, Any]) -> dict[str, Any]:
    """The settings among the metadata of a root, taken out of them; wrong ones are dropped."""
    given: dict[str, Any] = {name: metadata.pop(name) for name in _SETTINGS if name in metadata}
    inner = metadata.pop("config", None)
    if isinstance(inner, Mapping):
        given |= {name: inner[name] for name in _SETTINGS if name in inner}
    plan = stored_plan(given.get("model_plan"))
    if not plan and given.get("model"):
        plan = stored_plan([{name: given[name] for name in _OF_MODEL if name in given}])
    kinds = {"name": str, "context": str, "show_model_names": bool}
    found = {name: given[name] for name, kind in kinds.items() if isinstance(given.get(name), kind)}
    return {**found, "model_plan": plan} if plan else found


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any]:
    given = fields.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    for name in ("role", "bookmarked", "hidden", "rating", "partial"):
        if fields.get(name):
            metadata[name] = fields[name]
    if "rating" in metadata:
        given_rating = rating(metadata.pop("rating"))
        # Whole numbers, as everywhere else.
        metadata |= {} if given_rating is None else {"rating": round(given_rating)}
    # Numbers that no JSON has would be stored as something else.
    return plain_metadata({name: each for name, each in metadata.items() if isinstance(name, str)})


def _id(given: Any, what: str) -> NodeId:
    if not isinstance(given, str) or not given or len(given) > LONGEST_ID or "\0" in given:
        raise UsageError(f"{what} has no id that can be stored: {given!r}")
    return NodeId(given)


def _parents_first(found: Mapping[NodeId, ImportedNode]) -> list[ImportedNode]:
    ordered: dict[NodeId, ImportedNode] = {}
    for start in found.values():
        line = [start]
        while (above := found.get(line[-1].parent_id or NodeId(""))) and above.id not in ordered:
            line.append(above)
            if len(line) > len(found):
                raise UsageError(f"the nodes of the import go round in a circle at {start.id!r}")
        for each in reversed(line):
            ordered.setdefault(each.id, each)
    return list(ordered.values())
