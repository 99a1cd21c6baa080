"""Adaptive branching: branches that begin where a model was undecided.

One branch of a model is written whole, with the probabilities of its tokens.  The others share its
text up to a token that could as well have been another one, have that other one, and go on from
there: what they share is not paid for again, and they differ where the model itself saw two ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.loom.boundary_repair import RepairedText, TextEdit
from weft.loom.token_places import PlacedToken, open_places, placed_tokens, with_alternative
from weft.providers import TokenLogprob

GAP: Final = 0.5
"""How much likelier the best token may be than the next one, as a difference of logprobs."""
WIDEST_GAP: Final = 20.0


class BranchStart(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning that a branch shares with another, and its own first token."""

    text: str
    token: int
    """The number of the token that is another one."""
    tokens: tuple[TokenLogprob, ...]
    """Of this text."""
    edits: tuple[TextEdit, ...]
    """Where the text differs from them."""


def read_gap(given: bool | float) -> float | None:
    """The widest gap that counts as undecided; None for branches that are written independently.

    Raises:
        UsageError: it is no such number.
    """
    if isinstance(given, bool):
        return GAP if given else None
    if not 0 < given <= WIDEST_GAP:
        raise UsageError(f"adaptive is True or a gap of logprobs up to {WIDEST_GAP:g}, not {given}")
    return float(given)


def branch_starts(
    tokens: Sequence[TokenLogprob], repaired: RepairedText, most_gap: float, number: int
) -> list[BranchStart]:
    """So many beginnings of other branches at most, where the model was least decided first."""
    raw = "".join(token.text for token in tokens)
    placed = placed_tokens(tokens, raw, repaired)
    found: list[BranchStart] = []
    for index in open_places(placed, most_gap):
        if len(found) == number:
            break
        start = _start(tokens, placed, index, repaired)
        if start is not None and all(start.text != other.text for other in found):
            found.append(start)
    return found


def _start(
    tokens: Sequence[TokenLogprob],
    placed: Sequence[PlacedToken],
    index: int,
    repaired: RepairedText,
) -> BranchStart | None:
    others = [each for each in placed[index].alternatives if each[0] != placed[index].text]
    if not others or not others[0][0].strip():
        return None
    text = with_alternative(repaired.text, placed, index)
    other = TokenLogprob(others[0][0], others[0][1], placed[index].alternatives)
    raw = len("".join(token.text for token in tokens[:index]))
    edits = [edit for edit in repaired.edits if edit.end <= raw]
    dropped = placed[index].start + len(other.text) - len(text)
    if dropped:
        edits.append(TextEdit(raw, raw + dropped, ""))
    return BranchStart(text=text, token=index, tokens=(*tokens[:index], other), edits=tuple(edits))


def whole_text(start: BranchStart, repaired: RepairedText) -> RepairedText:
    """The shared beginning and what came behind it, as one text."""
    raw = sum(len(token.text) for token in start.tokens)
    own = (TextEdit(edit.start + raw, edit.end + raw, edit.text) for edit in repaired.edits)
    return RepairedText(start.text + repaired.text, (*start.edits, *own))
