"""The tree as rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.ids import NodeId, SessionId
from weft.tree import Branch
from weft.view import CheckpointInfo, ChildInfo, TreeMessage, TreeView, outline_rows
from weft.view.outline import DEEPEST


def message(name: str, parent: str | None, **fields: object) -> TreeMessage:
    role = "user" if name.startswith("u") else "assistant"
    return TreeMessage(
        id=NodeId(name),
        parent=None if parent is None else NodeId(parent),
        role=role,  # type: ignore[arg-type]  # one of the literals
        text=f"says {name}",
        **fields,  # type: ignore[arg-type]  # fields of the struct
    )


def tree(*messages: TreeMessage, head: str | None, **fields: object) -> TreeView:
    at = None if head is None else NodeId(head)
    main = Branch(name="main", node=at, is_current=True)
    given: dict[str, object] = {"branches": (main,), **fields}
    return TreeView(messages=messages, head=at, **given)  # type: ignore[arg-type]  # as above


def labels(view: TreeView, *children: ChildInfo) -> list[str]:
    return [place.margin + place.label for place in outline_rows(view, children)]


def test_a_turn_is_one_row_and_going_there_ends_behind_all_of_it() -> None:
    view = tree(
        message("u1", None),
        message("a1", "u1", calls=2),
        message("a2", "a1"),
        message("u2", "a2"),
        message("a3", "u2"),
        head="a3",
    )
    first, second = outline_rows(view)
    assert (first.label, first.detail, first.node) == ("› says u1", "2 calls", "a2")
    assert (second.label, second.is_here) == ("[here, main] › says u2", True)


def test_ways_that_part_are_drawn_one_step_in() -> None:
    view = tree(
        message("u1", None),
        message("a1", "u1"),
        message("u2", "a1"),
        message("u3", "a1"),
        message("a3", "u3"),
        message("u4", "a3"),
        head="u4",
        branches=(
            Branch(name="main", node=NodeId("u2")),
            Branch(name="other", node=NodeId("u4"), is_current=True),
        ),
    )
    assert labels(view) == [
        "› says u1",
        "├ [main] › says u2",
        "└ › says u3",
        "  [here, other] › says u4",
    ]
    left, here = outline_rows(view)[1], outline_rows(view)[3]
    assert (left.branch, left.on_line, left.detail) == ("main", False, "other branch")
    assert (here.branch, here.on_line) == ("", True)


def test_names_cut_a_turn_so_that_each_place_can_be_picked() -> None:
    view = tree(
        message("u1", None),
        message("a1", "u1"),
        message("a2", "a1"),
        head="a2",
        checkpoints=(CheckpointInfo(name="before", node=NodeId("a1")),),
    )
    assert labels(view) == ["[⚑ before] › says u1", "[here, main] says a2"]


def test_those_who_worked_for_a_turn_stand_below_it() -> None:
    child = ChildInfo(
        id=SessionId("ses_c"),
        name="looker",
        purpose="agent",
        node=NodeId("a1"),
        title="Look around",
        reason="stop",
        cost_usd=0.25,
    )
    view = tree(message("u1", None), message("a1", "u1", calls=1), head="a1")
    rows = outline_rows(view, [child])
    assert labels(view, child) == ["[here, main] › says u1", "  ⤷ looker: Look around"]
    assert (rows[1].child, rows[1].detail) == ("ses_c", "done, $0.2500")


def test_what_is_special_about_a_turn_is_said() -> None:
    view = tree(
        message("u1", None, is_pinned=True, revision=1),
        message("a1", "u1", is_partial=True),
        head="a1",
        summarized_to=NodeId("a1"),
    )
    assert outline_rows(view)[0].detail == "cut off, pinned, edited, summarized up to here"


@given(parents=st.lists(st.integers(0, 30), min_size=1, max_size=40), data=st.data())
def test_every_message_is_in_exactly_one_row_whatever_the_shape(
    parents: list[int], data: st.DataObject
) -> None:
    """The rows' outline_rows and what leads to them cover the tree; depth is bounded."""
    messages: list[TreeMessage] = []
    for number, parent in enumerate(parents):
        role = data.draw(st.sampled_from("ua"))
        above = messages[parent % len(messages)].id if messages and parent else None
        messages.append(message(f"{role}{number}", above))
    head = data.draw(st.sampled_from(messages)).id
    rows = outline_rows(tree(*messages, head=head))
    ends = [row.node for row in rows]
    assert len(ends) == len(set(ends))
    leaves = {m.id for m in messages} - {m.parent for m in messages if m.parent}
    assert leaves <= set(ends)
    assert sum(row.is_here for row in rows) == 1
    assert all(len(row.margin) <= 2 * DEEPEST + 2 for row in rows)
