"""Picking from a list with the keyboard: the rules, without a screen."""

from __future__ import annotations

from weft.cli.chat.screens.list_question import ListAnswer, ListQuestion, ListRow

VISIBLE_ROWS = 10
_STEPS = {
    "up": -1,
    "c-p": -1,
    "down": 1,
    "c-n": 1,
    "pageup": -VISIBLE_ROWS,
    "pagedown": VISIBLE_ROWS,
}


def matching(rows: tuple[ListRow, ...], words: str) -> list[int]:
    """The numbers of the rows that have all these words."""
    wanted = words.casefold().split()
    return [
        number
        for number, row in enumerate(rows)
        if all(
            word in f"{row.label} {' '.join(row.details)} {row.words}".casefold() for word in wanted
        )
    ]


class ListPicker:
    """A list that is being picked from."""

    def __init__(self, question: ListQuestion) -> None:
        self.question = question
        self.words = question.words
        self._found = matching(question.rows, self.words)
        self.place = self._found.index(question.picked) if question.picked in self._found else 0
        """Which of the rows that fit is picked."""
        self._levels: dict[int, int] = {}
        self.answer: ListAnswer | None = None
        self.is_over = False
        """Answered, or left; without an answer nothing changes."""

    @property
    def found(self) -> list[int]:
        """The numbers of the rows that fit what was typed."""
        return self._found

    def visible(self, count: int = VISIBLE_ROWS) -> list[int]:
        """Those that are on the screen: the picked one is always among them."""
        start = max(0, min(self.place - count // 2, len(self._found) - count))
        return self._found[start : start + count]

    @property
    def picked(self) -> int:
        """The number of the picked row; -1 where none fits."""
        return self._found[self.place] if self.place < len(self._found) else -1

    @property
    def row(self) -> ListRow | None:
        """The picked row."""
        return self.question.rows[self.picked] if self.picked >= 0 else None

    def level(self) -> int:
        """Which level of the picked row holds; -1 where it has none."""
        row = self.row
        if row is None or not row.levels:
            return -1
        at_first = row.levels.index(row.level) if row.level in row.levels else 0
        return self._levels.get(self.picked, at_first)

    # -- keys

    def press(self, key: str) -> None:
        """One key."""
        if self.question.peek:
            self._press_peek(key)
        elif key in ("escape", "c-c"):
            self.is_over = True
        elif key == "enter":
            self._give(key, needs_row=True)
        elif key in _STEPS:
            self._move(_STEPS[key])
        elif key in ("home", "end"):
            self.place = 0 if key == "home" else max(0, len(self._found) - 1)
        elif key in ("left", "right"):
            self._turn(-1 if key == "left" else 1)
        elif not self._press_action(key):
            self._type(key)

    def _press_peek(self, key: str) -> None:
        if key in ("escape", "c-c", "space", "enter"):
            self._give("space", needs_row=False)

    def _press_action(self, key: str) -> bool:
        # With words typed, a space is one of them: `opus 4` is looked for.
        if key == "space" and self.words:
            return False
        for each in self.question.keys:
            if key in (each.key, *each.others):
                self._give(each.key, needs_row=each.needs_row)
                return True
        return False

    def _give(self, key: str, *, needs_row: bool) -> None:
        if needs_row and self.picked < 0:
            return
        row, level = self.row, ""
        if row is not None and self.picked in self._levels:
            level = row.levels[self._levels[self.picked]]
        self.answer = ListAnswer(self.picked, key, self.words, level)
        self.is_over = True

    def _move(self, step: int) -> None:
        count = len(self._found)
        if not count:
            return
        # A page stops at the end; a single step goes round.
        is_page = abs(step) > 1
        to = self.place + step
        self.place = min(max(to, 0), count - 1) if is_page else to % count

    def _turn(self, step: int) -> None:
        row = self.row
        if row is not None and row.levels:
            self._levels[self.picked] = min(max(self.level() + step, 0), len(row.levels) - 1)

    def _type(self, key: str) -> None:
        if key == "backspace":
            self.filter(self.words[:-1])
        elif key == "c-u":
            self.filter("")
        elif key == "space" or (len(key) == 1 and key.isprintable()):
            self.filter(self.words + (" " if key == "space" else key))

    def filter(self, words: str) -> None:
        """Narrow it down to the rows with these words; the picked one stays if it is among them."""
        before, self.words = self.picked, words
        self._found = matching(self.question.rows, words)
        is_longer = bool(words.strip())
        self.place = self._found.index(before) if before in self._found and not is_longer else 0
