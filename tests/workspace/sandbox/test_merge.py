"""Two changes of one text: together where they do not touch, else not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.workspace.sandbox.merge import merge

BASE = b"a\nb\nc\nd\ne\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", b"A\nb\nc\nd\nE\n"),
        (b"new\na\nb\nc\nd\ne\n", b"a\nb\nc\nd\ne\nend\n", b"new\na\nb\nc\nd\ne\nend\n"),
        (b"b\nc\nd\ne\n", b"a\nb\nc\nd\n", b"b\nc\nd\n"),
        (b"a\nB\nc\nd\ne\n", b"a\nB\nc\nd\ne\n", b"a\nB\nc\nd\ne\n"),
        (b"a\nB\nc\nD\ne\n", b"a\nB\nc\nd\ne\n", b"a\nB\nc\nD\ne\n"),
        (b"a\nX\nc\nd\ne\n", b"a\nY\nc\nd\ne\n", None),
        (b"a\nB\nc\nd\ne\n", b"a\nb\nC\nd\ne\n", None),
        (b"", b"a\nb\nC\nd\ne\n", None),
        (b"a\n\0\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", None),
    ],
)
def test_changes_that_do_not_touch_are_taken_together(
    ours: bytes, theirs: bytes, both: bytes | None
) -> None:
    assert merge(BASE, ours, theirs) == both
    assert merge(BASE, theirs, ours) == both


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"}\n"]), max_size=8).map(b"".join)


@given(base=LINES, ours=LINES)
def test_one_change_alone_is_that_change(base: bytes, ours: bytes) -> None:
    assert merge(base, ours, base) == merge(base, base, ours) == merge(base, ours, ours) == ours


@given(base=LINES, ours=LINES, theirs=LINES)
def test_it_does_not_matter_whose_is_whose(base: bytes, ours: bytes, theirs: bytes) -> None:
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


@given(head=LINES, tail=LINES, ours=LINES, theirs=LINES)
def test_changes_with_something_between_them_are_always_both_there(
    head: bytes, tail: bytes, ours: bytes, theirs: bytes
) -> None:
    wall = b"".join(b"wall %d\n" % number for number in range(20))
    assert (
        merge(head + wall + tail, ours + wall + tail, head + wall + theirs) == ours + wall + theirs
    )
