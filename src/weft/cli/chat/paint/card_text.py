"""The words of tool cards: a verb, what it was done to, and how it ended.

The same for every screen that prints a record: the terminal puts a mark and colours to them, the
plain one makes sentences of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from weft.cli.chat.paint.diff_rows import FileDiff, read_diff
from weft.cli.sanitize import clean, clean_line
from weft.permissions import EDITING_TOOLS
from weft.view import LookupCard, PermissionBlock, ToolCard, count_of

CardEnd: TypeAlias = Literal["done", "failed", "stopped"]

_EDITS = (*EDITING_TOOLS, "notebook_edit")
LOOKUPS = ("read", "list", "find", "grep")
USER_MARKS = {"user_shell": "! ", "user_shell_private": "!! "}
"""Commands that the user typed, by the name that they are recorded under."""
_COMMANDS = ("shell", "check", *USER_MARKS)
_MATCH = re.compile(r"(.+?):\d+:")
_SAID = re.compile(r"^Denied by the user\.(?: They said: (.*))?$", re.DOTALL)
_ENDS = re.compile(r"^\((?:exit code -?\d+|killed by signal \d+|no output|stopped after .*)\)$")


class CardText(NamedTuple):
    """What a card says on its first line, and what stands below."""

    verb: str
    """`Ran`, `Failed:`"""
    target: str
    result: str = ""
    """`exit 3 · 0.1 s`"""
    end: CardEnd = "done"
    path: str = ""
    """The file that it is about, as the tool named it."""
    diff: FileDiff | None = None
    output: tuple[str, ...] = ()
    """Lines that it printed."""
    mark: str = ""
    """Stands in the place of a tool's mark and verb: `! ` for what the user ran."""


def relative(path: str, folder: str) -> str:
    """A path as it is named inside the project."""
    base = folder.rstrip("/")
    if base and path == base:
        return "."
    return path.removeprefix(f"{base}/") if base else path


def card_text(card: ToolCard, folder: str = "") -> CardText:
    """What a card says."""
    said = _card_text(card, folder)
    if (mark := USER_MARKS.get(card.name)) is None:
        return said
    # The user knows what they typed; only that it was stopped is said in words.
    result = f"stopped {said.result}".rstrip() if said.verb == "Stopped:" else said.result
    return said._replace(mark=mark, verb="", result=result)


def _card_text(card: ToolCard, folder: str) -> CardText:
    result = card.result
    if result.status == "denied":
        return _denied(card, folder)
    if result.status in ("aborted", "interrupted"):
        return _stopped(card, folder)
    if card.name in _COMMANDS or "exit_code" in result.data:
        return _command(card)
    if result.is_error:
        target = f"{_plain_name(card)} {_target(card, folder)}".rstrip()
        return CardText("Failed:", target, _took(card), "failed", output=printed_lines(result.text))
    if card.name in _EDITS:
        return _edited(card, folder)
    if card.name == "delete":
        path = _target(card, folder)
        return CardText("Deleted", path, _approval(card), path=path)
    if card.name in LOOKUPS:
        return CardText(*_lookup(card, folder))
    target = _target(card, folder)
    output = printed_lines(result.text)
    if card.name in ("wait_for", "wait"):
        return CardText("Waited", f"for {target}" if target else "", _took(card), output=output)
    name = _plain_name(card)
    return CardText("Used", f"{name} {target}".rstrip(), _took(card), output=output)


def _plain_name(card: ToolCard) -> str:
    return clean_line(card.name)


def _target(card: ToolCard, folder: str) -> str:
    return card_target(card.args, folder)


def card_target(args: dict[str, Any], folder: str = "") -> str:
    """What a call is about: its command, its path, its pattern."""
    # Arguments come from the model and may be anything: what is no text says nothing here.
    for key in ("command", "path", "pattern", "query", "url", "description", "name"):
        value = args.get(key)
        if isinstance(value, str) and value.strip():
            said = clean_line(value)
            return relative(said, folder) if key == "path" else said
    return ""


def shows_diff(block: PermissionBlock) -> bool:
    """Whether what the user is asked about is a change of files.

    By the tool and not by the text alone: a command that looks like a diff would be shown as one,
    and those of its lines that are none would not be seen.
    """
    tool = block.tool.rpartition("▸ ")[2]
    return tool in _EDITS and block.preview.startswith(("--- ", "*** "))


def _edited(card: ToolCard, folder: str) -> CardText:
    path = _target(card, folder) or _patched_files(card, folder)
    diff = card.result.data.get("diff")
    read = read_diff(clean(diff)) if isinstance(diff, str) else None
    # The tool's own words: a stored record has them, and no diff.
    if card.name == "write" and card.result.text.startswith("wrote "):
        lines = count_of(_content_lines(card.args), "line")
        return CardText("Created", path, _joined(lines, _approval(card)), path=path)
    counts = read.counts if read is not None and read.rows else ""
    return CardText("Edited", path, _joined(counts, _approval(card)), path=path, diff=read)


def _patched_files(card: ToolCard, folder: str) -> str:
    """The files of a patch: its arguments name them only inside of it."""
    files = card.result.data.get("files")
    names = [name for name in files if isinstance(name, str)] if isinstance(files, list) else []
    return ", ".join(relative(clean_line(name), folder) for name in names)


