"""Ranges of lines: what keeps to one, and where one goes when the text around it changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.workspace.boundaries.lines import LineRange, after_change, follow, lines_of, refusal

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"x\r\n", b"  }\n"]), max_size=12)
"""Few different lines, so that a diff has to guess often."""


def text(*names: str) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


@st.composite
def ranges(draw: st.DrawFn, lines: list[bytes]) -> LineRange:
    first = draw(st.integers(0, len(lines)))
    return LineRange(first, draw(st.integers(first - 1, len(lines) - 1)))


# --- lines


@given(data=st.binary(max_size=200))
def test_the_lines_of_a_file_are_the_file(data: bytes) -> None:
    lines = lines_of(data)
    assert b"".join(lines) == data
    assert all(lines)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf-8", "latin-1"])
def test_lines_are_counted_as_people_do_in_every_encoding(encoding: str) -> None:
    written = "ein\nzwei\r\ndrei äöü\n\nfünf"
    assert [len(lines_of(written.encode(encoding))), lines_of(b"")] == [5, []]


def test_half_a_character_is_no_line_end() -> None:
    """U+0A41 holds the byte of a line feed in UTF-16, and so do U+0100 and U+0A00 side by side."""
    lines = lines_of("\u0a41x\n\u010a\u0a00y".encode("utf-16"))
    assert [line.decode("utf-16-le") for line in lines] == ["\ufeff\u0a41x\n", "\u010a\u0a00y"]


# --- what keeps to a range


@given(data=st.data())
def test_a_change_between_head_and_tail_is_inside_and_the_range_is_what_lies_between(
    data: st.DataObject,
) -> None:
    head, middle, tail, new = (data.draw(LINES) for _ in range(4))
    before = b"".join(head + middle + tail)
    after = b"".join(head + new + tail)
    held = LineRange(len(head), len(head) + len(middle) - 1)
    assert after_change(before, after, held) == LineRange(len(head), len(head) + len(new) - 1)


@given(data=st.data())
def test_what_is_inside_never_changes_a_line_outside(data: st.DataObject) -> None:
    before, after = data.draw(LINES), data.draw(LINES)
    held = data.draw(ranges(before))
    new = after_change(b"".join(before), b"".join(after), held)
    if new is None:
        return
    assert after[: new.first] == before[: held.first]
    assert after[new.last + 1 :] == before[held.last + 1 :]
    assert 0 <= new.first <= new.last + 1 <= len(after)


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (text("a", "B", "c", "d"), LineRange(1, 2)),
        (text("a", "b", "new", "c", "d"), LineRange(1, 3)),
        (text("a", "new", "b", "c", "d"), LineRange(1, 3)),
        (text("a", "b", "c", "new", "d"), LineRange(1, 3)),
        (text("a", "d"), LineRange(1, 0)),
        (text("a", "b", "c", "d"), LineRange(1, 2)),
        (text("A", "b", "c", "d"), None),
        (text("a", "b", "c", "D"), None),
        (text("a", "b", "c", "d", "e"), None),
        (text("new", "a", "b", "c", "d"), None),
        (text("b", "c", "d"), None),
        (text("a"), None),
        (b"", None),
        (b"a\nb\nc\nd", None),
        (b"a\nb\ncd\n", None),
        (b"a\r\nb\nc\nd\n", None),
    ],
)
def test_only_lines_1_and_2_may_be_changed(after: bytes, verdict: LineRange | None) -> None:
    assert after_change(text("a", "b", "c", "d"), after, LineRange(1, 2)) == verdict


def test_an_emptied_range_stays_and_can_be_filled_again() -> None:
    """A range that was dropped would set the file free."""
    before = text("a", "b", "c")
    emptied = after_change(before, text("a", "c"), LineRange(1, 1))
    assert emptied == LineRange(1, 0)
    assert after_change(text("a", "c"), text("a", "x", "y", "c"), emptied) == LineRange(1, 2)
    assert after_change(text("a", "c"), text("x", "c"), emptied) is None


def test_a_line_that_loses_its_end_pulls_the_next_one_in_and_is_refused() -> None:
    assert after_change(b"a\nb\nc\n", b"a\nbc\n", LineRange(1, 1)) is None


# --- where it goes


@given(data=st.data())
def test_a_range_follows_what_happens_above_below_and_not_at_all(data: st.DataObject) -> None:
    above, below, new_above, new_below = (data.draw(LINES) for _ in range(4))
    inside = [f"inside {n}\n".encode() for n in range(data.draw(st.integers(1, 5)))]
    before = b"".join(above + inside + below)
    after = b"".join(new_above + inside + new_below)
    held = LineRange(len(above), len(above) + len(inside) - 1)
    new = follow(before, after, held)
    assert lines_of(after)[new.first : new.last + 1] == inside
    assert follow(before, before, held) == held


@given(data=st.data())
def test_a_range_grows_and_shrinks_with_what_happens_inside(data: st.DataObject) -> None:
    above, below = data.draw(LINES), data.draw(LINES)
    middle, new_middle = data.draw(LINES), data.draw(LINES)
    first, last = b"first of it\n", b"last of it\n"
    before = b"".join([*above, first, *middle, last, *below])
    after = b"".join([*above, first, *new_middle, last, *below])
    held = LineRange(len(above), len(above) + len(middle) + 1)
    assert follow(before, after, held) == LineRange(len(above), len(above) + len(new_middle) + 1)


@given(data=st.data())
def test_a_range_is_always_one_of_the_file(data: st.DataObject) -> None:
    before, after = data.draw(LINES), data.draw(LINES)
    new = follow(b"".join(before), b"".join(after), data.draw(ranges(before)))
    assert 0 <= new.first <= new.last + 1 <= len(after)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (text("new", "a", "b", "c", "d"), LineRange(2, 3)),
        (text("a", "new", "b", "c", "d"), LineRange(2, 3)),
        (text("a", "b", "c", "new", "d"), LineRange(1, 2)),
        (text("a", "b", "new", "c", "d"), LineRange(1, 3)),
        (text("b", "c", "d"), LineRange(0, 1)),
        (text("a", "b", "d"), LineRange(1, 1)),
        (text("a", "d"), LineRange(1, 0)),
        (b"", LineRange(0, -1)),
    ],
)
def test_lines_1_and_2_follow(after: bytes, expected: LineRange) -> None:
    assert follow(text("a", "b", "c", "d"), after, LineRange(1, 2)) == expected


def test_a_change_across_the_first_line_keeps_as_many_lines_as_before() -> None:
    before, after = text("a", "b", "c", "d", "e"), text("a", "X", "Y", "d", "e")
    assert follow(before, after, LineRange(2, 3)) == LineRange(2, 3)


def test_a_change_too_large_to_be_compared_line_by_line_counts_as_one() -> None:
    before = b"".join(b"old %d\n" % n for n in range(3_000))
    after = b"top\n" + b"".join(b"new %d\n" % n for n in range(2_000)) + b"old 2999\n"
    assert follow(before, after, LineRange(2_999, 2_999)) == LineRange(2_001, 2_001)


# --- what is said


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (text("A", "b", "c", "d"), "touches line 1;"),
        (text("a", "b", "c", "D"), "touches line 4;"),
        (text("A", "b", "c", "D"), "touches lines 1 to 4;"),
        (text("a", "b", "c", "d", "e"), "adds lines before line 5;"),
        (None, "may not be removed, renamed or replaced"),
    ],
)
def test_a_refusal_names_the_allowed_lines_and_what_was_tried(
    after: bytes | None, said: str
) -> None:
    told = refusal("a.py", text("a", "b", "c", "d"), after, LineRange(1, 2))
    assert "of 'a.py' only lines 2 to 3 (of 4) may be changed" in told
    assert said in told
