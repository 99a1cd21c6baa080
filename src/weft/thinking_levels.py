"""Thinking levels: how hard a model may think, and the nearest level that a model has.

Vendors call it effort, thinking level or thinking budget, and each model takes a few words of its
own.  Above the vendors' encoders there is only this list; an encoder translates the level that
`nearest_level` gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

ThinkingLevel: TypeAlias = Literal[
    "default", "off", "minimal", "low", "medium", "high", "xhigh", "max"
]
THINKING_LEVELS: Final[tuple[ThinkingLevel, ...]] = get_args(ThinkingLevel)
"""From the least to the most; `default`, which leaves it to the vendor, stands before them all."""
KnownLevels: TypeAlias = tuple[ThinkingLevel, ...] | None
"""The levels that a model takes; none if it does not think, None when they are not known."""


def thinking_level(word: object) -> ThinkingLevel | None:
    """The level that a word names; None for any other word."""
    # No generator, and no set: each round asks, and the word may be a value without a hash.
    for level in THINKING_LEVELS if word is not None else ():
        if level == word:
            return level
    return None


def nearest_level(requested: ThinkingLevel, available: Sequence[ThinkingLevel]) -> ThinkingLevel:
    """The level to use for `requested` with a model that has only `available`.

    Where no levels are known, the vendor's default is all that is sure to be accepted.  A level
    that asks to think never becomes `off`.  Of two levels that are equally near it is the lower
    one, so that the user does not pay for more than was asked for.
    """
    if requested == "default" or not available:
        return "default"
    if requested in available:
        return requested
    order = THINKING_LEVELS.index
    # `off` only for a model that has nothing else.
    thinking = [level for level in available if level != "off"] or available
    return min(thinking, key=lambda level: (abs(order(level) - order(requested)), order(level)))


def level_note(model: str, requested: ThinkingLevel, levels: KnownLevels) -> str:
    """The note for the user where a model lacks the level `requested`; empty when it has it."""
    if requested == "default" or levels is None or requested in levels:
        return ""
    if not levels:
        says = (
            f"{model} has no thinking levels; the setting takes effect with a model that has them."
        )
        return "" if requested == "off" else says
    used = nearest_level(requested, levels)
    if requested == "off":
        return f"{model} cannot be switched off: it thinks at {used}, the least that it has."
    return f"{model} has no level {requested}: it thinks at {used} (it has {', '.join(levels)})."
