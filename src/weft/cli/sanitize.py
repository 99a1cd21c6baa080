"""The one place where foreign text is made fit for a terminal.

Whatever a model, a tool, a file name or a provider says is text, never a command to the terminal.
`TerminalSanitizer` takes it in pieces, cut anywhere, and gives back text of which a terminal makes
exactly what it reads:

- escape sequences (`ESC …`, and their one-character forms U+0080 to U+009F) are dropped whole, with
  their parameters: colours, cursor moves, titles, clipboard writes, links;
- other control characters are dropped, except tab and newline; a carriage return is a newline;
- characters that are not seen but change what is read (directions, zero-width, tags, fillers) are
  shown by their number: `<U+202E>`. The two joiners (U+200D, U+200C) stay where a script needs
  them to be read at all: behind an emoji and behind a letter of Arabic or an Indian script.

An escape sequence never reaches beyond its line, nor beyond 4,096 characters: what follows an
unfinished one is shown, not swallowed. Lines may therefore be cleaned one by one, with the same
result.

`visible` is for what a user is about to allow: there nothing is dropped, everything unprintable is
shown by its number, and long runs of spaces or empty lines, which could push something out of
sight, are counted instead of shown.
"""

from __future__ import annotations

import re
from functools import cache

_ESC, _BEL, _ST = "\x1b", "\x07", "\x9c"
_STRINGS = "\x90\x98\x9d\x9e\x9f"
"""Device control, start of string, operating system command, privacy message, application command:
they run to a terminator.
"""
_STRING_LETTERS = "PX]^_"
"""The same, behind an ESC."""
# Limits: without one, an unfinished sequence would swallow everything after it, and a tool could
# hide its output from the user by printing a few bytes.
_MAX_STRING = 4096
_MAX_SEQUENCE = 256

HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""A character class: what is not seen and yet changes what is read, or stands for nothing
at all.
"""

_JOINERS = {
    "\u200c": "[\u0600-\u08ff\u0900-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc]",
    "\u200d": "[\u0600-\u08ff\u0900-\u109f\u1780-\u17ff\ufb50-\ufdff\ufe70-\ufefc"
    "\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]",
}
"""Behind what each joiner is part of the writing.  It never stands behind another joiner or a Latin
letter, so it cannot hide in a command or a file name that is read as ASCII.
"""

_PLAIN = rf"[^\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{HIDDEN}]*"
_UNPRINTABLE = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{HIDDEN}]"
_MANY_SPACES = r"[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]{17,}"
_MANY_LINES = r"\n([ ]*\n){3,}"


@cache
def _pattern(source: str) -> re.Pattern[str]:
    """Compiled with the first text for a terminal: a run whose output goes to a pipe needs none."""
    return re.compile(source)


class TerminalSanitizer:
    """Cleans text that arrives in pieces; it does not matter where they are cut."""

    def __init__(self) -> None:
        self._state = "text"
        self._length = 0
        self._after_return = False
        self._last = ""
        """The last character that was shown: it decides whether a joiner belongs to the text."""

    def feed(self, text: str) -> str:
        """The part of this piece that may be shown."""
        out: list[str] = []
        at, end = 0, len(text)
        while at < end:
            if self._state == "text":
                # Runs of plain text are taken whole: almost all text is plain, and one step for
                # each character is slow.
                plain = _pattern(_PLAIN).match(text, at)
                assert plain is not None
                if plain.end() > at:
                    out.append(self._without_doubled_newline(plain.group()))
                    at = plain.end()
                    self._last = text[at - 1]
                    continue
                out.append(self._in_text(text[at]))
                self._last = text[at]
                at += 1
            elif self._in_sequence(text[at]):
                at += 1
        return "".join(out)

    def _without_doubled_newline(self, plain: str) -> str:
        """A newline right behind a carriage return has been shown already."""
        # CR LF may be cut between two pieces, so a carriage return at the end of one is remembered.
        if self._after_return and plain.startswith("\n"):
            plain = plain[1:]
        self._after_return = False
        return plain

    def _in_text(self, character: str) -> str:
        """One character that is not plain, outside of a sequence."""
        self._after_return = False
        self._length = 0
        if character == _ESC:
            self._state = "escape"
        # The one-character form of `ESC [`; some terminals obey it in UTF-8 text as well.
        elif character == "\x9b":
            self._state = "control"
        elif character in _STRINGS:
            self._state = "string"
        elif character == "\r":
            self._after_return = True
            return "\n"
        elif character in _JOINERS and _pattern(_JOINERS[character]).match(self._last):
            return character
        elif _pattern(f"[{HIDDEN}]").match(character):
            return shown(character)
        elif "\ud800" <= character <= "\udfff":
            # A lone surrogate cannot be encoded; written to the terminal it would raise instead of
            # being shown.
            return "\ufffd"
        return ""

    def _in_sequence(self, character: str) -> bool:
        """One character inside a sequence: True when it belongs to it, False when it must be looked
        at again as text.
        """
        self._length += 1
        limit = _MAX_STRING if self._state.startswith("string") else _MAX_SEQUENCE
        # A line end closes any sequence, unlike in a real terminal: that makes lines independent of
        # each other, and what follows an unfinished sequence is shown rather than lost.
        if character in "\n\r" or self._length > limit:
            self._state = "text"
            return False
        match self._state:
            case "escape":
                return self._after_escape(character)
            case "control":
                return self._in_control(character)
            case "string":
                if character == _ESC:
                    self._state = "string escape"
                # CAN and SUB abort a string. BEL ends one in most terminals, and programs rely on
                # that.
                elif character in (_BEL, _ST, "\x18", "\x1a"):
                    self._state = "text"
                return True
            case _:  # "string escape": ESC \ ends the string, any other ESC begins something new
                self._state = "text" if character == "\\" else "escape"
                return character == "\\"

    def _after_escape(self, character: str) -> bool:
        if character == "[":
            self._state, self._length = "control", 0
            return True
        if character in _STRING_LETTERS:
            self._state, self._length = "string", 0
            return True
        if " " <= character <= "/":
            return True
        self._state = "text"
        return "0" <= character <= "~"

    def _in_control(self, character: str) -> bool:
        if " " <= character <= "?":
            return True
        self._state = "text"
        return "@" <= character <= "~"


def clean(text: str) -> str:
    """Foreign text as it may be shown."""
    return TerminalSanitizer().feed(text)


def clean_line(text: str) -> str:
    """Foreign text as it may be shown on one line."""
    return " ".join(clean(text).split())


def visible(text: str) -> str:
    """Foreign text in which nothing can hide, for a user who is asked to allow it.

    Newlines stay.
    """
    # A tab is shown by name: it can push text out of sight, and in a diff it looks like spaces.
    text = text.replace("\r\n", "\n").replace("\t", "<TAB>")
    text = _pattern(_UNPRINTABLE).sub(lambda found: shown(found.group()), text)
    text = _pattern(_MANY_SPACES).sub(lambda found: f"<{len(found.group())} spaces>", text)
    return _pattern(_MANY_LINES).sub(
        lambda found: f"\n<{found.group().count(chr(10)) - 1} empty lines>\n", text
    )


def shown(character: str) -> str:
    """A character by its number."""
    return f"<U+{ord(character):04X}>"
