"""How many examples a property test tries, where it does not try the default number."""

from __future__ import annotations

from hypothesis import settings

WHOLE = 100
"""Hypothesis's default, from which the counts of the whole suite are taken."""


def examples(count: int) -> int:
    """`count` in the whole suite; the same share of it as of the default in the inner loop."""
    return max(1, count * settings().max_examples // WHOLE)
