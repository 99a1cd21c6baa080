"""Parts of a line: every command that it runs, also those that stand in the words of others.

`timeout 5 git diff` is two commands, and so is `find . -exec rm {} +`; `bash -c '…'` holds a whole
line.  A command that runs code which nobody can read here is `opaque`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from weft.permissions.shell.syntax import MOST_COMMANDS, SimpleCommand, parse_line
from weft.permissions.shell.tables import (
    CodeRow,
    OptionKind,
    WrapperRow,
    bare_name,
    code_rows,
    wrapper_rows,
)
from weft.permissions.shell.words import ShellWord

_DEEPEST: Final = 6
_MOST_WRAPPERS: Final = 12
_TOO_DEEP: Final = f"more than {_MOST_WRAPPERS} commands run each other"
_NO_INNER: Final = 9
_SETS: Final = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_SAME_IN_SH: Final = re.compile(r"[\w\s./:,@%+=|;&'\"-]*")
"""Lines that a small shell reads like bash."""
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITES: Final = frozenset({">", ">>", ">|", "&>", "&>>", "<>", ">&"})
_RESERVED: Final = frozenset({"{", "!", "if", "while", "until", "do", "then", "time"})
"""Words of the syntax that the grammar takes for the program of `time` or `coproc`."""
_RUNS_LATER: Final = frozenset({"at", "batch", "crontab", "capsh"})
_TAKES_NAMES: Final = frozenset(
    """
    printf test [ read unset let declare typeset export local readonly wait mapfile readarray
    getopts
    """.split()  # noqa: SIM905  # a list of words
)
"""Builtins that are given names of variables, and run what stands in the subscript of one."""
_GIT_VALUES: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_GIT_RUNS: Final = {"submodule": "foreach", "bisect": "run"}
"""Subcommands of git whose last words are a line for a shell, behind this word."""
_GIT_LINES: Final = {
    "rebase": ("-x", "--exec"),
    "difftool": ("-x", "--extcmd"),
    "filter-branch": (
        *("--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter"),
        *("--commit-filter", "--tag-name-filter", "--setup"),
    ),
}
"""Options of subcommands of git whose value is a line for a shell."""
_GIT_CODE: Final = ("-c", "--config-env", "--exec-path")


class ShellNesting(NamedTuple):
    """How deep a command stands in others."""

    lines: int = 0
    """Lines for a shell around it."""
    wrappers: int = 0

    def in_line(self) -> ShellNesting:
        return ShellNesting(self.lines + 1, self.wrappers)

    def in_wrapper(self) -> ShellNesting:
        return ShellNesting(self.lines, self.wrappers + 1)


class ShellPart(msgspec.Struct, frozen=True):
    """One command, with those that it runs."""

    command: SimpleCommand
    inner: tuple[ShellPart, ...] = ()
    passes: bool = False
    """It does nothing but run the inner ones, with the same rights and words."""
    opaque: str = ""
    """Why it may run what nobody can read here."""
    doubt: str = ""
    """Why the line that it runs is not understood."""

    @property
    def words(self) -> tuple[ShellWord, ...]:
        return self.command.words

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""

    @property
    def opened(self) -> tuple[ShellWord, ...]:
        """What its redirections open."""
        redirects = self.command.redirects
        return tuple(each.target for each in redirects if not each.has_text)

    def all(self) -> Iterator[ShellPart]:
        """This part and all in it."""
        yield self
        for part in self.inner:
            yield from part.all()


class ShellProgram(msgspec.Struct, frozen=True):
    """A whole line, taken apart."""

    parts: tuple[ShellPart, ...]
    doubt: str = ""
    is_broken: bool = False
    refused: str = ""

    def all(self) -> Iterator[ShellPart]:
        """Every part, those in others too."""
        for part in self.parts:
            yield from part.all()


_TOP: Final = ShellNesting()


def read_program(line: str, depth: ShellNesting = _TOP) -> ShellProgram:
    """Take a line apart."""
    parsed = parse_line(line)
    if depth.lines > _DEEPEST:
        return ShellProgram((), "lines are nested too deeply in it", True)
    written = {
        redirect.target.text.removeprefix("./")
        for command in parsed.commands
        for redirect in command.redirects
        if redirect.operator in _WRITES
    }
    made: dict[Hashable, ShellPart] = {}
    parts = tuple(_part_once(command, depth, written, made) for command in parsed.commands)
    refused = parsed.refused
    if not depth.lines and not refused:
        refused = _beyond_limits(parts)
    return ShellProgram(parts, parsed.doubt, parsed.is_broken, refused)


def _part_once(
    command: SimpleCommand,
    depth: ShellNesting,
    written: Collection[str],
    made: dict[Hashable, ShellPart],
) -> ShellPart:
    """The part of a command; of one that stands in the line before, the same."""
    # The reader gives the very same command where it is written the same.
    if (known := made.get(id(command))) is not None:
        return known
    key = command.spelling
    if key not in made:
        made[key] = _part(command, depth, written)
    made[id(command)] = made[key]
    return made[key]


def _beyond_limits(parts: Sequence[ShellPart]) -> str:
    """Why a line is not run, for it is more than can be judged."""
    every = [each for part in parts for each in part.all()]
    if len(every) > MOST_COMMANDS:
        return f"it has more than {MOST_COMMANDS} commands"
    return _TOO_DEEP if any(each.opaque == _TOO_DEEP for each in every) else ""


def _part(command: SimpleCommand, depth: ShellNesting, written: Collection[str] = ()) -> ShellPart:
    words = command.words
    if not words:
        return ShellPart(command)
    if depth.wrappers > _MOST_WRAPPERS:
        return ShellPart(command, opaque=_TOO_DEEP)
    if words[0].kind != "literal":
        return ShellPart(command, opaque=f"which program `{words[0].raw}` is, is not known")
    texts = [words[0].text.rpartition("/")[2], *(word.text for word in words[1:])]
    if _runs_written(words, texts[0], written):
        return ShellPart(command, opaque="it runs a file that this very line writes")
    if why := _runs_subscript(command, texts[0]):
        return ShellPart(command, opaque=why)
    wrappers = wrapper_rows()
    for size in (3, 2, 1):
        row = wrappers.row(" ".join(texts[:size])) if len(texts) >= size else None
        if row is not None:
            return _wrapped(command, row, words[size:], depth)
    if texts[0] == "git":
        return _git(command, texts, depth)
    if texts[0] == "find":
        return _find(command, depth)
    code = code_rows().row(texts[0])
    return ShellPart(command) if code is None else _code(command, code, depth)


def _runs_subscript(command: SimpleCommand, name: str) -> str:
    """Why a command may run what stands in a subscript, or in a variable, as a line."""
    if any("@P" in word.raw for word in command.words if word.kind == "dynamic"):
        return "it expands a variable like a prompt"
    texts = (word.text for word in command.words[1:])
    if name in _TAKES_NAMES and any("$(" in text or "`" in text for text in texts):
        return f"{name} runs what stands in the subscript of a name"
    return ""


def _runs_written(words: Sequence[ShellWord], name: str, written: Collection[str]) -> bool:
    """Whether a command runs a file that the same line writes."""
    named = [word.text.removeprefix("./") for word in words]
    if named[0] in written:
        return True
    return name in code_rows() and any(each in written for each in named)


def without_git_options(words: Sequence[ShellWord]) -> list[ShellWord]:
    """The words of git without what stands before its subcommand; those of others as they are."""
    found = list(words)
    if words[0].text.rpartition("/")[2] != "git":
        return found
    while len(found) > 1 and found[1].text.startswith("-") and len(found[1].text) > 1:
        takes_value = found[1].text in _GIT_VALUES
        del found[1 : 3 if takes_value else 2]
    return found


def _git(command: SimpleCommand, texts: Sequence[str], depth: ShellNesting) -> ShellPart:
    if why := _git_code(texts):
        return ShellPart(command, opaque=why)
    rest = without_git_options(command.words)[1:]
    subcommand = rest[0].text if rest else ""
    lines = _git_lines(subcommand, rest[1:])
    if any(word.kind != "literal" for word in lines):
        return ShellPart(command, opaque="what git runs is known only when it runs")
    parts, doubt, broken = _lines([word.text for word in lines], depth)
    return ShellPart(command, parts, opaque=broken, doubt=doubt)


def _git_lines(subcommand: str, words: Sequence[ShellWord]) -> list[ShellWord]:
    """The lines that a subcommand of git has a shell run."""
    if runs := _GIT_RUNS.get(subcommand):
        rest = [word for word in words if not word.text.startswith("-")]
        if not rest or rest[0].text != runs:
            return []
        line = words[words.index(rest[0]) + 1 :]
        kinds = {word.kind for word in line}
        kind = "literal" if kinds <= {"literal"} else "dynamic"
        text = " ".join(word.text for word in line if word.text != "--recursive")
        return [ShellWord(text, text, kind)] if line else []  # type: ignore[arg-type]  # one of two
    options = _GIT_LINES.get(subcommand, ())
    found: list[ShellWord] = []
    for at, word in enumerate(words):
        name, has_value, value = word.text.partition("=")
        is_long = len(name) > 4 and name.startswith("--")
        if not any(name == each or (is_long and each.startswith(name)) for each in options):
            continue
        if has_value:
            found.append(ShellWord(value, value, word.kind))
        else:
            found += words[at + 1 : at + 2]
    return found


def _git_code(texts: Sequence[str]) -> str:
    """Why a git command may run a program that stands on the line."""
    rows = code_rows()
    for text in texts[1:]:
        if not text.startswith("-"):
            break
        for option in _GIT_CODE:
            if text == option or text.startswith(f"{option}="):
                return rows[f"git {option}"].reason
    if "alias" in texts[1:2] or any(text.startswith("ext::") for text in texts):
        return "git may run a line"
    return ""


def _lines(texts: Sequence[str], depth: ShellNesting) -> tuple[tuple[ShellPart, ...], str, str]:
    """The parts of lines for a shell, with what is not understood and what cannot be read."""
    parts: list[ShellPart] = []
    doubts: list[str] = []
    opaque: list[str] = []
    for text in texts:
        program = read_program(text, depth.in_line())
        parts += program.parts
        doubts += [program.doubt or program.refused] if program.doubt or program.refused else []
        opaque += [program.doubt] if program.is_broken else []
    return tuple(parts), next(iter(doubts), ""), next(iter(opaque), "")


class _Options(msgspec.Struct):
    """What stands before the inner command."""

    at: int = 0
    is_known: bool = True
    has_options: bool = False
    assigns: bool = False
    lines: list[ShellWord] = []


def _wrapped(
    command: SimpleCommand, row: WrapperRow, words: Sequence[ShellWord], depth: ShellNesting
) -> ShellPart:
    found = _wrapper_options(row, words)
    if row.command == "command" and words and words[0].text in ("-v", "-V"):
        return ShellPart(command)
    rest = tuple(words[found.at :])
    if row.command == "coproc" and len(rest) > 1 and rest[1].raw in _RESERVED:
        rest = rest[1:]  # its name
    while rest and rest[0].raw in _RESERVED:
        rest = rest[1:]
    opaque = "" if found.is_known else f"an option of {row.command} is not known"
    if row.command in _RUNS_LATER and not any(word.text == "-l" for word in words):
        opaque = f"{row.command} runs lines that it reads"
    if any(word.kind == "dynamic" for word in words[: found.at + 1]):
        opaque = f"what {row.command} runs is known only when it runs"
    texts = [word.text for word in found.lines]
    if any(word.kind != "literal" for word in found.lines):
        opaque = f"what {row.command} runs is known only when it runs"
    inner: list[ShellPart] = []
    if row.how == "joined" and rest:
        texts.append(" ".join(word.text for word in rest))
        if any(word.kind != "literal" for word in rest):
            opaque = f"what {row.command} runs is known only when it runs"
    elif rest:
        inner.append(_part(SimpleCommand(rest), depth.in_wrapper()))
    parts, doubt, broken = _lines(texts, depth)
    passes = row.how == "same" or (
        row.command == "env" and not found.assigns and not found.has_options
    )
    # A file of the project that is called like a wrapper is another program.
    is_system = "/" not in bare_name(command.words[0].text)
    passes = passes and is_system and bool(inner) and not opaque and not texts
    return ShellPart(command, (*inner, *parts), passes, opaque or broken, doubt)


def _wrapper_options(row: WrapperRow, words: Sequence[ShellWord]) -> _Options:
    found = _Options()
    _leading_options(row, words, found)
    if row.skipped == _NO_INNER:
        while found.at < len(words):  # `su root -c LINE`
            found.at += 1
            _leading_options(row, words, found)
    found.at = min(found.at + row.skipped, len(words))
    if row.skipped and words[found.at : found.at + 1] and words[found.at].text == "--":
        found.at += 1
    if row.how == "text" and row.skipped:
        _leading_options(row, words, found)  # `flock FILE -c LINE`
    if row.how == "assigns":
        while found.at < len(words) and _SETS.match(words[found.at].text):
            found.assigns = True
            found.at += 1
    return found


def _leading_options(row: WrapperRow, words: Sequence[ShellWord], found: _Options) -> None:
    while found.at < len(words):
        word = words[found.at]
        if word.text == "--" and word.kind == "literal":
            found.at += 1
            break
        if row.how == "assigns" and _SETS.match(word.text):
            found.assigns = True
            found.at += 1
            continue
        if not word.text.startswith("-") or (len(word.text) < 2 and row.command != "env"):
            break
        found.has_options = True
        found.at += 1
        _wrapper_option(row, word, words, found)


def _wrapper_option(
    row: WrapperRow, word: ShellWord, words: Sequence[ShellWord], found: _Options
) -> None:
    if word.text.startswith("--"):
        name, has_value, value = word.text.partition("=")
        _wrapper_value(row.options.get(name), value if has_value else None, words, found)
        return
    if "-#" in row.options and word.text[1:].isdecimal():
        return
    if word.text in row.options and row.options[word.text] == "flag":
        return
    for place, letter in enumerate(word.text[1:], 2):
        kind = row.options.get(f"-{letter}")
        if kind == "flag":
            continue
        _wrapper_value(kind, word.text[place:] or None, words, found)
        return


def _wrapper_value(
    kind: OptionKind | None, value: str | None, words: Sequence[ShellWord], found: _Options
) -> None:
    if kind is None:
        found.is_known = False
        return
    if kind in ("flag", "maybe"):
        return
    if value is None:
        if found.at >= len(words):
            return
        word = words[found.at]
        found.at += 1
    else:
        word = ShellWord(value, value)
    if kind == "line":
        found.lines.append(word)


def _find(command: SimpleCommand, depth: ShellNesting) -> ShellPart:
    inner: list[ShellPart] = []
    words = command.words
    at = 1
    while at < len(words):
        if words[at].text in _FIND_RUNS:
            end = at + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            inner.append(_part(SimpleCommand(words[at + 1 : end]), depth.in_wrapper()))
            at = end
        at += 1
    is_known = all(word.kind != "dynamic" for word in words)
    return ShellPart(
        command,
        tuple(inner),
        opaque="" if is_known else "what find does is known only when it runs",
    )


def _code(command: SimpleCommand, row: CodeRow, depth: ShellNesting) -> ShellPart:
    words = command.words[1:]
    if row.takes_lines:
        return _shell(command, row, depth)
    opaque = f"{row.command} is {row.reason}" if _is_given_code(row, words) else ""
    if row.command in ("eval", "trap") and words and words[0].text == "--":
        words = words[1:]
    if row.command == "eval" and words and all(word.kind == "literal" for word in words):
        parts, doubt, broken = _lines([" ".join(word.text for word in words)], depth)
        return ShellPart(command, parts, opaque=broken, doubt=doubt)
    if row.command == "trap" and words and words[0].kind == "literal":
        parts, doubt, broken = _lines([words[0].text], depth)
        return ShellPart(command, parts, opaque=broken, doubt=doubt)
    return ShellPart(command, opaque=opaque)


def _is_given_code(row: CodeRow, words: Sequence[ShellWord]) -> bool:
    if "*" in row.options:
        return True
    if any(word.kind == "dynamic" for word in words):
        return True
    if "-" in row.options and not any(not word.text.startswith("-") for word in words):
        # Without a file it reads its input, unless it only says its version.
        return not any(word.text in ("--version", "-V", "--help", "-h") for word in words)
    for word in words:
        if word.text in row.options or word.text.partition("=")[0] in row.options:
            return True
        if not word.text.startswith("-") or word.text.startswith("--"):
            continue
        if any(len(each) == 2 and each[1] in word.text[1:] for each in row.options if each != "-"):
            return True
    return False


def _shell(command: SimpleCommand, row: CodeRow, depth: ShellNesting) -> ShellPart:
    words = command.words[1:]
    at, takes_line = 0, False
    while at < len(words) and words[at].text[:1] in ("-", "+") and len(words[at].text) > 1:
        text = words[at].text
        takes_line = takes_line or (not text.startswith("--") and "c" in text[1:])
        at += 2 if text in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") else 1
    if any(word.kind == "dynamic" for word in words[: at + 1]):
        return ShellPart(command, opaque="the line for the shell is known only when it runs")
    if not takes_line:
        has_file = at < len(words) and not any("s" in word.text[1:] for word in words[:at])
        is_asked = any(word.text in ("--version", "--help") for word in words[:at])
        opaque = "" if has_file or is_asked else "it runs what it reads from its input"
        return ShellPart(command, opaque=opaque)
    if at >= len(words):
        return ShellPart(command)
    line = words[at]
    if line.kind != "literal":
        return ShellPart(command, opaque="the line for the shell is known only when it runs")
    parts, doubt, broken = _lines([line.text], depth)
    is_plain = len(words) == 2 and words[0].text == "-c" and command.words[0].text == row.command
    is_same = row.command == "bash" or (
        row.command in ("sh", "dash")
        and _SAME_IN_SH.fullmatch(line.text) is not None
        and "&>" not in line.text
    )
    return ShellPart(command, parts, is_plain and is_same and not doubt, broken, doubt)
