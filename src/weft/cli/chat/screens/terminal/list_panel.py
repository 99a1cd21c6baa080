"""A list in the bottom region: title and count, rows in columns, the keys in a quiet line."""

from __future__ import annotations

from weft.cli.chat.paint.text_cells import cells, fit, fit_row, joined_rows, word_wrap
from weft.cli.chat.screens.list_picker import VISIBLE_ROWS, ListPicker
from weft.cli.chat.screens.list_question import ListQuestion, ListRow, key_name
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.sanitize import clean_line

NARROW = 60
"""Up to so many columns, a row has its label and one detail."""
GAP = 3
_SMALLEST_LABEL = 16
_WIDEST_LABEL = 60
_SMALLEST_LAST = 24
"""Cells that the last column has at least; its text is cut there."""


class ListPanel:
    """A list that is being picked from."""

    def __init__(self, question: ListQuestion) -> None:
        self.question = question
        self.picker = ListPicker(question)

    def rows(self, peek: list[str], *, width: int, limit: int, styles: RowStyles) -> list[str]:
        """The list in at most `limit` rows; `peek` is what the picked row holds, as painted lines
        of which the last are shown.
        """
        below = [*self._levels(width, styles), *self._hint(width, styles)]
        room = max(1, limit - 1 - len(below))
        body = self._peek(peek, room, styles) if self.question.peek else None
        if body is None:
            body = self._table(min(room, VISIBLE_ROWS), width, styles)
        return [self._title(width, styles), *body, *below]

    # -- the parts

    def _title(self, width: int, styles: RowStyles) -> str:
        picker, question = self.picker, self.question
        count = len(picker.found)
        place = f"{picker.place + 1} of {count}" if count else "none"
        hint = "type to filter" if width > NARROW and question.rows else ""
        typed = f"/{picker.words}" if picker.words else hint
        parts = [question.about if width > NARROW else "", typed, place if question.rows else ""]
        right = "" if question.peek else " · ".join(part for part in parts if part)
        title = fit(clean_line(question.title), width - cells(right) - 2 if right else width)
        gap = " " * max(2, width - cells(title) - cells(right))
        return f"{styles('bold', title)}{gap}{styles('quiet', right)}" if right else title

    def _peek(self, peek: list[str], room: int, styles: RowStyles) -> list[str]:
        left_out = len(peek) - room
        if left_out <= 0:
            return peek
        return [styles("quiet", f"   … {left_out + 1} earlier lines"), *peek[left_out + 1 :]]

    def _table(self, room: int, width: int, styles: RowStyles) -> list[str]:
        question, picker = self.question, self.picker
        shown = picker.visible(room)
        if not shown:
            said = "no match" if question.rows else question.empty or "nothing to pick"
            return [styles("quiet", f"   {row}") for row in word_wrap(said, width - 3)]
        marks = any(row.is_current for row in question.rows)
        rows = [question.rows[number] for number in shown]
        columns = _Columns(rows, question.keeps, width - (5 if marks else 3))
        painted = []
        for number, row in zip(shown, rows, strict=True):
            lead = " ❯ " if number == picker.picked else "   "
            mark = ("● " if row.is_current else "  ") if marks else ""
            label, rest = columns.cells_of(row)
            painted.append(_painted(lead + mark + label, rest, row, lead != "   ", styles))
        return painted

    def _levels(self, width: int, styles: RowStyles) -> list[str]:
        question, row = self.question, self.picker.row
        if not question.levels_label or question.peek:
            return []
        head = f"   {question.levels_label}   "
        if row is None or not row.levels:
            return [styles("quiet", fit(f"{head}this one has no levels", width))]
        chosen = self.picker.level()
        shown = _around(row.levels, chosen, width - cells(head) - 4)
        words = [
            styles("bold", f"[{word}]") if number == chosen else styles("quiet", word)
            for number, word in shown
        ]
        used = sum(cells(word) + 2 + 2 * (number == chosen) for number, word in shown)
        arrows = " " * max(2, width - cells(head) - used - 2)
        row_of = f"{styles('quiet', head)}{'  '.join(words)}{arrows}{styles('quiet', '←→')}"
        return [fit_row(row_of, width)]

    def _hint(self, width: int, styles: RowStyles) -> list[str]:
        question = self.question
        if question.peek:
            return [styles("quiet", " Space or Esc goes back to the list")]
        enter = f"Enter {question.enter}".rstrip()
        keys = [f"{key_name(each.key)} {each.does}" for each in question.keys]
        if not question.rows:
            keys = [f"{key_name(each.key)} {each.does}" for each in question.keys
                    if not each.needs_row]  # fmt: skip
            enter = ""
        parts = [part for part in (enter, *keys, "Esc") if part]
        return [styles("quiet", f" {row}") for row in joined_rows(parts, width - 1)]


