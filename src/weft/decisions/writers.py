"""Automatic writers: decisions from what the log already shows.

Each turns something that happened into facts.  Ids come from what it is about (a message, a plan, a
command), so that what is seen twice is written once.  Everything is `by` auto and proposed, unless
the user's own act decides it: an approved plan, a rewind, a check that ran.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from weft.decisions.corrections import UserCorrection
from weft.decisions.entry import (
    DecisionEntry,
    DecisionOption,
    LoggedEntry,
    clean_scope,
    decision_id,
    linked,
    log_entry,
    shortened,
)
from weft.decisions.facts import (
    CheckEvidence,
    CommitEvidence,
    DecisionAdded,
    DecisionChanged,
    DecisionEvidence,
    DecisionFact,
    DecisionNode,
    FileEvidence,
)
from weft.decisions.graph import ATTEMPT, CORRECTION, OPEN, DecisionGraph
from weft.decisions.scope import covers
from weft.decisions.sound_values import LONGEST_WHY
from weft.errors import UsageError
from weft.ids import DecisionId

MOST_ACTIONS: Final = 40


def correction_entry(
    correction: UserCorrection,
    graph: DecisionGraph,
    evidence: DecisionEvidence,
    *,
    seed: str,
    scope: Iterable[str] = (),
    at: float = 0.0,
) -> LoggedEntry:
    """A decision, proposed, of a user's correction: what they want, and what they turned down."""
    wanted = correction.chosen
    chosen = (DecisionOption(title=wanted, verdict="chosen"),) if wanted else ()
    entry = DecisionEntry(
        title=shortened(wanted or f"Not: {correction.rejected}"),
        kind="constraint" if correction.is_standing else "decision",
        why=f"The user: “{correction.quote}”",
        by="auto",
        scope=tuple(scope),
        evidence=(evidence,),
        options=(*chosen, DecisionOption(title=correction.rejected, why="the user said no")),
        tags=(CORRECTION,),
        at=at,
    )
    return log_entry(entry, graph, seed=seed)


def plan_facts(
    plan_id: str, plan: Mapping[str, Any], evidence: DecisionEvidence, *, at: float
) -> list[DecisionFact]:
    """A goal and its actions, proposed, of an architect's plan; again where the user edited it."""
    goal = plan_goal(plan_id)
    facts: list[DecisionFact] = [
        DecisionAdded(
            node=DecisionNode(
                id=goal,
                kind="goal",
                title=shortened(str(plan.get("summary") or "A plan")),
                by="auto",
                author="architect",
                evidence=(evidence,),
                at=at,
            )
        )
    ]
    steps = plan.get("steps") or ()
    for index, step in enumerate(list(steps)[:MOST_ACTIONS]):
        file = str(step.get("file") or "")
        action = DecisionNode(
            id=plan_action(plan_id, index),
            kind="action",
            title=shortened(str(step.get("description") or step.get("action") or "A step")),
            by="auto",
            author="architect",
            scope=_scope_of(file),
            evidence=(evidence,),
            at=at,
        )
        facts += [DecisionAdded(node=action), linked(goal, action.id, "leads_to")]
    return facts


def removed_steps(
    graph: DecisionGraph, plan_id: str, plan: Mapping[str, Any]
) -> list[DecisionFact]:
    """What an edit of a plan makes of the steps that it has no longer: no approval may reach them.

    Steps are known by their place, so these are the last ones.
    """
    gone = range(len(plan.get("steps") or ()), MOST_ACTIONS)
    return [
        DecisionChanged(id=name, status="superseded", by="user", reason="taken out of the plan")
        for name in (plan_action(plan_id, step) for step in gone)
        if name in graph.nodes and graph.nodes[name].status in OPEN
    ]


def plan_goal(plan_id: str) -> DecisionId:
    """The id of a plan's goal."""
    return decision_id("goal", plan_id)


def plan_action(plan_id: str, index: int) -> DecisionId:
    """The id of a step's action."""
    return decision_id("action", plan_id, str(index))


def plan_decided(
    graph: DecisionGraph,
    plan_id: str,
    *,
    approved: bool,
    reason: str,
    by: str = "user",
    new: Collection[DecisionId] = (),
) -> list[DecisionFact]:
    """What an approval, or a refusal, of a plan makes of its goal and actions; `new` are those that
    are not in the graph yet.
    """
    ours = [plan_goal(plan_id), *(plan_action(plan_id, step) for step in range(MOST_ACTIONS))]
    status = "active" if approved else "abandoned"
    return [
        DecisionChanged(id=name, status=status, by=by, reason=reason[:LONGEST_WHY])
        for name in ours
        if name in new or (name in graph.nodes and graph.nodes[name].status in OPEN)
    ]


def step_outcome(
    graph: DecisionGraph, plan_id: str, index: int, *, passed: bool, check: str, detail: str
) -> list[DecisionFact]:
    """The outcome of a plan's step, with its check's exit as evidence."""
    action = plan_action(plan_id, index)
    title = graph.nodes[action].title if action in graph.nodes else f"Step {index + 1}"
    evidence = (CheckEvidence(command=check, exit=0 if passed else 1),) if check else ()
    outcome = DecisionNode(
        id=decision_id("outcome", plan_id, str(index), str(passed)),
        kind="outcome",
        title=shortened(f"{'Done' if passed else 'Failed'}: {title}"),
        why=shortened(detail, 600) if detail else "",
        status="done",
        by="auto",
        author="architect",
        evidence=evidence,
    )
    facts: list[DecisionFact] = [
        DecisionAdded(node=outcome),
        linked(action, outcome.id, "leads_to"),
    ]
    if passed:
        facts.append(
            DecisionChanged(id=action, status="done", evidence=evidence, by="auto", reason=check)
        )
    return facts


