"""Tables of commands: what only reads, what runs another command, what runs code, and which options
the `*` of a rule does not cover.

The rows are data (`*.tsv`, with a reason each); this is how they are read.  All of them are loaded
with the first command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from weft.data_tables import read_table

OptionKind: TypeAlias = Literal["flag", "text", "path", "two", "maybe", "line"]
_SUFFIXES: Final[tuple[tuple[str, OptionKind], ...]] = (
    ("[=]", "maybe"),
    ("=P", "path"),
    ("=2", "two"),
    ("=T", "line"),
    ("=", "text"),
)
_WHOLE_OPTIONS: Final = frozenset(
    {"go", "gcc", "cc", "g++", "c++", "clang", "clang++", "ld", "java", "javac", "terraform"}
)
"""Programs whose options have one dash and many letters, and are never joined."""
CHANGING_PROGRAMS: Final = frozenset(
    """
    cp mv rm rmdir unlink tee touch ln install truncate dd sed mkdir mktemp chmod chown chgrp rsync
    patch shred split csplit tar unzip gzip gunzip bzip2 xz zip ed ex vim vi nano
    """.split()  # noqa: SIM905  # a list of words
)
"""Programs whose words may name files that they change: rules about `edit` speak of those."""
_COMPLETE: Final = frozenset({"--all", "--init"})
"""Long options that begin like others, and are none of them shortened."""
SYSTEM_FOLDERS: Final = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/")


class ReadOnlyRow(msgspec.Struct, frozen=True):
    """A command that only reads with these options."""

    command: str
    options: Mapping[str, OptionKind]
    words: str
    is_trap: bool
    """What is not in the row is no everyday use: the `*` of a rule does not cover it."""
    reason: str


class WrapperRow(msgspec.Struct, frozen=True):
    """A command that runs another one."""

    command: str
    options: Mapping[str, OptionKind]
    skipped: int
    """Words before the inner command; 9: there is no inner command among its words."""
    how: str
    reason: str


class CodeRow(msgspec.Struct, frozen=True):
    """A command that runs code."""

    command: str
    options: frozenset[str]
    takes_lines: bool
    """The code is a line for a shell like bash, and is read."""
    reason: str


Row = TypeVar("Row")


class TableRows(Mapping[str, Row], Generic[Row]):
    """The rows of a table by command, each of which is read when it is first asked for: a line
    needs a few of them, and all would take most of the time of the first one."""

    def __init__(self, cells: Mapping[str, tuple[str, ...]], make: Callable[..., Row]) -> None:
        self._cells = cells
        self._make = make
        self._made: dict[str, Row] = {}

    def __getitem__(self, command: str) -> Row:
        if command not in self._made:
            self._made[command] = self._make(command, *self._cells[command])
        return self._made[command]

    def __contains__(self, command: object) -> bool:
        return command in self._cells

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    def row(self, command: str) -> Row | None:
        """The row of a command; None where it has none."""
        return self[command] if command in self._cells else None


def _cells(name: str, columns: int) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in read_table(__file__, name, columns)}


def _options(cell: str) -> dict[str, OptionKind]:
    found: dict[str, OptionKind] = {}
    for text in cell.split() if cell != "-" else ():
        for suffix, kind in _SUFFIXES:
            if text.endswith(suffix):
                found[text.removesuffix(suffix)] = kind
                break
        else:
            found.setdefault(text, "flag")
    return found


@cache
def read_only_rows() -> TableRows[ReadOnlyRow]:
    """By command, which is one to three words."""
    return TableRows(
        _cells("read_only.tsv", 5),
        lambda command, options, words, rest, reason: ReadOnlyRow(
            command, _options(options), words, rest == "trap", reason
        ),
    )


@cache
def wrapper_rows() -> TableRows[WrapperRow]:
    """By command, which is one to three words."""
    return TableRows(
        _cells("wrappers.tsv", 5),
        lambda command, options, skipped, how, reason: WrapperRow(
            command, _options(options), int(skipped), how, reason
        ),
    )


@cache
def code_rows() -> TableRows[CodeRow]:
    """By command."""
    return TableRows(
        _cells("code_runners.tsv", 3),
        lambda command, options, reason: CodeRow(
            command,
            frozenset(each.removesuffix("=T") for each in options.split()),
            "=T" in options,
            reason,
        ),
    )


@cache
def _wary_rows() -> Mapping[str, tuple[tuple[str, str], ...]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for command, options, reason in read_table(__file__, "wary_options.tsv", 3):
        found.setdefault(command, []).extend((each, reason) for each in options.split())
    return {command: tuple(each) for command, each in found.items()}


@lru_cache(maxsize=256)
def _wary_of(program: str, subcommand: str, is_option: bool) -> tuple[tuple[str, str], ...]:
    """The rows for a program; for a word that is no option, those that could be one."""
    rows = _wary_rows()
    names = (f"{program} {subcommand}", program, "*")
    each = [row for name in names for row in rows.get(name, ())]
    return tuple(row for row in each if is_option or not row[0].startswith("-") or row[0] == "-")


@cache
def _known() -> frozenset[str]:
    tables = (read_only_rows(), wrapper_rows(), code_rows(), _wary_rows())
    return frozenset(name.partition(" ")[0] for rows in tables for name in rows)


def is_known(program: str) -> bool:
    """True when a table speaks of a program, so that what it may run is known."""
    return program in _known() or program in CHANGING_PROGRAMS


@lru_cache(maxsize=1024)
def why_wary(program: str, word: str, subcommand: str = "") -> str:
    """Why the `*` of a rule does not cover this word of a program; empty when it does."""
    joins = program not in _WHOLE_OPTIONS
    is_option = word.startswith("-") and len(word) > 1
    for option, reason in _wary_of(program, subcommand, is_option):
        if _is_option(word, option, joins=joins):
            return f"{word.partition('=')[0]} {reason}"
    return ""


def _is_option(word: str, option: str, *, joins: bool) -> bool:
    if not word.startswith("-") or len(word) < 2 or not option.startswith("-"):
        return fnmatchcase(word, option)
    name = word.partition("=")[0]
    if fnmatchcase(name, option) or fnmatchcase(word, option):
        return True
    if word.startswith("--"):
        if not joins and fnmatchcase(name[1:], option):
            return True  # go takes --exec for -exec
        # Long options may be shortened as far as they are unambiguous.
        return len(name) > 3 and name not in _COMPLETE and option.startswith(name)
    if not joins:
        return False
    # One letter, alone or among others.
    return len(option) == 2 and option[1] in word[1:]


def bare_name(program: str) -> str:
    """The name of a program that the system brings, without its folder; any other path stays."""
    for folder in SYSTEM_FOLDERS:
        if program.startswith(folder) and "/" not in program[len(folder) :]:
            return program[len(folder) :]
    return program
