"""Searching the lines of earlier chats while the words are typed: Ctrl+R."""

from __future__ import annotations

from weft.cli.chat.screens.line_input.line_history import LineHistory


class HistorySearch:
    """A search that goes on."""

    def __init__(self, history: LineHistory, draft: str) -> None:
        self._history = history
        self.draft = draft
        """What stood in the line before."""
        self.words = ""
        self._found: list[str] = history.entries()[::-1]
        self._place = 0

    @property
    def match(self) -> str | None:
        """The entry that is shown; None when nothing matches."""
        if not self.words:
            return self.draft
        return self._found[self._place] if self._place < len(self._found) else None

    def type(self, letter: str) -> None:
        """Narrow it down."""
        self._look(self.words + letter)

    def erase(self) -> None:
        """Take the last letter back."""
        self._look(self.words[:-1])

    def older(self) -> None:
        """The match before this one."""
        if self._place + 1 < len(self._found):
            self._place += 1

    def newer(self) -> None:
        """The match after this one."""
        self._place = max(0, self._place - 1)

    def _look(self, words: str) -> None:
        self.words, self._place = words, 0
        self._found = self._history.matching(words) if words else []
