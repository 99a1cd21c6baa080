"""The pulse of the graph: twelve checks for what is missing, stale or at odds.

Each check finds one kind of problem; a node may have several.  The files of the project and the
time are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

import msgspec

from weft.decisions.facts import DecisionNode, FileEvidence
from weft.decisions.graph import OPEN, DecisionGraph
from weft.decisions.relevance import is_told
from weft.decisions.scope import folder_of, is_symbol
from weft.decisions.scope_index import ScopeIndex
from weft.decisions.words import is_generic, is_pair, words_of
from weft.ids import DecisionId

DAY: Final = 86_400.0
STALE_DAYS: Final = 7
LOW_CONFIDENCE: Final = 50
HALF: Final = 0.5
PLANS: Final = frozenset({"goal", "action"})


class PulseFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that a check found."""

    check: str
    id: DecisionId
    text: str
    """A sentence that says what is wrong, and what to do."""


class PulseReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the graph is."""

    score: int
    """100 where nothing was found, down to 0."""
    findings: tuple[PulseFinding, ...]
    nodes: int
    active_goals: int
    proposed: int

    @property
    def summary(self) -> str:
        """One line."""
        count = len(self.findings)
        problems = f"{count} problem{'' if count == 1 else 's'}"
        goals = f"{self.active_goals} active goal{'' if self.active_goals == 1 else 's'}"
        counts = f"{goals}, {self.proposed} proposed, {self.nodes} nodes"
        return f"health {self.score} of 100: {problems}; {counts}"


class ProjectFiles(msgspec.Struct, frozen=True):
    """The files of a project, for the checks that look at them."""

    paths: Collection[str]
    """All of them, relative to the project."""
    share_left: Callable[[FileEvidence], float]
    """How much of a file that is evidence is left in it: 1.0 for all."""


_Findings = Iterator[tuple[DecisionId, str]]


def check_pulse(
    graph: DecisionGraph, *, now: float, files: ProjectFiles | None = None
) -> PulseReport:
    """Run all checks; those that look at files only where there are some."""
    found = [
        PulseFinding(check=name, id=node, text=text)
        for name, check in CHECKS.items()
        for node, text in check(graph, now, files)
    ]
    losses = dict.fromkeys(CHECKS, 0)
    for finding in found:
        losses[finding.check] += WEIGHTS[finding.check]
    # One kind of problem takes a third at most: a hundred orphans are one habit, not a hundred
    # faults.
    score = 100 - sum(min(loss, 33) for loss in losses.values())
    open_nodes = [node for node in graph.nodes.values() if node.status in OPEN]
    return PulseReport(
        score=max(0, score),
        findings=tuple(found),
        nodes=len(graph.nodes),
        active_goals=sum(
            node.kind == "goal" and node.status == "active" for node in graph.nodes.values()
        ),
        proposed=sum(node.status == "proposed" and node.kind != "option" for node in open_nodes),
    )


def goal_without_action(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    for node in _open(graph, "goal"):
        reached = _below(graph, node.id)
        if not any(graph.nodes[name].kind in ("action", "outcome") for name in reached):
            yield node.id, f"the goal “{node.title}” has no action yet"


def action_without_outcome(
    graph: DecisionGraph, now: float, files: ProjectFiles | None
) -> _Findings:
    for node in graph.nodes.values():
        if node.kind != "action" or node.status not in ("active", "done"):
            continue
        targets = (graph.nodes.get(name) for name in graph.neighbours(node.id))
        if not any(other is not None and other.kind == "outcome" for other in targets):
            yield node.id, f"the action “{node.title}” has no outcome; log what came of it"


def decision_without_options(
    graph: DecisionGraph, now: float, files: ProjectFiles | None
) -> _Findings:
    for node in _open(graph, "decision"):
        if not graph.options(node.id, "chosen") and not graph.options(node.id, "rejected"):
            yield node.id, f"the decision “{node.title}” names no option that it weighed"


def scope_without_files(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    if files is None:
        return
    held = [node for node in graph.nodes.values() if node.status in OPEN and node.kind != "option"]
    alone = {scope for node in held for scope in node.scope if not is_symbol(scope)}
    index: ScopeIndex[str] = ScopeIndex()
    for scope in alone:
        index.add(scope, (scope,))
    for path in files.paths if alone else ():
        for scope in index.find(path):
            alone.discard(scope)
            index.remove(scope, (scope,))
    for node in held:
        for scope in node.scope:
            if scope in alone:
                yield node.id, f"no file fits the scope {scope} of “{node.title}”"


def evidence_changed(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    if files is None:
        return
    for node in graph.nodes.values():
        if node.status not in OPEN:
            continue
        for each in node.evidence:
            if not isinstance(each, FileEvidence) or each.blob is None:
                continue
            if files.share_left(each) < HALF:
                yield (
                    node.id,
                    f"more than half of {each.path} has changed since “{node.title}”; does it "
                    "still hold?",
                )


def decisions_at_odds(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    """Two active decisions with one scope, of which the one rejects what the other chose."""
    active = [node for node in _open(graph, "decision") if node.status == "active"]
    chosen: dict[tuple[frozenset[str], frozenset[str]], list[DecisionNode]] = {}
    for node in active:
        for words in _option_words(graph, node, "chosen") or [frozenset(words_of(node.title))]:
            chosen.setdefault((frozenset(node.scope), words), []).append(node)
    for node in active:
        others = {
            other.id: other
            for words in _option_words(graph, node, "rejected")
            for other in chosen.get((frozenset(node.scope), words), ())
            if words and other.id != node.id
        }
        for other in others.values():
            yield node.id, f"“{node.title}” rejects what “{other.title}” chose ({other.id})"


def rejected_in_plan(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    """What was rejected, in a goal or an action that came later."""
    plans = [node for node in graph.nodes.values() if node.kind in PLANS and node.status in OPEN]
    having: dict[str, set[DecisionId]] = {}
    for plan in plans:
        for word in words_of(f"{plan.title} {plan.why}"):
            having.setdefault(word, set()).add(plan.id)
    for node in graph.nodes.values() if plans else ():
        if node.kind != "decision" or node.status not in ("active", "done"):
            continue
        for option, _ in graph.options(node.id, "rejected"):
            sets = [having.get(word, set()) for word in _telling(option.title)]
            for name in sorted(set.intersection(*sets)) if sets else ():
                plan = graph.nodes[name]
                if plan.at > node.at:
                    text = f"“{plan.title}” goes back to {option.title}, which was rejected"
                    yield plan.id, f"{text} ({node.id})"


def superseded_alone(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    """A superseded node is the only one on its scope: nothing says what holds now."""
    over = [
        node
        for node in graph.nodes.values()
        if node.status == "superseded" and node.kind != "option" and node.scope
    ]
    holding: ScopeIndex[DecisionId] = ScopeIndex()
    ended: ScopeIndex[DecisionId] = ScopeIndex()
    same: set[str] = set()
    for node in over:
        ended.add(node.id, node.scope)
    replaced: set[DecisionId] = set()
    for other in graph.nodes.values() if over else ():
        if other.status in OPEN and other.kind != "option":
            holding.add(other.id, other.scope)
            same.update(other.scope)
            for place in {_inside(scope) for scope in other.scope}:
                replaced.update(ended.find(place))
    for node in over:
        # What is about the whole project says nothing about these files, unless it took its place.
        successor = graph.successor(node.id)
        if successor is not None and not successor.scope and successor.status in OPEN:
            continue
        is_held = any(scope in same or holding.find(_inside(scope)) for scope in node.scope)
        if not is_held and node.id not in replaced:
            yield node.id, f"“{node.title}” is superseded, and no other decision is about its files"


def review_passed(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    for node in graph.nodes.values():
        if node.status in OPEN and node.review_after is not None and node.review_after < now:
            yield node.id, f"“{node.title}” was to be looked at again by now"


def orphan(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    """A node that nothing joins with another.  Goals, decisions and standing orders may stand
    alone.
    """
    for node in graph.nodes.values():
        if node.kind in ("goal", "decision", "constraint") or node.status not in (*OPEN, "done"):
            continue
        if not any(name in graph.nodes for name in graph.neighbours(node.id)):
            yield node.id, f"nothing leads to the {node.kind} “{node.title}” or from it; link it"


def low_confidence_with_dependants(
    graph: DecisionGraph, now: float, files: ProjectFiles | None
) -> _Findings:
    for node in graph.nodes.values():
        if node.status not in OPEN or node.confidence is None:
            continue
        if node.confidence >= LOW_CONFIDENCE:
            continue
        dependants = [edge.source for edge in graph.incoming(node.id, "requires")]
        dependants += [edge.target for edge in graph.outgoing(node.id, "enables", "leads_to")]
        nodes = [graph.nodes[name] for name in dependants if name in graph.nodes]
        if any(other.kind != "option" and other.status in OPEN for other in nodes):
            yield node.id, f"others rest on “{node.title}”, which is {node.confidence} % sure"


def stale_proposal(graph: DecisionGraph, now: float, files: ProjectFiles | None) -> _Findings:
    for node in graph.nodes.values():
        if node.status != "proposed" or node.kind == "option":
            continue
        days = int((now - graph.changed[node.id]) / DAY)
        if now - graph.changed[node.id] > STALE_DAYS * DAY:
            yield node.id, f"“{node.title}” has been proposed for {days} days; accept or abandon it"


CHECKS: Final = {
    "goal_without_action": goal_without_action,
    "action_without_outcome": action_without_outcome,
    "decision_without_options": decision_without_options,
    "scope_without_files": scope_without_files,
    "evidence_changed": evidence_changed,
    "decisions_at_odds": decisions_at_odds,
    "rejected_in_plan": rejected_in_plan,
    "superseded_alone": superseded_alone,
    "review_passed": review_passed,
    "orphan": orphan,
    "low_confidence_with_dependants": low_confidence_with_dependants,
    "stale_proposal": stale_proposal,
}
"""Every check by its name."""
WEIGHTS: Final = {
    "goal_without_action": 8,
    "action_without_outcome": 3,
    "decision_without_options": 2,
    "scope_without_files": 4,
    "evidence_changed": 5,
    "decisions_at_odds": 15,
    "rejected_in_plan": 15,
    "superseded_alone": 4,
    "review_passed": 5,
    "orphan": 4,
    "low_confidence_with_dependants": 6,
    "stale_proposal": 3,
}
"""What a finding takes from the score."""


def returning_options(graph: DecisionGraph, text: str) -> list[tuple[DecisionNode, DecisionNode]]:
    """The rejected options that a text (a plan that is proposed) goes back to, each with its
    decision.
    """
    said = set(words_of(text))
    return [
        (node, option)
        for node in graph.nodes.values()
        if node.kind == "decision" and is_told(graph, node) and node.status != "abandoned"
        for option, _ in graph.options(node.id, "rejected")
        if (words := _telling(option.title)) and words <= said
    ]


def _open(graph: DecisionGraph, kind: str) -> list[DecisionNode]:
    return [node for node in graph.nodes.values() if node.kind == kind and node.status in OPEN]


def _below(graph: DecisionGraph, start: DecisionId) -> Iterator[DecisionId]:
    """What edges lead to from a node, one after the other: few have to be looked at."""
    seen = {start}
    waiting = [start]
    while waiting:
        for edge in graph.outgoing(waiting.pop()):
            if edge.target in graph.nodes and edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
                yield edge.target


def _option_words(graph: DecisionGraph, node: DecisionNode, verdict: str) -> list[frozenset[str]]:
    return [frozenset(words_of(option.title)) for option, _ in graph.options(node.id, verdict)]


def _telling(title: str) -> set[str]:
    """The words of an option that tell it from others."""
    return {word for word in words_of(title) if is_pair(word) or not is_generic(word)}


def _inside(scope: str) -> str:
    """A path that a scope holds, for a look at what else holds it."""
    return f"{folder_of(scope)}/_"
