"""Read-only commands: whether an argument vector changes nothing, by the table and its options.

A command is read-only when each of its options is in its row and each of its words is of the kind
that the row allows.  What is not in the table is not known to be harmless.  Such a command may
still obey the project (`git diff` runs a filter that is configured), so it runs in the sandbox.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from weft.permissions.protected import is_protected
from weft.permissions.shell import programs
from weft.permissions.shell.paths import why_not_readable
from weft.permissions.shell.tables import ReadOnlyRow, bare_name, read_only_rows
from weft.permissions.shell.words import ShellWord

_GIT_FLAGS: Final = frozenset(
    {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"}
)
_SETS: Final = re.compile(r"[A-Za-z_]\w*=")
_RESPONSE_FILES: Final = frozenset({"nm", "size", "readelf", "strings"})
"""Programs that read further options from a file that is named behind `@`."""
_NAME_TESTS: Final = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_NAME_FILTERS: Final = frozenset({"--include", "-g", "--glob", "--iglob"})
_NO_PATHS: Final = frozenset({"text", "echo", "printf", "ps", "date", "sed-script"})


class NotReadOnly(Exception):
    """Why a command is not known to change nothing."""


class ReadOnlyUse(msgspec.Struct, frozen=True):
    """A command that changes nothing."""

    reason: str
    paths: tuple[str, ...] = ()
    """Files and folders that it reads by name, relative as they are written."""
    globs: tuple[str, ...] = ()


class _Words(msgspec.Struct):
    """The words of a command, options apart."""

    operands: list[ShellWord]
    values: list[str]
    """Values of options that are paths."""
    seen: set[str]
    options: list[tuple[str, str]]


def read_only_use(words: Sequence[ShellWord], root: str = "") -> ReadOnlyUse:
    """How a command only reads.

    Raises:
        NotReadOnly: it is not known to.
    """
    row, rest = _row_of(words)
    if row is None:
        name = words[0].text if words else ""
        raise NotReadOnly(f"{name or 'it'} is not among the commands that only read")
    if row.words == "find":
        return _use_of_find(row, rest, root)
    if row.words == "test":
        return _use_of_test(row, rest, root)
    if row.words in ("echo", "printf"):
        return _use_of_echo(row, rest)
    if row.command in _RESPONSE_FILES and any(word.text.startswith("@") for word in rest):
        raise NotReadOnly(f"{row.command} reads options from a file behind @")
    found = _split(row, rest)
    _check_filters(row, found)
    operands = _fitting(row, found)
    paths = [word for word in operands if word.kind == "literal"]
    globs = [word for word in operands if word.kind == "glob"]
    for text in (*(word.text for word in (*paths, *globs)), *found.values):
        if why := why_not_readable(text, root):
            raise NotReadOnly(why)
    named = tuple(word.text for word in paths if row.words != "revs" or word.text != "--")
    return ReadOnlyUse(row.reason, (*named, *found.values), tuple(word.text for word in globs))


def _check_filters(row: ReadOnlyRow, found: _Words) -> None:
    """Refuse a search that is narrowed to files that hold secrets."""
    if row.words != "pattern":
        return
    for name, value in found.options:
        if name in _NAME_FILTERS and (why := _why_secret_names(value)):
            raise NotReadOnly(why)


def _why_secret_names(pattern: str) -> str:
    """Why a pattern for names means files that hold secrets; empty when it does not."""
    return why_not_readable(pattern.lstrip("*")) or why_not_readable(pattern.strip("*/"))


def row_of(words: Sequence[ShellWord]) -> ReadOnlyRow | None:
    """The row of a command, whatever its options."""
    return _row_of(words)[0]


def _row_of(words: Sequence[ShellWord]) -> tuple[ReadOnlyRow | None, Sequence[ShellWord]]:
    if not words or words[0].kind != "literal":
        return None, words
    texts = [bare_name(words[0].text), *(word.text for word in words[1:])]
    rest = list(words)
    if texts[0] == "git":
        while len(texts) > 1 and texts[1] in _GIT_FLAGS:
            del texts[1], rest[1]
    rows = read_only_rows()
    for size in (3, 2, 1):
        row = rows.row(" ".join(texts[:size])) if len(texts) >= size else None
        if row is not None and all(word.kind == "literal" for word in rest[:size]):
            return row, rest[size:]
    return None, rest


def _split(row: ReadOnlyRow, words: Sequence[ShellWord]) -> _Words:
    found = _Words([], [], set(), [])
    waiting = list(words)
    ends_options = False
    while waiting:
        word = waiting.pop(0)
        _check_kind(word, ends_options=ends_options)
        if ends_options or not word.text.startswith("-") or word.text == "-":
            found.operands.append(word)
        elif word.text == "--":
            ends_options = True
        elif word.text.startswith("--"):
            _long_option(row, word, waiting, found)
        else:
            _short_options(row, word, waiting, found)
    return found


def _check_kind(word: ShellWord, *, ends_options: bool) -> None:
    if word.kind == "dynamic":
        raise NotReadOnly(f"what `{word.raw}` becomes is known only when it runs")
    if word.kind == "glob" and not ends_options and word.text[:1] in "*?[-":
        raise NotReadOnly(f"a file whose name is an option would make `{word.raw}` an option")


def _long_option(
    row: ReadOnlyRow, word: ShellWord, waiting: list[ShellWord], found: _Words
) -> None:
    name, has_value, value = word.text.partition("=")
    kind = row.options.get(name)
    if kind is None or (has_value and kind == "flag"):
        raise NotReadOnly(f"{row.command} {name} is not among the options that only read")
    if word.kind != "literal":
        raise NotReadOnly(f"what `{word.raw}` becomes is known only when it runs")
    found.seen.add(name)
    if has_value:
        _take_value(found, name, value, is_path=kind == "path")
        return
    for _ in range({"text": 1, "path": 1, "two": 2}.get(kind, 0)):
        _take_value(found, name, _next_value(row, name, waiting), is_path=kind == "path")


def _short_options(
    row: ReadOnlyRow, word: ShellWord, waiting: list[ShellWord], found: _Words
) -> None:
    if word.kind != "literal":
        raise NotReadOnly(f"what `{word.raw}` becomes is known only when it runs")
    if word.text in row.options and row.options[word.text] == "flag":
        found.seen.add(word.text)
        return
    if "-#" in row.options and word.text[1:].isdecimal():
        return
    letters = word.text[1:]
    for place, letter in enumerate(letters):
        kind = row.options.get(f"-{letter}")
        if kind is None:
            raise NotReadOnly(f"{row.command} -{letter} is not among the options that only read")
        found.seen.add(f"-{letter}")
        if kind == "flag":
            continue
        attached = letters[place + 1 :]
        _check_joined(row, word)
        if attached or kind == "maybe":
            _take_value(found, f"-{letter}", attached, is_path=kind == "path")
        else:
            value = _next_value(row, f"-{letter}", waiting)
            _take_value(found, f"-{letter}", value, is_path=kind == "path")
        return


def _check_joined(row: ReadOnlyRow, word: ShellWord) -> None:
    """Refuse joined options of programs that take them apart in a way of their own."""
    is_odd = row.words == "path1" or row.command == "tree"
    if is_odd and len(word.text) > 2 and not word.text[2:].isdecimal():
        raise NotReadOnly(f"what {row.command} makes of {word.text} is not known")


def _next_value(row: ReadOnlyRow, name: str, waiting: list[ShellWord]) -> str:
    if not waiting:
        raise NotReadOnly(f"{row.command} {name} has no value")
    word = waiting.pop(0)
    if word.kind != "literal":
        raise NotReadOnly(f"what `{word.raw}` becomes is known only when it runs")
    is_odd = row.command.startswith("git ") or row.command == "tree"
    if is_odd and row.words != "pattern" and word.text.startswith("-"):
        # Some options take a value only behind `=`; the next word is then an option.
        raise NotReadOnly(f"{word.text} may be an option of its own")
    return word.text


def _take_value(found: _Words, name: str, value: str, *, is_path: bool) -> None:
    found.options.append((name, value))
    if is_path:
        found.values.append(value)


def _fitting(row: ReadOnlyRow, found: _Words) -> list[ShellWord]:
    """The operands that are paths, if all of them are what the row takes."""
    operands = found.operands
    match row.words:
        case "none" if operands:
            raise NotReadOnly(f"{row.command} with words may do more than read")
        case "path1" if len(operands) > 1 or any(word.kind == "glob" for word in operands):
            raise NotReadOnly(f"{row.command} writes to a second name")
        case "listing" if operands and not found.seen & {"-l", "--list"}:
            raise NotReadOnly(f"{row.command} with a word makes one")
        case "date" if any(not word.text.startswith("+") for word in operands):
            raise NotReadOnly("date with a word sets the clock")
        case "cd" if len(operands) != 1 or operands[0].kind != "literal":
            raise NotReadOnly("cd needs the name of a folder here")
        case "cd" if operands[0].text in ("-", ""):
            raise NotReadOnly("cd needs the name of a folder here")
        case "cd" if is_protected(f"{operands[0].text}/x"):
            raise NotReadOnly(f"programs obey the files in {operands[0].text}")
        case "pattern":
            has_pattern = bool(found.seen & {"-e", "--regexp", "--files", "--type-list"})
            return operands if has_pattern else operands[1:]
        case "sed":
            return _check_program(programs.why_sed, found, {"-e", "--expression"})
        case "awk":
            operands = _check_program(programs.why_awk, found, set())
            # `name=value` among the files sets a variable.
            return [word for word in operands if not _SETS.match(word.text)]
        case "jq":
            return _check_program(programs.why_jq, found, set())
        case "ps" if any("e" in word.text for word in operands):
            raise NotReadOnly("ps e shows the variables of processes")
        case _:
            pass
    return [] if row.words in _NO_PATHS else operands


def _check_program(why: programs.Check, found: _Words, given_by: set[str]) -> list[ShellWord]:
    """The operands behind the program of sed, awk or jq, if it does no more than print."""
    texts = [value for name, value in found.options if name in given_by]
    operands = list(found.operands)
    if not texts:
        if not operands or operands[0].kind != "literal":
            raise NotReadOnly("its program is not known")
        texts = [operands.pop(0).text]
    for text in texts:
        if reason := why(text):
            raise NotReadOnly(reason)
    return operands


def _use_of_echo(row: ReadOnlyRow, words: Sequence[ShellWord]) -> ReadOnlyUse:
    for word in words:
        if word.kind == "dynamic":
            raise NotReadOnly(f"what `{word.raw}` becomes is known only when it runs")
    if row.words == "printf" and words and words[0].text.startswith("-") and words[0].text != "--":
        raise NotReadOnly("printf with an option may set a variable")
    if row.words == "printf" and words and words[0].kind == "glob":
        raise NotReadOnly(f"what `{words[0].raw}` becomes is known only when it runs")
    if row.words == "printf" and (why := programs.why_printf(_template(words))):
        raise NotReadOnly(why)
    return ReadOnlyUse(row.reason)


def _template(words: Sequence[ShellWord]) -> str:
    rest = [word.text for word in words]
    return next(iter(rest[1:] if rest[:1] == ["--"] else rest), "")


def _use_of_test(row: ReadOnlyRow, words: Sequence[ShellWord], root: str) -> ReadOnlyUse:
    for word in words:
        if word.kind != "literal":
            raise NotReadOnly(f"what `{word.raw}` becomes is known only when it runs")
    texts = [word.text for word in words]
    if row.command == "[" and (not texts or texts.pop() != "]"):
        raise NotReadOnly("[ needs a ]")
    if why := programs.why_test(texts):
        raise NotReadOnly(why)
    paths = programs.paths_of_test(texts)
    for path in paths:
        if why := why_not_readable(path, root):
            raise NotReadOnly(why)
    return ReadOnlyUse(row.reason, tuple(paths))


def _use_of_find(row: ReadOnlyRow, words: Sequence[ShellWord], root: str) -> ReadOnlyUse:
    for word in words:
        _check_kind(word, ends_options=False)
    places, inner = programs.read_find([(word.text, word.kind == "literal") for word in words])
    if isinstance(inner, str):
        raise NotReadOnly(inner)
    for place in places:
        if why := why_not_readable(place, root):
            raise NotReadOnly(why)
    if inner:
        _check_names(words)
    for command in inner:
        # The names that find puts there begin with the folder that it was given; there may be many.
        given = [
            ShellWord(text, "./x", "glob") if text == "{}" else ShellWord(text, text)
            for text in command
        ]
        if any("{}" in word.text for word in given):
            raise NotReadOnly("{} within a word may become anything")
        read_only_use(given, root)
    return ReadOnlyUse(row.reason, tuple(places))


def _check_names(words: Sequence[ShellWord]) -> None:
    """Refuse a find that runs something for files that hold secrets."""
    for test, name in itertools.pairwise(words):
        if test.text in _NAME_TESTS and (why := _why_secret_names(name.text)):
            raise NotReadOnly(why)
