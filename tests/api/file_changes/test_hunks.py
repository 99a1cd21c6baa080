"""Hunks of a text: each had or left for itself, however much differs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.api.file_changes.hunk_turn import _replaced
from weft.api.file_changes.hunks import file_hunks, with_hunk
from weft.errors import UsageError

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "}", ""]), max_size=40).map("\n".join)


@given(before=TEXTS, after=TEXTS)
def test_all_hunks_taken_one_after_the_other_are_the_text_after(before: str, after: str) -> None:
    text = before
    while found := file_hunks("a", text, after):
        text = with_hunk("a", text, after, found[0].id, is_taken=True)
        # Only the others are left, moved by what this one added.
        assert len(file_hunks("a", text, after)) < len(found)
    assert text == after


@given(before=TEXTS, after=TEXTS)
def test_a_hunk_put_back_leaves_the_others(before: str, after: str) -> None:
    found = file_hunks("a", before, after)
    assert all(one.after + one.after_count <= two.after for one, two in pairwise(found))
    for hunk in found:
        left = with_hunk("a", before, after, hunk.id, is_taken=False)
        assert len(file_hunks("a", before, left)) < len(found)


def test_a_hunk_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no such hunk"):
        with_hunk("a", "one\n", "two\n", "0" * 16, is_taken=True)


def test_two_texts_of_many_equal_lines_are_one_hunk() -> None:
    """To align them line by line would take hours, in which the server says nothing."""
    before, after = (
        "".join(f'  {{\n    "id": {number},\n    "tags": []\n  }},\n' for number in numbers)
        for numbers in (range(4_000), range(5_000, 9_000))
    )
    assert len(file_hunks("a.json", before, after)) == 1


def test_the_lines_that_an_edit_names_are_found_in_a_text_of_equal_ones() -> None:
    before = "x\n" * 100_000
    first, count, old, new = _replaced(before, before + "y\n")
    assert before.count(old) == 1
    assert "".join(before.splitlines(keepends=True)[first : first + count]) == old
    assert new == old + "y\n"
