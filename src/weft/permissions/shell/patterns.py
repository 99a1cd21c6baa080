"""Patterns of rules for commands: `git diff *` against the words of one command.

A pattern is split into words like a line.  `*` as a word stands for any number of words, within a
word for any characters of that word; so it never reaches another command.  A rule that allows is
read narrowly: the words that its `*` stands for must be literal, inside the project, and none of
the options that make the command do something else.  A rule that restricts is read widely: options
in any order, words behind those that it names, and a word that is not known yet may be what it
means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from weft.permissions.protected import is_protected
from weft.permissions.shell.parts import ShellPart, without_git_options
from weft.permissions.shell.paths import why_not_readable
from weft.permissions.shell.read_only import NotReadOnly, read_only_use, row_of
from weft.permissions.shell.tables import CHANGING_PROGRAMS, bare_name, is_known, why_wary
from weft.permissions.shell.words import (
    HereDocument,
    ShellOperator,
    ShellWord,
    TooComplex,
    UnfinishedLine,
    split_line,
)

_NAMES: Final = re.compile(r"[\w.+-]+")
_RUNS_BY_NAME: Final = frozenset({"yarn", "pnpm", "bun"})
"""Programs of packages that take a word which is no subcommand of theirs for a program."""
Fit: TypeAlias = Literal["yes", "maybe", "no"]


class PatternWord(msgspec.Struct, frozen=True):
    """One word of a pattern."""

    text: str
    is_glob: bool = False
    is_rest: bool = False
    """Any number of words."""
    other: str = ""
    """Another form of it: `test:*` for `test`, in the spelling `npm run test:*`."""

    def fits(self, text: str) -> bool:
        """True when it stands for this word."""
        if self.other and fnmatchcase(text, self.other):
            return True
        return fnmatchcase(text, self.text) if self.is_glob else text == self.text


class CommandPattern(msgspec.Struct, frozen=True):
    """A pattern, split into words."""

    words: tuple[PatternWord, ...]
    has_wildcard: bool
    lines: tuple[tuple[str, ...], ...] = ()
    """Of a pattern that is a whole line with several commands, without wildcards: the words of
    each."""


_VERY_TEXT: Final = CommandPattern((), False)
"""What cannot be split into words without running it: it covers the very same text and no more."""


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> CommandPattern:
    """Split a pattern into words.

    Raises:
        ValueError: it could cover no command; the text says why, and what to write instead.
    """
    text = pattern.strip()
    is_prefix = text.endswith(":*")
    is_wild = "*" in text or "?" in text
    try:
        tokens = split_line(text.removesuffix(":*") if is_prefix else text)
    except TooComplex as what:
        if not is_wild:
            return _VERY_TEXT
        raise ValueError(f"write the words of one command; it has {what}") from None
    except UnfinishedLine:
        raise ValueError("a quote or a here-document has no end") from None
    if any(isinstance(token, ShellOperator | HereDocument) for token in tokens):
        return _whole_line(text, tokens)
    words = [token for token in tokens if isinstance(token, ShellWord)]
    if not words:
        raise ValueError("for all commands name the tool without a pattern")
    if odd := next((word for word in words if word.kind == "dynamic"), None):
        if not is_wild:
            return _VERY_TEXT
        raise ValueError(f"{odd.raw!r} is expanded by the shell; write what it becomes")
    if words[0].kind != "literal":
        raise ValueError("begin with the name of a command; for all of them name the tool alone")
    found = [PatternWord(word.text, word.kind == "glob", word.raw == "*") for word in words]
    if is_prefix:
        last = found[-1]
        found[-1] = msgspec.structs.replace(last, other=f"{last.text}:*" if len(found) > 1 else "")
        found.append(PatternWord("*", True, True))
    return CommandPattern(tuple(found), any(word.is_glob for word in found))


def _whole_line(text: str, tokens: Sequence[object]) -> CommandPattern:
    """A line of several commands: only as the very same text, so that it needs no wildcard."""
    commands: list[list[ShellWord]] = [[]]
    for token in tokens:
        if isinstance(token, ShellWord):
            commands[-1].append(token)
        else:
            commands.append([])
    each = [words for words in commands if words]
    if "*" in text or "?" in text:
        shown = ", ".join(f"shell({' '.join(word.raw for word in words)})" for words in each)
        raise ValueError(f"a pattern is about one command; write a rule for each: {shown}")
    if any(word.kind != "literal" for words in each for word in words):
        return _VERY_TEXT
    lines = tuple(tuple(word.text for word in words) for words in each)
    return CommandPattern((), False, lines)


# -- rules that allow


def why_not_covered(pattern: CommandPattern, part: ShellPart, root: str) -> str:
    """Why a rule that allows does not cover a command: `-` where its words are others; empty when
    it does.
    """
    words = part.words
    if not words or not pattern.words or part.command.assignments:
        return "-"
    bound = _bind(pattern.words, words)
    if bound is None:
        return "-"
    if not pattern.has_wildcard:
        return "-" if any(word.kind != "literal" for word in words) else ""
    for word in words:
        if word.kind != "literal" and not _is_safe_glob(word):
            return f"what `{word.raw}` becomes is known only when it runs"
    if part.inner or part.opaque:
        return part.opaque or f"the * of a rule does not reach what {part.name} runs"
    return _why_wild(words, bound, root)


def _is_safe_glob(word: ShellWord) -> bool:
    return word.kind == "glob" and word.text[:1] not in "*?[-"


def _why_wild(words: Sequence[ShellWord], bound: Sequence[bool], root: str) -> str:
    """Why the words that a wildcard stands for are not covered; `bound` marks the others."""
    row = row_of(words)
    if row is not None and row.is_trap:
        # What the rule names itself is meant; the rest must be as harmless as the table says.
        named = len(row.command.split())
        kept = [word for place, word in enumerate(words) if place < named or not bound[place]]
        try:
            read_only_use(kept, root)
        except NotReadOnly as more:
            return str(more)
        return ""
    program = bare_name(words[0].text)
    subcommand = _subcommand(words)
    for place, word in enumerate(words):
        if bound[place]:
            continue
        text = word.text
        if program == "tar" and place == 1 and not text.startswith("-"):
            text = f"-{text}"  # its first word may be letters of options
        if why := why_wary(program, text, subcommand) or why_not_readable(word.text, root):
            return why
        if program in CHANGING_PROGRAMS and is_protected(text):
            return f"programs obey {text} or run it by themselves"
    return ""


def _subcommand(words: Sequence[ShellWord]) -> str:
    rest = without_git_options(words)[1:]
    return rest[0].text if rest else ""


def _bind(pattern: Sequence[PatternWord], words: Sequence[ShellWord]) -> list[bool] | None:
    """Which words the pattern names itself; None when it does not fit.

    Bounded: each pair of places is tried once.
    """
    came: dict[tuple[int, int], tuple[int, int] | None] = {}
    stack: list[tuple[tuple[int, int], tuple[int, int] | None]] = [((0, 0), None)]
    while stack:
        here, before = stack.pop()
        if here in came:
            continue
        came[here] = before
        at, place = here
        if at == len(pattern):
            if place == len(words):
                return _named(pattern, came, here)
            continue
        if pattern[at].is_rest:
            if place < len(words):
                stack.append(((at, place + 1), here))
            stack.append(((at + 1, place), here))
        elif place < len(words) and pattern[at].fits(words[place].text):
            stack.append(((at + 1, place + 1), here))
    return None


def _named(
    pattern: Sequence[PatternWord],
    came: Mapping[tuple[int, int], tuple[int, int] | None],
    here: tuple[int, int],
) -> list[bool]:
    """Which words the pattern names itself, on the way that led here."""
    found: list[bool] = []
    while (before := came[here]) is not None:
        if here[1] > before[1]:
            word = pattern[before[0]]
            found.append(not word.is_rest and not word.is_glob)
        here = before
    return found[::-1]


# -- rules that restrict


def restricts(pattern: CommandPattern, part: ShellPart) -> Fit:
    """Whether a rule that asks or denies means this command."""
    if not pattern.words:
        return "no"  # judged for the line as a whole
    words = part.words
    if not words:
        return "maybe" if part.opaque else "no"
    found = _restricts(pattern.words, words)
    if found == "no" and (part.opaque or _names_it(pattern.words, words)):
        return "maybe"
    return found


def _names_it(pattern: Sequence[PatternWord], words: Sequence[ShellWord]) -> bool:
    """Whether a command that may run another one has the words of a pattern among its own.

    Such are programs that no table knows, and those with an option that may name a program.
    """
    wanted = {word.text for word in pattern if not word.is_glob and not _is_option(word.text)}
    values = [value for word in words[1:] for value in _values(word.text)]
    if not wanted <= {name for value in values for name in _NAMES.findall(value)}:
        return False
    program = words[0].text.rpartition("/")[2]
    if is_known(program) and program not in _RUNS_BY_NAME:
        return any(why_wary(program, word.text) for word in words[1:])
    firsts = {value.split()[0].rpartition("/")[2] for value in values if value.strip()}
    return pattern[0].text in firsts


def _values(text: str) -> list[str]:
    """What a word may give to its command, without the name of its option."""
    if not _is_option(text):
        return [text]
    value = text.partition("=")[2]
    return [value] if text.startswith("--") else [value, text[2:]]


def _restricts(pattern: Sequence[PatternWord], words: Sequence[ShellWord]) -> Fit:
    if words[0].kind != "literal":
        return "maybe"
    program = words[0].text
    if not (pattern[0].fits(program) or pattern[0].fits(program.rpartition("/")[2])):
        return "no"
    rest = without_git_options(words)[1:]
    wanted = [word for word in pattern[1:] if not word.is_rest]
    options = [word for word in wanted if _is_option(word.text)]
    plain = [word for word in wanted if not _is_option(word.text)]
    by_options = _has_options(options, rest)
    by_words = _has_words(plain, [word for word in rest if not _is_option(word.text)])
    fits = {by_options, by_words}
    if "no" in fits:
        return "no"
    return "maybe" if "maybe" in fits else "yes"


def _is_option(text: str) -> bool:
    return text.startswith("-") and len(text) > 1


def _has_words(pattern: Sequence[PatternWord], words: Sequence[ShellWord]) -> Fit:
    """Whether the words begin like the pattern; those behind do not matter."""
    for place, wanted in enumerate(pattern):
        if place >= len(words):
            return "no"
        if words[place].kind != "literal":
            return "maybe"
        if not wanted.fits(words[place].text):
            # An option before it may have taken the word for its value.
            later = any(
                word.kind != "literal" or wanted.fits(word.text) for word in words[place + 1 :]
            )
            return "maybe" if later else "no"
    return "yes"


def _has_options(pattern: Sequence[PatternWord], words: Sequence[ShellWord]) -> Fit:
    if not pattern:
        return "yes"
    fits = [_has_option(wanted, words) for wanted in pattern]
    if "no" in fits:
        return "no"
    return "maybe" if "maybe" in fits else "yes"


def _has_option(wanted: PatternWord, words: Sequence[ShellWord]) -> Fit:
    texts = [word.text for word in words]
    if any(wanted.fits(text) for text in texts):
        return "yes"
    if not wanted.text.startswith("--") and not wanted.is_glob:
        short = {letter for text in texts if _is_short(text) for letter in text[1:]}
        long = {text[2] for text in texts if text.startswith("--") and len(text) > 2}
        # `-rf` is also `-f -r`, and `--recursive --force`.
        if {letter.lower() for letter in wanted.text[1:]} <= {
            each.lower() for each in short | long
        }:
            return "yes"
    elif wanted.text.startswith("--"):
        # Long options may be shortened, and have a value behind `=`.
        name = wanted.text.partition("=")[0]
        for text in texts:
            given = text.partition("=")[0]
            if given.startswith("--") and len(given) > 3 and name.startswith(given):
                return "yes"
            if _is_short(text) and name[2:3] in text[1:]:
                return "maybe"
    return "maybe" if any(word.kind != "literal" for word in words) else "no"


def _is_short(text: str) -> bool:
    return text.startswith("-") and not text.startswith("--") and len(text) > 1