def _painted(label: str, rest: str, row: ListRow, is_picked: bool, styles: RowStyles) -> str:
    if is_picked:
        return styles("picked", f"{label}{rest}".rstrip())
    if row.is_dim:
        return styles("quiet", f"{label}{rest}".rstrip())
    return f"{label}{styles('quiet', rest.rstrip())}"


def _around(words: tuple[str, ...], chosen: int, room: int) -> list[tuple[int, str]]:
    """The words that fit, the chosen one among them."""
    shown = list(enumerate(words))
    while len(shown) > 1 and sum(cells(word) + 2 for _, word in shown) > room:
        # From the end that is further away, so that what can be chosen next is seen.
        is_far = chosen - shown[0][0] > shown[-1][0] - chosen
        shown.pop(0 if is_far else -1)
    return shown


class _Columns:
    """How wide the label and each detail of some rows are, and which details there is room for."""

    def __init__(self, rows: list[ListRow], keeps: tuple[int, ...], width: int) -> None:
        self._width = width
        count = max(len(row.details) for row in rows)
        self._count = count
        self._widths = [self._width_of(rows, place) for place in range(count)]
        label = max(cells(row.margin) + cells(clean_line(row.label)) for row in rows)
        self._label = min(label, _WIDEST_LABEL)
        self._shown = self._choose(keeps, count)
        # What is left after the details, but never less than what tells rows apart.
        room = max(_SMALLEST_LABEL, width - self._taken(self._shown))
        self._label = min(self._label, room, width)

    def _width_of(self, rows: list[ListRow], place: int) -> int:
        # A row of fewer details goes on over the columns behind: a remark is no reason to take the
        # room of what the other rows have there.
        whole = [row for row in rows if not self._goes_on(row, place)]
        widths = [cells(clean_line(_detail(row, place))) for row in whole]
        if not any(widths):
            widths = [cells(clean_line(_detail(row, place))) for row in rows]
        return max(widths)

    def _goes_on(self, row: ListRow, place: int) -> bool:
        return place == len(row.details) - 1 < self._count - 1

    def _choose(self, keeps: tuple[int, ...], count: int) -> list[int]:
        shown = [place for place in range(count) if self._widths[place]]
        order = [place for place in keeps if place in shown]
        order += [place for place in shown if place not in order]
        if self._width <= NARROW:
            shown = order[:1]
        while len(shown) > 1 and self._needs(shown) > self._width:
            shown.remove(order.pop())
        # The last one may be cut at the edge; the others stay whole, or their columns would part.
        return shown

    def _needs(self, shown: list[int]) -> int:
        # A long label is cut before a column goes, down to a third of the row.
        label = min(self._label, max(_SMALLEST_LABEL, self._width // 3))
        return label + self._taken(shown)

    def _taken(self, shown: list[int]) -> int:
        *whole, last = shown or [-1]
        if last < 0:
            return 0
        rest = min(self._widths[last], _SMALLEST_LAST)
        return sum(self._widths[place] + GAP for place in whole) + rest + GAP

    def cells_of(self, row: ListRow) -> tuple[str, str]:
        """The label and the details of a row, each as wide as its column."""
        label = fit(row.margin + clean_line(row.label), self._label)
        rest, left = "", self._width - self._label
        for place in self._shown:
            detail = fit(clean_line(_detail(row, place)), left - GAP)
            gap = self._widths[place] - cells(detail)
            rest += " " * GAP + detail + " " * max(0, gap)
            left -= self._widths[place] + GAP
        return label + " " * (self._label - cells(label)), rest


def _detail(row: ListRow, place: int) -> str:
    return row.details[place] if place < len(row.details) else ""
