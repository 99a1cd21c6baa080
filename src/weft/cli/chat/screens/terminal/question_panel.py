"""A question in the bottom region: its rule, what it is about, its rows, and which key means what.

It takes the keyboard at once.  Keys that come before the user can have read it are dropped: typed
on, they would answer it or end up in the input line.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import cells, fit, joined_rows, word_wrap
from weft.cli.chat.screens.picker import ChoicePicker
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.sanitize import clean, clean_line
from weft.clock import Clock

CALM_SECONDS = 0.4
"""A question takes answers only after so long: what was typed on is not meant for it."""
NARROW = 60
JUST_APPEARED = "just appeared: press again"


class RowRank(IntEnum):
    """What a row is; in a window that is too small the last of these goes first."""

    PICKED = 0
    TITLE = 1
    DANGER = 2
    NOTE = 3
    CHOICE = 4
    RULE = 5
    TITLE_REST = 6
    PREVIEW = 7
    BLANK = 8
    HINT = 9


class RankedRow(NamedTuple):
    """A row of the question."""

    rank: RowRank
    order: int
    """Among those of its rank, the highest goes first."""
    text: str


class QuestionPanel:
    """A question that is being answered."""

    def __init__(self, question: ChoiceQuestion, clock: Clock) -> None:
        self.question = question
        self.picker = ChoicePicker(question)
        self._clock = clock
        self._born = clock.monotonic()
        self._note = ""
        self.is_printed = False
        """The preview did not fit and stands above."""

    # -- keys

    @property
    def is_fresh(self) -> bool:
        """It has just come up, unasked."""
        if self.question.is_own:
            return False
        return self._clock.monotonic() - self._born < CALM_SECONDS

    def takes_keys(self) -> bool:
        """Whether a key can be meant for the question; one that comes too early is answered with a
        hint.
        """
        if self.is_fresh:
            self._note = JUST_APPEARED
        return not self.is_fresh

    def typed(self, letter: str) -> int | None:
        """A character; the row that it chooses, if it does."""
        self._note = ""
        for number, row in enumerate(self.question.rows):
            if row.key and row.key == letter and not self.picker.words:
                return number
        if letter in self.question.other_keys:
            return len(self.question.rows) + self.question.other_keys.index(letter)
        if self.picker.understands(letter):
            return self.picker.typed(letter)
        self._note = self._which()
        return None

    def entered(self) -> int | None:
        """Enter: the picked row; without one only the hint is shown again."""
        picked = self.picker.picked()
        self._note = "" if picked is not None else self._which()
        return picked

    def _which(self) -> str:
        count = len(self.question.rows)
        return f"press 1 to {count}" if count < 10 else "pick a row with Up and Down"

    # -- drawing

    def rows(
        self, preview: list[str], *, width: int, styles: RowStyles, limit: int | None = None
    ) -> list[str]:
        """The question; `preview` is what it is about, as painted lines that fit.

        With more than `limit` rows, the title and the picked row are the last to go.
        """
        rows = [
            *self._head(preview, width, styles),
            *self._title(width, styles),
            *self._choices(width, styles),
            *self._hint(width, styles),
        ]
        ranked = sorted(range(len(rows)), key=lambda number: rows[number][:2])
        kept, gone = ranked[:limit], ranked[len(ranked[:limit]) :]
        if gone and (cut := rows[gone[0]]).rank is RowRank.CHOICE:
            # An answer without the end of what it covers would seem to cover something else.
            kept = [number for number in kept if rows[number][:2] != cut[:2]]
        return [rows[number].text for number in sorted(kept)]

    def rows_above(
        self, label: list[str], preview: list[str], *, width: int, styles: RowStyles, limit: int
    ) -> list[str]:
        """What the question is about, above the rows that ask for a line; `limit` is for both."""
        head = [row.text for row in self._head(preview, width, styles)]
        # The rule says the most in one row, and the blank row nothing.
        room = max(0, limit - len(label))
        return [*(head if len(head) <= room else head[:-1][:room]), *label]

    def _head(self, preview: list[str], width: int, styles: RowStyles) -> list[RankedRow]:
        if not preview and not self.question.rule:
            return []
        # What is dangerous about an answer is seen as long as there is one to choose.
        rank = RowRank.DANGER if self.question.danger else RowRank.RULE
        rule = self._rule(width, styles)
        return [
            *(RankedRow(rank, number, row) for number, row in enumerate(rule)),
            *(RankedRow(RowRank.PREVIEW, -number, row) for number, row in enumerate(preview)),
            RankedRow(RowRank.BLANK, 0, ""),
        ]

    def _choices(self, width: int, styles: RowStyles) -> list[RankedRow]:
        picked, rows = self.picker.picked(), []
        for number, row in self.picker.visible():
            rank = RowRank.PICKED if number == picked else RowRank.CHOICE
            # No two have the same: the rows of one answer go together.
            far = 2 * abs(number - (picked or 0)) + (number > (picked or 0))
            rows += [
                RankedRow(rank, far, text) for text in self._choice(number, row, width, styles)
            ]
        return rows

    def _hint(self, width: int, styles: RowStyles) -> list[RankedRow]:
        parts = self.question.hint.split(" · ") if self.question.hint else []
        if self._note:
            # Never cut: behind the note stands which keys there are.
            shown = joined_rows([self._note, *([] if self.is_fresh else parts)], width - 1)
            rows = [f" {styles('ask', row)}" for row in shown]
        else:
            # Which keys there are is said when they count; the row is kept for it.
            shown = joined_rows(parts, width - 1)
            rows = ["" if self.is_fresh else f" {styles('quiet', row)}" for row in shown]
        first = RowRank.NOTE if self._note else RowRank.HINT
        return [
            RankedRow(RowRank.HINT if number else first, number, row)
            for number, row in enumerate(rows)
        ]

    def _gap(self, row: ChoiceRow, width: int) -> int:
        """Cells behind a label, so that all details stand in one column; none where one of them
        would not fit.
        """
        shown = [each for each in self.question.rows if each.detail]
        labels = [cells(clean_line(each.label)) for each in shown]
        details = [cells(clean_line(each.detail)) for each in shown]
        if 5 + max(labels) + 2 + max(details) > width:
            return 0
        return max(labels) - cells(clean_line(row.label))

    def _rule(self, width: int, styles: RowStyles) -> list[str]:
        """The rule with its title, and what is dangerous: in red behind it, or below it whole."""
        question = self.question
        style = "you" if question.is_from_model else "ask"
        text = clean_line(question.rule)
        danger = clean_line(question.danger)
        if cells(text) + cells(danger) + 8 > width:
            text = text.partition(" ─ ")[0]
        head = f"── {text} " if text else ""
        if danger and cells(head) + cells(danger) + 4 > width:
            line = styles(style, fit(head, width) + "─" * max(0, width - cells(head)))
            below = word_wrap(danger, width - 2)
            return [line, *(f"  {styles('bold bad', row)}" for row in below)]
        head = fit(head, max(4, width - 4))
        used = cells(head) + (cells(danger) + 3 if danger else 0)
        red = f"{styles(style, '─ ')}{styles('bold bad', danger)} " if danger else ""
        return [f"{styles(style, head)}{red}{styles(style, '─' * (width - used))}"]

    def _title(self, width: int, styles: RowStyles) -> list[RankedRow]:
        title = clean(self.question.title).strip("\n")
        return [
            RankedRow(RowRank.TITLE_REST if number else RowRank.TITLE, number, styles("bold", row))
            for number, row in enumerate(word_wrap(title, width))
        ]

    def _choice(self, number: int, row: ChoiceRow, width: int, styles: RowStyles) -> list[str]:
        is_picked = number == self.picker.picked()
        mark = "❯" if is_picked else " "
        label = f" {mark} {number + 1} {clean_line(row.label)}"
        detail = clean_line(row.detail)
        shown = [_picked(styles, is_picked, piece) for piece in _hanging(label, 5, width)]
        if not detail:
            return shown
        is_beside = len(shown) == 1 and cells(label) + 2 + cells(detail) <= width
        if is_beside and not self.question.are_described:
            gap = " " * (self._gap(row, width) + 2)
            return [f"{shown[0]}{gap}{styles('quiet', detail)}"]
        # What an answer covers is never cut: it goes below its row.
        return [*shown, *(styles("quiet", piece) for piece in _hanging(f"     {detail}", 5, width))]


def _picked(styles: RowStyles, is_picked: bool, text: str) -> str:
    return styles("picked", text) if is_picked else text


def _hanging(text: str, indent: int, width: int) -> list[str]:
    """Wrapped, with the rows behind the first indented."""
    lead = len(text) - len(text.lstrip())
    first, *rest = word_wrap(text.lstrip(), max(8, width - max(indent, lead)))
    return [f"{' ' * lead}{first}", *(f"{' ' * indent}{row}" for row in rest)]
