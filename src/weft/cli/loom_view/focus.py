"""Places inside a text: the word cursor, and tokens by their probability.  Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.loom_view.text_rows import CURSOR, plain, span
from weft.ids import NodeId
from weft.loom.token_places import PlacedToken, open_places

_WIDE: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_WORD: Final = re.compile(rf"\s*(?:[{_WIDE}]|[^\s{_WIDE}]+)")
"""A word with the space before it; in scripts without spaces, a character."""
MARK: Final = "mark"
"""The style of what must be seen; drawn as `picked`."""
LIKELY: Final = 0.5
UNLIKELY: Final = 0.1


def moved_cursor(text: str, at: int | None, step: int) -> int | None:
    """The word cursor one word on; None where it leaves the text to the right.

    It stands behind a word.  From nowhere, a step back is behind the last word but one.
    """
    places = [found.end() for found in _WORD.finditer(text)][:-1]
    if not places:
        return None
    if step > 0:
        return next((place for place in places if at is None or place > at), None)
    earlier = [place for place in places if at is None or place < at]
    return earlier[-1] if earlier else places[0]


def cursor_spans(text: str, at: int, style: str = "") -> list[StyledSpan]:
    """A text with the word cursor in it; what would be cut off is quiet."""
    return [span(text[:at], style), StyledSpan(CURSOR, MARK), span(text[at:], "quiet")]


class TokenCursor(msgspec.Struct):
    """The tokens of a node, one of which is looked at, and what could stand in its place."""

    node: NodeId
    tokens: tuple[PlacedToken, ...]
    index: int = 0
    choice: int = 0
    """Which of the others."""

    @property
    def others(self) -> list[tuple[str, float]]:
        """What could stand there, the likeliest first."""
        token = self.tokens[self.index]
        return [each for each in token.alternatives if each[0] != token.text]

    @property
    def chosen(self) -> str | None:
        """The one that is chosen."""
        return self.others[self.choice][0] if self.others else None

    def move(self, step: int) -> None:
        """To another token; those that have no width in the text are passed over."""
        at = self.index + step
        while 0 <= at < len(self.tokens) and self.tokens[at].start == self.tokens[at].end:
            at += step
        if 0 <= at < len(self.tokens):
            self.index, self.choice = at, 0

    def turn(self, step: int) -> None:
        """To another alternative."""
        if self.others:
            self.choice = (self.choice + step) % len(self.others)

    def next_open(self, step: int) -> None:
        """To the next place where the model was undecided."""
        places = sorted(open_places(self.tokens))
        later = [
            n for n in (places if step > 0 else reversed(places)) if (n - self.index) * step > 0
        ]
        if later:
            self.index, self.choice = later[0], 0

    def spans(self, text: str) -> list[StyledSpan]:
        """The text, each token by its probability."""
        found: list[StyledSpan] = []
        at = 0
        for number, token in enumerate(self.tokens):
            if token.start > at:
                found.append(span(text[at : token.start]))
            style = MARK if number == self.index else _style(token)
            found.append(span(text[token.start : token.end], style))
            at = max(at, token.end)
        return [*found, span(text[at:])]

    def words(self) -> str:
        """The token and its alternatives in one line."""
        token = self.tokens[self.index]
        shown = [_percent(token.text, token.probability)]
        for number, (text, logprob) in enumerate(self.others):
            word = _percent(text, _probability(logprob))
            shown.append(f"[{word}]" if number == self.choice else word)
        return " · ".join(shown) if self.others else f"{shown[0]} · no other is known"


def _style(token: PlacedToken) -> str:
    if token.probability >= LIKELY:
        return ""
    return "ask" if token.probability >= UNLIKELY else "bold bad"


def _percent(text: str, probability: float) -> str:
    shown = plain(text).replace("\n", "⏎").replace(" ", "␣") or "(nothing)"
    return f"{shown} {probability:.0%}"


def _probability(logprob: float) -> float:
    return PlacedToken("", logprob, (), 0, 0).probability


def cursor_row(lines: Sequence[Sequence[StyledSpan]]) -> int | None:
    """The line that has the cursor."""
    return next(
        (n for n, line in enumerate(lines) if any(each.style == MARK for each in line)), None
    )
