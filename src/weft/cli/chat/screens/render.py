"""Blocks to text for a terminal: the one place where foreign words meet escape sequences.

Everything foreign goes through `sanitize` first, so that every escape sequence in the result is
ours.
"""

from __future__ import annotations

from functools import lru_cache

from weft.cli.chat.paint.full_lines import whole_lines
from weft.cli.chat.paint.record_lines import block_lines
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.paint.tool_cards import head_lines
from weft.view import (
    AgentsCard,
    AnyBlock,
    LookupCard,
    NoteBlock,
    PermissionBlock,
    ThinkingBlock,
    ToolCard,
    TurnEndBlock,
)

NARROWEST = 20
_CLOSE = (NoteBlock, ToolCard, ThinkingBlock, LookupCard, AgentsCard, TurnEndBlock)
"""What follows the line before it without an empty one."""


class BlockRenderer:
    """Paints for one kind of terminal."""

    def __init__(
        self,
        *,
        width: int,
        styled: bool = True,
        coloured: bool = True,
        unicode: bool = True,
        theme: PaintTheme | None = None,
    ) -> None:
        """`theme` says all of it; without one the other three do."""
        self._width = max(NARROWEST, width)
        self._theme = theme or PaintTheme(
            is_styled=styled, is_coloured=coloured, is_unicode=unicode
        )

    def paint(self, block: AnyBlock) -> str:
        """The block as text that may be written to the terminal, an empty line before it."""
        lines = self.lines(block)
        while lines and not lines[-1]:
            lines.pop()
        if not lines:
            return ""
        gap = [] if isinstance(block, _CLOSE) else [""]
        return "".join(f"{line}\n" for line in [*gap, *lines])

    def paint_head(self, card: ToolCard) -> str:
        """A card of which only the outcome is new: its change stands above, in the question."""
        lines = head_lines(card, self._width, self._theme)
        return "".join(f"{self._theme.line(line)}\n" for line in lines)

    def paint_whole(self, block: AnyBlock) -> str:
        """The block unfolded, an empty line before it."""
        lines = whole_lines(block, self._width, self._theme)
        return "".join(f"{line}\n" for line in ["", *(self._theme.line(line) for line in lines)])

    def lines(self, block: AnyBlock) -> list[str]:
        """The lines of a block, each with its own styles and no newline."""
        if isinstance(block, PermissionBlock):
            return list(_preview(block, self._width, self._theme))
        return [self._theme.line(line) for line in block_lines(block, self._width, self._theme)]


@lru_cache(maxsize=2)
def _preview(block: PermissionBlock, width: int, theme: PaintTheme) -> tuple[str, ...]:
    """A preview, painted once: a question is drawn many times a second and may show thousands of
    lines.
    """
    return tuple(theme.line(line) for line in block_lines(block, width, theme))
