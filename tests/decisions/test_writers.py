"""Automatic writers, as functions: what they make of commands, commits and fan-outs."""

from __future__ import annotations

import pytest

from weft.decisions import (
    CheckEvidence,
    CommitEvidence,
    DecisionEntry,
    DecisionGraph,
    TurnEvidence,
    fold_decisions,
    log_entry,
)
from weft.decisions.relevance import is_told, relevant_nodes
from weft.decisions.writers import fan_decision, fixed_test
from weft.evidence.command_kinds import is_commit, is_test, made_commit
from weft.ids import SessionId
from weft.runtime.decisions.decision_source import DecisionSource

TURN = TurnEvidence(session_id=SessionId("ses_a"))


@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        ("pytest -q", True),
        ("python -m pytest tests/a.py", True),
        ("npm run test:unit", True),
        ("npm test", True),
        ("cargo test --all", True),
        ("go test ./...", True),
        ("make check", True),
        ("ls tests", False),
        ("cat latest.txt", False),
        ("npx jest", True),
        ("tox", True),
        ("nox -s unit", True),
        ("bundle exec rspec", True),
        ("./vendor/bin/phpunit", True),
        ("mvn -q verify", True),
        ("cd web && CI=1 npm test", True),
        ("set -e\n.venv/bin/python -m pytest -q", True),
        ("uv run pytest | tail -3", True),
        ("make -C web -j4 test", True),
        ("grep pytest setup.cfg", False),
        ("pip install pytest", False),
        ("git commit -m 'fix pytest; pytest'", False),
        ("ls | grep jest", False),
        ("cat pytest.ini", False),
        ("echo 'make test", False),
        ("make" + " -C" * 1_000, False),
    ],
)
def test_commands_that_run_tests_are_known(command: str, is_one: bool) -> None:
    assert is_test(command) is is_one


@pytest.mark.parametrize(
    ("command", "output", "commit"),
    [
        ("git commit -m x", "[main 1a2b3c4] x\n 1 file changed", "1a2b3c4"),
        ("git commit -m x", "[main (root-commit) 1a2b3c4d] x", "1a2b3c4d"),
        ("git commit -qm x", "", ""),
        ("cd a && git -C b -c user.name=A commit -m x", "[main 1a2b3c4] x", "1a2b3c4"),
        ("git commit -m 'one\ntwo'", "[main 1a2b3c4] one", "1a2b3c4"),
        ("echo '[main 1a2b3c4] commit'", "[main 1a2b3c4] commit", ""),
        ("echo git commit; cat log", "[main 1a2b3c4] x", ""),
        ("echo '[main 1a2b3c4] x'", "[main 1a2b3c4] x", ""),
    ],
)
def test_the_commit_that_a_command_made_is_read_off_its_output(
    command: str, output: str, commit: str
) -> None:
    assert made_commit(command, output) == commit


def test_a_fan_out_becomes_a_decision_with_the_candidates_and_their_checks() -> None:
    graph = DecisionGraph()
    logged = fan_decision(
        graph,
        "An index",
        {"A cache": "stale reads", "Both": ""},
        TURN,
        seed="fan_1",
        checks={"An index": ("make test", 0), "A cache": ("make test", 1)},
        scope=["src/db.py"],
    )
    fold_decisions(logged.facts, start=graph)
    assert logged.node.title == "Keep: An index"
    assert logged.node.status == "active"
    assert CheckEvidence(command="make test", exit=0) in logged.node.evidence
    assert "A cache: `make test` ended with 1" in logged.node.why
    assert [option.title for option, _ in graph.options(logged.node.id, "chosen")] == ["An index"]
    rejected = [(o.title, e.rationale) for o, e in graph.options(logged.node.id, "rejected")]
    assert rejected == [("A cache", "stale reads"), ("Both", "")]


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m x",
        "g'it' com\"mit\" -m x",
        "g\\it -c a=b \\commit",
        "cd a &&\ngit commit",
        "git log",
        "ls; echo git",
        "echo git commit",
    ],
)
def test_no_commit_is_missed_by_the_look_that_loads_nothing(command: str) -> None:
    assert DecisionSource._is_noted(command, failed=False) is is_commit(command)


def test_evidence_of_commits_is_kept_apart_by_their_hash() -> None:
    one = log_entry(
        DecisionEntry(title="a", evidence=(CommitEvidence(commit="1a2b3c4"),)),
        DecisionGraph(),
        seed="s",
    )
    assert one.node.evidence == (CommitEvidence(commit="1a2b3c4"),)


def test_a_test_that_passes_again_is_not_told_as_failing() -> None:
    facts = fixed_test("pytest -q", 1, ["cart.py"], TURN, seed="cart.py", at=1.0)
    graph = fold_decisions(facts)
    [seen] = [node for node in graph.nodes.values() if node.kind == "observation"]
    assert not is_told(graph, seen)
    assert relevant_nodes(graph, "pytest -q failed", now=2.0) == []
    assert is_told(fold_decisions(facts[:1]), seen)
