"""The viewer: blocks unfolded on the alternate screen, to scroll, search and copy from.

A place is a block and a line in it, and only the blocks around the window are painted: the whole of
a long conversation would take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from weft.cli.chat.paint.full_lines import full_lines, is_folded, source_text
from weft.cli.chat.paint.text_cells import cells, fit, fit_row, without_attributes
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.errors import UsageError
from weft.view import AnswerBlock, AnyBlock, NoteBlock, TableBlock, TurnEndBlock, count_of

# The codes of keys belong to a screen, so the alternate one is told again.
OPEN = "\x1b[?1049h\x1b[=1;1u\x1b[?25l"
SHUT = "\x1b[=0;1u\x1b[?25h\x1b[?1049l"
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
KEY_HINTS = (
    "q returns · / search · n p card · c copies",
    "q returns · / search · n p · c",
    "q returns · / · n p · c",
    "q returns",
)
"""Which keys there are; the first that fits is shown, and none is cut."""
_CLOSE = (NoteBlock, TurnEndBlock)
_NO_STOP = (NoteBlock, TurnEndBlock, AnswerBlock, TableBlock)

LinePlace: TypeAlias = tuple[int, int]
"""A block, and a line of it."""


class BlockViewer:
    """Shows blocks until `is_over`."""

    def __init__(
        self,
        blocks: Sequence[AnyBlock],
        size: ScreenSize,
        *,
        theme: PaintTheme,
        styles: RowStyles,
        copy: Callable[[str], None],
        title: str = "Conversation",
        at_end: bool = True,
    ) -> None:
        """`at_end` begins at the last folded block, else at the first one."""
        self._blocks = blocks
        self._size, self._theme, self._styles = size, theme, styles
        self._copy = copy
        self._title = title
        self._painted: dict[int, list[str]] = {}
        self._stops = [n for n, block in enumerate(blocks) if not isinstance(block, _NO_STOP)]
        self._card = -1
        """The block that `c` copies."""
        self._top: LinePlace = (0, 0)
        self._words = ""
        self._typed: str | None = None
        """What is being typed to search for."""
        self._notice = ""
        self.is_over = False
        self._begin(at_end=at_end)

    def _begin(self, *, at_end: bool) -> None:
        if not at_end:
            self._go_to_card(self._stops[0] if self._stops else 0)
            return
        width = self._size.columns
        for number in reversed(self._stops):
            if is_folded(self._blocks[number], width, self._theme):
                self._go_to_card(number)
                return
        self._top = self._last_top()
        self._look_at_card()

    # -- keys

    def press(self, key: str) -> None:
        """One key."""
        self._notice = ""
        if self._typed is not None:
            self._press_search(self._typed, key)
        elif key in ("q", "Q", "escape", "c-o", "c-c"):
            self.is_over = True
        elif key in self._moves():
            self._move(self._moves()[key])
        elif key in ("home", "g"):
            self._top = (0, 0)
            self._look_at_card()
        elif key in ("end", "G"):
            self._top = self._last_top()
            self._look_at_card()
        elif key in ("n", "p", "N"):
            self._next_card(1 if key == "n" else -1)
        elif key == "c":
            self._copy_card()
        elif key == "/":
            self._typed = ""

    def paste(self, text: str) -> None:
        """Pasted text is searched for, never keys."""
        if self._typed is not None:
            self._typed += " ".join(text.split())

    def _moves(self) -> dict[str, int]:
        page = max(1, self._height - 1)
        down = dict.fromkeys(("pagedown", "space", "c-f"), page)
        up = dict.fromkeys(("pageup", "b", "c-b"), -page)
        return {**down, **up, "down": 1, "j": 1, "enter": 1, "up": -1, "k": -1}

    def _press_search(self, typed: str, key: str) -> None:
        if key == "enter":
            # `/` and Enter alone look for the same again, as in less.
            self._words, self._typed = typed or self._words, None
            if self._words:
                self._search()
        elif key in ("escape", "c-c"):
            self._typed = None
        elif key == "backspace":
            self._typed = typed[:-1] if typed else None
        elif key == "space" or (len(key) == 1 and key >= " "):
            self._typed = typed + (" " if key == "space" else key)

    def _copy_card(self) -> None:
        if not 0 <= self._card < len(self._blocks):
            self._notice = "there is no card to copy"
            return
        text = source_text(self._blocks[self._card], self._theme)
        try:
            self._copy(text)
        except UsageError as error:
            self._notice = str(error)
        else:
            self._notice = f"copied {count_of(text.count(chr(10)) + 1, 'line')}"

    # -- places

    @property
    def _height(self) -> int:
        return max(1, self._size.rows - 1)

    def _lines(self, number: int) -> list[str]:
        """The rows of a block, with an empty one before it."""
        if number not in self._painted:
            block = self._blocks[number]
            lines = full_lines(block, self._size.columns, self._theme)
            rows = [self._theme.line(line) for line in lines]
            gap = [] if number == 0 or isinstance(block, _CLOSE) else [""]
            self._painted[number] = [*gap, *rows] if rows else []
        return self._painted[number]

    def _from(self, place: LinePlace) -> Iterator[LinePlace]:
        number, line = place
        while number < len(self._blocks):
            yield from ((number, each) for each in range(line, len(self._lines(number))))
            number, line = number + 1, 0

    def _before(self, place: LinePlace) -> Iterator[LinePlace]:
        number, line = place
        while number >= 0:
            yield from ((number, each) for each in range(line - 1, -1, -1))
            number -= 1
            line = len(self._lines(number)) if number >= 0 else 0

    def _window(self) -> list[LinePlace]:
        return list(islice(self._from(self._top), self._height))

    def _last_top(self) -> LinePlace:
        """The first row of the last full window."""
        found: LinePlace = (0, 0)
        for count, place in enumerate(self._before((len(self._blocks), 0)), start=1):
            found = place
            if count == self._height:
                break
        return found

    def _move(self, rows: int) -> None:
        places = self._from(self._top) if rows > 0 else self._before(self._top)
        # The first place below is the one that the window begins with already.
        wanted = rows + 1 if rows > 0 else -rows
        for count, place in enumerate(places, start=1):
            self._top = place
            if count == wanted:
                break
        self._top = min(self._top, self._last_top())
        self._look_at_card()

    def _first_row(self, number: int) -> LinePlace:
        lines = self._lines(number) if number < len(self._blocks) else []
        return (number, 1 if lines and not lines[0] else 0)

    def _go_to_card(self, number: int) -> None:
        self._card = number
        self._top = min(self._first_row(number), self._last_top())

    def _next_card(self, step: int) -> None:
        if step > 0:
            found = [number for number in self._stops if number > self._card]
        else:
            found = [number for number in reversed(self._stops) if number < self._card]
        if found:
            self._go_to_card(found[0])
        else:
            self._notice = "that is the last card" if step > 0 else "that is the first card"

    def _look_at_card(self) -> None:
        """The card of the window: the first that begins in it, else the one that goes on there."""
        shown = self._window()
        begun = [number for number in self._stops if self._first_row_is_in(number, shown)]
        above = [number for number in self._stops if number <= self._top[0]]
        self._card = begun[0] if begun else above[-1] if above else -1

    def _first_row_is_in(self, number: int, shown: list[LinePlace]) -> bool:
        # Blocks outside the window are not painted for this.
        if not shown or not shown[0][0] <= number <= shown[-1][0]:
            return False
        return shown[0] <= self._first_row(number) <= shown[-1]

    def _search(self) -> None:
        """The next row with these words, from behind the first one shown on; then from the top."""
        number, line = self._top
        found = self._found_from((number, line + 1)) or self._found_from((0, 0))
        if found is None:
            self._notice = f'"{self._words}" is not here'
            return
        self._top = min(found, self._last_top())
        stops = [each for each in self._stops if each <= found[0]]
        self._card = stops[-1] if stops else -1

    def _found_from(self, place: LinePlace) -> LinePlace | None:
        words = self._words.casefold()
        for number, line in self._from(place):
            if words in without_attributes(self._lines(number)[line]).casefold():
                return number, line
        return None

    # -- drawing

    def resize(self, size: ScreenSize) -> None:
        """Another size: the block at the top stays there."""
        number, _ = self._top
        self._size = size
        self._painted.clear()
        self._top = min(self._first_row(number), self._last_top())

    def frame(self) -> str:
        """What to write: every row of the window."""
        width = self._size.columns
        rows = [self._row(place, width) for place in self._window()]
        rows += [""] * (self._height - len(rows))
        written = [self._styles.written(row) for row in [*rows, self._status(width)]]
        # Each row by its number, because a line feed in the last one would scroll.
        drawn = "".join(f"\x1b[{n}H\x1b[2K{row}" for n, row in enumerate(written, start=1))
        return f"{_BEGIN}\x1b[?7l{drawn}\x1b[?7h{_END}"

    def _row(self, place: LinePlace, width: int) -> str:
        number, line = place
        row = self._lines(number)[line]
        bare = without_attributes(row)
        is_head = number == self._card and place == self._first_row(number)
        is_match = bool(self._words) and self._words.casefold() in bare.casefold()
        if is_head or is_match:
            return self._styles("picked" if is_head else "bold ask", bare)
        return fit_row(row, width)

    def _status(self, width: int) -> str:
        if self._typed is not None:
            return fit(f"/{self._typed}", width - 1) + self._styles("picked", " ")
        place = self._stops.index(self._card) + 1 if self._card in self._stops else 0
        count = f"card {place} of {len(self._stops)}" if place else ""
        room = width - cells(count) - 3
        hints = (f"{self._title} · {KEY_HINTS[0]}", *KEY_HINTS)
        hint = next((each for each in hints if cells(each) <= room), "")
        left = fit(self._notice or hint, room)
        gap = " " * max(1, width - cells(left) - cells(count) - 2)
        return self._styles("quiet", fit(f" {left}{gap}{count}", width))
