"""Words of code and of requests are made comparable."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from weft.repo.words import (
    MOST_WORDS,
    RequestWords,
    count_parts,
    parts_in,
    parts_of,
    request_words,
)


def test_one_name_in_three_spellings_has_the_same_words() -> None:
    assert parts_of("parseHTTPHeaders") == parts_of("parse_http_headers")
    assert set(parts_of("HttpHeader")) <= set(parts_of("parseHTTPHeaders"))


def test_the_first_line_of_a_request_counts_double_and_code_counts_more() -> None:
    words = request_words("fix the encoder\n\nof max_age and the encoder in cookies")
    assert words.parts["encod"] == 2.0
    assert words.whole["max_age"] > words.whole["cookies"] == 1.0


def test_words_that_say_nothing_are_not_asked_for() -> None:
    assert request_words("please add this to the").parts == {}


def test_an_empty_request_asks_for_nothing() -> None:
    assert request_words("") == RequestWords({}, {})


@given(st.lists(st.text("aBc_xY9é", min_size=2, max_size=12)))
def test_counting_by_identifier_is_counting_by_occurrence(names: list[str]) -> None:
    assert count_parts(Counter(names)) == parts_in(names)


def test_a_long_message_has_no_more_words_than_a_ranking_can_look_at() -> None:
    pasted = " ".join(f"pasted{number} word{'x' * (number % 7)}{number}" for number in range(9_000))
    text = f"The tax of a cart\n{pasted}\nCartTotal is what I mean"
    words = request_words(text)
    assert len(words.parts) <= MOST_WORDS
    assert len(words.whole) <= MOST_WORDS
    assert {"tax", "cart", "total"} <= words.parts.keys(), "the beginning and the end stay"
