"""The catalogue of trees: pages of them, by facets.  Pure.

Values of one facet are alternatives, and all facets have to fit.  The numbers beside a value say
how many trees there would be with it: the others count, its own facet does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.ids import NodeId
from weft.loom.trees.node_words import READ_WHOLE

if TYPE_CHECKING:
    from weft.loom.trees.loom_tree import LoomTree

CatalogueSort: TypeAlias = Literal["updated", "created", "oldest", "name", "nodes", "cost"]


class CatalogueEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a list shows of a tree, read without opening it."""

    root_id: NodeId
    name: str
    model: str
    nodes: int
    created: float
    updated: float
    cost_usd: float | None
    archived: bool
    project_path: str
    models: tuple[str, ...] = ()
    """The models that wrote in it; where details were asked for."""
    metadata: Mapping[str, object] = {}
    """Of the tree (`category`, `domain`, `source` and the like); where details were asked for."""


class TreeCatalogue(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list of trees."""

    entries: tuple[CatalogueEntry, ...]
    total: int
    facets: Mapping[str, Mapping[str, int]]
    """For each facet, how many trees have each value, the most frequent first."""


_FIELDS: Final = tuple(
    name for name in CatalogueEntry.__struct_fields__ if name not in ("models", "metadata")
)
_COUNTED: Final = ("model", "project_path")
"""Facets whose values are counted for every list."""
_SORTS: Final[dict[str, tuple[Any, bool]]] = {
    "updated": (lambda entry: (entry.updated, entry.root_id), True),
    "created": (lambda entry: (entry.created, entry.root_id), True),
    "oldest": (lambda entry: (entry.created, entry.root_id), False),
    "name": (lambda entry: (entry.name.casefold(), entry.root_id), False),
    "nodes": (lambda entry: (entry.nodes, entry.root_id), True),
    "cost": (lambda entry: (entry.cost_usd or 0.0, entry.root_id), True),
}


def needs_details(facets: Mapping[str, Sequence[Any]]) -> bool:
    """Whether trees have to be opened for what these facets ask."""
    return not facets.keys() <= set(_FIELDS)


def detailed(
    entry: CatalogueEntry, tree: LoomTree, metadata: Mapping[str, object]
) -> CatalogueEntry:
    """An entry with what only the tree itself tells."""
    models = {name for name in tree.state.ledger.models if name}
    nodes = tree.tree.nodes
    # Of a large tree only those that were paid for: its words are not all at hand.
    if len(nodes) <= READ_WHOLE:
        models |= {tree.words.head(node, nodes[node]).model for node in tree.all_nodes()} - {""}
    return msgspec.structs.replace(entry, models=tuple(sorted(models)), metadata=metadata)


def catalogue_page(
    entries: Sequence[CatalogueEntry],
    facets: Mapping[str, Sequence[Any]],
    *,
    sort: CatalogueSort,
    offset: int,
    limit: int,
) -> TreeCatalogue:
    """A page of those entries that fit.

    Raises:
        UsageError: there is no such order, or no entry has such a facet.
    """
    if sort not in _SORTS:
        raise UsageError(f"trees are not sorted by {sort!r}; there are {', '.join(_SORTS)}")
    _check(facets, entries)
    fitting = [entry for entry in entries if _fits(entry, facets)]
    fitting.sort(key=_SORTS[sort][0], reverse=_SORTS[sort][1])
    counted = [*_COUNTED, *_deep_facets(entries)]
    return TreeCatalogue(
        entries=tuple(fitting[offset : offset + limit]),
        total=len(fitting),
        facets={name: _counts(name, entries, facets) for name in counted},
    )


def _deep_facets(entries: Iterable[CatalogueEntry]) -> list[str]:
    """The facets that details bring."""
    names = {
        name
        for entry in entries
        for name, value in entry.metadata.items()
        if isinstance(value, str | list) and name not in _FIELDS
    }
    has_models = any(entry.models for entry in entries)
    return [*(["models"] if has_models else []), *sorted(names - {"models"})]


def _check(facets: Mapping[str, Sequence[Any]], entries: Sequence[CatalogueEntry]) -> None:
    known = [*_FIELDS, "models", *_deep_facets(entries)]
    for name, wanted in facets.items():
        if name not in known and entries:
            there = ", ".join(dict.fromkeys(known))
            raise UsageError(f"no facet {name!r}; there are {there}")
        if isinstance(wanted, str):
            raise UsageError(f"the facet {name!r} takes a list of values, as in [{wanted!r}]")


def _values(entry: CatalogueEntry, name: str) -> Sequence[Any]:
    """What an entry has of a facet: one value, or several."""
    if name == "models":
        return entry.models
    if name in _FIELDS:
        return (getattr(entry, name),)
    value = entry.metadata.get(name)
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


def _fits(
    entry: CatalogueEntry, facets: Mapping[str, Sequence[Any]], *, but: str | None = None
) -> bool:
    return all(
        any(value in wanted for value in _values(entry, name))
        for name, wanted in facets.items()
        if name != but and wanted
    )


def _counts(
    name: str, entries: Iterable[CatalogueEntry], facets: Mapping[str, Sequence[Any]]
) -> dict[str, int]:
    counter = Counter(
        str(value)
        for entry in entries
        if _fits(entry, facets, but=name)
        for value in dict.fromkeys(map(str, _values(entry, name)))
    )
    return dict(sorted(counter.items(), key=lambda each: (-each[1], each[0])))
