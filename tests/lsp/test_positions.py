"""Places in a text, in each of the three units."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import FinalToolError
from weft.lsp.positions import (
    TextPlaces,
    column,
    edited,
    lines_of_text,
    path_of,
    units,
    uri_of,
)
from weft.lsp.wire import TextEdit, TextPosition, TextRange

ENCODINGS = ("utf-8", "utf-16", "utf-32")
LINES = st.lists(st.text(st.sampled_from("aé漢🎉 \u2028\x0c")), min_size=1, max_size=6)


@given(LINES, st.sampled_from(ENCODINGS), st.sampled_from(("\n", "\r\n", "\r")), st.data())
def test_a_place_leads_to_the_same_character_in_every_encoding(
    lines: list[str], encoding: str, end: str, data: st.DataObject
) -> None:
    text = end.join(lines)
    line = data.draw(st.integers(0, len(lines) - 1))
    index = data.draw(st.integers(0, len(lines[line])))
    place = TextPosition(line=line, character=units(lines[line][:index], encoding))
    before = sum(len(each) + len(end) for each in lines[:line])
    assert TextPlaces(text, encoding).offset(place) == before + index
    assert lines_of_text(text) == lines


def test_a_place_in_the_middle_of_a_character_or_beyond_the_end_is_clamped() -> None:
    assert column("🎉x", 1, "utf-16") == 1
    assert column("ab", 99, "utf-8") == 2
    assert TextPlaces("ab\ncd", "utf-16").offset(TextPosition(line=9, character=9)) == 5


def edit(start: tuple[int, int], end: tuple[int, int], new: str) -> TextEdit:
    places = [TextPosition(line=line, character=character) for line, character in (start, end)]
    return TextEdit(range=TextRange(start=places[0], end=places[1]), new_text=new)


def test_edits_are_all_meant_for_the_text_as_it_was() -> None:
    edits = [edit((1, 0), (1, 2), "longer"), edit((0, 0), (0, 2), "x"), edit((1, 2), (1, 2), "!")]
    assert edited("ab\ncd\n", edits, "utf-16") == "x\nlonger!\n"


def test_inserts_at_one_place_keep_their_order() -> None:
    edits = [edit((0, 0), (0, 0), "1"), edit((0, 0), (0, 0), "2")]
    assert edited("x", edits, "utf-8") == "12x"


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(FinalToolError, match="overlap"):
        edited("abcd", [edit((0, 0), (0, 3), ""), edit((0, 2), (0, 4), "")], "utf-16")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_a_path_survives_its_uri(name: str) -> None:
    assert path_of(uri_of(f"/p/{name}")) == f"/p/{name}"


@pytest.mark.parametrize("uri", ["http://x/y", "file://host/x", "untitled:1", "file:x", "file://"])
def test_what_is_no_file_of_this_machine_has_no_path(uri: str) -> None:
    assert path_of(uri) == ""


def test_a_path_that_is_no_utf8_has_a_uri_too() -> None:
    path = os.fsdecode(b"/p/caf\xe9 %41.py")
    assert uri_of(path) == "file:///p/caf%E9%20%2541.py"
    assert path_of(uri_of(path)) == path


@pytest.mark.parametrize("uri", ["file://[bad/x", "http://[::1", "\ud800"])
def test_what_is_no_uri_at_all_is_no_path(uri: str) -> None:
    assert path_of(uri) == ""
