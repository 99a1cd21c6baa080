"""How many examples a property test tries, and which of many cases the inner loop takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")

WHOLE = 100
"""Hypothesis's default, from which the counts of the whole suite are taken."""


def is_whole_suite() -> bool:
    """False in the inner loop."""
    return settings().max_examples >= WHOLE


def examples(count: int) -> int:
    """`count` in the whole suite; the same share of it as of the default in the inner loop."""
    return max(1, count * settings().max_examples // WHOLE)


def cases(every: Iterable[T]) -> list[T]:
    """Every case in the whole suite; an evenly spread share of them in the inner loop."""
    return list(every)[:: WHOLE // settings().max_examples]
