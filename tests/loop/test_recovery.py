"""What a dead process left open: one test for each sentence about coming back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.turn_scenes import NODE, TURN, TurnScene
from weft.events import (
    FileTouched,
    NewMessage,
    PermissionResolved,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    UsageRecorded,
)
from weft.ids import BlobId, CallUid, NodeId
from weft.loop import (
    PartialDraft,
    RecoveryEvidence,
    end_interrupted,
    hashes_needed,
    judge,
    settle_interrupted,
)

CALL = CallUid("cal_1")


def intent(effect: Any, pre: dict[str, str], post: dict[str, str]) -> ToolExecuting:
    return ToolExecuting(
        call_uid=CALL,
        node=NODE,
        tool_name="t",
        target="x",
        effect=effect,
        pre_hashes=pre,
        post_hashes=post,
    )


# --- judging -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "pre", "post", "now", "verdict"),
    [
        ("pure", {}, {}, {}, "not_begun"),
        ("unknown", {"a": "1"}, {"a": "2"}, {"a": "2"}, "unknown"),
        ("checkable", {"a": "1"}, {"a": "2"}, {"a": "2"}, "done"),
        ("checkable", {"a": "1"}, {"a": "2"}, {"a": "1"}, "not_begun"),
        ("checkable", {"a": "1"}, {"a": "2"}, {"a": "3"}, "unknown"),
        ("checkable", {"a": ""}, {"a": "2"}, {"a": ""}, "not_begun"),
        ("checkable", {"a": "1"}, {"a": ""}, {"a": ""}, "done"),
        ("checkable", {"a": "1"}, {"a": "1"}, {"a": "1"}, "done"),
        ("checkable", {"a": "1", "b": "1"}, {"a": "2", "b": "2"}, {"a": "2", "b": "1"}, "unknown"),
        ("checkable", {"a": "1"}, {"a": "2"}, {}, "unknown"),
        ("checkable", {"a": "1"}, {"a": "2"}, {"a": "unreadable"}, "unknown"),
        ("checkable", {}, {}, {}, "unknown"),
        ("checkable", {}, {"a": "2"}, {"a": "1"}, "unknown"),
        ("checkable", {"a": "1"}, {"a": "2", "b": "2"}, {"a": "1", "b": "5"}, "unknown"),
    ],
)
def test_the_files_tell_what_became_of_an_effect(
    effect: str, pre: dict[str, str], post: dict[str, str], now: dict[str, str], verdict: str
) -> None:
    assert judge(intent(effect, pre, post), now) == verdict


hashes = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "1", "2"]), max_size=2)


@given(pre=hashes, post=hashes, now=hashes)
def test_an_effect_runs_again_only_where_every_file_it_would_write_is_as_before(
    pre: dict[str, str], post: dict[str, str], now: dict[str, str]
) -> None:
    if judge(intent("checkable", pre, post), now) == "not_begun":
        assert post
        assert all(path in pre and now.get(path) == pre[path] for path in post)


# --- settling ------------------------------------------------------------------------------


def test_the_draft_becomes_a_partial_node_and_its_cost_is_estimated() -> None:
    scene = TurnScene().prompt("hi").answered("first", tokens=100).prompt("more").called_model()
    draft = PartialDraft(node=scene.in_flight, text="Half of it")
    found = RecoveryEvidence(draft=draft, cost=lambda model, usage: usage.input_tokens / 100)
    partial, used = settle_interrupted(scene.state, found)
    assert isinstance(partial, NewMessage)
    assert (partial.node.id, partial.node.text) == (scene.in_flight, "Half of it")
    assert partial.node.is_partial
    assert partial.node.parent == scene.state.tree.head
    assert isinstance(used, UsageRecorded)
    assert used.estimated
    assert (used.usage.input_tokens, used.usage.cost_usd) == (100, 1.0)
    assert used.usage.output_tokens > 0


@pytest.mark.parametrize("text", ["", "  \n", None])
def test_a_call_that_brought_nothing_leaves_no_node_but_its_cost(text: str | None) -> None:
    scene = TurnScene().prompt("hi").called_model()
    draft = None if text is None else PartialDraft(node=scene.in_flight, text=text)
    [used] = settle_interrupted(scene.state, RecoveryEvidence(draft=draft))
    assert isinstance(used, UsageRecorded)
    assert (used.estimated, used.usage.input_tokens) == (True, 0)


def test_a_draft_of_another_node_is_not_taken_for_this_one() -> None:
    scene = TurnScene().prompt("hi").called_model()
    stale = PartialDraft(node=NodeId("nod_of_long_ago"), text="old words")
    assert not any(
        isinstance(fact, NewMessage)
        for fact in settle_interrupted(scene.state, RecoveryEvidence(draft=stale))
    )


def test_an_effect_that_is_unknown_is_reported_to_model_and_user() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[CALL]).intended(CALL, effect="unknown")
    complete, note = settle_interrupted(scene.state, RecoveryEvidence())
    assert isinstance(complete, ToolComplete)
    assert (complete.result.status, complete.is_error) == ("interrupted", True)
    assert isinstance(note, SystemNote)
    assert (note.level, note.to_model) == ("warning", False)


def test_an_effect_that_took_place_is_settled_as_done() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[CALL])
    scene.intended(CALL, effect="checkable", pre={"a": "1"}, post={"a": "2"})
    assert hashes_needed(scene.state) == {"a"}
    complete = settle_interrupted(scene.state, RecoveryEvidence(hashes={"a": "2"}))[0]
    assert isinstance(complete, ToolComplete)
    assert (complete.result.status, complete.is_error) == ("done", False)


@pytest.mark.parametrize(
    ("read", "before", "known"),
    [({}, "", True), ({"a": "1"}, "1", True), ({"a": "0"}, "1", False), ({}, "1", False)],
    ids=["a new file", "one that was read", "one that was read before", "one never read"],
)
def test_the_model_knows_what_it_wrote_of_a_file_that_it_knew(
    read: dict[str, str], before: str, known: bool
) -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[CALL])
    for path, digest in read.items():
        scene.state.reads.seen[path] = BlobId(digest)
    scene.intended(CALL, effect="checkable", pre={"a": before}, post={"a": "2"})
    complete = settle_interrupted(scene.state, RecoveryEvidence(hashes={"a": "2"}))[0]
    assert isinstance(complete, ToolComplete)
    assert complete.result.data.get("read", {}) == ({"a": "2"} if known else {})


def test_a_file_that_was_deleted_keeps_the_mode_that_it_had() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[CALL])
    files = {"a": "1", "run.sh": "2"}
    scene.intended(
        CALL, effect="checkable", pre=files, post={"a": "3", "run.sh": ""}, modes={"run.sh": 0o755}
    )
    found = RecoveryEvidence(hashes={"a": "3", "run.sh": ""}, modes={"a": 0o640, "run.sh": 0})
    touched = [
        (fact.path, fact.action, fact.mode_before, fact.mode_after)
        for fact in settle_interrupted(scene.state, found)
        if isinstance(fact, FileTouched)
    ]
    assert touched == [("a", "modified", 0o640, 0o640), ("run.sh", "deleted", 0o755, 0)]


def test_an_effect_that_had_not_begun_stays_open_to_run() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[CALL])
    scene.intended(CALL, effect="checkable", pre={"a": "1"}, post={"a": "2"})
    assert settle_interrupted(scene.state, RecoveryEvidence(hashes={"a": "1"})) == []


def test_a_request_to_the_user_stays_open() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[CALL]).asked(CALL)
    assert settle_interrupted(scene.state, RecoveryEvidence()) == []


# --- ending --------------------------------------------------------------------------------


def test_ending_settles_every_call_and_request_and_then_the_turn() -> None:
    others = [CallUid("cal_2"), CallUid("cal_3")]
    scene = TurnScene().prompt("hi").answered("", calls=[CALL, *others])
    scene.intended(CALL, effect="unknown").asked(others[0])
    facts = end_interrupted(scene.state, RecoveryEvidence(), "something else came first")
    settled = [fact.call_uid for fact in facts if isinstance(fact, ToolComplete)]
    assert settled == [CALL, *others]
    assert [fact.action for fact in facts if isinstance(fact, PermissionResolved)] == ["deny"]
    last = facts[-1]
    assert isinstance(last, TurnFinished)
    assert (last.turn_id, last.reason) == (TURN, "halted")
    scene.take(facts)
    assert scene.state.turn.open is None
    assert scene.state.turn.intents == {}
    assert scene.state.tree.unsettled(NODE) == ()


def test_there_is_nothing_to_end_where_no_turn_is_open() -> None:
    assert end_interrupted(TurnScene().state, RecoveryEvidence(), "why") == []
