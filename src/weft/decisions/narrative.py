"""The graph told as text: for a session, for a goal, or all of it, oldest first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from weft.decisions.facts import (
    CheckEvidence,
    CommitEvidence,
    DecisionEvidence,
    DecisionNode,
    FileEvidence,
    TurnEvidence,
)
from weft.decisions.graph import OPEN, DecisionGraph
from weft.ids import DecisionId


def narrative_of(graph: DecisionGraph, nodes: Iterable[DecisionNode]) -> str:
    """What happened, a paragraph for each node; options stand with their decision."""
    chosen = sorted(nodes, key=lambda node: (node.at, node.id))
    names = {node.id for node in chosen}
    told = [node for node in chosen if not _stands_with_other(graph, node, names)]
    return "\n\n".join(_paragraph(graph, node) for node in told)


def reached_from(graph: DecisionGraph, start: DecisionId) -> list[DecisionNode]:
    """A node and all that edges lead to from it; edges are data, and may go round in a circle."""
    seen = {start: None}
    waiting = [start]
    while waiting:
        for edge in graph.outgoing(waiting.pop()):
            if edge.target not in seen:
                seen[edge.target] = None
                waiting.append(edge.target)
    return [graph.nodes[name] for name in seen if name in graph.nodes]


def day(at: float) -> str:
    """A date for display."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") if at > 0 else "-"


def evidence_text(evidence: DecisionEvidence) -> str:
    """A piece of evidence, for display."""
    match evidence:
        case TurnEvidence(session_id=session, turn_id=turn):
            return f"turn {turn or '-'} of session {session}"
        case FileEvidence(path=path):
            return f"file {path}"
        case CommitEvidence(commit=commit):
            return f"commit {commit[:12]}"
        case CheckEvidence(command=command, exit=code):
            return f"`{command}` ended with {code}"


def _stands_with_other(graph: DecisionGraph, node: DecisionNode, names: set[DecisionId]) -> bool:
    return node.kind == "option" and any(
        edge.source in names for edge in graph.incoming(node.id, "chosen", "rejected", "leads_to")
    )


def _paragraph(graph: DecisionGraph, node: DecisionNode) -> str:
    sure = "" if node.confidence is None else f", {node.confidence} % sure"
    lines = [f"{day(node.at)} {node.kind}: {node.title} [{node.id}, {node.status}{sure}]"]
    if node.why:
        lines += [f"  {line}" for line in node.why.splitlines()]
    if reason := graph.reasons.get(node.id):
        lines.append(f"  {node.status}: {reason}")
    for verdict in ("chosen", "rejected"):
        for option, edge in graph.options(node.id, verdict):
            why = edge.rationale or option.why
            lines.append(f"  {verdict}: {option.title}{f' ({why})' if why else ''}")
    for edge in graph.incoming(node.id, "supersedes"):
        if edge.source in graph.nodes:
            new = graph.nodes[edge.source]
            lines.append(f"  superseded by: {new.title} [{new.id}]")
    for edge in graph.outgoing(node.id, "leads_to", "requires", "blocks", "enables", "supports"):
        target = graph.nodes.get(edge.target)
        if target is not None and target.kind != "option":
            lines.append(f"  {edge.kind.replace('_', ' ')}: {target.title} [{target.id}]")
    lines += [f"  evidence: {evidence_text(each)}" for each in node.evidence]
    return "\n".join(lines)


def shown_status(graph: DecisionGraph, node: DecisionNode) -> str:
    """The status of a node; of an option, what became of it: its own status says only that it is
    there.
    """
    if node.kind != "option" or node.status not in OPEN:
        return node.status
    verdicts = {edge.kind for edge in graph.incoming(node.id, "chosen", "rejected")}
    return " and ".join(sorted(verdicts)) or node.status
