"""How many examples a property test tries, and which of many cases the inner loop takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

WHOLE = 100
"""Hypothesis's default, from which the counts of the whole suite are taken."""

STRIDE = 11
"""The inner loop takes one case in so many.

It is a prime: a step that shares a divisor with the length of a list would, in a product of lists,
meet the same few of its values again and again.
"""


def is_whole_suite() -> bool:
    """False in the inner loop."""
    return settings().max_examples >= WHOLE


def examples(count: int) -> int:
    """`count` in the whole suite; the same share of it as of the default in the inner loop."""
    return max(1, count * settings().max_examples // WHOLE)


def cases(every: Iterable[T]) -> list[T]:
    """Every case in the whole suite; an evenly spread share of them in the inner loop."""
    return list(every)[:: 1 if is_whole_suite() else STRIDE]
