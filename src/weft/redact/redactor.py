"""Masking: every secret becomes `[redacted …]`, which says what it was and matches no
shape itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from weft.redact.secret_shapes import (
    KEY_BEGINS,
    key_end,
    mask_groups,
    mask_keys,
    open_block,
    shape_groups,
)

MIN_KNOWN = 6
"""A known value shorter than this is left alone: masking it would tear words apart and
hide little.
"""
_HELD = 8 * 1024
_KEY_LINE = 1024


def redact(text: str) -> str:
    """The text with everything that is shaped like a secret masked.

    Masking twice changes nothing more.
    """
    if KEY_BEGINS in text:
        text = mask_keys(text)
    return mask_groups(text, shape_groups())


class Redactor:
    """Masks what is shaped like a secret, and the very values it was given."""

    def __init__(
        self, known: Iterable[str] = (), more: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`more` is asked at each masking for values that have become known since."""
        self._known = _spellings(known)
        self._more = more

    def add(self, value: str) -> None:
        """Mask one more value from now on."""
        self._known = _spellings((*self._known, value))

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        if not text:
            return text
        # Known values first: a shape that masks a part of one would hide the rest from this search.
        return redact(self.without_known(text))

    def without_known(self, text: str) -> str:
        """The text without the very values, and with all that is only shaped like a secret."""
        for value in self._more():
            self.add(value)
        for value in self._known:
            if value in text:
                text = text.replace(value, "[redacted]")
        return text

    def live(self) -> LiveRedactor:
        """A redactor for one text that comes in pieces."""
        return LiveRedactor(self)


class LiveRedactor:
    """Masks a text that comes in pieces, where a secret may be cut by a piece's end.

    What may still be part of a secret is held back until its line ends (a bounded piece of it,
    where lines are endless).
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, chunk: str) -> str:
        """Take a piece in; returns what can be shown by now."""
        self._held += chunk
        ready = self._ready()
        shown, self._held = self._held[:ready], self._held[ready:]
        return self._redactor(shown) if shown else ""

    def finish(self) -> str:
        """The rest, when nothing more comes."""
        shown, self._held = self._held, ""
        return self._redactor(shown) if shown else ""

    def _ready(self) -> int:
        """How much of what is held cannot be part of a secret that goes on."""
        ready = self._line_start(len(self._held))
        # Bounded: a text that opens a key and never closes it is shown in the end.
        begin = self._held.rfind(KEY_BEGINS)
        if begin >= 0 and len(self._held) - begin < 3 * _HELD:
            end = key_end(self._held, begin)
            if end < 0 or end > ready:  # a private key goes on over many lines
                ready = min(ready, self._line_start(begin))
        block = open_block(self._held)
        if block >= 0 and len(self._held) - block < 3 * _HELD:
            ready = min(ready, self._line_start(block))
        if not ready and len(self._held) > 2 * _HELD:
            # A line without end: cut at a space where there is one.
            space = self._held.rfind(" ", 0, len(self._held) - _KEY_LINE)
            ready = space + 1 if space > 0 else len(self._held) - _KEY_LINE
        return ready

    def _line_start(self, before: int) -> int:
        return max(self._held.rfind("\n", 0, before), self._held.rfind("\r", 0, before)) + 1


def _spellings(known: Iterable[str]) -> tuple[str, ...]:
    """The values, longest first, also as they look in a URL and line by line."""
    found: set[str] = set()
    for value in known:
        # Output shows a key of several lines line by line, with other text between them.
        for line in {value, value.strip(), *value.split("\n")}:
            if len(line.strip()) >= MIN_KNOWN:
                found |= {line.strip(), _quoted(line.strip())}
    # Longest first: a value that is part of another one would leave the rest of it readable.
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _quoted(value: str) -> str:
    """As it looks in a URL."""
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-._~") else _escaped(letter)
        for letter in value
    )


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))
