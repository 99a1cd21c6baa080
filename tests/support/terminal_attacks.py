"""Texts that would drive a terminal, and a terminal that records what it was made to answer."""

from __future__ import annotations

import pyte

ATTACKS = {
    "colour": "\x1b[31mred\x1b[0m",
    "true colour": "\x1b[38;2;1;2;3mx\x1b[m",
    "clear": "\x1b[2J\x1b[3J\x1b[Hgone",
    "cursor up and overwrite": "rm -rf /\x1b[1A\x1b[2Kls",
    "save and restore": "\x1b7x\x1b8\x1b[s\x1b[u",
    "scroll region": "\x1b[5;10r\x1b[10S",
    "alternate screen": "\x1b[?1049hhidden\x1b[?1049l",
    "hide cursor": "\x1b[?25l",
    "bracketed paste off": "\x1b[?2004l",
    "mouse on": "\x1b[?1000h\x1b[?1006h",
    "title": "\x1b]0;owned\x07after",
    "title with ST": "\x1b]2;owned\x1b\\after",
    "icon": "\x1b]1;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07after",
    "link": "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "notification": "\x1b]9;hello\x07\x1b]777;notify;a;b\x07",
    "palette": "\x1b]4;1;#fff\x07",
    "report title": "\x1b[21t",
    "report position": "\x1b[6n",
    "device attributes": "\x1b[c\x1b[>c\x1b[=c",
    "answerback": "\x05",
    "reset": "\x1bc",
    "charset": "\x1b(0lqqk\x1b(B",
    "shift out": "\x0eabc\x0f",
    "device control": "\x1bP+q544e\x1b\\after",
    "sixel": "\x1bPq#0;2;0;0;0~~\x1b\\after",
    "private message": "\x1b^secret\x1b\\after",
    "application command": "\x1b_Gf=100;AAAA\x1b\\after",
    "start of string": "\x1bXsecret\x1b\\after",
    "unfinished title": "\x1b]0;never ends\nnext line",
    "unfinished at the end": "text\x1b]0;never ends",
    "unfinished control": "text\x1b[12;",
    "lone escape": "text\x1b",
    "escape escape": "\x1b\x1b[31mx",
    "escape in a string": "\x1b]0;a\x1b[31mb\x07c",
    "cancelled string": "\x1b]0;a\x18shown",
    "control in control": "\x1b[3\x08\x0b1mx",
    "eight bit control": "\x9b31mred\x9b0m",
    "eight bit title": "\x9d0;owned\x9cafter",
    "eight bit device control": "\x90q\x9cafter",
    "next line and index": "a\x85b\x84c\x8dd",
    "backspaces": "safe\x08\x08\x08\x08evil",
    "return over": "evil command\rls        ",
    "bell": "\x07" * 20,
    "nul and delete": "a\x00b\x7fc",
    "vertical": "a\x0bb\x0cc",
    "right to left": "ls \u202e fdsa\u202c",
    "isolates": "a\u2066b\u2067c\u2068d\u2069e",
    "marks": "a\u200eb\u200fc\u061cd",
    "zero width": "pass\u200bword\u200c\u200d\ufeff",
    "tags": "hi\U000e0068\U000e0069",
    "hidden selectors": "x\U000e0100\ufe00\ufe01",
    "fillers": "a\u3164b\uffa0c\u115fd",
    "invisible operators": "a\u2061b\u2064c\u00add",
    "line separators": "a\u2028b\u2029c",
    "surrogate": "a\ud800b",
    "long string": "\x1b]0;" + "A" * 5000 + "\x07after",
    "long control": "\x1b[" + "1;" * 300 + "mafter",
}


class RecordingTerminal(pyte.Screen):
    """A terminal that notes what it was made to answer."""

    def __init__(self) -> None:
        super().__init__(80, 24)
        self.answers: list[str] = []

    def write_process_input(self, data: str) -> None:
        self.answers.append(data)
