"""Scores of nodes and models, and the shape of a tree."""

from __future__ import annotations

from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.loom.formats.tree_file import parse_trees
from weft.loom.node_record import NodeRecord, TreeRecord
from weft.loom.tree_scores import (
    FARTHEST,
    NodeFacts,
    facts_of,
    model_scores,
    node_scores,
    subtree_shape,
)


def node(name: str, parent: str | None = None, model: str = "", **more: object) -> NodeFacts:
    return NodeFacts(id=name, parent_id=parent, model=model, **more)  # type: ignore[arg-type]


TREE = [
    node("root"),
    node("a", "root", "alpha"),
    node("b", "root", "beta"),
    node("a1", "a", "alpha"),
    node("a2", "a", "beta"),
    node("a1a", "a1", "alpha"),
]


def test_what_was_gone_on_from_was_worth_something() -> None:
    scores = node_scores(TREE)
    assert {name: score.total for name, score in scores.items()} == {
        "root": 3,
        "a": 2,
        "b": 0,
        "a1": 1,
        "a2": 0,
        "a1a": 0,
    }
    assert scores["root"].discounted == pytest.approx(1 + 1 / log2(3) + 1 / log2(4))
    assert scores["a"].discounted == pytest.approx(1 + 1 / log2(3))
    assert (scores["a"].peer, scores["b"].peer, scores["root"].peer) == (2, 0, None)
    assert (scores["a"].win, scores["b"].win, scores["a1a"].win) == (1, 0, None)
    assert (scores["a1a"].depth, scores["a"].children) == (3, 2)


def test_marks_and_ratings_count_and_what_is_hidden_does_not() -> None:
    scores = node_scores(
        [
            node("r"),
            node("a", "r", bookmarked=True, rating=2.5),
            node("b", "r", rating=-3.0),
            node("c", "r", hidden=True, bookmarked=True, rating=5.0),
            node("d", "c"),
        ]
    )
    assert [scores[name].utility for name in "abcd"] == [3.5, 0, 0, 0]


def test_only_nodes_that_were_made_together_compete() -> None:
    scores = node_scores(
        [
            node("r"),
            node("a", "r", generation_id="1", bookmarked=True),
            node("b", "r", generation_id="1", bookmarked=True),
            node("c", "r", generation_id="2"),
            node("d", "r", generation_id="2"),
            node("e", "r", generation_id="3", bookmarked=True),
        ]
    )
    assert [scores[name].win for name in "abcde"] == [0.5, 0.5, 0, 0, None]
    assert [scores[name].peer for name in "abcde"] == [1, 1, None, None, None]


def test_models_are_ranked_by_how_they_did_against_others() -> None:
    alpha, beta = model_scores(TREE)
    assert (alpha.model, alpha.nodes, alpha.expanded) == ("alpha", 3, 2)
    assert alpha.kept == pytest.approx(2 / 3)
    assert (alpha.win_rate.count, alpha.win_rate.mean) == (2, 1)
    assert (alpha.total.mean, beta.total.mean, beta.win_rate.mean) == (1, 0, 0)
    assert alpha.cost_usd is None
    paid = model_scores(
        [node("r"), node("a", "r", "m", cost_usd=0.5), node("b", "r", "m", cost_usd=1.0)]
    )
    assert paid[0].cost_usd == 1.5
    assert model_scores([]) == ()


def test_the_shape_of_a_line_and_of_a_star() -> None:
    line = [node("0"), *(node(str(n), str(n - 1)) for n in range(1, 5))]
    shape = subtree_shape(line, "0")
    assert (shape.size, shape.depth, shape.width, shape.leaves) == (5, 4, 1, 1)
    assert (shape.branching, shape.branchiness) == (1, 0)
    star = [node("r"), *(node(str(n), "r") for n in range(4))]
    shape = subtree_shape(star, "r")
    assert (shape.depth, shape.width, shape.leaves, shape.children) == (1, 4, 4, 4)
    assert (shape.branching, shape.branchiness) == (4, 1)
    assert subtree_shape(line, "4").size == 1


def test_a_tree_in_a_file_is_scored_as_well() -> None:
    file = Path(__file__).parent / "files" / "basemode.json"
    (tree,) = parse_trees(file.read_bytes())
    mini, haiku = model_scores(facts_of(tree))
    assert (mini.model, haiku.model) == ("gpt-4o-mini", "haiku")
    assert (mini.total.mean, haiku.total.mean) == (3, 1)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=40))
def test_sums_are_those_of_all_nodes_below(drawn: list[tuple[int, bool]]) -> None:
    nodes = [node("0")]
    for number, (above, marked) in enumerate(drawn, start=1):
        nodes.append(node(str(number), str(above % number), bookmarked=marked))
    scores = node_scores(nodes)
    parents = {each.id: each.parent_id for each in nodes}
    plain: dict[str, float] = dict.fromkeys(parents, 0.0)
    weighed: dict[str, float] = dict.fromkeys(parents, 0.0)
    for each in nodes:
        at: str | None = each.id
        distance = 0
        while at is not None:
            plain[at] += scores[each.id].utility
            weighed[at] += scores[each.id].utility / log2(distance + 2)
            at, distance = parents[at], distance + 1
    assert distance <= FARTHEST
    assert {name: score.total for name, score in scores.items()} == plain
    assert {name: score.discounted for name, score in scores.items()} == pytest.approx(weighed)


def test_a_deep_tree_needs_no_recursion() -> None:
    line = [node("0"), *(node(str(n), str(n - 1)) for n in range(1, 5_000))]
    assert node_scores(line)["0"].total == 4_999


@pytest.mark.parametrize("name", ["gen_id", "generation_id"])
def test_nodes_of_our_own_generations_compete_as_those_of_other_programs_do(name: str) -> None:
    def branch(node_id: str, generation: str) -> NodeRecord:
        return NodeRecord(id=node_id, parent_id="r", model="m", metadata={name: generation})

    nodes = (NodeRecord(id="r", kind="root"), branch("a", "1"), branch("b", "1"), branch("c", "2"))
    scores = node_scores(facts_of(TreeRecord(root_id="r", nodes=nodes)))
    assert [scores[each].win for each in "abc"] == [0.0, 0.0, None]
