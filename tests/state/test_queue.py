"""The steering and follow-up queues keep what was said, in the order in which it will be
delivered.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UsageError
from weft.events import (
    Delivery,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputsReordered,
    QueuesRecalled,
)
from weft.ids import EntryId
from weft.messages import File, Image, Text
from weft.state import InputQueue, combine_queue_entries_to_text

NAMES = [EntryId(each) for each in "abcdef"]


def queued(*names: EntryId, delivery: Delivery = "steering") -> InputQueue:
    """A queue with these entries; each says its own name."""
    queue = InputQueue()
    for name in names:
        queue.apply(InputQueued(entry_id=name, delivery=delivery, parts=(Text(text=name),)))
    return queue


def order(queue: InputQueue) -> list[EntryId]:
    return list(queue.entries)


def test_what_was_said_first_is_delivered_first() -> None:
    assert [entry.text for entry in queued(*NAMES).waiting("steering")] == NAMES


def test_the_two_queues_do_not_mix() -> None:
    queue = queued(NAMES[0])
    queue.apply(InputQueued(entry_id=NAMES[1], delivery="follow_up", parts=(Text(text="later"),)))
    assert [entry.entry_id for entry in queue.waiting("steering")] == [NAMES[0]]
    assert [entry.entry_id for entry in queue.waiting("follow_up")] == [NAMES[1]]


@given(wanted=st.lists(st.sampled_from([*NAMES, EntryId("gone")]), unique=True))
def test_reordering_puts_the_named_first_and_loses_none(wanted: list[EntryId]) -> None:
    queue = queued(*NAMES)
    queue.apply(InputsReordered(entries=tuple(wanted)))
    named = [each for each in wanted if each in NAMES]
    assert order(queue) == named + [each for each in NAMES if each not in named]


@given(gone=st.sets(st.sampled_from(NAMES)))
def test_what_leaves_leaves_the_others_in_their_order(gone: set[EntryId]) -> None:
    left = [each for each in NAMES if each not in gone]
    promoted, recalled, removed = queued(*NAMES), queued(*NAMES), queued(*NAMES)
    promoted.apply(InputPromoted(entries=tuple(gone)))
    recalled.apply(QueuesRecalled(entries=tuple(gone)))
    for each in gone:
        removed.apply(InputRemoved(entry_id=each))
    assert order(promoted) == order(recalled) == order(removed) == left


def test_an_edit_keeps_the_place_the_queue_and_the_options() -> None:
    queue = queued(*NAMES[:2])
    queue.apply(
        InputQueued(
            entry_id=NAMES[2],
            delivery="follow_up",
            parts=(Text(text="c"),),
            options={"max_turns": 1},
        )
    )
    queue.apply(InputEdited(entry_id=NAMES[2], parts=(Text(text="new"),)))
    queue.apply(InputEdited(entry_id=NAMES[0], parts=(Text(text="first"),)))
    assert order(queue) == NAMES[:3]
    edited = queue.require(NAMES[2])
    assert (edited.text, edited.delivery, edited.options) == ("new", "follow_up", {"max_turns": 1})


def test_changing_what_is_not_queued_any_more_changes_nothing() -> None:
    queue = queued(NAMES[0])
    queue.apply(InputEdited(entry_id=NAMES[1], parts=()))
    queue.apply(InputRemoved(entry_id=NAMES[1]))
    assert order(queue) == [NAMES[0]]
    with pytest.raises(UsageError, match="not in the queue"):
        queue.require(NAMES[1])


def test_entries_are_shown_as_text_with_pictures_and_files_named() -> None:
    queue = InputQueue()
    parts = (
        Text(text="see "),
        Image(media_type="image/png", name="a.png"),
        Image(media_type="image/gif"),
        File(name="b.txt", text="long"),
    )
    queue.apply(InputQueued(entry_id=NAMES[0], delivery="steering", parts=parts))
    queue.apply(InputQueued(entry_id=NAMES[1], delivery="steering", parts=(Text(text="end"),)))
    shown = combine_queue_entries_to_text(queue.entries.values())
    assert shown == "see [image: a.png][image: image/gif][file: b.txt]\n\nend"
