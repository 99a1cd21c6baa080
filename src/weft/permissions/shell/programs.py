"""Small languages on the command line: what the tests of find, the scripts of sed and the programs
of awk do, as far as they are known to do no more than look and print.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

Check: TypeAlias = Callable[[str], str]

_FIND_FLAGS: Final = frozenset(
    """
    -print -print0 -prune -not ! ( ) , -a -and -o -or -true -false -empty -depth -d -mount -xdev
    -follow -daystart -noleaf -readable -writable -executable -nouser -nogroup -ls -quit -L -H -P
    -warn -nowarn -ignore_readdir_race -noignore_readdir_race
    """.split()  # noqa: SIM905  # a list of words
)
_FIND_VALUES: Final = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype
    -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -used -user -group -uid -gid
    -perm -links -inum -regextype -printf -fstype -context
    """.split()  # noqa: SIM905  # as above
)
_FIND_PATHS: Final = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_UNARY_FILE: Final = frozenset(
    [
        "-a",
        "-e",
        "-f",
        "-d",
        "-s",
        "-r",
        "-w",
        "-x",
        "-L",
        "-h",
        "-b",
        "-c",
        "-p",
        "-S",
        "-g",
        "-u",
        "-k",
        "-O",
        "-G",
        "-N",
    ]
)
_UNARY_TEXT: Final = frozenset({"-n", "-z"})
_BINARY_FILE: Final = frozenset({"-nt", "-ot", "-ef"})
_BINARY_TEXT: Final = frozenset({"=", "==", "!=", "<", ">"})
_BINARY_NUMBER: Final = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


def read_find(
    words: Sequence[tuple[str, bool]],
) -> tuple[list[str], list[list[str]] | str]:
    """The places that find looks at, and the commands that it runs, or why it does more than look.

    A word comes with whether it is literal: another may only be a place.
    """
    places: list[str] = []
    inner: list[list[str]] = []
    at = 0
    while at < len(words) and not _begins_test(words[at][0]):
        places.append(words[at][0])
        at += 1
    while at < len(words):
        text, is_literal = words[at]
        if not is_literal:
            return places, f"what `{text}` becomes is known only when it runs"
        at += 1
        if text in _FIND_FLAGS:
            continue
        if text == "-exec":
            command, at = _find_command(words, at)
            if command is None:
                return places, "the command of -exec has no end"
            inner.append(command)
            continue
        if text not in _FIND_VALUES and text not in _FIND_PATHS:
            return places, f"find {text} is not among the tests that only look"
        if at >= len(words) or not words[at][1]:
            return places, f"what find {text} is given is not known"
        if text in _FIND_PATHS:
            places.append(words[at][0])
        at += 1
    return places, inner


def _begins_test(text: str) -> bool:
    return (text.startswith("-") and len(text) > 1) or text in ("!", "(", ")", ",")


def _find_command(words: Sequence[tuple[str, bool]], at: int) -> tuple[list[str] | None, int]:
    command: list[str] = []
    while at < len(words):
        text, is_literal = words[at]
        at += 1
        if not is_literal:
            return None, at
        if text == ";" or (text == "+" and command and command[-1] == "{}"):
            return command, at
        command.append(text)
    return None, at


_BRACKETS: Final = r"\[\^?\]?(?:\[:\w+:\]|\\[^\]\[/\n]|[^\]\[/\\\n])*\]"
"""A set of characters whose end every version of sed sees at the same place."""
_SED_BRACKETS: Final = re.compile(_BRACKETS)
_SED_ADDRESS: Final = re.compile(rf"\d+(~\d+)?|\$|/(?:[^/\[\\\n]|\\[^\n]|{_BRACKETS})*/I?")
_SED_PLAIN: Final = frozenset("pdDPnNhHgGxlzF=")


def why_sed(script: str) -> str:
    """Why a script of sed may do more than print; empty when it cannot."""
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        at = _sed_addresses(script, at)
        letter = script[at : at + 1]
        if letter in _SED_PLAIN and letter:
            at += 1
        elif letter in ("q", "Q"):
            at += 1
            while script[at : at + 1].isdecimal():
                at += 1
        elif letter in ("s", "y"):
            after = _sed_substitution(script, at)
            if after is None:
                return "its `s` may write or run something"
            at = after
        elif letter != "{" or not letter:
            return f"sed {letter or 'script'} is not among the commands that only print"
        if script[at : at + 1] not in ("", ";", "\n", " ", "\t", "}", "{"):
            return "its script is not understood"
    return ""


