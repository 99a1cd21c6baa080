"""Markdown transcript of a conversation."""

from __future__ import annotations

import re
from typing import Final

from weft.export.document import (
    TRANSCRIPT,
    ExportDocument,
    ExportedCompaction,
    ExportedNote,
    ExportedResult,
)
from weft.export.transcript import (
    Item,
    TranscriptEntry,
    arguments,
    call_summary,
    diff_of,
    facts_line,
    outcome,
    plain,
    shown_time,
    speaker,
    transcript,
)
from weft.messages import File, Image, Part, Text, Thinking, ToolCall

SHOWN: Final = 4_000
"""Characters of a result that are shown; the json export has all of it."""

_TICKS = re.compile(r"`+")


def to_md(document: ExportDocument) -> str:
    """The present line as Markdown."""
    shown = transcript(document)
    blocks = [
        f"<!-- {TRANSCRIPT}: for reading. The json and jsonl exports can be imported. -->",
        f"# {_inline(shown.title)}",
        _inline(facts_line(shown)),
    ]
    for item in shown.items:
        blocks += _item(item)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _item(item: Item) -> list[str]:
    match item:
        case ExportedNote(text=text, level=level):
            return [_quoted(f"**{level.capitalize()}:** {plain(text)}")]
        case ExportedCompaction(summary=summary):
            head = "**Older messages were summarized for the model:**\n\n"
            return ["---", _quoted(head + plain(summary)), "---"]
        case TranscriptEntry():
            return _spoken(item)


def _spoken(item: TranscriptEntry) -> list[str]:
    who = f"**{speaker(item)}**"
    about = [item.node.model if item.node.role == "assistant" else "", shown_time(item.at)]
    if item.node.metadata.get("partial"):
        about.append("cut off")
    head = " · ".join([f"## {who}", *(_inline(word) for word in about if word)])
    return [head, *(block for part in item.parts for block in _part(part, item))]


def _part(part: Part, item: TranscriptEntry) -> list[str]:
    match part:
        case Text(text=text):
            return [plain(text).strip("\n")]
        case Thinking(text=text):
            return [_quoted(f"*Thinking:* {plain(text)}")] if text else []
        case Image(name=name, media_type=media_type):
            return [f"*[{part.kind}: {_inline(name or media_type)}]*"]
        case File(name=name, text=text):
            return [f"*[file: {_inline(name)}]*", _fenced(text)]
        case ToolCall():
            return _call(part, item.results.get(part.call_uid))


def _call(call: ToolCall, result: ExportedResult | None) -> list[str]:
    head = f"**{_inline(call.name)}** {_code(call_summary(call))} *({outcome(result)})*"
    diff = diff_of(result.data) if result is not None else ""
    blocks = [head]
    if diff:
        return [*blocks, _fenced(diff, "diff")]
    if len(call.args) > 1 or call.raw_args:
        blocks.append(_fenced(arguments(call), "json"))
    if result is not None and result.text:
        blocks.append(_fenced(result.text))
    return blocks


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _inline(text: str) -> str:
    """Text that stays on its line and starts no markup."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(plain(text).split()))


def _code(text: str) -> str:
    shown = plain(text)
    if not shown:
        return ""
    # Longer than any run inside, as CommonMark has it; backslashes do not work in code.
    ticks = "`" * (_longest_ticks(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _fenced(text: str, language: str = "") -> str:
    """A code block that its own content cannot end."""
    shown = plain(text).rstrip("\n")
    left_out = len(shown) - SHOWN
    if left_out > 0:
        shown = f"{shown[:SHOWN]}\n[… {left_out} more characters]"
    fence = "`" * max(3, _longest_ticks(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _longest_ticks(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
