"""Panels over the view: texts to read, a question, a line to type.  Each has the keys while it is
open; none touches the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.chat.paint.text_cells import word_wrap
from weft.cli.chat.screens.line_input.editing_keys import edit
from weft.cli.chat.screens.line_input.input_rows import input_rows
from weft.cli.chat.screens.line_input.line_editor import LineEditor
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.text_rows import LongText, ViewFrame, panel_frame
from weft.cli.loom_view.view_command import ViewCommand
from weft.cli.sanitize import clean_line
from weft.ids import NodeId

CLOSES: Final = ("escape", "q", "c-c")
NOTHING: Final[tuple[ViewCommand, ...]] = ()


class ViewPanel(Protocol):
    """Something that has the keys and the window."""

    is_over: bool

    def press(self, key: str) -> Sequence[ViewCommand]:
        """One key; what is to be done."""
        ...

    def paste(self, text: str) -> Sequence[ViewCommand]:
        """Pasted text, which is never keys."""
        ...

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        """All rows of the window."""
        ...


class TextPage(msgspec.Struct, frozen=True):
    """A text to read, and the node that it leads to."""

    title: str
    spans: tuple[StyledSpan, ...]
    node: NodeId | None = None


class PagesPanel(ViewPanel):
    """Texts to read: scrolled by rows, turned by pages."""

    def __init__(self, pages: Sequence[TextPage], *, about: str = "", at: int = 0) -> None:
        self._pages = pages
        self._about = about
        self._at = at
        self._top = 0
        self._height = 20
        self._texts: dict[int, LongText] = {}
        self.is_over = False

    def press(self, key: str) -> Sequence[ViewCommand]:
        page = max(1, self._height - 1)
        moves = {
            "j": 1,
            "down": 1,
            "k": -1,
            "up": -1,
            "space": page,
            "pagedown": page,
            "b": -page,
            "pageup": -page,
        }
        node = self._pages[self._at].node
        if key == "enter" and node is not None:
            self.is_over = True
            return (ViewCommand("go", node=node),)
        if key in CLOSES:
            self.is_over = True
        elif key in moves:
            self._top = max(0, self._top + moves[key])
        elif key in ("home", "g"):
            self._top = 0
        elif key in ("end", "G"):
            self._top = 1 << 30
        elif key in ("n", "l", "right", "p", "h", "left"):
            step = 1 if key in ("n", "l", "right") else -1
            self._at = max(0, min(self._at + step, len(self._pages) - 1))
            self._top = 0
        return NOTHING

    def paste(self, text: str) -> Sequence[ViewCommand]:
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        page = self._pages[self._at]
        self._height = max(1, size.rows - 2)
        text = self._texts.setdefault(self._at, LongText(page.spans))
        rows, self._top, has_more = text.window(self._top, self._height, size.columns - 4, styles)
        count = f"{self._at + 1} of {len(self._pages)}" if len(self._pages) > 1 else ""
        hints = ["q returns", "Space further" if has_more else ""]
        hints += [
            "n p another" if len(self._pages) > 1 else "",
            "Enter goes there" * bool(page.node),
        ]
        title = f"{self._about} · {page.title}" if self._about and page.title else page.title
        hint = " · ".join(filter(None, hints))
        return ViewFrame(panel_frame(title or self._about, count, rows, hint, size, styles))


class AskPanel(ViewPanel):
    """A question that one key answers; any other leaves it."""

    def __init__(self, words: str, answers: dict[str, ViewCommand], hint: str) -> None:
        self.words = words
        self.hint = hint
        self._answers = answers
        self.is_over = False

    def press(self, key: str) -> Sequence[ViewCommand]:
        self.is_over = True
        found = self._answers.get(key)
        return () if found is None else (found,)

    def paste(self, text: str) -> Sequence[ViewCommand]:
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        return ViewFrame([])  # it stands in the footer of what is below it


class EditPanel(ViewPanel):
    """A text that is edited in place."""

    def __init__(
        self,
        title: str,
        text: str,
        done: Callable[[str, bool], ViewCommand],
        *,
        forks: bool = False,
        is_line: bool = False,
    ) -> None:
        """`done` makes the command of a text, and of whether it is to be a branch of its own."""
        self._title = title
        self._done = done
        self._forks = forks
        self._is_line = is_line
        self._before = text
        self._editor = LineEditor()
        self._editor.set_text(text)
        self._asks = False
        self._refusal = ""
        self.is_over = False

    def refused(self, words: str) -> None:
        """What was typed was not taken: it stays, and the user is told why."""
        self.is_over = False
        self._refusal = clean_line(words)

    def press(self, key: str) -> Sequence[ViewCommand]:
        self._refusal = ""
        text = self._editor.whole_text
        asks, self._asks = self._asks, False
        if key in ("escape", "c-c"):
            # What was typed is not thrown away by one key.
            self._asks = not asks and text != self._before
            self.is_over = not self._asks
            return NOTHING
        if key == "enter" or (key == "tab" and self._forks):
            self.is_over = True
            return (self._done(text, key == "tab"),)
        if key in ("m-enter", "c-j", "s-enter") and not self._is_line:
            self._editor.insert("\n")
        elif key in ("up", "down"):
            (self._editor.line_up if key == "up" else self._editor.line_down)()
        else:
            edit(self._editor, key)
        return NOTHING

    def paste(self, text: str) -> Sequence[ViewCommand]:
        self._editor.paste(" ".join(text.split("\n")) if self._is_line else text)
        return NOTHING

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        shown = input_rows(
            self._editor,
            width=max(8, size.columns - 3),
            limit=max(1, size.rows - 2 - (4 if self._refusal else 0)),
            styles=styles,
            prompt="",
        )
        hints = ["Enter keeps it", "Esc leaves it", "Tab as its own branch" if self._forks else ""]
        hints += ["" if self._is_line else "Alt+Enter new line"]
        hint = " · ".join(filter(None, hints))
        if self._asks:
            hint = "Esc again drops the change · Enter keeps it"
        refusal = word_wrap(self._refusal, max(8, size.columns - 4)) if self._refusal else []
        body = [*shown.rows, "", *(styles("bad", row) for row in refusal)]
        rows = panel_frame(self._title, "", body, hint, size, styles)
        return ViewFrame(rows, (min(shown.row + 1, size.rows - 1), shown.column + 2))