def _content_lines(args: dict[str, Any]) -> int:
    content = args.get("content")
    text = content if isinstance(content, str) else ""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _command(card: ToolCard) -> CardText:
    result = card.result
    command = _target(card, "")
    output = printed_lines(result.text)
    while output and (_ENDS.match(output[-1]) or not output[-1]):
        output = output[:-1]
    code = result.data.get("exit_code")
    if result.data.get("timed_out"):
        how = _joined("took too long", _took(card))
        return CardText("Failed:", command, how, "failed", output=output)
    if result.is_error or code:
        how = f"exit {code}" if isinstance(code, int) and code > 0 else ""
        if isinstance(code, int) and code < 0:
            how = f"killed by signal {-code}"
        how = _joined(how, _took(card))
        return CardText("Failed:", command, how, "failed", output=output)
    started = result.data.get("background")
    if isinstance(started, dict):
        return CardText("Started", command, "in the background", output=output[:-1])
    return CardText("Ran", command, _joined(_took(card), _approval(card)), output=output)


def _denied(card: ToolCard, folder: str) -> CardText:
    name = "" if card.name in _COMMANDS else f"{_plain_name(card)} "
    target = f"{name}{_target(card, folder)}".rstrip()
    said = _SAID.match(card.result.text)
    if said is None:
        reason = clean_line(card.result.text).removeprefix("Denied: ").rstrip(".")
        why = f"— {reason}" if reason else ""
    else:
        why = f'— "{clean_line(said[1])}"' if said[1] else ""
    return CardText("Not allowed:", target, why, "stopped")


def _stopped(card: ToolCard, folder: str) -> CardText:
    name = "" if card.name in _COMMANDS else f"{_plain_name(card)} "
    target = f"{name}{_target(card, folder)}".rstrip()
    seconds = duration(card.duration_ms)
    if card.result.status == "interrupted":
        how = "its effect is not known"
    else:
        how = f"after {seconds}" if seconds else ""
    verb = "Interrupted:" if card.result.status == "interrupted" else "Stopped:"
    return CardText(verb, target, how, "stopped", output=printed_lines(card.output))


def _approval(card: ToolCard) -> str:
    if card.was_shown:
        return f"you allowed it{f' in this {card.allowed_for}' if card.allowed_for else ''}"
    return f'allowed by "{clean_line(card.allowed_by)}"' if card.allowed_by else ""


def _took(card: ToolCard) -> str:
    return duration(card.duration_ms)


def duration(milliseconds: int) -> str:
    """`0.8 s`, `42 s`, `3 min 5 s`; nothing for what took no time."""
    seconds = milliseconds / 1000
    if seconds < 0.1:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return long_duration(seconds)


def long_duration(seconds: float) -> str:
    """`42 s`, `3 min 5 s`, `2 h 10 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def printed_lines(text: str) -> tuple[str, ...]:
    """What a program printed, as lines that may be shown."""
    lines = [line.rstrip() for line in clean(text).expandtabs(4).strip("\n").split("\n")]
    return tuple(lines) if any(lines) else ()


# -- reads and searches


class LookupText(NamedTuple):
    """What was looked at, by verb."""

    verb: str
    names: list[str]


def lookup_texts(card: LookupCard, folder: str = "") -> list[LookupText]:
    """What was read and searched, in order; the same verb in a row is said once, and so is a file
    that was read twice.
    """
    texts: list[LookupText] = []
    for each in card.cards:
        verb, name = _lookup(each, folder)
        if not texts or texts[-1].verb != verb:
            texts.append(LookupText(verb, []))
        if name not in texts[-1].names:
            texts[-1].names.append(name)
    return texts


def _lookup(card: ToolCard, folder: str) -> tuple[str, str]:
    path = card.args.get("path")
    place = relative(clean_line(path), folder) if isinstance(path, str) else "."
    pattern = card.args.get("pattern")
    wanted = f'"{clean(pattern)}"' if isinstance(pattern, str) else ""
    wanted = " ".join(wanted.split("\n"))
    below = f" in {place}" if place not in (".", "") else ""
    lines = [line for line in card.result.text.split("\n") if line]
    match card.name:
        case "grep":
            return "Searched", f"{wanted}{below} ({_matches(card, lines)})"
        case "find":
            found = 0 if lines == ["(no file fits)"] else len(lines)
            return "Found", f"{wanted}{below} ({count_of(found, 'file')})"
        case "list":
            return "Listed", place
        case _:
            return "Read", f"{place}{_part_read(card.args)}"


def _part_read(args: dict[str, Any]) -> str:
    """`:10-20` where only a part of the file was asked for."""
    first, count = args.get("offset"), args.get("limit")
    if not isinstance(first, int) or first <= 1:
        return ""
    return f":{first}-{first + count - 1}" if isinstance(count, int) else f":{first}-"


def _matches(card: ToolCard, lines: Sequence[str]) -> str:
    if list(lines) == ["(no match)"]:
        return "no matches"
    if card.args.get("files_only"):
        return count_of(len(lines), "file")
    found = [hit[1] for line in lines if (hit := _MATCH.match(line))]
    if not found:
        return count_of(len(lines), "line")
    more = "more than " if lines[-1].startswith("(more than") else ""
    matches = f"{len(found)} {'match' if len(found) == 1 else 'matches'}"
    return f"{more}{matches} in {count_of(len(set(found)), 'file')}"
