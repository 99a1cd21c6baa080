"""Branches that grow: rows in the order of the plan, from the first token to the closing event."""

from __future__ import annotations

from weft.cli.loom_view.growth import BranchGrowth
from weft.cli.loom_view.scene import BranchRow, shown_places
from weft.events import TokenReceived
from weft.ids import NodeId
from weft.loom import (
    BranchFailure,
    GenerationCancelled,
    GenerationComplete,
    GenerationError,
    ModelPlanEntry,
)

PLAN = (
    ModelPlanEntry(model="x:one", n_branches=2),
    ModelPlanEntry(model="x:off", n_branches=5, enabled=False),
    ModelPlanEntry(model="x:two", n_branches=1),
)


def token(number: int, text: str) -> TokenReceived:
    return TokenReceived(
        branch_idx=number, token=text, model="", model_idx=0, node_id=NodeId(f"n{number}")
    )


def rows(growth: BranchGrowth, *stored: str) -> list[object]:
    return [
        (row.state, row.text, row.model) if isinstance(row, BranchRow) else row
        for row in growth.rows({NodeId(each) for each in stored})
    ]


def test_all_branches_have_a_row_before_their_first_token() -> None:
    growth = BranchGrowth(NodeId("s"), PLAN)
    assert rows(growth) == [("waiting", "", f"x:{name}") for name in ("one", "one", "two")]


def test_each_branch_grows_in_its_own_row_and_a_stored_one_keeps_its_place() -> None:
    growth = BranchGrowth(NodeId("s"), PLAN)
    for event in (token(2, "a"), token(0, "b"), token(2, "c")):
        assert growth.take(event) == ""
    assert rows(growth) == [
        *(("growing", "b", "x:one"), ("waiting", "", "x:one"), ("growing", "ac", "x:two")),
    ]
    assert growth.tokens == 3
    assert rows(growth, "n0")[0] == "n0"


def test_a_failed_branch_shows_its_sentence_when_the_others_are_done() -> None:
    growth = BranchGrowth(NodeId("s"), PLAN)
    growth.take(token(0, "b"))
    growth.take(token(1, "half"))
    failures = (
        BranchFailure(branch_idx=1, model="x:one", category="network", sentence="it broke off"),
        BranchFailure(branch_idx=2, model="x:two", category="rate_limit", sentence="rate limited"),
    )
    said = growth.take(GenerationComplete(completions=("b",), new_nodes=(), failures=failures))
    assert said == "0 new branches, 2 failed"
    assert growth.is_over
    assert rows(growth, "n0", "n1") == ["n0", "n1", ("failed", "rate limited", "x:two")]
    assert growth.why(NodeId("n1")) == "it broke off"
    assert growth.why(NodeId("n0")) == ""


def test_what_failed_before_it_began_is_told_and_has_no_row() -> None:
    growth = BranchGrowth(NodeId("s"), PLAN)
    assert growth.take(GenerationError(error="no model", category="no_models")) == "no model"
    assert rows(growth) == []


def test_a_stop_says_what_it_kept() -> None:
    growth = BranchGrowth(NodeId("s"), PLAN)
    assert growth.take(GenerationCancelled()) == "stopped"
    assert growth.is_over


def test_where_there_is_little_room_the_selected_branch_and_those_that_grow_are_shown() -> None:
    assert shown_places(3, 0, 5, is_growing=True) == [0, 1, 2]
    assert shown_places(10, 1, 4, is_growing=False) == [0, 1, 2, 3]
    assert shown_places(10, 9, 4, is_growing=False) == [6, 7, 8, 9]
    assert shown_places(10, 1, 4, is_growing=True) == [1, 7, 8, 9]
    assert shown_places(10, -1, 4, is_growing=True) == [6, 7, 8, 9]
