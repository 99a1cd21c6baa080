"""When a line is compacted by itself, as pure judgments."""

from __future__ import annotations

import pytest

from weft.context import LineEntry
from weft.ids import CallUid, NodeId
from weft.loop.compaction.room_maker import CallProgress, is_at_boundary
from weft.messages import Node, Text, ToolCall


def asked(number: int) -> LineEntry:
    return LineEntry(node=Node(id=NodeId(f"u{number}"), role="user", parts=(Text(text="go"),)))


def called(number: int, name: str = "read", **args: object) -> LineEntry:
    call = ToolCall(call_uid=CallUid(f"c{number}"), name=name, args=dict(args))
    return LineEntry(node=Node(id=NodeId(f"a{number}"), role="assistant", parts=(call,)))


@pytest.mark.parametrize(
    ("line", "is_good"),
    [
        ([], False),
        ([asked(1)], True),
        ([asked(1), called(2, path="a")], False),
        ([called(1, "todo", todos=[{"text": "x", "status": "done"}])], True),
        ([called(1, "todo", todos=[{"text": "x", "status": "pending"}])], False),
        ([called(1, "todo", todos="nonsense")], False),
        ([called(1, "todo", todos=[{"status": "done"}]), called(2)], False),
    ],
)
def test_a_turn_that_begins_and_a_task_that_is_finished_are_good_moments(
    line: list[LineEntry], is_good: bool
) -> None:
    assert is_at_boundary(line) is is_good


def test_a_list_that_still_shows_an_old_task_as_done_is_no_good_moment() -> None:
    old, new = {"text": "old", "status": "done"}, {"text": "new", "status": "in_progress"}
    line = [
        asked(1),
        called(2, "todo", todos=[old]),
        called(3),
        called(4, "todo", todos=[old, new]),
    ]
    assert not is_at_boundary(line)
    assert is_at_boundary([*line, called(5, "todo", todos=[old, {**new, "status": "done"}])])
    assert not is_at_boundary([*line, called(5, "todo", todos=[old]), called(6, "todo", todos=[])])


def test_the_same_calls_again_after_two_compactions_are_no_progress() -> None:
    progress, line = CallProgress(), [asked(1), called(2, path="a"), called(3, path="b")]
    assert not progress.is_going_round(line)
    progress.take(line)
    line += [called(4, path="b"), called(5, path="a")]
    assert not progress.is_going_round(line), "once is no fault"
    progress.take(line)
    line += [called(6, path="a")]
    assert progress.is_going_round(line)
    assert not progress.is_going_round([*line, called(7, path="new")])
    assert not progress.is_going_round([*line, asked(8)])


def test_two_steps_before_one_call_count_as_one() -> None:
    """Compacted, and then cut as well: no call was made between the two."""
    progress, line = CallProgress(), [asked(1), called(2, path="a")]
    for number in (3, 4):
        assert not progress.is_going_round(line)
        progress.take(line)
        progress.take(line[1:])
        line = [*line[1:], called(number, path="a")]
    assert progress.is_going_round(line)


def test_something_new_between_two_compactions_starts_the_count_anew() -> None:
    progress, line = CallProgress(), [asked(1), called(2, path="a")]
    for number in range(3, 20, 2):
        progress.take(line)
        line += [called(number, path="a"), called(number + 1, path=str(number))]
        assert not progress.is_going_round(line)
