"""Choosing one of a few numbered answers with the keyboard: the rules, without a screen."""

from __future__ import annotations

from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow

VISIBLE_ROWS = 10


class ChoicePicker:
    """A question that is being answered."""

    def __init__(self, question: ChoiceQuestion) -> None:
        self.question = question
        self.words = ""
        """The digits of a number that is being typed."""
        self.index = question.picked

    def rows(self) -> list[tuple[int, ChoiceRow]]:
        """The rows, or the one whose number was typed, with their numbers."""
        if self.words:
            number = int(self.words) - 1
            return [(number, self.question.rows[number])]
        return list(enumerate(self.question.rows))

    def visible(self) -> list[tuple[int, ChoiceRow]]:
        """Those that are on the screen: the picked one is always among them."""
        rows = self.rows()
        start = max(0, min(self.index - VISIBLE_ROWS // 2, len(rows) - VISIBLE_ROWS))
        return rows[start : start + VISIBLE_ROWS]

    def move(self, step: int) -> None:
        """Pick the next or the previous row."""
        count = len(self.rows())
        if count:
            self.index = (
                (self.index + step) % count if self.index >= 0 else (0 if step > 0 else count - 1)
            )

    def picked(self) -> int | None:
        """The number of the row that Enter means."""
        rows = self.rows()
        return rows[self.index][0] if 0 <= self.index < len(rows) else None

    def understands(self, letter: str) -> bool:
        """True when a typed letter means something here."""
        return letter.isdecimal() and letter != "0"

    def typed(self, letter: str) -> int | None:
        """Take a typed letter; the row that it chooses, if it does."""
        if letter.isdecimal() and self._is_number(self.words):
            if len(self.question.rows) < 10:
                number = int(letter) - 1
                return number if 0 <= number < len(self.question.rows) else None
            return self._number(self.words + letter)
        return None

    def _number(self, words: str) -> int | None:
        """A number of a long list is picked while it is typed, and chosen when it cannot go on."""
        if not 1 <= int(words) <= len(self.question.rows):
            return None
        self.words, self.index = words, 0
        return int(words) - 1 if int(words) * 10 > len(self.question.rows) else None

    @staticmethod
    def _is_number(words: str) -> bool:
        return not words or (words.isascii() and words.isdecimal())

    def erase(self) -> None:
        """Take the last typed letter back."""
        self.words = self.words[:-1]
        self.index = min(max(self.index, 0), max(len(self.rows()) - 1, 0))
