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


def test_a_query_is_bounded() -> None:
    assert len(words.phrases(" ".join(f"w{n}" for n in range(1000)))) == words.MOST_WORDS


@given(text=st.text(st.sampled_from("aZ9 _-.\n" + "".join(map(chr, words._PUNCTUATION)))))
def test_typographic_punctuation_separates_words_as_normalized_text_does(text: str) -> None:
    normalized = re.findall(words._ANY_TOKEN, words._folded(text))
    assert words.tokens(text) == normalized
