"""Receipts in words, the same on every screen: a shape, a word, and what is on record.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from weft.view.blocks import NoteBlock

_LONGEST_CLAIM: Final = 80
_MARKS: Final = {
    "green": ("✓", "shown"),
    "grey": ("○", "out of date"),
    "amber": ("!", "not shown"),
    "none": ("?", "not verified"),
}


class ShownReceipt(Protocol):
    """What is shown of a receipt."""

    @property
    def claim(self) -> str: ...

    @property
    def color(self) -> str: ...

    @property
    def why(self) -> str: ...


def receipt_rows(found: Sequence[ShownReceipt]) -> list[tuple[str, str, str]]:
    """For each claim: how it stands, its words, and what is on record."""
    return [(_marked(each.color), _short(each.claim), each.why) for each in found]


def receipt_note(receipt: ShownReceipt) -> NoteBlock:
    """One receipt as a line below the answer."""
    # In words: a note has a mark of its own, and a plain screen has none.
    state = _MARKS.get(receipt.color, ("", receipt.color))[1]
    text = f"{state}: “{_short(receipt.claim)}” ({receipt.why})"
    return NoteBlock(text=text, level="warning" if receipt.color == "amber" else "quiet")


def receipt_summary(found: Sequence[ShownReceipt]) -> str:
    """All of them in a few words."""
    if not found:
        return "the answer claims nothing that could be checked"
    counts = {color: sum(each.color == color for each in found) for color in _MARKS}
    return ", ".join(f"{count} {_MARKS[color][1]}" for color, count in counts.items() if count)


def _marked(color: str) -> str:
    mark, word = _MARKS.get(color, ("?", color))
    return f"{mark} {word}"


def _short(claim: str) -> str:
    words = " ".join(claim.split())
    return words if len(words) <= _LONGEST_CLAIM else f"{words[: _LONGEST_CLAIM - 1]}…"
