"""The bytes that a terminal sends, decoded into keys.

A key press is one name (`a`, `enter`, `c-a`, `m-b`, `s-tab`, `up`); a paste is its text; what the
terminal answers (where the cursor is, which colour the background has, that the focus is lost) is
an answer.  Bytes may be cut anywhere.  A lone ESC is a key only when nothing follows it for a
moment: `pending` says that one waits, `flush` ends the wait.
"""

from __future__ import annotations

import codecs
import re
from typing import Literal, TypeAlias

import msgspec

LARGEST_PASTE = 8 * 1024 * 1024
"""Characters; what is longer is cut, as nothing that a model takes is as long."""
_LONGEST_SEQUENCE = 128


class KeyPress(msgspec.Struct, frozen=True):
    """A key."""

    name: str


class PastedText(msgspec.Struct, frozen=True):
    """Text between the marks of a bracketed paste."""

    text: str


class TerminalReply(msgspec.Struct, frozen=True):
    """What the terminal answered to a question, or told unasked."""

    kind: Literal["cursor", "background", "focus", "other"]
    values: tuple[int, ...] = ()
    text: str = ""


TerminalEvent: TypeAlias = KeyPress | PastedText | TerminalReply

_LETTERS = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "E": "begin",
    "F": "end",
    "H": "home",
    "Z": "s-tab",
    "P": "f1",
    "Q": "f2",
    "S": "f4",
    "M": "enter",
}
_TILDE = {
    1: "home",
    2: "insert",
    3: "delete",
    4: "end",
    5: "pageup",
    6: "pagedown",
    7: "home",
    8: "end",
}
_CODES = {9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57414: "enter"}
_CONTROLS = {
    "\r": "enter",
    "\n": "c-j",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x00": "c-space",
    "\x1c": "c-\\",
    "\x1d": "c-]",
    "\x1e": "c-^",
    "\x1f": "c-_",
}
_control_sequence = re.compile(r"\x1b\[([0-?]*)[ -/]*([@-~])")
_other_string = re.compile(r"\x1b[\]P_^X](.*?)(?:\x07|\x1b\\)", re.DOTALL)
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"


