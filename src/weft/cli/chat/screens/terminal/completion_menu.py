"""The list of completions below the input: eight rows, one picked."""

from __future__ import annotations

from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.completion import CompletionItem
from weft.cli.chat.screens.terminal.styles import RowStyles

SHOWN = 8
_WIDEST = 32


class CompletionMenu:
    """What can be taken for the text before the cursor."""

    def __init__(self, before: str, items: list[CompletionItem]) -> None:
        self.before = before
        self.items = items
        self.index = 0

    @property
    def picked(self) -> CompletionItem:
        """The one that Tab and Enter take."""
        return self.items[self.index]

    def move(self, step: int) -> None:
        """To another row."""
        self.index = (self.index + step) % len(self.items)

    def rows(self, *, width: int, limit: int, styles: RowStyles) -> list[str]:
        """The rows around the picked one; the first says how many there are."""
        limit = max(1, min(SHOWN, limit))
        start = max(0, min(self.index - limit // 2, len(self.items) - limit))
        shown = self.items[start : start + limit]
        wide = min(_WIDEST, max(cells(item.shown) for item in shown), width - 4)
        rows = []
        for number, item in enumerate(shown, start):
            count = f" ({self.index + 1}/{len(self.items)})" if number == start else ""
            name = fit(item.shown, max(wide, width - 6) if not item.about else wide)
            gap = " " * (wide - cells(name))
            about = fit(item.about, width - 2 - wide - 2 - len(count) - 1)
            text = f"  {name}{gap}  {about}" if item.about else f"  {name}"
            fill = " " * max(0, width - cells(text) - len(count)) if count else ""
            is_picked = number == self.index
            rows.append(
                styles("picked" if is_picked else "quiet", text) + fill + styles("quiet", count)
            )
        return rows
