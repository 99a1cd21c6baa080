"""Purging decisions: what a project's stream keeps of them once their words are gone.

A secret that was logged must go for good.  The facts stay, since others stand on them: that there
was a node, what it was joined with, and in which state it was.  Nothing that anyone wrote is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, assert_never

import msgspec

from weft.decisions.facts import (
    DecisionAdded,
    DecisionChanged,
    DecisionFact,
    DecisionLinked,
    DecisionNode,
    DecisionPurged,
    DecisionSuperseded,
    TurnEvidence,
)
from weft.decisions.graph import DecisionGraph
from weft.ids import DecisionId, SessionId

PURGED_TITLE: Final = "[purged]"
"""The title that programs show which know nothing of purging."""

_replace = msgspec.structs.replace


class PurgeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was purged, and where its words may still be."""

    ids: tuple[DecisionId, ...]
    """The nodes, those that were named first; the options of a decision go with it."""
    sessions: tuple[SessionId, ...] = ()
    """Sessions in which it was said or logged: their logs are not changed.  Deleting them removes
    the words there, too."""


def with_options(graph: DecisionGraph, names: Iterable[DecisionId]) -> list[DecisionId]:
    """These nodes, and the options that belong to them alone."""
    found = dict.fromkeys(names)
    for name in list(found):
        for edge in graph.outgoing(name, "chosen", "rejected", "leads_to"):
            option = graph.nodes.get(edge.target)
            if option is None or option.kind != "option":
                continue
            if all(other.source in found for other in graph.incoming(option.id)):
                found[option.id] = None
    return list(found)


def sessions_of(graph: DecisionGraph, names: Iterable[DecisionId]) -> list[SessionId]:
    """The sessions that these nodes come from."""
    found: dict[SessionId, None] = {}
    for name in names:
        found[graph.sessions[name]] = None
        turns = (e for e in graph.nodes[name].evidence if isinstance(e, TurnEvidence))
        found.update(dict.fromkeys(turn.session_id for turn in turns))
    return [session for session in found if session]


def purged_fact(fact: DecisionFact, ids: Collection[DecisionId]) -> DecisionFact:
    """A fact without the words that are about these nodes; itself where it has none."""
    match fact:
        case DecisionAdded(node=node) if node.id in ids:
            return _replace(fact, node=_purged_node(node))
        case DecisionChanged(id=name) if name in ids:
            kept = DecisionChanged(id=name, status=fact.status, by=fact.by)
            return _replace(kept, session_id=fact.session_id, seq=fact.seq, at=fact.at)
        case DecisionLinked(edge=edge) if edge.source in ids or edge.target in ids:
            return _replace(fact, edge=_replace(edge, rationale=""))
        case DecisionSuperseded(old=old, new=new) if old in ids or new in ids:
            return _replace(fact, rationale="")
        case (
            DecisionAdded()
            | DecisionChanged()
            | DecisionLinked()
            | DecisionSuperseded()
            | DecisionPurged()
        ):
            return fact
        case _:
            assert_never(fact)


def _purged_node(node: DecisionNode) -> DecisionNode:
    return DecisionNode(
        id=node.id,
        kind=node.kind,
        title=PURGED_TITLE,
        status=node.status,
        by=node.by,
        at=node.at,
        # Ids alone: they lead to the sessions in which the words may still be.
        evidence=tuple(each for each in node.evidence if isinstance(each, TurnEvidence)),
    )
