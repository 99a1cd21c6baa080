"""The answer in flight as rows."""

from __future__ import annotations

from weft.cli.chat.screens.terminal.text_cells import tail_rows
from weft.cli.sanitize import clean


class AnswerRows:
    """What is being written, wrapped."""

    def rows(self, text: str, *, width: int, room: int) -> list[str]:
        """The end of the text; an empty row before it."""
        # Cleaned as a whole, because an escape sequence may be spread over several pieces.
        rows = tail_rows(clean(text), width, room)
        return ["", *rows] if rows else []
