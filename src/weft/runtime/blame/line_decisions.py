"""What was decided where a line was written."""

from __future__ import annotations

from weft.decisions import CommitEvidence, DecisionGraph, DecisionNode
from weft.decisions.relevance import of_turn
from weft.evidence.blame import BlamedDecision, LineCommit, LineTurn
from weft.ids import TurnId


def decided(
    graph: DecisionGraph, commit: LineCommit | None, turn: LineTurn | None
) -> list[DecisionNode]:
    """What a commit and a turn are evidence of."""
    found = {node.id: node for node in _of_commit(graph, commit)}
    if turn is not None:
        nodes = of_turn(graph, turn.session_id, TurnId(turn.turn_id))
        found.update((node.id, node) for node in nodes if node.kind != "option")
    return list(found.values())


def _of_commit(graph: DecisionGraph, commit: LineCommit | None) -> list[DecisionNode]:
    if commit is None:
        return []
    return [
        node
        for node in graph.nodes.values()
        if node.kind != "option"
        and any(
            isinstance(each, CommitEvidence) and commit.commit.startswith(each.commit)
            for each in node.evidence
        )
    ]


def blamed_decision(graph: DecisionGraph, node: DecisionNode) -> BlamedDecision:
    """What is shown of a decision."""
    rejected = tuple(option.title for option, _ in graph.options(node.id, "rejected"))
    return BlamedDecision(
        id=node.id, title=node.title, reason=node.why, status=node.status, rejected=rejected
    )
