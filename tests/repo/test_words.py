"""Words of code and of requests are made comparable."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from weft.repo.posting_lists import PART, WHOLE, content_words, marked
from weft.repo.words import (
    IDENTIFIER,
    MOST_WORDS,
    RequestWords,
    count_pieces,
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


@given(st.text("aBc_xY9é…’\x85 \n.(+", max_size=80).map(str.encode) | st.binary(max_size=80))
def test_the_words_of_a_file_are_those_of_its_identifiers(content: bytes) -> None:
    names = IDENTIFIER.findall(content.decode("utf-8", "replace"))
    whole, parts = content_words(*count_pieces(content))
    assert whole == marked(WHOLE, Counter(name.lower() for name in names))
    assert parts == marked(PART, parts_in(names))


def test_a_long_message_has_no_more_words_than_a_ranking_can_look_at() -> None:
    pasted = " ".join(f"pasted{number} word{'x' * (number % 7)}{number}" for number in range(9_000))
    text = f"The tax of a cart\n{pasted}\nCartTotal is what I mean"
    words = request_words(text)
    assert len(words.parts) <= MOST_WORDS
    assert len(words.whole) <= MOST_WORDS
    assert {"tax", "cart", "total"} <= words.parts.keys(), "the beginning and the end stay"
