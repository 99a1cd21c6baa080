"""Search over all trees: by words, ids and the names of trees and models, fused to one order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec

from weft.ids import NodeId
from weft.loom.node import LoomNode
from weft.loom.search_rank import (
    LoomQuery,
    RankedNode,
    RankedTree,
    fused,
    id_order,
    metadata_order,
    rolled_up,
)
from weft.store import SearchHit, words

_EXCERPT: Final = 200


class LoomHit(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a search found."""

    node: LoomNode
    root: NodeId
    score: float
    snippet: str


class SearchSources(msgspec.Struct, frozen=True, kw_only=True):
    """What stores know of a search."""

    said: Sequence[SearchHit]
    """Where its words were said, the best first."""
    places: Sequence[tuple[str, str]] = ()
    """Nodes whose ids begin so, with their roots."""
    named: Sequence[tuple[str, Mapping[str, object]]] = ()
    """Roots of trees, with their names and models."""


async def search_nodes(
    nodes_by_ids: Callable[[Sequence[str]], Awaitable[Mapping[NodeId, LoomNode]]],
    query: LoomQuery,
    found: SearchSources,
    fits: Callable[[LoomHit], bool],
    limit: int,
) -> list[LoomHit]:
    """The nodes that fit a search, the best first."""
    excerpts = {hit.node: hit.excerpt for hit in found.said}
    hits: list[LoomHit] = []
    said, *others = _orders(query, found)
    otherwise = {node for order in others for node in order}
    phrases = words.phrases(query.words)
    ranked = fused([said, *others])
    for start in range(0, len(ranked), limit):
        page = ranked[start : start + limit]
        # What was deleted since it was found, or hidden, is not there any more.
        nodes = await nodes_by_ids([each.id for each in page])
        for each in page:
            node = nodes.get(NodeId(each.id))
            if node is None:
                continue
            excerpt = excerpts.get(node.id) or node.text[:_EXCERPT]
            if node.id in excerpts and node.revision and node.kind != "message":
                # Stores find what it said before as well.
                if _says_all(node, phrases):
                    excerpt = words.excerpt(node.text, phrases)
                elif node.id in otherwise:
                    excerpt = node.text[:_EXCERPT]
                else:
                    continue
            hit = LoomHit(node=node, root=node.root_id, score=each.score, snippet=excerpt)
            if holds(query, hit) and fits(hit):
                hits.append(hit)
                if len(hits) == limit:
                    return hits
    return hits


def from_match(text: str, query: LoomQuery) -> str:
    """A text of one line from a little before the words of a search on."""
    return words.around(text, query.words)


def best_trees(hits: Sequence[LoomHit], limit: int) -> list[RankedTree]:
    """The trees of what was found, each by its best node."""
    roots: dict[str, str] = {hit.node.id: hit.root for hit in hits}
    ranked = (RankedNode(hit.node.id, hit.score) for hit in hits)
    return rolled_up(ranked, roots.get, limit)


def holds(query: LoomQuery, hit: LoomHit) -> bool:
    """Whether a node is what the filters of a search ask for."""
    node = hit.node
    model, at = node.model or "", node.created_at
    states = {
        "bookmarked": node.bookmarked,
        "hidden": node.hidden,
        "partial": node.partial,
        "rated": node.rating is not None,
    }
    return (
        (not query.models or any(each in model for each in query.models))
        and not any(each in model for each in query.not_models)
        and (not query.roles or (node.role or "") in query.roles)
        and (not query.trees or any(hit.root.startswith(each) for each in query.trees))
        and (not query.labels or bool(set(query.labels) & _labels(node)))
        and all(states[name] is wanted for name, wanted in query.states)
        and (query.after is None or at >= query.after)
        and (query.before is None or at < query.before)
        and not (query.not_words and _says_any(node, words.phrases(" ".join(query.not_words))))
    )


def _says_all(node: LoomNode, phrases: Sequence[str]) -> bool:
    index = words.indexed(node.text)
    return all(words.holds(index, phrase) for phrase in phrases)


def _says_any(node: LoomNode, phrases: Sequence[str]) -> bool:
    index = words.indexed(node.text)
    # Whole words: who leaves out `sea` does not mean `season`.
    return any(words.holds(f"{index} ", f"{phrase} ") for phrase in phrases)


def _labels(node: LoomNode) -> set[str]:
    found = node.metadata.get("labels", node.metadata.get("label", ()))
    return {found} if isinstance(found, str) else {each for each in found if isinstance(each, str)}


def _orders(query: LoomQuery, found: SearchSources) -> list[list[str]]:
    """The orders of the nodes by each way of finding them."""
    orders = [[str(hit.node) for hit in found.said], metadata_order(query.words, found.named)]
    if query.looks_like_id:
        orders.append(id_order(query.words, found.places))
    return orders
