"""Sessions as files: Markdown to read, JSON and JSON lines to read back.

Only what was said goes in and out.  An import is untrusted: leave that was given, rules and queues do not come along.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from weft.app import HistoryMessage, SessionRecord
from weft.errors import UsageError

FORMATS = ("md", "json", "jsonl")
VERSION = 1
MAX_BYTES = 256 * 1024 * 1024


class Exported(msgspec.Struct, kw_only=True):
    """A session as the file holds it."""

    weft: int
    """Version of the format."""
    id: str = ""
    title: str = ""
    model: str = ""
    project_path: str = ""
    created: float = 0.0
    messages: list[dict[str, Any]] = []


def format_of(path: str | None, given: str | None) -> str:
    """The format that was given, that the file's name says, or Markdown."""
    ending = os.path.splitext(path or "")[1].removeprefix(".").lower()
    return given or (ending if ending in FORMATS else "md")


def export_text(record: SessionRecord, format_: str) -> str:
    """A session in a format."""
    if format_ == "md":
        return _markdown(record)
    messages = [msgspec.to_builtins(message) for message in record.messages]
    row = record.row
    about = Exported(
        weft=VERSION,
        id=row.id,
        title=row.title,
        model=row.model,
        project_path=row.project_path,
        created=row.created,
        messages=messages,
    )
    if format_ == "json":
        return msgspec.json.format(msgspec.json.encode(about), indent=2).decode() + "\n"
    head = {**msgspec.to_builtins(about)}
    del head["messages"]
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in (head, *messages))


def _markdown(record: SessionRecord) -> str:
    row = record.row
    parts = [
        f"# {row.title or row.id}",
        f"Session `{row.id}`, model `{row.model}`, folder `{row.project_path}`.",
    ]
    names: dict[str, str] = {}
    for message in record.messages:
        names |= {call["id"]: call["name"] for call in message.tool_calls}
        parts.append(_section(message, names))
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(message: HistoryMessage, names: dict[str, str]) -> str:
    match message.role:
        case "user":
            return f"## You\n\n{message.content}"
        case "assistant":
            calls = [
                f"Calls `{call['name']}`:\n\n{_fenced(msgspec.json.encode(call['args']).decode(), 'json')}"
                for call in message.tool_calls
            ]
            return "\n\n".join(["## Weft", *filter(None, [message.content]), *calls])
        case "tool":
            name = names.get(message.tool_call_id or "", "tool")
            how = " (failed)" if message.is_error else ""
            return f"Result of `{name}`{how}:\n\n{_fenced(message.content)}"
        case _:
            return f"> {message.content}"


def _fenced(text: str, language: str = "") -> str:
    """In a fence that the text cannot end."""
    longest = run = 0
    for letter in text:
        run = run + 1 if letter == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def write_new(path: str, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        UsageError: it is there, or cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already; give another name") from error
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def read_export(data: bytes, name: str) -> Exported:
    """A session from a file, JSON or JSON lines.

    Raises:
        UsageError: it is neither, or a newer version.
    """
    try:
        head, _, rest = data.partition(b"\n")
        if head.rstrip().endswith(b"}") and rest.strip():
            exported = msgspec.json.decode(head, type=Exported)
            exported.messages = [
                msgspec.json.decode(line) for line in rest.splitlines() if line.strip()
            ]
        else:
            exported = msgspec.json.decode(data, type=Exported)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is no export of a session (json or jsonl): {error}") from error
    if exported.weft > VERSION:
        raise UsageError(f"{name} was written by a newer Weft; update to read it")
    return exported
