"""Lists of the view: trees, search hits, models to add, earlier texts.  One shape for all, the
chat's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.cli.chat.screens.list_question import ListAnswer, ListKey, ListQuestion, ListRow
from weft.cli.chat.screens.terminal.list_panel import ListPanel
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.panels.view_panel import NOTHING, ViewPanel
from weft.cli.loom_view.text_rows import ViewFrame, padded
from weft.cli.loom_view.view_command import ViewCommand
from weft.ids import NodeId

MOST_HITS: Final = 50


class PickPanel(ViewPanel):
    """A list to pick one of; typing narrows it down."""

    def __init__(
        self,
        question: ListQuestion,
        picked: Callable[[ListAnswer], Sequence[ViewCommand]],
        *,
        typed: Callable[[str], None] | None = None,
    ) -> None:
        """`typed` takes words that no row has."""
        self._list = ListPanel(question)
        self._picked = picked
        self._typed = typed
        self.is_over = False

    @property
    def words(self) -> str:
        """What has been typed."""
        return self._list.picker.words

    def filter(self, words: str) -> None:
        """Narrow it down."""
        self._list.picker.filter(words)

    def press(self, key: str) -> Sequence[ViewCommand]:
        picker = self._list.picker
        if key == "enter" and self._typed is not None and not picker.found:
            self.is_over = True
            self._typed(picker.words.strip())
            return NOTHING
        picker.press(key)
        self.is_over = picker.is_over
        return () if picker.answer is None else self._picked(picker.answer)

    def paste(self, text: str) -> Sequence[ViewCommand]:
        self.filter(self.words + " ".join(text.split()))
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        rows = self._list.rows([], width=size.columns, limit=size.rows, styles=styles)
        return ViewFrame(_filled(rows, size))


class WaitingPanel(PickPanel):
    """A list whose rows are on their way: what is typed meanwhile counts when they have come."""

    def __init__(self, title: str, words: str = "") -> None:
        question = ListQuestion(title=title, rows=(), words=words, empty="looking…")
        super().__init__(question, lambda answer: NOTHING)
        self.is_entered = False

    def press(self, key: str) -> Sequence[ViewCommand]:
        self.is_entered = self.is_entered or key == "enter"
        return NOTHING if self.is_entered and key != "escape" else super().press(key)


class SearchPanel(ViewPanel):
    """Words to look for, and where they were found; it is looked for while they are typed."""

    def __init__(self) -> None:
        self.words = ""
        self.is_wide = False
        self._hits: tuple[tuple[ListRow, NodeId], ...] = ()
        self._place = 0
        self._looked_for = ""
        self.is_over = False

    def found(self, words: str, hits: Sequence[tuple[ListRow, NodeId]]) -> None:
        """What was found; of words that have changed since, nothing is taken."""
        if words == self.words:
            self._hits, self._place, self._looked_for = tuple(hits), 0, words

    def press(self, key: str) -> Sequence[ViewCommand]:
        if key in ("escape", "c-c"):
            self.is_over = True
        elif key == "enter":
            return self._go()
        elif key in ("down", "c-n", "up", "c-p"):
            step = 1 if key in ("down", "c-n") else -1
            self._place = (self._place + step) % max(1, len(self._hits))
        elif key == "tab":
            self.is_wide = not self.is_wide
            return self._search()
        elif key == "backspace":
            self.words = self.words[:-1]
            return self._search()
        elif key == "space" or (len(key) == 1 and key.isprintable()):
            self.words += " " if key == "space" else key
            return self._search()
        return NOTHING

    def paste(self, text: str) -> Sequence[ViewCommand]:
        self.words += " ".join(text.split())
        return self._search()

    def _go(self) -> Sequence[ViewCommand]:
        if not self._hits:
            return NOTHING
        self.is_over = True
        return (ViewCommand("switch", text=self._hits[self._place][1]),)

    def _search(self) -> Sequence[ViewCommand]:
        return (ViewCommand("search", text=self.words, is_wide=self.is_wide),)

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        empty = "type the words to look for"
        if self.words.strip():
            empty = "nothing has these words" if self._looked_for == self.words else "looking…"
        question = ListQuestion(
            title=f"Search {'all trees' if self.is_wide else 'this tree'}: {self.words}",
            rows=tuple(row for row, _ in self._hits),
            picked=self._place,
            enter="goes there",
            keys=(ListKey("tab", "this tree" if self.is_wide else "all trees", needs_row=False),),
            empty=empty,
        )
        panel = ListPanel(question)
        rows = panel.rows([], width=size.columns, limit=size.rows, styles=styles)
        hint = "type to filter · "
        rows[0] = rows[0].replace(hint, " " * len(hint))
        return ViewFrame(_filled(rows, size))


def _filled(rows: Sequence[str], size: ScreenSize) -> list[str]:
    shown = [padded(row, size.columns) for row in rows[: size.rows]]
    return [*shown, *[""] * (size.rows - len(shown))]