def abandoned_attempt(
    summary: str,
    why: str,
    evidence: DecisionEvidence,
    *,
    seed: str,
    files: Sequence[str] = (),
    at: float = 0.0,
) -> list[DecisionFact]:
    """An attempt that the user went back on: a rewind, or a branch that was deleted."""
    node = DecisionNode(
        id=decision_id("attempt", seed),
        kind="action",
        title=shortened(summary),
        why=why[:LONGEST_WHY],
        status="abandoned",
        by="auto",
        scope=tuple(scope for file in files[:10] for scope in _scope_of(file)),
        evidence=(evidence,),
        tags=(ATTEMPT,),
        at=at,
    )
    return [DecisionAdded(node=node)]


def fixed_test(
    command: str,
    was: int,
    files: Sequence[str],
    evidence: DecisionEvidence,
    *,
    seed: str,
    at: float = 0.0,
) -> list[DecisionFact]:
    """A test that failed before an edit and passes after it: an observation and an outcome."""
    failed = DecisionNode(
        id=decision_id("failing", command, seed),
        kind="observation",
        title=shortened(f"{command} failed"),
        status="done",
        by="auto",
        evidence=(CheckEvidence(command=command, exit=was),),
        at=at,
    )
    shown = ", ".join(files[:5])
    passed = DecisionNode(
        id=decision_id("passing", command, seed),
        kind="outcome",
        title=shortened(f"{command} passes after edits of {shown}"),
        status="done",
        by="auto",
        scope=tuple(scope for file in files[:10] for scope in _scope_of(file)),
        evidence=(evidence, CheckEvidence(command=command, exit=0)),
        at=at,
    )
    return [
        DecisionAdded(node=failed),
        DecisionAdded(node=passed),
        linked(failed.id, passed.id, "leads_to"),
    ]


def proven_by_test(
    graph: DecisionGraph, session_id: str, command: str, files: Sequence[str]
) -> list[DecisionFact]:
    """What the model proposed in this session about files whose test passes now: a passing check
    makes it active.

    Not what would take the place of something that counts, nor a standing order: the model chooses
    the check, and only the user ends a decision or gives orders.
    """
    check = CheckEvidence(command=command, exit=0)
    return [
        DecisionChanged(
            id=node.id, status="active", evidence=(check,), by="auto", reason="its check passed"
        )
        for node in graph.of_session(session_id)
        if node.status == "proposed"
        and node.by == "model"
        and node.kind not in ("option", "constraint")
        and node.scope
        and any(covers(node.scope, file) for file in files)
        and not any(True for _ in graph.outgoing(node.id, "supersedes"))
    ]


def commit_links(
    graph: DecisionGraph, session_id: str, commit: str, files: Sequence[str]
) -> list[DecisionFact]:
    """A commit as evidence of what the session decided about its files."""
    evidence = CommitEvidence(commit=commit)
    return [
        DecisionChanged(id=node.id, evidence=(evidence,), by="auto", reason="committed")
        for node in graph.of_session(session_id)
        if node.kind != "option"
        and node.status != "superseded"
        and evidence not in node.evidence
        and any(_is_about(node, file) for file in files)
    ]


def fan_decision(
    graph: DecisionGraph,
    kept: str,
    others: Mapping[str, str],
    evidence: DecisionEvidence,
    *,
    seed: str,
    checks: Mapping[str, tuple[str, int]] | None = None,
    scope: Iterable[str] = (),
    at: float = 0.0,
) -> LoggedEntry:
    """A decision of a fan-out: the candidate that the user kept, and the others, each with why it
    was not.

    `checks` has the command and the exit of each candidate's verification, by its title.
    """
    results = checks or {}
    shown = [
        f"{title}: `{command}` ended with {code}" for title, (command, code) in results.items()
    ]
    mine = results.get(kept)
    found = (CheckEvidence(command=mine[0], exit=mine[1]),) if mine is not None else ()
    entry = DecisionEntry(
        title=shortened(f"Keep: {kept}"),
        why="\n".join(shown),
        status="active",
        by="user",
        scope=tuple(scope),
        evidence=(evidence, *found),
        options=(
            DecisionOption(title=shortened(kept), verdict="chosen"),
            *(
                DecisionOption(title=shortened(title), why=shortened(why, 600) if why else "")
                for title, why in list(others.items())[:9]
            ),
        ),
        tags=("fan",),
        at=at,
    )
    return log_entry(entry, graph, seed=seed)


def _is_about(node: DecisionNode, file: str) -> bool:
    return covers(node.scope, file) or any(
        isinstance(each, FileEvidence) and each.path == file for each in node.evidence
    )


def _scope_of(file: str) -> tuple[str, ...]:
    try:
        return clean_scope([file]) if file else ()
    except UsageError:
        return ()