def _sed_addresses(script: str, at: int) -> int:
    found = _SED_ADDRESS.match(script, at)
    if found is None:
        return at
    at = found.end()
    if script[at : at + 1] == ",":
        second = re.compile(r"[+~]?\d+").match(script, at + 1) or _SED_ADDRESS.match(script, at + 1)
        at = second.end() if second is not None else at
    while script[at : at + 1] in (" ", "!"):
        at += 1
    return at


def _sed_substitution(script: str, at: int) -> int | None:
    """Where `s/a/b/flags` ends; None when a flag writes or runs, or it is not understood."""
    delimiter = script[at + 1 : at + 2]
    if delimiter not in tuple("/|,#:@!%_+"):
        return None
    parts, place = 0, at + 2
    while place < len(script) and parts < 2:
        letter = script[place]
        if letter == "\n":
            return None
        if letter == "\\":
            place += 1
        elif letter == "[" and not parts:
            # A delimiter in brackets is none, in some versions.
            found = _SED_BRACKETS.match(script, place)
            if script[at] == "y" or found is None or delimiter in found[0]:
                return None
            place = found.end() - 1
        elif letter == delimiter:
            parts += 1
        place += 1
    if parts < 2:
        return None
    while script[place : place + 1] and script[place] in "gpiI0123456789":
        place += 1
    return place


_AWK_WORD: Final = re.compile(
    r"\b(system|getline|fflush|close|include|load|namespace|ENVIRON|ARGV|SYMTAB|FUNCTAB)\b"
)


def why_awk(program: str) -> str:
    """Why a program of awk may do more than compute and print; empty when it cannot."""
    if found := _AWK_WORD.search(program):
        return f"awk with {found[0]} may do more than print"
    without = program.replace("||", "").replace(">=", "")
    if "|" in without:
        return "awk with a pipe runs a program"
    if ">" in without:
        return "awk with > may write a file"
    return "awk with @ loads or runs by name" if "@" in program else ""


_JQ_WORD: Final = re.compile(r"\b(import|include|modulemeta)\b|(?<![.\w])(\$ENV|env)\b")


def why_jq(program: str) -> str:
    """Why a program of jq may read more than the files that it is given; empty when it cannot."""
    found = _JQ_WORD.search(program)
    return f"jq with {found[0]} reads more than its files" if found else ""


_PRINTF_COUNTS: Final = re.compile(r"%[-+ #'0-9.*]*[hjlLtzq]*n")


def why_printf(template: str) -> str:
    """Why a template of printf does more than print; empty when it does not."""
    # `%n` sets the variable that is named: `PATH` is one.
    counts = _PRINTF_COUNTS.search(template.replace("%%", ""))
    return "printf with %n sets a variable" if counts else ""


def why_test(words: Sequence[str]) -> str:
    """Why an expression of `test` may do more than compare; empty when it cannot."""
    rest = list(words)
    while rest:
        while rest and rest[0] in ("!", "("):
            rest.pop(0)
        size = _test_size(rest)
        if not size:
            return "its test is not among those that only look"
        del rest[:size]
        while rest and rest[0] == ")":
            rest.pop(0)
        if rest and rest[0] not in ("-a", "-o"):
            return "its test is not among those that only look"
        if rest and len(rest) < 2:
            return "its test is not among those that only look"
        del rest[:1]
    return ""


def _test_size(words: Sequence[str]) -> int:
    """How many words the first comparison has; 0 when it is not known to be harmless."""
    if len(words) >= 3 and words[1] in _BINARY_TEXT | _BINARY_FILE:
        return 3
    if len(words) >= 3 and words[1] in _BINARY_NUMBER:
        # Not a name: of an array's element the shell runs what stands in the subscript.
        return 3 if all(re.fullmatch(r"-?\d+", words[at]) for at in (0, 2)) else 0
    if len(words) >= 2 and words[0] in _UNARY_FILE | _UNARY_TEXT:
        return 2
    return 1 if words and not words[0].startswith("-") else 0


def paths_of_test(words: Sequence[str]) -> list[str]:
    """The paths that `test` looks at."""
    found: list[str] = []
    for before, word in itertools.pairwise(words):
        if before in _UNARY_FILE | _BINARY_FILE:
            found.append(word)
        if word in _BINARY_FILE:
            found.append(before)
    return found