class KeyDecoder:
    """Decodes one terminal's input."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._paste: list[str] | None = None
        self._pasted = 0

    @property
    def pending(self) -> bool:
        """True when something waits that may be a key by itself, or the beginning of a sequence."""
        return bool(self._waiting) and self._paste is None

    def feed(self, data: bytes) -> list[TerminalEvent]:
        """The events that are whole now."""
        self._waiting += self._utf8.decode(data)
        found: list[TerminalEvent] = []
        while self._waiting:
            taken = self._take_paste() if self._paste is not None else self._take_key()
            if taken is None:
                break
            found += taken
        return found

    def flush(self) -> list[TerminalEvent]:
        """What waited is a key, as nothing followed it."""
        if not self.pending:
            return []
        waiting, self._waiting = self._waiting, ""
        # ESC and one more: what looked like the beginning of a sequence was Alt with that key.
        if waiting in ("\x1b[", "\x1bO", "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX"):
            return [KeyPress(f"m-{waiting[1]}")]
        # A sequence that was cut off stays one key of no meaning; typed as text it would be junk.
        return [KeyPress("escape")] if waiting == "\x1b" else []

    def _take_paste(self) -> list[TerminalEvent] | None:
        assert self._paste is not None
        text, mark, rest = self._waiting.partition(_PASTE_ENDS)
        if mark:
            self._keep_pasted(text)
            pasted = "".join(self._paste)
            self._paste, self._waiting = None, rest
            # Terminals send the line ends of a paste as carriage returns.
            return [PastedText(pasted.replace("\r\n", "\n").replace("\r", "\n"))]
        # The end mark may be cut: its possible beginning stays.
        keep = next((n for n in range(5, 0, -1) if text.endswith(_PASTE_ENDS[:n])), 0)
        self._keep_pasted(text[: len(text) - keep])
        self._waiting = text[len(text) - keep :]
        return None

    def _keep_pasted(self, text: str) -> None:
        assert self._paste is not None
        self._paste.append(text[: max(0, LARGEST_PASTE - self._pasted)])
        self._pasted += len(text)

    def _take_key(self) -> list[TerminalEvent] | None:
        first = self._waiting[0]
        if first != "\x1b":
            self._waiting = self._waiting[1:]
            return [KeyPress(_plain(first))]
        if len(self._waiting) == 1:
            return None
        second = self._waiting[1]
        if second == "[":
            return self._take_control()
        if second == "O":
            return self._take_application()
        if second in "]P_^X":
            return self._take_string()
        # ESC ESC: the first is a key by itself, the second may begin something.  The same before a
        # control key, which came right behind it: Alt with Ctrl means nothing here.
        if second == "\x1b" or (second < " " and second not in "\r\n\t\x08\x1d"):
            self._waiting = self._waiting[1:]
            return [KeyPress("escape")]
        self._waiting = self._waiting[2:]
        return [KeyPress(_with("m", _plain(second)))]

    def _take_control(self) -> list[TerminalEvent] | None:
        found = _control_sequence.match(self._waiting)
        if found is None:
            if len(self._waiting) < _LONGEST_SEQUENCE and self._waiting[2:].isascii():
                return None
            self._waiting = self._waiting[2:]  # no sequence: what follows is text
            return [KeyPress("m-[")]
        self._waiting = self._waiting[found.end() :]
        if found.group() == _PASTE_BEGINS:
            self._paste, self._pasted = [], 0
            return []
        return _control_event(found.group(1), found.group(2))

    def _take_application(self) -> list[TerminalEvent] | None:
        if len(self._waiting) < 3:
            return None
        letter, self._waiting = self._waiting[2], self._waiting[3:]
        return [KeyPress(_LETTERS.get(letter, f"m-O{letter}"))]

    def _take_string(self) -> list[TerminalEvent] | None:
        found = _other_string.match(self._waiting)
        if found is None:
            if len(self._waiting) < 4096:
                return None
            self._waiting = ""
            return []
        self._waiting = self._waiting[found.end() :]
        text = found.group(1)
        if text.startswith("11;"):
            return [TerminalReply("background", text=text[3:])]
        return [TerminalReply("other", text=text)]


def _plain(letter: str) -> str:
    """The name of a character that came by itself."""
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter < " ":
        return f"c-{chr(ord(letter) + 96)}"
    return "space" if letter == " " else letter


def _control_event(parameters: str, letter: str) -> list[TerminalEvent]:
    if parameters.startswith(("?", ">", "<", "=")):
        return [TerminalReply("other", text=parameters + letter)]
    numbers = [_number(each) for each in parameters.split(";")]
    if letter in "IO" and not parameters:
        return [TerminalReply("focus", (int(letter == "I"),))]
    # Also Shift+F3 in some terminals; we ask for the cursor's place and have no use for F3.
    if letter == "R" and len(numbers) == 2:
        return [TerminalReply("cursor", (numbers[0], numbers[1]))]
    if letter == "u":
        return _from_code(numbers[0], numbers[1] if len(numbers) > 1 else 1)
    if letter == "~":
        # `CSI 27 ; modifiers ; code ~`: the way of xterm's modifyOtherKeys.
        if numbers[0] == 27 and len(numbers) == 3:
            return _from_code(numbers[2], numbers[1])
        name = _TILDE.get(numbers[0], f"f{numbers[0]}")
        return [KeyPress(_modified(name, numbers[1] if len(numbers) > 1 else 1))]
    if letter in _LETTERS:
        return [KeyPress(_modified(_LETTERS[letter], numbers[1] if len(numbers) > 1 else 1))]
    return []


def _from_code(code: int, modifiers: int) -> list[TerminalEvent]:
    """A key that came with its code point."""
    if not 0 < code < 0x110000:
        return []
    name = _CODES.get(code) or _plain(chr(code))
    # Keys of a private area that we have no name for: media keys, modifiers alone.
    if 57344 <= code <= 63743 and code not in _CODES:
        return []
    return [KeyPress(_modified(name, modifiers))]


def _modified(name: str, modifiers: int) -> str:
    bits = max(0, modifiers - 1)
    if bits & 1:
        name = name.upper() if len(name) == 1 else _with("s", name)
    if bits & 4:
        name = _with("c", name.lower() if len(name) == 1 else name)
    if bits & 2:
        name = _with("m", name)
    return name


def _with(modifier: str, name: str) -> str:
    return name if name.startswith(f"{modifier}-") and len(name) > 2 else f"{modifier}-{name}"


def _number(text: str) -> int:
    # `code:shifted:base` of the kitty protocol: the code alone counts.
    digits = text.partition(":")[0]
    return int(digits) if digits.isdecimal() and len(digits) < 9 else 0
