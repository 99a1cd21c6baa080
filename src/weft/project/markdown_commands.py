"""Slash commands from Markdown files: `/review src` sends the text of `commands/review.md`, filled
in.

Looked for in the project (`.weft/commands`, `.claude/commands`, up to the repository's root) and
with the user (`commands` beside their settings); the nearest of a name wins, and a built-in command
always does.  The text may hold `$ARGUMENTS`, `$1` … `$9`, `@file`, and a shell command as
!`command`.

A file is read as a template first and filled in afterwards: what the user typed behind the command
is never taken for a part of the template.  In a shell command an argument is one word, quoted; it
cannot become another command.  Shell commands are run by the caller that is handed in, through the
same gate as any other.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.errors import UsageError, did_you_mean
from weft.messages import Text
from weft.project.frontmatter import refuse_local_weights, setting_text, split_front_matter
from weft.project.mentions import MENTION, MentionReader, Parts, mentions_in
from weft.workspace import (
    SourceFolder,
    list_folder,
    read_small_text,
)

LARGEST_FILE: Final = 256 * 1024
MOST_COMMANDS: Final = 500
"""Files in one folder, and in the folders in it."""
MOST_FOLDERS: Final = 500
"""Folders that are looked into for them."""
MOST_SHELLS: Final = 20
"""Shell commands in one file."""
NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*")

_TOKEN: Final = re.compile(rf"!`([^`\n]+)`|\$ARGUMENTS\b|\$([1-9])(?!\d)|{MENTION}")
_SLOT: Final = re.compile(r"\$ARGUMENTS\b|\$([1-9])(?!\d)")
_PLAIN: Final = re.compile(r"[\w./:=@%+,-]*")

Source: TypeAlias = Literal["project", "user"]
RunShell: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a command line if it may be run, and gives what it printed.

Raises `UsageError` if it may not.
"""


class MarkdownCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command."""

    name: str
    """Without the slash; a folder becomes a part of it: `docs:check`."""
    body: str
    path: str
    source: Source
    description: str = ""
    argument_hint: str = ""
    model: str = ""
    agent: str = ""


class MarkdownCommandSet(msgspec.Struct, frozen=True, kw_only=True):
    """All commands of a project, and what is wrong with those that are left out."""

    found: dict[str, MarkdownCommand] = {}
    problems: tuple[str, ...] = ()


class ShellRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A shell command of a slash command that needs permission."""

    name: str
    """The slash command's, without the slash."""
    command: str
    """Exactly what would be run."""
    reason: str = ""


Ask: TypeAlias = Callable[[ShellRequest], Awaitable[bool]]
"""Asks the user; True when they allow it."""


class ExpandedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What a command comes to: `send_message(expanded.content, **expanded.options)`."""

    content: Parts
    options: dict[str, Any] = {}
    """Options for the message: the model, where the file names one."""
    name: str = ""
    agent: str = ""
    """The agent that the file wants it done by."""
    missing: tuple[str, ...] = ()
    """The names in it that look like paths, and of which there is no file."""


# --- finding -----------------------------------------------------------------------------


def find_commands(folders: Iterable[SourceFolder]) -> MarkdownCommandSet:
    """Every command in these folders, nearest folder first: the first of a name counts."""
    found: dict[str, MarkdownCommand] = {}
    problems: list[str] = []
    for folder in folders:
        for number, names in enumerate(_files(folder, problems)):
            if number == MOST_COMMANDS:
                problems.append(f"{folder.path}: there are more than {MOST_COMMANDS} commands")
                break
            try:
                command = read_command(folder, names)
            except UsageError as error:
                problems.append(str(error))
                continue
            if command is not None:
                found.setdefault(command.name, command)
    return MarkdownCommandSet(
        found=dict(sorted(found.items())), problems=tuple(dict.fromkeys(problems))
    )


def _files(top: SourceFolder, problems: list[str]) -> Iterator[tuple[str, ...]]:
    """The Markdown files below a folder, each as the names on the way to it.

    Folders that are links are not entered: they could lead in circles.
    """
    waiting: list[tuple[str, ...]] = [()]
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        inner = waiting.pop()
        try:
            listing = list_folder(top.below("/".join(inner)) if inner else top)
        except UsageError as error:
            problems.append(str(error))
            continue
        problems += listing.problems
        yield from ((*inner, each.name) for each in listing.entries if each.name.endswith(".md"))
        waiting += [
            (*inner, each.name)
            for each in listing.entries
            # A folder called `x.md` was offered as a file above, where reading it says what is
            # wrong.
            if each.kind == "folder" and not each.name.endswith(".md")
        ]
    problems.append(f"{top.path}: there are more than {MOST_FOLDERS} folders in it")


def read_command(folder: SourceFolder, names: Sequence[str]) -> MarkdownCommand | None:
    """The command in one file, which lies below `folder`; None where there is none.

    Raises:
        UsageError: it is not what a command must be.
    """
    file = read_small_text(folder, "/".join(names), LARGEST_FILE)
    if file is None:
        return None
    names = (*names[:-1], names[-1].removesuffix(".md"))
    if not all(NAME.fullmatch(name) for name in names):
        raise UsageError(
            f"{file.path}: a command's name is made of letters, digits, '-', '_' and '.'"
        )
    settings, body = split_front_matter(file.text, file.path)
    model = _line(setting_text(settings, "model", file.path))
    if folder.is_project:
        refuse_local_weights(model, file.path)
    return MarkdownCommand(
        name=":".join(names),
        body=body,
        path=file.path,
        source="project" if folder.is_project else "user",
        description=_line(settings.get("description")) or _first_line(body),
        argument_hint=_line(settings.get("argument-hint")),
        model=model,
        agent=_line(setting_text(settings, "agent", file.path)),
    )


def _line(value: Any) -> str:
    if isinstance(value, list):  # `argument-hint: [file]` is a list to YAML
        value = "[" + ", ".join(str(each) for each in value) + "]"
    return " ".join(str(value).split())[:200] if value is not None else ""


def _first_line(body: str) -> str:
    return next((_line(line.lstrip("# ")) for line in body.splitlines() if line.strip()), "")


# --- filling in --------------------------------------------------------------------------


def split_line(text: str) -> tuple[str, str] | None:
    """The name and the arguments of a line `/name …`.

    None when it is no command (`/etc/hosts` is none).
    """
    first, _, rest = text.strip().partition(" ")
    word, newline, more = first.partition("\n")
    if not word.startswith("/") or not all(map(NAME.fullmatch, word[1:].split(":"))):
        return None
    return word[1:], f"{more} {rest}".strip() if newline else rest.strip()


def named(commands: MarkdownCommandSet, name: str) -> MarkdownCommand:
    """The command of this name.

    Raises:
        UsageError: there is none.
    """
    if name in commands.found:
        return commands.found[name]
    raise UsageError(f"there is no command /{name}{did_you_mean(name, commands.found)}")


async def expand(
    command: MarkdownCommand,
    arguments: str,
    *,
    files: MentionReader,
    run_shell: RunShell,
    redact: Callable[[str], str] = str,
) -> ExpandedCommand:
    """The message that a command stands for.

    Raises:
        UsageError: a shell command in it may not be run, a file may not be read, or an argument
            does not fit where it stands.
    """
    words = _words(arguments)
    pieces: list[str] = []
    names: list[str] = []
    shells = 0
    place = 0
    for token in _TOKEN.finditer(command.body):
        pieces.append(redact(command.body[place : token.start()]))
        place = token.end()
        # One pass over the template: what an argument or a command's output puts in is not looked
        # at again, or typed text could start a shell command.
        shell, _, mention = token.groups()
        if shell is not None:
            shells += 1
            if shells > MOST_SHELLS:
                raise UsageError(f"/{command.name} holds more than {MOST_SHELLS} shell commands")
            pieces.append(await run_shell(_in_shell(shell, arguments, words, command.name)))
        elif mention is not None:
            path = _filled(mention.strip('"'), arguments, words)
            names.append(path)
            pieces.append(f"@{path}")
        else:
            pieces.append(_filled(token.group(), arguments, words))
    pieces.append(redact(command.body[place:]))
    # A template without a place for arguments still gets them: users expect `/review src` to say
    # `src`.
    if arguments and not _SLOT.search(command.body):
        pieces.append(f"\n\n{arguments}")
    text = "".join(pieces).strip()
    if command.agent:
        text = f"Have this done by the agent {command.agent!r}:\n\n{text}"
    names += mentions_in(arguments)
    missing: list[str] = []
    attached = await files.named(names, missing=missing.extend)
    typed = f"/{command.name} {arguments}".rstrip()
    return ExpandedCommand(
        content=(Text(text=text, typed=typed), *attached),
        options={"model": command.model} if command.model else {},
        name=command.name,
        agent=command.agent,
        missing=tuple(missing),
    )


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        # An apostrophe in plain words (`don't`) is an open quote to shlex.
        return arguments.split()


def _filled(template: str, arguments: str, words: Sequence[str]) -> str:
    """A template with the arguments in it, as they were typed."""
    return _SLOT.sub(lambda slot: _argument(slot, arguments, words), template)


def _argument(slot: re.Match[str], arguments: str, words: Sequence[str]) -> str:
    if slot.group(1) is None:
        return arguments
    number = int(slot.group(1))
    return words[number - 1] if number <= len(words) else ""


def _in_shell(template: str, arguments: str, words: Sequence[str], name: str) -> str:
    """A command line with the arguments in it, each as one word of its own.

    Raises:
        UsageError: an argument that needs quotes would stand inside of quotes, where they would not
            hold.
    """

    def quoted(slot: re.Match[str]) -> str:
        given = list(words) if slot.group(1) is None else [_argument(slot, arguments, words)]
        # Quotes that `shlex.join` adds hold only outside of quotes: inside `'…'` they would end the
        # template's own, and the argument would become code.
        if not _is_quoted_before(template[: slot.start()]):
            return shlex.join(given)
        if all(_PLAIN.fullmatch(word) for word in given):
            return " ".join(given)
        raise UsageError(
            f"/{name}: {slot.group()} stands inside quotes in the shell command "
            f"`{template}`, so only a plain word can go there"
        )

    return _SLOT.sub(quoted, template)


def _is_quoted_before(text: str) -> bool:
    """True when a shell would be inside quotes, or behind a backslash, at the end of this text."""
    quote, escaped = "", False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
    return bool(quote) or escaped
