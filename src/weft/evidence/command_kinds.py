"""Which commands run tests, build or check, told by the programs at the heads of their parts: a
word in the middle of one may be a file, a pattern or a message.

Two questions are asked.  `is_test` asks what a command is about, as far as its words tell.
`checks_in` asks for more: which check has an exit code that is the command's own, so that 0 says
that it passed.  For that no word of the shell may stand between the two, and what is left open is
no evidence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias, cast

import msgspec

from weft.data_tables import read_table
from weft.evidence.shell_effects import ASSIGNMENT, changes_shell, is_odd_setting, place_after

CheckKind: TypeAlias = Literal["test", "build", "lint", "types", "format"]
LONGEST_COMMAND: Final = 4_000
"""Characters of a command that are looked at."""
_BETWEEN: Final = "|;&()"
_COMMITTED: Final = re.compile(r"^\[[^\]\n]*?([0-9a-f]{7,64})\] ", re.MULTILINE)
_PYTHON: Final = re.compile(r"python[\d.]*")
_BEFORE: Final = frozenset({"env", "time", "command", "exec", "nohup", "sudo", "npx", "bunx"})
"""Programs that run what follows, and end as it does."""
_RUNNERS: Final = {
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("rye", "run"),
    ("hatch", "run"),
    ("bundle", "exec"),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("npm", "exec"),
}
_WITH_VALUE: Final = {
    "make": frozenset({"-C", "-f", "-j", "--directory", "--file"}),
    "git": frozenset({"-C", "-c"}),
    "go": frozenset({"-C"}),
    "npm": frozenset({"--prefix", "-w", "--workspace", "-C"}),
    "pnpm": frozenset({"--filter", "-F", "-C", "--dir"}),
    "yarn": frozenset({"--cwd"}),
    "cargo": frozenset({"--manifest-path", "-C"}),
    "gradle": frozenset({"-p"}),
    "gradlew": frozenset({"-p"}),
    "mvn": frozenset({"-f", "-pl"}),
}
"""Options before the words that take a word of their own, by program."""
_OPEN_WORDS: Final = re.compile(r"[$`*?\[{~<>!\\]|\n")
"""What the shell makes something else of, so that the text does not say what runs."""
_COMMENT: Final = re.compile(r"(?:^|[\s|;&()])#")
_QUOTED_OPERATOR: Final = re.compile(r"""(['"])[|;&()]+\1""")
"""A word that a reader of words takes for an operator, and bash does not."""
_QUIET_TAIL: Final = re.compile(r"\s*2>\s*&1\s*$")
_HARMLESS: Final = frozenset(
    {
        *("-q", "-qq", "-v", "-vv", "-vvv", "--verbose", "--quiet", "-s", "--silent", "--all"),
        *("--workspace", "--all-targets", "--all-features", "--release", "--color=never", "-ra"),
        *("--color", "--no-color", "--no-header", "-rA", "-rf", "--locked", "--offline", "--ci"),
        *("--no-fail-fast", "--tb=short", "--tb=line", "--tb=long", "--tb=no", "--noEmit", "-race"),
        *("--strict", "--check", "--no-cov", "--coverage", "--cov", "--runInBand", "-b", "--build"),
        *("--no-daemon", "--stacktrace", "-B", "--batch-mode", "--output-on-failure", "--debug"),
        *("--verify-no-changes", "--check-formatted", "--max-warnings=0", "--frozen", "-count=1"),
        *("--run", "run", "discover", "--watch=false", "--watchAll=false", "--durations=0", "-W"),
        *("--", "-D", "warnings", "-warnaserror", "--no-restore", "-nologo", "-E"),
        *("--reporter=verbose", "--reporter=dot", "--reporter=default", "-durations=0"),
    }
)
"""Words that change how a check talks, not what it looks at."""
_WHOLE: Final = frozenset({".", "./", "./...", "...", "//...", "src", "src/", "tests", "tests/"})
"""Places that are all there is to look at, in most projects; `tests` for test runners alone, and
`src` for all others."""
_NUMBERED: Final = re.compile(r"-j\d*|-n(?:auto|\d+)|--maxfail=\d+|-x|--jobs=\d+|\d+")
_LOOKS: Final = frozenset({"echo", "printf", "true", ":", "ls", "pwd", "cat", "head", "tail", "wc"})
"""Programs that change no file of the project."""
_FORMAT_LOOKS: Final = frozenset(
    {"--check", "--check-only", "-c", "--diff", "--check-formatted", "--verify-no-changes", "-l"}
)
"""Words with which a formatter only looks."""
_ALL_FILES: Final = frozenset({"--all-files", "-a"})
_VERDICT_WORDS: Final = {
    "gofmt": frozenset({"-w"}),
    "prettier": frozenset({"--check", "-c", "--list-different", "-l", "--write", "-w"}),
}
"""Of formatters that end with 0 whatever they find, the words with which that says something."""
_MAKE_PLAIN: Final = frozenset({"-s", "--silent", "--quiet", "-B", "--no-print-directory", "-j"})
"""Options of make with which it still makes everything and minds errors."""
_NO_TESTS: Final = frozenset({"-DskipTests", "-Dmaven.test.skip=true", "-x", "test"})
"""Words with which a build leaves the tests out, and is one all the same."""


class CheckCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One program with words that tests, builds or checks."""

    kind: CheckKind
    program: str
    text: str
    narrow: tuple[str, ...] = ()
    """Words that may select a part of what there is, or leave some out."""


class _KindRow(msgspec.Struct, frozen=True):
    program: str
    words: tuple[frozenset[str], ...]
    kind: CheckKind


def is_test(command: str) -> bool:
    """Whether a command runs tests, as far as its words tell."""
    return any(_kind_of(part)[0] == "test" for part in _parts(command))


def is_commit(command: str) -> bool:
    """Whether a command commits, as far as its words tell."""
    for part in _parts(command):
        words = _own_words(part)
        name = _name(words[0]) if words else ""
        if name == "git" and _behind_options(name, words)[:1] == ["commit"]:
            return True
    return False


def made_commit(command: str, output: str) -> str:
    """The commit that a command made, as git printed it; empty for none."""
    if not is_commit(command):
        return ""
    found = _COMMITTED.search(output)
    return found[1] if found else ""


def checks_in(command: str, root: str = "") -> tuple[CheckCommand, ...]:
    """The checks of a command that all ended with 0 if the command did; `root` is the project.

    So only a list of simple commands joined by `&&`, each of words that stand for themselves.
    Empty for every other command: its exit code may be another program's.
    """
    line = _QUIET_TAIL.sub("", command.strip())
    if len(line) > LONGEST_COMMAND or _OPEN_WORDS.search(line):
        return ()
    if _COMMENT.search(line) or _QUOTED_OPERATOR.search(line):
        return ()
    try:
        words = _split(line)
    except ValueError:  # a quote without an end
        return ()
    if any(word.strip(_BETWEEN) == "" and word != "&&" for word in words if word):
        return ()
    found: list[CheckCommand] = []
    place: tuple[str, ...] = ()
    for part in _between(words, "&&"):
        if part[:1] == ["cd"]:
            place = place_after(part, place, root)
            continue
        check = _check_of(part, place, root)
        if _may_write(part, check):
            # The files behind the whole command are not those that were looked at before.
            found.clear()
        if check is not None:
            found.append(check)
        if changes_shell(part):
            place = (*place, " ".join(part))
    return tuple(found)


def _may_write(part: Sequence[str], check: CheckCommand | None) -> bool:
    if check is None:
        return not part or _name(part[0]) not in _LOOKS
    if check.kind != "format":
        return "--fix" in part
    return _FORMAT_LOOKS.isdisjoint(part)


def _check_of(part: list[str], place: tuple[str, ...], root: str) -> CheckCommand | None:
    kind, own, rest = _kind_of(part)
    if kind is None:
        return None
    name = _name(own[0])
    odd = [word for word in part if word not in own and is_odd_setting(word)]
    narrow = (*odd, *(word for word in rest if word != root and _may_narrow(word, kind, name)))
    narrow = (*place, *narrow, *_narrow_unasked(name, rest))
    return CheckCommand(kind=kind, program=name, text=" ".join(own), narrow=narrow)


def _narrow_unasked(name: str, rest: Sequence[str]) -> tuple[str, ...]:
    """How a program looks at less than all, or says less than whether it is right, where no word
    tells it to do more.
    """
    if name == "go" and not any("..." in word for word in rest):
        return (".",)  # one package
    if name == "pre-commit" and _ALL_FILES.isdisjoint(rest):
        return ("staged files",)
    wanted = _VERDICT_WORDS.get(name)
    return ("no --check",) if wanted is not None and wanted.isdisjoint(rest) else ()


def _may_narrow(word: str, kind: CheckKind, name: str) -> bool:
    if word == "--quiet" and name == "eslint":
        return True  # it keeps warnings back
    if name == "pre-commit" and word in _ALL_FILES:
        return False
    if word in _HARMLESS or _NUMBERED.fullmatch(word):
        return False
    if word in ("-n", "auto") and name in ("pytest", "py.test"):
        return False  # in how many processes
    if kind == "build" and (word in _NO_TESTS or word.rstrip("/") == "build"):
        return False  # `build` is where CMake and Meson build
    others = ("src", "src/") if kind == "test" else ("tests", "tests/")
    return word not in _WHOLE or word in others


def _kind_of(part: Sequence[str]) -> tuple[CheckKind | None, list[str], list[str]]:
    """The kind of a simple command, its words without those that only run it, and the words behind
    those that told the kind.
    """
    words = _own_words(part)
    if not words:
        return None, words, []
    name = _name(words[0])
    behind = _behind_options(name, words)
    best: _KindRow | None = None
    for row in _rows().get(name, ()):
        if _fits(row, behind) and (best is None or len(row.words) > len(best.words)):
            best = row
    if best is None:
        return None, words, []
    if not best.words:
        return best.kind, words, words[1:]
    # `test:unit` is one of several scripts.
    parted = [word for word in behind[: len(best.words)] if ":" in word]
    before = words[1 : len(words) - len(behind)]
    odd = [
        f"{option} {word}" if word in _WHOLE else word  # all of a folder is not all there is
        for option, word in pairwise(["", *before])
        if not _is_plain(name, word, option)
    ]
    return best.kind, words, [*odd, *parted, *behind[len(best.words) :]]


def _fits(row: _KindRow, words: Sequence[str]) -> bool:
    if len(row.words) > len(words):
        return False
    pairs = zip(words, row.words, strict=False)
    return all(word in wanted or word.partition(":")[0] in wanted for word, wanted in pairs)


def _is_plain(name: str, word: str, option: str) -> bool:
    """Whether an option before the words, or the value of the option before it, changes nothing of
    what is looked at.
    """
    if option in _values_of(name):
        return word in (".", "./") or (option == "-j" and word.isdecimal())
    if name == "make" and (word in _MAKE_PLAIN or re.fullmatch(r"-j\d+", word)):
        return True
    return word in _values_of(name) or word.startswith("+") or (
        name != "make" and not _may_narrow(word, "test", name)
    )  # fmt: skip


def _values_of(name: str) -> frozenset[str]:
    """The options before the words that say where a program works; what they say stands behind."""
    return _WITH_VALUE.get(name, frozenset[str]())


def _behind_options(name: str, words: Sequence[str]) -> list[str]:
    """The words of a command behind the options and settings that stand before the first."""
    takes_value = _WITH_VALUE.get(name, frozenset[str]())
    first = _first_words().get(name, frozenset[str]())
    at = 1
    while at < len(words):
        word = words[at]
        if word in first or not (word.startswith(("-", "+")) or ASSIGNMENT.match(word)):
            break
        at += 2 if word in takes_value else 1
    return list(words[at:])


def _own_words(part: Sequence[str]) -> list[str]:
    """The words of a simple command from the program that counts on."""
    words = list(part)
    while words and (skipped := _words_before(_name(words[0]), words)):
        words = words[skipped:]
    return ["python", *words[1:]] if words and _PYTHON.fullmatch(_name(words[0])) else words


def _words_before(name: str, words: Sequence[str]) -> int:
    """How many words at the beginning only run what follows them."""
    if ASSIGNMENT.match(words[0]) or name in _BEFORE:
        return 1
    if len(words) < 2:
        return 0
    if name in ("yarn", "pnpm") and words[1] in _rows() and words[1] not in _first_words()[name]:
        return 1  # not a script of that name, but the program itself
    return 2 if name == "timeout" or (name, words[1]) in _RUNNERS or _is_module(words) else 0


def _is_module(words: Sequence[str]) -> bool:
    """Whether Python runs a module that is a program of its own."""
    return bool(_PYTHON.fullmatch(_name(words[0]))) and (
        words[1:2] == ["-m"] and words[2:3] != ["build"]
    )


def _name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


@cache
def _rows() -> dict[str, list[_KindRow]]:
    found: dict[str, list[_KindRow]] = {}
    for program, words, kind, _ in read_table(__file__, "command_kinds.tsv", 4):
        groups = () if words == "-" else tuple(frozenset(each.split("|")) for each in words.split())
        found.setdefault(program, []).append(_KindRow(program, groups, cast("CheckKind", kind)))
    return found


@cache
def _first_words() -> dict[str, frozenset[str]]:
    """The words that a program's rows begin with, which may look like options."""
    return {
        name: frozenset(word for row in rows if row.words for word in row.words[0])
        for name, rows in _rows().items()
    }


def _parts(command: str) -> Iterator[list[str]]:
    """The simple commands of a command, whatever joins them."""
    # Inside quotes a semicolon instead of a line's end changes no program's name.
    part: list[str] = []
    try:
        for word in _lexer(command[:LONGEST_COMMAND].replace("\n", " ; ")):
            if word.strip(_BETWEEN):
                part.append("_".join(word.split()))  # a word is one, whatever stands in it
            else:
                yield part
                part = []
    except ValueError:  # a quote without an end
        pass
    yield part


def _split(line: str) -> list[str]:
    return ["_".join(word.split()) for word in _lexer(line)]


def _lexer(line: str) -> shlex.shlex:
    words = shlex.shlex(line, posix=True, punctuation_chars=_BETWEEN)
    words.whitespace_split, words.commenters = True, ""
    return words


def _between(words: Sequence[str], separator: str) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if word == separator:
            yield part
            part = []
        else:
            part.append(word)
    yield part
