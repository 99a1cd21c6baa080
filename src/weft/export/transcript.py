"""Transcript: the present line of a conversation in reading order, which both formats (Markdown,
HTML) are made from.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

from weft.export.document import (
    ExportDocument,
    ExportedCompaction,
    ExportedNode,
    ExportedNote,
    ExportedResult,
)
from weft.ids import CallUid, NodeId
from weft.messages import Part, ToolCall, Usage

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_SUMMARY_KEYS = ("command", "pattern", "query", "url", "path", "name")
_SUMMARY_LENGTH = 100


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What was said at one node, with the results of its calls."""

    node: ExportedNode
    parts: tuple[Part, ...]
    at: float
    results: dict[CallUid, ExportedResult]


Item: TypeAlias = TranscriptEntry | ExportedNote | ExportedCompaction


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in reading order."""

    title: str
    model: str
    created: float
    items: tuple[Item, ...]
    usage: Usage | None
    """Of the line, where it is known."""


def transcript(document: ExportDocument) -> Transcript:
    """The line that ends at the head: messages, the system's lines behind the message they
    followed, and where it was compacted.
    """
    behind: dict[NodeId | None, list[Item]] = {}
    for note in document.notes:
        behind.setdefault(note.node, []).append(note)
    for each in document.compactions:
        behind.setdefault(each.upto, []).append(each)
    items: list[Item] = behind.get(None, [])
    line = _line(document)
    for node in line:
        newest = node.revisions[-1]
        items.append(
            TranscriptEntry(
                node=node,
                parts=newest.parts,
                at=newest.at,
                results={result.call_uid: result for result in node.results},
            )
        )
        items += behind.get(node.id, ())
    return Transcript(
        title=document.session.title or "Conversation",
        model=document.session.model,
        created=document.session.created,
        items=tuple(items),
        usage=_usage(line),
    )


def _line(document: ExportDocument) -> list[ExportedNode]:
    nodes = {node.id: node for node in document.nodes}
    found: list[ExportedNode] = []
    seen: set[NodeId] = set()
    node = nodes.get(document.head) if document.head is not None else None
    # A document may come from a file: parents that form a circle must not hang the export.
    while node is not None and node.id not in seen:
        seen.add(node.id)
        found.append(node)
        node = nodes.get(node.parent) if node.parent is not None else None
    return list(reversed(found))


def _usage(line: list[ExportedNode]) -> Usage | None:
    total: Usage | None = None
    for node in line:
        if node.usage is not None:
            total = node.usage if total is None else total + node.usage
    return total


# --- words -------------------------------------------------------------------------------


def shown_time(at: float) -> str:
    """A time for people: the same wherever it is read."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC" if at else ""


def facts_line(shown: Transcript) -> str:
    """Model, date, size and cost in one line."""
    spoken = sum(isinstance(item, TranscriptEntry) for item in shown.items)
    calls = sum(len(item.results) for item in shown.items if isinstance(item, TranscriptEntry))
    words = [shown.model, shown_time(shown.created), _counted(spoken, "message")]
    if calls:
        words.append(_counted(calls, "tool call"))
    if shown.usage is not None:
        words.append(f"{shown.usage.total_tokens:,} tokens")
        if shown.usage.cost_usd:
            words.append(f"${shown.usage.cost_usd:.4f}")
    return " · ".join(word for word in words if word)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def speaker(item: TranscriptEntry) -> str:
    """Who speaks."""
    return {"user": "You", "assistant": "Assistant", "system": "System"}[item.node.role]


def call_summary(call: ToolCall) -> str:
    """What a call works on, in a few words."""
    for key in _SUMMARY_KEYS:
        if isinstance(value := call.args.get(key), str):
            return _one_line(value)
    return _one_line(arguments(call)) if call.args or call.raw_args else ""


def _one_line(text: str) -> str:
    # Cut before it is split: an argument may be a whole file.
    joined = " ".join(text[: _SUMMARY_LENGTH * 4].split())
    return joined if len(joined) <= _SUMMARY_LENGTH else joined[:_SUMMARY_LENGTH] + "…"


def arguments(call: ToolCall) -> str:
    """The arguments as readable JSON, or as the model sent them where they were none."""
    if call.raw_args:
        return call.raw_args
    return msgspec.json.format(msgspec.json.encode(call.args), indent=2).decode()


def diff_of(data: dict[str, Any]) -> str:
    """The diff that a tool showed; empty where there is none."""
    diff = data.get("diff")
    return diff if isinstance(diff, str) else ""


def outcome(result: ExportedResult | None) -> str:
    """How a call ended, in one word."""
    if result is None:
        return "no result"
    if result.status != "done":
        return result.status
    return "failed" if result.is_error else "done"


def plain(text: str) -> str:
    """Text without terminal codes, and with everything that could hide or reorder it made
    visible.
    """
    return _HIDDEN.sub(_visible, _ANSI.sub("", text).replace("\r\n", "\n"))


def _visible(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return f"⟨U+{code:04X}⟩"
