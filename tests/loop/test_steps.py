"""The facts of a turn's steps."""

from __future__ import annotations

from tests.support.turn_scenes import NODE, TurnScene
from weft.events import InputPromoted, NewMessage, PermissionResolved, ToolComplete
from weft.ids import CallUid, EntryId
from weft.loop import promote, settle_open_calls, tip_after
from weft.loop.turn_facts import answer_at_tip

ONE, TWO = CallUid("cal_1"), CallUid("cal_2")


def test_steering_is_promoted_in_order_at_the_tip_and_follow_ups_wait() -> None:
    scene = TurnScene().prompt("hi").answered("ok")
    scene.queued("f", "follow_up").queued("a", "steering", "one").queued("b", "steering", "two")
    facts = promote(scene.state, (), 1.0)
    promoted, first, second = facts
    assert isinstance(promoted, InputPromoted)
    assert promoted.entries == (EntryId("a"), EntryId("b"))
    assert isinstance(first, NewMessage)
    assert isinstance(second, NewMessage)
    assert [first.node.text, second.node.text] == ["one", "two"]
    assert first.node.parent == scene.state.tree.head
    assert second.node.parent == first.node.id
    assert tip_after(scene.state, facts) == second.node.id
    scene.take(facts)
    assert list(scene.state.queue.entries) == ["f"]


def test_a_follow_up_goes_behind_the_steering_that_waits() -> None:
    scene = TurnScene().queued("f", "follow_up", "later").queued("s", "steering", "first")
    entry = scene.state.queue.entries[EntryId("f")]
    _, first, second = promote(scene.state, (), 1.0, follow_up=entry)
    assert isinstance(first, NewMessage)
    assert isinstance(second, NewMessage)
    assert [first.node.text, second.node.text] == ["first", "later"]
    assert second.node.metadata == {"entry": "f", "delivery": "follow_up"}


def test_an_empty_queue_promotes_nothing() -> None:
    assert promote(TurnScene().prompt("hi").state, (), 1.0) == []


def test_every_open_call_of_the_answer_is_settled_once_with_what_is_known_of_it() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[ONE, TWO]).intended(ONE, effect="unknown")
    first, second = settle_open_calls(scene.state, (), by="abort", reason="stopped")
    assert isinstance(first, ToolComplete)
    assert isinstance(second, ToolComplete)
    assert "may have taken effect" in first.result.text
    assert "Not run" in second.result.text
    [only] = settle_open_calls(scene.state, (first,), by="abort", reason="stopped")
    assert isinstance(only, ToolComplete)
    assert only.call_uid == TWO


def test_an_open_request_is_withdrawn_in_the_name_of_who_stops() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[ONE]).asked(ONE)
    resolved = settle_open_calls(scene.state, (), by="abort", reason="stopped")[0]
    assert isinstance(resolved, PermissionResolved)
    assert (resolved.action, resolved.by, resolved.reason) == ("deny", "abort", "stopped")


def test_only_an_answer_that_the_turn_stands_on_is_its_to_settle() -> None:
    scene = TurnScene().prompt("hi").answered("", calls=[ONE])
    assert answer_at_tip(scene.state) == NODE
    scene.prompt("and then")
    assert answer_at_tip(scene.state) is None
    assert settle_open_calls(scene.state, (), by="weft", reason="") == []
