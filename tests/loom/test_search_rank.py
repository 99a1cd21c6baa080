"""Ranks of a search: fused, filtered, rolled up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UsageError
from weft.loom.search_rank import (
    LoomQuery,
    fused,
    id_order,
    metadata_order,
    parse_query,
    rolled_up,
)


def test_what_several_orders_name_comes_first() -> None:
    ranked = fused([["a", "b", "c"], ["b", "d"], []])
    assert [each.id for each in ranked] == ["b", "a", "d", "c"]
    assert ranked[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert ranked[1].score == pytest.approx(1 / 61)


def test_an_order_that_names_a_node_twice_counts_once() -> None:
    assert fused([["a", "a", "b"]]) == fused([["a", "b"]])


def test_a_tree_has_the_score_of_its_best_node() -> None:
    roots = {"a": "one", "b": "two", "c": "two"}
    trees = rolled_up(fused([["b", "a", "c", "gone"]]), roots.get)
    assert [(tree.root_id, tree.best_id, tree.hits) for tree in trees] == [
        ("two", "b", 2),
        ("one", "a", 1),
    ]
    assert len(rolled_up(fused([["b", "a"]]), roots.get, limit=1)) == 1


def test_the_very_id_comes_before_its_tree_and_before_beginnings() -> None:
    places = [("abcd9", "r1"), ("x", "abcd"), ("abcd", "r1"), ("y", "abcd7"), ("z", "r2")]
    assert id_order("abcd", places) == ["abcd", "x", "abcd9", "y"]
    assert id_order("%", places) == []


def test_metadata_counts_by_the_words_that_it_has() -> None:
    described: list[tuple[str, dict[str, object]]] = [
        ("a", {"model": "anthropic:haiku", "labels": ["storm"]}),
        ("b", {"model": "anthropic:haiku"}),
        ("c", {"rating": 5}),
    ]
    assert metadata_order("Storm haiku", described) == ["a", "b"]
    assert metadata_order("", described) == []


def test_a_line_of_text_becomes_words_and_filters() -> None:
    query = parse_query(
        'dark  storm model:haiku model:"my model" -model:gpt is:bookmarked -is:hidden '
        "after:2026-05-01 tree:ab12 role:user label:sea night"
    )
    assert query == LoomQuery(
        words="dark storm night",
        models=("haiku", "my model"),
        not_models=("gpt",),
        roles=("user",),
        trees=("ab12",),
        labels=("sea",),
        states=(("bookmarked", True), ("hidden", False)),
        after=1777593600.0,
    )
    assert not query.looks_like_id
    assert parse_query("01JAB-c.d").looks_like_id
    assert (
        parse_query("see http://model:x and remodel:y").words == "see http://model:x and remodel:y"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("is:great", "is:great is not known; there are bookmarked"),
        ("after:soon", "'soon' is no day; write it as 2026-05-01"),
        ("-tree:x", "-tree: cannot be asked for"),
    ],
)
def test_a_filter_that_cannot_be_gets_a_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_query(text)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=4))
def test_fusion_names_each_node_once_and_in_order(rankings: list[list[str]]) -> None:
    ranked = fused(rankings)
    assert sorted(each.id for each in ranked) == sorted({each for row in rankings for each in row})
    assert [each.score for each in ranked] == sorted((e.score for e in ranked), reverse=True)


def test_words_behind_a_dash_are_left_out() -> None:
    assert parse_query("storm -sea --calm - well-known") == LoomQuery(
        words="storm well-known", not_words=("sea", "calm")
    )
