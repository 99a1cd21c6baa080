"""The pulse: each check finds the problem that was planted for it, and no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft.decisions import (
    DecisionChanged,
    DecisionEntry,
    DecisionGraph,
    DecisionOption,
    DecisionSuperseded,
    file_evidence,
    fold_decisions,
    linked,
    log_entry,
    share_left,
)
from weft.decisions.pulse import CHECKS, WEIGHTS, ProjectFiles, check_pulse, returning_options
from weft.ids import DecisionId

NOW = 1_800_000_000.0
DAY = 86_400.0
STORE = b"\n".join(f"line {number}".encode() for number in range(100))
FILES = {"src/store/base.py": STORE, "src/cli/main.py": b"main()\n"}


def files() -> ProjectFiles:
    return ProjectFiles(FILES, lambda each: share_left(each, FILES.get(each.path)))


def add(graph: DecisionGraph, title: str, **fields: object) -> DecisionId:
    given = {"title": title, "status": "active", "at": NOW - DAY, **fields}
    logged = log_entry(DecisionEntry(**given), graph, seed="s")  # type: ignore[arg-type]
    fold_decisions(logged.facts, start=graph)
    for name in logged.ids:
        graph.changed[name] = NOW - DAY
    return logged.node.id


OPTIONS = (
    DecisionOption(title="SQLite", verdict="chosen"),
    DecisionOption(title="Postgres", why="a service to run"),
)


def healthy() -> DecisionGraph:
    """A graph with one of everything, and nothing wrong."""
    graph = DecisionGraph()
    goal = add(graph, "Sessions survive a restart", kind="goal")
    decision = add(
        graph,
        "Keep sessions in SQLite",
        options=OPTIONS,
        scope=("src/store/**",),
        evidence=(file_evidence("src/store/base.py", STORE),),
        confidence=90,
        review_after=NOW + DAY,
    )
    action = add(graph, "Write the store", kind="action")
    outcome = add(graph, "Restart test passes", kind="outcome")
    constraint = add(graph, "Never block the loop", kind="constraint")
    old = add(graph, "Keep sessions in memory", options=OPTIONS[:1], scope=("src/store/**",))
    fold_decisions(
        [
            linked(goal, decision, "leads_to"),
            linked(decision, action, "leads_to"),
            linked(action, outcome, "leads_to"),
            linked(constraint, decision, "supports"),
            DecisionSuperseded(old=old, new=decision),
        ],
        start=graph,
    )
    return graph


def named(graph: DecisionGraph, title: str) -> DecisionId:
    return next(name for name, node in graph.nodes.items() if node.title == title)


def plant_goal(graph: DecisionGraph) -> None:
    add(graph, "Ship it", kind="goal")


def plant_action(graph: DecisionGraph) -> None:
    action = add(graph, "Clean up", kind="action")
    graph.apply(linked(named(graph, "Sessions survive a restart"), action, "leads_to"))


def plant_decision(graph: DecisionGraph) -> None:
    add(graph, "Log as JSON")


def plant_scope(graph: DecisionGraph) -> None:
    add(graph, "Style of pages", options=OPTIONS[:1], scope=("web/**", "SessionStore"))


def plant_evidence(graph: DecisionGraph) -> None:
    was = b"\n".join(f"old {number}".encode() for number in range(50))
    evidence = (file_evidence("src/cli/main.py", was),)
    add(graph, "One entry point", options=OPTIONS[:1], evidence=evidence)


def plant_odds(graph: DecisionGraph) -> None:
    chosen = (DecisionOption(title="Postgres", verdict="chosen"),)
    add(graph, "Use a server", options=chosen, scope=("src/store/**",))


def plant_plan(graph: DecisionGraph) -> None:
    action = add(graph, "Set up Postgres for the tests", kind="action", at=NOW)
    for end in ("Sessions survive a restart", "Restart test passes"):
        graph.apply(linked(action, named(graph, end), "leads_to"))


def plant_superseded(graph: DecisionGraph) -> None:
    add(graph, "Parse by hand", options=OPTIONS[:1], scope=("src/cli/**",), status="superseded")


def plant_review(graph: DecisionGraph) -> None:
    add(graph, "Python 3.11", options=OPTIONS[:1], review_after=NOW - 1)


def plant_orphan(graph: DecisionGraph) -> None:
    add(graph, "The disk is slow", kind="observation")


def plant_doubt(graph: DecisionGraph) -> None:
    graph.apply(DecisionChanged(id=named(graph, "Keep sessions in SQLite"), confidence=30))


def plant_proposal(graph: DecisionGraph) -> None:
    name = add(graph, "Use uvloop", options=OPTIONS[:1], status="proposed")
    graph.changed[name] = NOW - 8 * DAY


PLANTED: dict[str, Callable[[DecisionGraph], None]] = {
    "goal_without_action": plant_goal,
    "action_without_outcome": plant_action,
    "decision_without_options": plant_decision,
    "scope_without_files": plant_scope,
    "evidence_changed": plant_evidence,
    "decisions_at_odds": plant_odds,
    "rejected_in_plan": plant_plan,
    "superseded_alone": plant_superseded,
    "review_passed": plant_review,
    "orphan": plant_orphan,
    "low_confidence_with_dependants": plant_doubt,
    "stale_proposal": plant_proposal,
}


def test_a_healthy_graph_has_no_finding() -> None:
    report = check_pulse(healthy(), now=NOW, files=files())
    assert report.findings == ()
    assert report.score == 100
    assert report.summary == "health 100 of 100: 0 problems; 1 active goal, 0 proposed, 9 nodes"


def test_every_check_has_its_planted_problem() -> None:
    assert set(PLANTED) == set(CHECKS) == set(WEIGHTS)
    assert len(CHECKS) == 12


@pytest.mark.parametrize("check", PLANTED)
def test_each_check_finds_its_planted_problem_and_no_other(check: str) -> None:
    graph = healthy()
    PLANTED[check](graph)
    report = check_pulse(graph, now=NOW, files=files())
    assert [finding.check for finding in report.findings] == [check]
    assert report.score == 100 - WEIGHTS[check]
    assert report.findings[0].id in graph.nodes
    assert report.findings[0].text


def test_checks_of_files_are_left_out_where_there_are_none_to_look_at() -> None:
    graph = healthy()
    plant_scope(graph)
    plant_evidence(graph)
    assert check_pulse(graph, now=NOW).findings == ()


def test_one_habit_takes_no_more_than_a_third() -> None:
    graph = healthy()
    for number in range(50):
        add(graph, f"goal {number}", kind="goal")
    assert check_pulse(graph, now=NOW, files=files()).score == 67


def test_a_plan_that_goes_back_to_what_was_rejected_is_found_before_it_is_carried_out() -> None:
    graph = healthy()
    [(decision, option)] = returning_options(graph, "1. Add a postgres container to CI")
    assert (decision.title, option.title) == ("Keep sessions in SQLite", "Postgres")
    assert returning_options(graph, "1. Add an index to the SQLite file") == []
