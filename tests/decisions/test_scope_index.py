"""Scopes and words of many nodes: the same answers as from trying each, at a small cost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.call_count import calls_made
from weft.decisions import (
    DecisionChanged,
    DecisionEntry,
    DecisionGraph,
    DecisionOption,
    fold_decisions,
    log_entry,
)
from weft.decisions.pulse import ProjectFiles, check_pulse
from weft.decisions.relevance import nodes_for_path, relevant_nodes, search
from weft.decisions.scope import covers, is_symbol, symbol_name
from weft.decisions.scope_index import ScopeIndex
from weft.ids import DecisionId

NOW = 1_800_000_000.0
PARTS = st.sampled_from(
    ["a", "b", "c.py", "*.py", "*", "**", "a?", "[ab]", "{a,b}", "{a,b/c}", "."]
)
SCOPES = st.lists(PARTS, min_size=1, max_size=4).map("/".join) | st.sampled_from(
    ["Cache.get", "pkg::Thing", "run()", "a/", "", "a[1].py"]
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "c.py", "x"]), min_size=1, max_size=4).map(
    "/".join
) | st.just("a[1].py")


@settings(max_examples=60)
@given(scopes=st.lists(SCOPES, max_size=6), path=PATHS)
def test_an_index_finds_what_trying_each_scope_finds(scopes: list[str], path: str) -> None:
    index: ScopeIndex[str] = ScopeIndex()
    for scope in scopes:
        index.add(scope, (scope,))
    assert set(index.find(path)) == {scope for scope in scopes if covers((scope,), path)}
    text = f"look at ./{path}, get and Thing"
    named = {each for each in scopes if is_symbol(each) and symbol_name(each) == "Thing"}
    assert set(index.mentioned(text)) >= named
    for scope in scopes:
        index.remove(scope, (scope,))
    assert not index.find(path)
    assert not index.mentioned(text)


def test_braces_in_braces_do_not_multiply_without_end() -> None:
    scope = "{a,b}" * 40
    assert calls_made(lambda: covers((scope,), "a" * 40)) < 5_000
    assert covers(("{a,b}{a,b}.py",), "ba.py")


def grown(count: int) -> DecisionGraph:
    """A project that has decided a lot."""
    graph = DecisionGraph()
    kinds = ("decision", "goal", "action", "decision")
    for number in range(count):
        entry = DecisionEntry(
            title=f"Topic{chr(97 + number % 26)} number {number}",
            kind=kinds[number % 4],
            status=("active", "active", "superseded")[number % 3],
            scope=(f"src/part{number}/**/*.py", f"lib/file{number}.py"),
            options=(DecisionOption(title=f"Way {number}"),),
            at=NOW + number,
        )
        fold_decisions(log_entry(entry, graph, seed=str(number)).facts, start=graph)
    return graph


def test_a_note_on_a_file_costs_the_same_among_many_decisions() -> None:
    few, many = grown(40), grown(800)
    for graph in (few, many):
        assert [node.title for node in nodes_for_path(graph, "lib/file4.py")] == ["Topice number 4"]
    costs = [calls_made(lambda g=graph: nodes_for_path(g, "lib/file4.py")) for graph in (few, many)]
    assert costs[1] <= costs[0] + 5


def test_a_request_looks_closely_at_a_few_of_many_decisions() -> None:
    graph = grown(800)
    index_and_first = relevant_nodes(graph, "change topicc in lib/file7.py", now=NOW)
    assert "Topich number 7" in [each.node.title for each in index_and_first]
    cost = calls_made(lambda: relevant_nodes(graph, "change topicc in lib/file7.py", now=NOW))
    assert cost < 20_000
    long = "some words of a long request " * 4_000
    assert calls_made(lambda: relevant_nodes(graph, long, now=NOW)) < 60_000


def test_the_pulse_of_twice_as_many_decisions_costs_about_twice_as_much() -> None:
    files = ProjectFiles({f"lib/file{number}.py" for number in range(300)}, lambda each: 1.0)
    costs = []
    for count in (300, 600):
        graph = grown(count)
        check_pulse(graph, now=NOW, files=files)
        costs.append(calls_made(lambda g=graph: check_pulse(g, now=NOW, files=files)))
    assert costs[1] < 2.6 * costs[0]


@settings(max_examples=25)
@given(data=st.data())
def test_what_is_found_after_changes_is_what_a_new_reader_finds(data: st.DataObject) -> None:
    graph, facts = DecisionGraph(), list[Any]()
    for number in range(4):
        entry = DecisionEntry(
            title=f"Cache {number}",
            scope=(f"src/{number}.py",),
            status="active",
            options=(DecisionOption(title=f"Redis {number}"),),
            at=NOW,
        )
        facts += log_entry(entry, graph, seed=str(number)).facts
    names = [fact.node.id for fact in facts if hasattr(fact, "node")]
    for _ in range(data.draw(st.integers(0, 4))):
        name = DecisionId(data.draw(st.sampled_from(names)))
        changes: list[dict[str, Any]] = [
            {"title": "Queue"},
            {"status": "superseded"},
            {"scope": ("lib",)},
        ]
        facts.append(DecisionChanged(id=name, **data.draw(st.sampled_from(changes))))
    for end, fact in enumerate(facts, start=1):
        graph.apply(fact)
        if end > len(names):
            assert_same(graph, fold_decisions(facts[:end]))


def assert_same(graph: DecisionGraph, fresh: DecisionGraph) -> None:
    for path in ("src/1.py", "lib/x"):
        assert nodes_for_path(graph, path) == nodes_for_path(fresh, path)
    for words in ("cache redis", "queue"):
        assert relevant_nodes(graph, words, now=NOW) == relevant_nodes(fresh, words, now=NOW)
        assert search(graph, words, now=NOW) == search(fresh, words, now=NOW)
