"""A cache of what is made from texts is bounded by what they weigh, and gives one object for one
text.
"""

from __future__ import annotations

import sys

from weft.text_cache import TextCache


class Made:
    """Something made from a text."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_the_same_text_gives_the_same_object() -> None:
    cache = TextCache(Made, 1_000)
    assert cache("a" * 10) is cache("a" * 10)


def test_it_holds_no_more_bytes_than_it_may_and_forgets_what_was_used_longest_ago() -> None:
    one = sys.getsizeof("0" * 100)
    cache = TextCache(Made, 3 * one)
    first = cache("0" * 100)
    second = cache("1" * 100)
    cache("2" * 100)
    assert cache("0" * 100) is first
    cache("3" * 100)
    assert cache.held_bytes == 3 * one
    assert cache("0" * 100) is first
    assert cache("1" * 100) is not second


def test_a_text_that_is_longer_than_all_it_may_hold_is_not_kept() -> None:
    cache = TextCache(Made, 1_000)
    kept = cache("a")
    assert cache("x" * 2_000).text == "x" * 2_000
    assert cache.held_bytes == sys.getsizeof("a")
    assert cache("a") is kept
