"""The graph as text, and for other programs; architecture decision records in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.source_code import ROOT
from weft.decisions import (
    CheckEvidence,
    CommitEvidence,
    DecisionAdded,
    DecisionEntry,
    DecisionGraph,
    DecisionNode,
    DecisionOption,
    DecisionSuperseded,
    TurnEvidence,
    fold_decisions,
    linked,
    log_entry,
)
from weft.decisions.adr import adr_name, parse_adr, to_adr
from weft.decisions.export import to_dot, to_json, to_mermaid
from weft.decisions.narrative import narrative_of, reached_from
from weft.errors import UsageError
from weft.ids import DecisionId, SessionId

NOW = 1_800_000_000.0


def add(graph: DecisionGraph, title: str, **fields: Any) -> DecisionId:
    given = {"title": title, "status": "active", "at": NOW, **fields}
    logged = log_entry(DecisionEntry(**given), graph, seed="s")
    fold_decisions(logged.facts, start=graph)
    return logged.node.id


@pytest.fixture
def graph() -> DecisionGraph:
    made = DecisionGraph()
    goal = add(made, "Survive a restart", kind="goal")
    old = add(made, "Keep it in memory", at=NOW - 86_400)
    new = add(
        made,
        'Use "SQLite" | <one> file',
        why="One file.\nNo service.",
        confidence=80,
        parent=goal,
        scope=("src/store/**",),
        options=(
            DecisionOption(title="SQLite", verdict="chosen"),
            DecisionOption(title="Postgres", why="a service to run"),
        ),
        evidence=(
            TurnEvidence(session_id=SessionId("ses_a")),
            CommitEvidence(commit="0123456789abcdef"),
            CheckEvidence(command="make test", exit=0),
        ),
    )
    made.apply(DecisionSuperseded(old=old, new=new, rationale="restarts"))
    return made


def test_a_narrative_tells_each_node_once_with_its_options(graph: DecisionGraph) -> None:
    text = narrative_of(graph, graph.nodes.values())
    assert text.startswith("2027-01-14 decision: Keep it in memory [dec_")
    assert "  superseded by: Use" in text
    assert "  chosen: SQLite\n  rejected: Postgres (a service to run)" in text
    assert "  evidence: `make test` ended with 0" in text
    assert "80 % sure" in text
    assert text.count("Postgres") == 1


def test_what_a_goal_leads_to_is_found_though_edges_go_round(graph: DecisionGraph) -> None:
    goal = next(node for node in graph.nodes.values() if node.kind == "goal")
    new = next(node for node in graph.nodes.values() if node.confidence)
    graph.apply(linked(new.id, goal.id, "supports"))
    reached = {node.title for node in reached_from(graph, goal.id)}
    assert {"SQLite", "Postgres", "Keep it in memory"} <= reached


def test_an_export_as_json_has_every_node_and_edge(graph: DecisionGraph) -> None:
    document = msgspec.json.decode(to_json(graph))
    assert (document["format"], document["version"]) == ("weft-decisions", 1)
    assert len(document["nodes"]) == len(graph.nodes)
    assert len(document["edges"]) == len(graph.edges)


def test_a_title_cannot_break_out_of_a_drawing(graph: DecisionGraph) -> None:
    dot = to_dot(graph)
    assert r"Use \"SQLite\" | <one> file" in dot
    assert dot.count("{") == dot.count("}") == 1
    assert '[label="rejected"]' in dot
    assert 'style="dashed"' in dot
    mermaid = to_mermaid(graph)
    assert "Use #quot;SQLite#quot; #124; #lt;one#gt; file" in mermaid
    assert "-->|rejected|" in mermaid
    assert "class dec_" in mermaid
    assert '"' not in mermaid.replace('"', "", 2 * len(graph.nodes))


def test_letters_that_mean_something_in_a_drawing_are_only_shown() -> None:
    node = DecisionNode(id=DecisionId("dec_1"), kind="goal", title=r'C:\new "x" #12; a')
    graph = fold_decisions([DecisionAdded(node=node)])
    assert r'label="goal: C:\\new \"x\" #12; a\n(proposed)"' in to_dot(graph)
    assert '"goal: C:\\new #quot;x#quot; #35;12; a (proposed)"' in to_mermaid(graph)


def test_a_record_that_was_written_is_read_again(graph: DecisionGraph) -> None:
    new = next(node for node in graph.nodes.values() if node.confidence)
    text = to_adr(graph, new, 7)
    read = parse_adr(text, "0007-x.md")
    assert (read.title, read.status, read.at) == (new.title, "active", NOW - NOW % 86_400)
    assert [(each.title, each.verdict) for each in read.options] == [
        ("SQLite", "chosen"),
        ("Postgres", "rejected"),
    ]
    assert read.options[1].why == "a service to run"
    assert adr_name(new, 7) == "0007-use-sqlite-one-file.md"


MADR = """---
status: accepted
date: 2024-03-01
---
# ADR-0012: Use Postgres for the store

## Context and Problem Statement

Many machines.

## Considered Options

