"""Help: rendered from the tables, for people and for the docs."""

from __future__ import annotations

import os

from weft.cli.command_spec import CommandOption, CommandSpec
from weft.cli.exit_codes import MEANINGS
from weft.cli.options import RUN, VERBS, find_verb, options_of
from weft.errors import UsageError

_INTRO = """\
Weft: a coding agent in your terminal.

  weft [options] [prompt]       talk about the project in this folder
  weft -p [options] [prompt]    answer on standard output and exit
  weft COMMAND ...              one of the commands below

A word like @src/main.py in a prompt sends that file along."""

_MORE = """\
`weft help COMMAND` explains a command; `weft help exit-codes`, `weft help slash` and `weft help \
keys` explain those.
In the chat, /help lists commands and keys."""


def main_help(width: int | None = None) -> str:
    """What `weft --help` prints."""
    width = width or _width()
    parts = [_INTRO, "", "Commands:", *_rows([(verb.name, verb.about) for verb in VERBS], width)]
    for section in RUN:
        parts += ["", f"{section.title}:", *_option_rows(section.options, width)]
    return "\n".join([*parts, "", _MORE])


def topic_help(words: tuple[str, ...], width: int | None = None) -> str:
    """What `weft help WORDS` prints.

    Raises:
        UsageError: there is no such topic.
    """
    width = width or _width()
    if not words:
        return main_help(width)
    if words in (("exit-codes",), ("exit", "codes")):
        return "\n".join(["Exit codes:", *_rows([(f"{c}", m) for c, m in MEANINGS.items()], width)])
    if words in (("slash",), ("commands",)):
        from weft.project.slash_commands import COMMANDS  # only here

        rows = [(command.shown, command.about) for command in COMMANDS]
        return "\n".join(["In the chat, at the start of a line:", *_rows(rows, width)])
    if words == ("keys",):
        from weft.cli.keys import KEYS

        return "\n".join(["Keys of the chat:", *_rows(list(KEYS), width)])
    return verb_help(words, width)


def verb_help(words: tuple[str, ...], width: int | None = None) -> str:
    """The help of a command.

    Raises:
        UsageError: there is no such command.
    """
    width = width or _width()
    verb, verbs, named = None, VERBS, []
    for word in words:
        verb = find_verb(word, verbs)
        if verb is None:
            raise UsageError(f"there is no command {' '.join(words)!r}; `weft --help` lists them")
        verbs = verb.verbs
        named.append(verb.name)
    assert verb is not None
    return "\n".join(_verb_lines(verb, " ".join(named), width))


def _verb_lines(verb: CommandSpec, name: str, width: int) -> list[str]:
    if verb.is_run:
        lines = [f"weft {name} [options] {verb.words}", "", *_wrapped(verb.about, width, 2)]
        return [*lines, "", "It takes every option of `weft --help`."]
    lines = [f"weft {name} {verb.words or ('...' if verb.verbs else '')}".rstrip(), ""]
    lines += _wrapped(f"{verb.about}.", width, 2)
    if verb.aliases:
        lines += ["", f"  Also called {', '.join(verb.aliases)}."]
    if verb.verbs:
        rows = [
            (f"{each.name} {each.words}".rstrip(), each.about + _default(each, verb))
            for each in verb.verbs
        ]
        lines += ["", "Commands:", *_rows(rows, width)]
        if verb.options:  # those of the command that is meant where none is named
            lines += ["", "Options:", *_option_rows(options_of(verb), width)]
        return [*lines, *_example_lines(verb)]
    options = _option_rows(options_of(verb), width)
    return [*lines, "", "Options:", *options, *_example_lines(verb)]


def _example_lines(verb: CommandSpec) -> list[str]:
    # Never wrapped: they are to be copied.
    return ["", "Examples:", *(f"  {each}" for each in verb.examples)] if verb.examples else []


def _default(verb: CommandSpec, of: CommandSpec) -> str:
    return " (the default)" if verb.name == of.default else ""


def _option_rows(options: tuple[CommandOption, ...], width: int) -> list[str]:
    return _rows([(_shown(option), option.about) for option in options], width)


def _shown(option: CommandOption) -> str:
    shown = ", ".join(option.names)
    return f"{shown} {option.metavar}" if option.metavar else shown


def _rows(rows: list[tuple[str, str]], width: int) -> list[str]:
    """Two columns; where the left one is long or the window narrow, the right one comes below."""
    # A longer name gets a line of its own instead of pushing every sentence to the right.
    left = min(max(len(name) for name, _ in rows), 26)
    lines: list[str] = []
    for name, about in rows:
        wrapped = _wrapped(about, width, left + 4)
        if len(name) <= left and width >= 60:
            lines.append(f"  {name:{left}}  {wrapped[0].strip()}")
            lines += wrapped[1:]
        else:
            lines.append(f"  {name}")
            lines += _wrapped(about, width, 6) if width < 60 else wrapped
    return lines


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    """Lines of at most `width`, each behind `indent` spaces."""
    room = max(width - indent, 20)
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [" " * indent + each for each in [*lines, line]]


def _width() -> int:
    """Of the terminal; `shutil` would know, but loads three decompressors first."""
    try:
        # `COLUMNS` goes first, as in other programs.
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(1).columns
    except (OSError, ValueError):
        columns = 100
    return max(40, min(columns, 110))
