"""How search reads text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.store import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix the Login-Handler!", ["fix", "the", "login", "handler"]),
        ("snake_case and 3.11", ["snake", "case", "and", "3", "11"]),
        ("Straße Ünïcödé", ["strasse", "unicode"]),
        ("修复 bug2", ["修", "复", "bug2"]),
        ("한국어", ["한국어"]),
        ("…—*\"'()", []),
        ("", []),
    ],
)
def test_text_becomes_plain_tokens(text: str, expected: list[str]) -> None:
    assert words.tokens(text) == expected


@given(st.text())
def test_a_text_is_found_by_each_of_its_own_words(text: str) -> None:
    index = words.indexed(text)
    assert all(words.holds(index, phrase) for phrase in words.phrases(text))


@given(st.text())
def test_tokens_hold_nothing_that_an_index_could_take_for_syntax(text: str) -> None:
    for token in words.tokens(text):
        assert all(char.isalnum() or ord(char) > 127 for char in token)


def test_an_excerpt_shows_the_place_and_says_that_it_is_cut() -> None:
    text = "before " * 50 + "the\nNeedle  here" + " after" * 50
    shown = words.excerpt(text, ["needle"])
    assert "the Needle here" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 200
    assert words.excerpt("all of it", ["all"]) == "all of it"


def test_an_excerpt_shows_the_place_where_most_of_the_words_stand_together() -> None:
    text = "the storm. " + "before " * 50 + "the old storm rose over the sea" + " after" * 50
    assert "storm rose over the sea" in words.excerpt(text, words.phrases("the storm sea"))
    assert words.excerpt(text, words.phrases("storm")).startswith("the storm. before")
    assert "sea after" in words.excerpt(text, words.phrases("nowhere sea"))


def test_an_excerpt_shows_a_word_of_several_parts_and_not_one_that_begins_so() -> None:
    text = "food and a foo. " + "before " * 50 + "the foo-barn is here" + " after" * 50
    assert "the foo-barn is here" in words.excerpt(text, words.phrases("foo-bar"))


def test_the_words_of_a_long_text_are_looked_for_in_its_beginning_alone() -> None:
    text = "storm " + "x " * words.LOOKED_THROUGH + "storm sea"
    assert words.excerpt(text, words.phrases("storm sea")).startswith("storm x")


def test_a_hit_is_shown_from_a_little_before_its_first_word() -> None:
    text = "a long beginning that says nothing of it, and then a storm over the sea"
    assert words.around(text, "storm sea") == "…of it, and then a storm over the sea"
    assert words.around("a storm", "storm") == "a storm"
    assert words.around(text, "never") == text


def test_a_hit_is_shown_with_its_word_however_that_is_written() -> None:
    filling = "x" * 70
    assert "café" in words.around(
        "a long beginning, of no café. " + "more " * 9 + "Café au lait", "CAFE"
    )
    # Where nothing is between two blanks but the word itself, and where no blank is at all.
    assert words.around(f"so {filling}-storm ended", "storm").endswith("-storm ended")
    assert "嵐" in words.around(f"{'海' * 40}嵐が来た", "嵐")
    # A word is found by its beginning: what only holds these letters is not the place.
    assert "a sea" in words.around("a disease, " + "more " * 9 + "and a sea", "sea")[:30]


def test_a_query_is_bounded() -> None:
    assert len(words.phrases(" ".join(f"w{n}" for n in range(1000)))) == words.MOST_WORDS


@given(text=st.text(st.sampled_from("aZ9 _-.\n" + "".join(map(chr, words._PUNCTUATION)))))
def test_typographic_punctuation_separates_words_as_normalized_text_does(text: str) -> None:
    normalized = re.findall(words._ANY_TOKEN, words._folded(text))
    assert words.tokens(text) == normalized
