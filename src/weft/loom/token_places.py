"""Tokens of a node: their probabilities, and where each stands in the text that is stored.

Repairs and limits change what the model wrote, so the places are those of the stored text; a token
that nothing is left of has no width, and those behind the end are gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from weft.errors import UsageError
from weft.loom.boundary_repair import RepairedText
from weft.providers import TokenLogprob

_HALF = "\ufffd"
"""What a token of half a character is reported as."""


class PlacedToken(msgspec.Struct, frozen=True, array_like=True):
    """One token of a node's text, from `start` to `end`."""

    text: str
    """As the model wrote it."""
    logprob: float
    alternatives: tuple[tuple[str, float], ...]
    start: int
    end: int

    @property
    def probability(self) -> float:
        """From 0 to 1."""
        return math.exp(min(self.logprob, 0.0))

    @property
    def gap(self) -> float | None:
        """How much likelier the best alternative is than the second; None where there are not two.

        A small one is where the text could as well have gone another way.
        """
        if len(self.alternatives) < 2:
            return None
        return self.alternatives[0][1] - self.alternatives[1][1]


def placed_tokens(
    tokens: Sequence[TokenLogprob], raw: str, repaired: RepairedText
) -> tuple[PlacedToken, ...]:
    """The tokens of the raw text in their places in the repaired one."""
    size = len(repaired.text)
    found: list[PlacedToken] = []
    for token, (start, end) in zip(tokens, _raw_places(tokens, raw), strict=True):
        first = min(repaired.offset(start), size)
        if first >= size and start < end:
            break
        last = max(first, min(repaired.offset(end), size))
        found.append(PlacedToken(token.text, token.logprob, token.alternatives, first, last))
    return tuple(found)


def _raw_places(tokens: Sequence[TokenLogprob], raw: str) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    at = 0
    for number, token in enumerate(tokens):
        if raw.startswith(token.text, at):
            end = at + len(token.text)
        else:
            end = _behind_character(tokens, number, raw, at)
        places.append((at, end))
        at = end
    return places


def _behind_character(tokens: Sequence[TokenLogprob], number: int, raw: str, at: int) -> int:
    """Where a token ends that is only a part of the character at a place.

    The last part has the character; those before it have no width.
    """
    is_last = number + 1 == len(tokens) or _HALF not in tokens[number + 1].text
    if not is_last:
        return at
    if number + 1 == len(tokens):
        return len(raw)
    found = raw.find(tokens[number + 1].text, at, at + 64)
    return at if found < 0 else found


def with_alternative(
    text: str, tokens: Sequence[PlacedToken], number: int, alternative: str | None = None
) -> str:
    """The text up to a token, and then what could have stood there instead.

    Raises:
        UsageError: there is no such token, or it has no other alternative.
    """
    if not 0 <= number < len(tokens):
        raise UsageError(f"there is no token {number}; the node has {len(tokens)}")
    token = tokens[number]
    if alternative is None:
        others = (other for other, _ in token.alternatives if other != token.text)
        alternative = next(others, None)
    if not alternative or alternative == token.text:
        raise UsageError(f"token {number} ({token.text!r}) has no alternative that is another one")
    kept = text[: token.start]
    # A repair may have put the space there that the alternative brings along.
    is_double = alternative.startswith(" ") and (kept.endswith(" ") and token.text[:1] != " ")
    return kept + (alternative[1:] if is_double else alternative)


def open_places(tokens: Sequence[PlacedToken], most_gap: float = 0.5) -> list[int]:
    """Where the model was undecided, the most undecided first."""
    gaps = [(token.gap, number) for number, token in enumerate(tokens)]
    return [
        number for gap, number in sorted((g, n) for g, n in gaps if g is not None and g <= most_gap)
    ]
