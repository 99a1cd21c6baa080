"""Words of a shell line: split and unquoted as bash does it, and known to be literal or not.

This is a reader of its own beside the grammar (`syntax.py`): what both read alike is judged, and
where they differ the line is not understood.  A word that bash would expand (`$x`, `{a,b}`, `~`) is
`dynamic`: what it becomes is known only when it runs.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

WordKind: TypeAlias = Literal["literal", "glob", "dynamic"]

_META: Final = frozenset(" \t\n|&;()<>")
_ENDS: Final = frozenset({"", *_META})
_PLAIN: Final = re.compile(r"""[^ \t\n|&;()<>\\'"`$]+""")
"""Characters that stand for themselves, or are told apart when the word is whole."""
_SIMPLE: Final = re.compile(
    r"""[ \t]*([^ \t\n|&;()<>\\'"`$~{*?[#][^ \t\n|&;()<>\\'"`$~{*?[]*)(?=[ \t\n|&;()<>]|\Z)"""
)
"""A word in which nothing is quoted and nothing can be expanded, and the blanks before it."""
_EXPANDED: Final = frozenset("~{*?[")
_HARMLESS_AFTER_DOLLAR: Final = frozenset(" |/.,:)%^=+]}")
"""A dollar before one of these is a dollar, also between double quotes."""
_ANSI: Final = {
    "n": "\n",
    "t": "\t",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "r": "\r",
    "v": "\v",
    "?": "?",
}
_HEX: Final = {"x": 2, "u": 4, "U": 8}
OPERATORS: Final = (
    *("&>>", "<<-", "<<<", ";;&", "&&", "||", "|&", ";;", ";&", "&>", ">>", ">&", ">|"),
    *("<<", "<&", "<>", "|", "&", ";", "(", ")", "<", ">", "\n"),
)
"""Longest first."""
_OPERATOR: Final = re.compile("|".join(map(re.escape, OPERATORS)))
_BLANKS: Final = re.compile(r"[ \t]+")


class ShellWord(msgspec.Struct, frozen=True):
    """One word: as it is written, and as the program gets it."""

    raw: str
    text: str
    """Without quotes; of a word that is not literal, what is known of it."""
    kind: WordKind = "literal"
    start: int = 0
    end: int = 0


class ShellOperator(msgspec.Struct, frozen=True):
    """An operator, or the end of a line."""

    text: str
    start: int
    end: int


class HereDocument(msgspec.Struct, frozen=True):
    """The text that follows a line with `<<`."""

    body: str
    is_literal: bool
    start: int
    end: int


class TooComplex(Exception):
    """The line has what only the grammar can read; the text says what."""


class UnfinishedLine(Exception):
    """A quote is open at the end."""


class _WordReader:
    """Reads one word."""

    def __init__(self, line: str, start: int) -> None:
        self.line = line
        self.start = self.at = start
        self.text: list[str] = []
        self.bare: list[str] = []
        """The unquoted characters, with a space for each quoted one."""
        self.is_dynamic = False

    def read(self) -> ShellWord:
        plain = _PLAIN.match(self.line, self.start)
        if plain is not None and self.line[plain.end() : plain.end() + 1] in _ENDS:
            # Nearly every word: nothing in it is quoted, and nothing expanded but names of files.
            self.at = plain.end()
            text = plain[0]
            self.bare.append(text)
            return ShellWord(text, text, self._kind(), self.start, self.at)
        end = self.at
        while self.at < len(self.line) and self.line[self.at] not in _META:
            is_joined = self.line.startswith("\\\n", self.at)
            self._step()
            # A line that goes on behind the word is no part of it.
            end = end if is_joined else self.at
        raw = self.line[self.start : end]
        return ShellWord(raw, "".join(self.text), self._kind(), self.start, end)

    def _step(self) -> None:
        letter = self.line[self.at]
        if letter == "\\":
            self._escape()
        elif letter == "'":
            self._quoted(self._until("'", self.at + 1))
        elif letter == '"':
            self.at += 1
            self._double()
        elif letter == "`":
            raise TooComplex("a command in backquotes")
        elif letter == "$":
            self._dollar(is_quoted=False)
        else:
            self._bare()

    def _bare(self) -> None:
        plain = _PLAIN.match(self.line, self.at)
        text = plain[0] if plain is not None else self.line[self.at]
        self.text.append(text)
        self.bare.append(text)
        self.at += len(text)

    def _quoted(self, text: str) -> None:
        self.text.append(text)
        self.bare.append(" ")

    def _until(self, quote: str, begin: int) -> str:
        end = self.line.find(quote, begin)
        if end < 0:
            raise UnfinishedLine
        self.at = end + 1
        return self.line[begin:end]

    def _escape(self) -> None:
        following = self.line[self.at + 1 : self.at + 2]
        self.at += 2
        if not following:
            raise UnfinishedLine
        if following != "\n":
            self._quoted(following)

    def _double(self) -> None:
        """The rest of a double-quoted text."""
        self.bare.append(" ")
        while True:
            letter = self.line[self.at : self.at + 1]
            if not letter:
                raise UnfinishedLine
            if letter == '"':
                self.at += 1
                return
            if letter == "`":
                raise TooComplex("a command in backquotes")
            if letter == "\\":
                self._double_escape()
            elif letter == "$":
                self._dollar(is_quoted=True)
            else:
                self.text.append(letter)
                self.at += 1

    def _double_escape(self) -> None:
        following = self.line[self.at + 1 : self.at + 2]
        self.at += 2
        if following in ("$", "`", '"', "\\"):
            self.text.append(following)
        elif following != "\n":
            self.text.append(f"\\{following}")

    def _dollar(self, *, is_quoted: bool) -> None:
        following = self.line[self.at + 1 : self.at + 2]
        if following == "(":
            raise TooComplex("a substitution")
        if following in ("{", "["):
            raise TooComplex("an expansion")
        if following == "'" and not is_quoted:
            self.at += 2
            self._quoted(self._ansi())
            return
        ends = '"' if is_quoted else "".join(_META - {"(", "<", ">"})
        if not following or following in ends or following in _HARMLESS_AFTER_DOLLAR:
            self._quoted("$")
            self.at += 1
            return
        # Also `$"…"`, which the user's language may translate.
        self.is_dynamic = True
        self.text.append("$")
        self.bare.append(" ")
        self.at += 1

    def _ansi(self) -> str:
        r"""The text of `$'…'`."""
        found: list[str] = []
        while True:
            letter = self.line[self.at : self.at + 1]
            if not letter:
                raise UnfinishedLine
            self.at += 1
            if letter == "'":
                return "".join(found)
            found.append(self._ansi_escape() if letter == "\\" else letter)

    def _ansi_escape(self) -> str:
        letter = self.line[self.at : self.at + 1]
        self.at += 1
        if letter in _ANSI:
            return _ANSI[letter]
        if letter in _HEX:
            return self._code(16, _HEX[letter], "")
        if letter in "01234567" and letter:
            return self._code(8, 2, letter)
        # `\cx`, and what bash leaves as it is written.
        self.is_dynamic = True
        return ""

    def _code(self, base: int, most: int, digits: str) -> str:
        allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
        most += len(digits)
        while len(digits) < most and self.line[self.at : self.at + 1] in tuple(allowed):
            digits += self.line[self.at]
            self.at += 1
        value = int(digits, base) if digits else 0
        # A NUL ends the text there, and single bytes above ASCII are no characters.
        if not 0 < value < 0x80:
            self.is_dynamic = True
            return ""
        return chr(value)

    def _kind(self) -> WordKind:
        bare = "".join(self.bare)
        if not self.is_dynamic and _EXPANDED.isdisjoint(bare):
            return "literal"
        if self.is_dynamic or _has_tilde(bare) or _has_braces(bare):
            return "dynamic"
        return "glob" if _has_glob(bare) else "literal"


def _has_tilde(bare: str) -> bool:
    return bare.startswith("~") or "=~" in bare or ":~" in bare


def _has_braces(bare: str) -> bool:
    """Wider than bash: what it leaves alone may be called an expansion, never the reverse."""
    return "{" in bare and "}" in bare and ("," in bare or ".." in bare)


def _has_glob(bare: str) -> bool:
    if "*" in bare or "?" in bare:
        return True
    return "[" in bare and "]" in bare[bare.index("[") :]


def word_of(raw: str) -> ShellWord:
    """A word that the grammar found; dynamic where this reader cannot read it alone."""
    try:
        word = _WordReader(raw, 0).read()
    except (TooComplex, UnfinishedLine):
        return ShellWord(raw, raw, "dynamic")
    return word if word.end == len(raw) else ShellWord(raw, raw, "dynamic")


ShellToken: TypeAlias = ShellWord | ShellOperator | HereDocument


class _LineReader:
    """Splits a line into words and operators."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.tokens: list[ShellToken] = []
        self.awaited: list[tuple[str, bool, bool]] = []
        """Here-documents that begin at the next line: delimiter, is it quoted, are tabs cut."""

    def read(self) -> list[ShellToken]:
        line, length = self.line, len(self.line)
        while self.at < length:
            # Most of a long line: read at once, for it waits for an answer.
            if simple := _SIMPLE.match(line, self.at):
                start, self.at = simple.span(1)
                self._add(ShellWord(simple[1], simple[1], "literal", start, self.at))
            else:
                self._step()
        if self.awaited:
            raise UnfinishedLine
        return self.tokens

    def _step(self) -> None:
        line = self.line
        letter = line[self.at]
        if blanks := _BLANKS.match(line, self.at):
            self.at = blanks.end()
        elif line.startswith("\\\n", self.at):
            self.at += 2
        elif letter == "#":
            end = line.find("\n", self.at)
            self.at = len(line) if end < 0 else end
        elif letter in _META:
            self._operator()
        else:
            self._word()

    def _word(self) -> None:
        reader = _WordReader(self.line, self.at)
        word = reader.read()
        self.at = reader.at
        self._add(word)

    def _add(self, word: ShellWord) -> None:
        last = self.tokens[-1] if self.tokens else None
        if isinstance(last, ShellOperator) and last.text in ("<<", "<<-"):
            is_quoted = any(letter in word.raw for letter in "\\'\"")
            if word.kind != "literal" or "$" in word.raw:
                raise TooComplex("a here-document whose end is no plain word")
            self.awaited.append((word.text, is_quoted, last.text == "<<-"))
        self.tokens.append(word)

    def _operator(self) -> None:
        operator = _OPERATOR.match(self.line, self.at)
        assert operator is not None
        found, end = operator[0], operator.end()
        if found in ("<", ">") and self.line.startswith("(", end):
            raise TooComplex("a process substitution")
        self.tokens.append(ShellOperator(found, self.at, end))
        self.at = end
        if found == "\n":
            for awaited in self.awaited:
                self._body(*awaited)
            self.awaited.clear()

    def _body(self, delimiter: str, is_quoted: bool, cuts_tabs: bool) -> None:
        begin = self.at
        while True:
            end = self.line.find("\n", self.at)
            stop = len(self.line) if end < 0 else end
            row = self.line[self.at : stop]
            if (row.lstrip("\t") if cuts_tabs else row) == delimiter:
                break
            if end < 0:
                # bash takes the end of the line for the delimiter, and warns.
                raise UnfinishedLine
            self.at = stop + 1
        body = self.line[begin : self.at]
        is_literal = is_quoted or not any(letter in body for letter in "$`\\")
        self.tokens.append(HereDocument(body, is_literal, begin, stop))
        self.at = stop


def split_line(line: str) -> list[ShellToken]:
    """The words and operators of a line.

    Raises:
        TooComplex: it has what only the grammar can read.
        UnfinishedLine: a quote or a here-document is open at its end.
    """
    return _LineReader(line).read()
