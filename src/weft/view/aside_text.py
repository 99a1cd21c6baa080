"""A side question and its answer, in words."""

from __future__ import annotations

from weft.events import AsideAnswered
from weft.messages import Text


def aside_text(told: AsideAnswered) -> str:
    """The question, and the answer below it."""
    asked = " ".join(part.text for part in told.question if isinstance(part, Text))
    return f"Side question: {asked}\n{told.answer}"