* SQLite
* **Postgres**
* [MongoDB](https://example.org) – a second database

## Decision Outcome

Chosen option: "Postgres", because of locks.
"""


def test_a_madr_record_brings_its_options_and_which_was_chosen() -> None:
    read = parse_adr(MADR, "0012.md")
    assert read.title == "Use Postgres for the store"
    assert (read.status, read.at) == ("active", 1_709_251_200.0)
    assert [(each.title, each.verdict, each.why) for each in read.options] == [
        ("SQLite", "rejected", ""),
        ("Postgres", "chosen", ""),
        ("MongoDB", "rejected", "a second database"),
    ]


@pytest.mark.parametrize(
    ("options", "outcome", "chosen"),
    [
        (("SQLite", "MySQL: needs a server, unlike SQLite"), '"SQLite", because', ["SQLite"]),
        (("SQL", "PostgreSQL", "NoSQL"), '"SQL", because it is known', ["SQL"]),
        (("SQL", "PostgreSQL"), "SQL because it is known", ["SQL"]),
        (("PostgreSQL", "MySQL"), "SQL", []),
        (("SQLite with WAL", "A server"), '"SQLite"', ["SQLite with WAL"]),
        (("SQLite", "MySQL"), '"SQLite (in a file)", because', ["SQLite"]),
        (("SQLite", "SQLite with WAL"), '"SQLite with WAL"', ["SQLite with WAL"]),
        (("snake_case_store", "SQLite"), "`snake_case_store`", ["snake_case_store"]),
        (("[SQLite](#sqlite)", "MySQL"), "[SQLite](#sqlite), because", ["SQLite"]),
        (("Don't cache", "Cache it"), '"Don\'t cache"', ["Don't cache"]),
        (("Option 1: SQLite", "Option 2: MySQL"), '"SQLite"', ["SQLite"]),
        (("Option 1: SQLite", "Option 2: MySQL"), "Option 2, because", ["MySQL"]),
        (("SQLite with WAL", "SQLite in memory"), "SQLite", []),
        (("One", "Two (rejected: unlike One)"), "", []),
        (("One (a file) (chosen: fast)", "Two"), "", ["One (a file)"]),
    ],
)
def test_an_option_is_chosen_by_its_title(
    options: tuple[str, ...], outcome: str, chosen: list[str]
) -> None:
    listed = "\n".join(f"* {option}" for option in options)
    text = f"# A\n\n## Considered Options\n\n{listed}\n\n## Decision Outcome\n\nChosen option: "
    read = parse_adr(f"{text}{outcome}\n", "0001.md").options
    assert [option.title for option in read if option.verdict == "chosen"] == chosen
    assert len(read) == len(options)


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("prompt_toolkit", "prompt_toolkit"),
        ("__GIT_NO_LAZY_FETCH__", "GIT_NO_LAZY_FETCH"),
        ("_rich_ or `__slots__`", "rich or __slots__"),
        ('**"curses"**', "curses"),
    ],
)
def test_underscores_of_names_are_kept(written: str, title: str) -> None:
    text = f"# A\n\n## Considered Options\n\n* {written}: too large\n\n## Decision\n\nx"
    (option,) = parse_adr(text, "a.md").options
    assert (option.title, option.why) == (title, "too large")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (
            "# 3. A\n\nDate: 2020-01-01\n\n## Status\n\nSuperseded by 4\n\n## Decision\n\nx",
            "superseded",
        ),
        ("# A\n\n* Status: rejected\n\n## Decision\n\nx", "abandoned"),
        ("# A\n\n## Decision\n\nx", "proposed"),
    ],
)
def test_the_state_of_a_record_is_read(text: str, status: str) -> None:
    assert parse_adr(text, "a.md").status == status


@pytest.mark.parametrize(
    ("about", "author"),
    [
        ("---\nauthor: Jane Doe\n---\n# A", "Jane Doe"),
        ("---\ndecision-makers: [Jane Doe, 'Joe B.']\n---\n# A", "Jane Doe, Joe B."),
        ('---\nauthors:\n  - "Jane Doe"\n  - Joe\nstatus: accepted\n---\n# A', "Jane Doe, Joe"),
        ("# A\n\n* Deciders: [Jane](https://example.org/jane), Joe", "Jane, Joe"),
        ("# A\n\n**Authors:** Jane and Joe", "Jane and Joe"),
        ("# A\n\n## Decision Makers\n\n- Jane\n- Joe", "Jane, Joe"),
        ("# A\n\n## Deciders\n\nJane\nJoe", "Jane, Joe"),
        ("# A\n\n## Context\n\nThe author: see below", "a.md"),
        ("# A\n\nAuthor:", "a.md"),
        ("# A\n\n## Authorization\n\nby token", "a.md"),
    ],
)
def test_a_record_is_of_those_who_wrote_it(about: str, author: str) -> None:
    """Its file is named only where it does not say so."""
    read = parse_adr(f"{about}\n\n## Decision\n\nWe do.", "a.md")
    assert (read.author, read.why[:6]) == (author, "We do.")


def test_the_author_of_a_record_is_written_too() -> None:
    node = DecisionNode(
        id=DecisionId("dec_1"), kind="decision", title="A", why="x", author="Jane, Joe"
    )
    text = to_adr(fold_decisions([DecisionAdded(node=node)]), node, 1)
    assert parse_adr(text, "a.md").author == "Jane, Joe"
    assert len(parse_adr(f"# A\n\nAuthor: {'x' * 500}\n\ny", "a.md").author) <= 120


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no heading", "no title"),
        ("# A\n\n## Links\n", "no section Decision"),
        ("# fd\n\nFinds files.\n\n## Features\n\n- fast\n", "no section Decision"),
    ],
)
def test_what_is_no_record_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_adr(text, "a.md")


RECORDS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.stem)
def test_our_own_records_can_be_imported(file: Path) -> None:
    read = parse_adr(file.read_text("utf-8"), file.name)
    graph = DecisionGraph()
    assert log_entry(read, graph, seed=file.name).node.title
