"""HTML transcript: one page that needs no other file.

No script, nothing fetched, nothing sent: the page says so itself in a Content-Security-Policy that
allows its own style (by hash) and images that are inside it, and nothing else.  Every word of the
conversation is escaped; tool calls fold with `<details>`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from weft.export.document import (
    TRANSCRIPT,
    ExportDocument,
    ExportedCompaction,
    ExportedNote,
    ExportedResult,
)
from weft.export.markdown_html import to_prose
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
from weft.messages import IMAGE_TYPES, File, Image, Part, Text, Thinking, ToolCall
from weft.sha256 import sha256

FOLDED_OVER: Final = 12_000
"""Characters of a message beyond which it is folded away below its beginning."""


def to_html(document: ExportDocument) -> str:
    """The present line as a page."""
    shown = transcript(document)
    title = escape(plain(shown.title))
    return (
        "<!doctype html>\n"
        f"<!-- {TRANSCRIPT}: for reading. The json and jsonl exports can be imported. -->\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="generator" content="Weft">\n'
        f"<title>{title}</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        '<div class="sheet">\n'
        '<header class="top"><h1 '
        f'dir="auto">{title}</h1>\n<p>{escape(facts_line(shown))}</p></header>\n'
        f"<main>\n{_items(shown.items)}</main>\n"
        '<footer class="foot">Exported from Weft.</footer>\n</div>\n</body>\n</html>\n'
    )


@cache
def _style() -> str:
    return files("weft.export").joinpath("page.css").read_text("utf-8")


def _policy() -> str:
    digest = base64.b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


# --- items -------------------------------------------------------------------------------


def _items(items: Sequence[Item]) -> str:
    """All items; the speaker is named once for answers that follow each other."""
    before: list[Item | None] = [None, *items]
    return "".join(
        _item(item, goes_on=_goes_on(earlier, item))
        for earlier, item in zip(before, items, strict=False)
    )


def _goes_on(earlier: Item | None, item: Item) -> bool:
    """True when this answer follows another one of the same model."""
    return (
        isinstance(earlier, TranscriptEntry)
        and isinstance(item, TranscriptEntry)
        and earlier.node.role == item.node.role == "assistant"
        and earlier.node.model == item.node.model
    )


def _item(item: Item, *, goes_on: bool) -> str:
    match item:
        case ExportedNote(text=text, level=level):
            return f'<p class="note {level}" dir="auto">{escape(plain(text))}</p>\n'
        case ExportedCompaction(summary=summary):
            words = "Older messages were summarized for the model"
            return _details("thought", f"<span>{words}</span>", _prose(summary)) + "\n"
        case TranscriptEntry():
            return _spoken(item, goes_on=goes_on)


def _spoken(item: TranscriptEntry, *, goes_on: bool) -> str:
    body = "\n".join(filter(None, (_part(part, item) for part in item.parts)))
    more = " more" if goes_on else ""
    head = "" if goes_on and not _is_cut(item) else f'<div class="who">{_who(item)}</div>\n'
    return (
        f'<article class="message {item.node.role}{more}" id="{escape(item.node.id)}">\n'
        f"{head}{body}\n</article>\n"
    )


def _is_cut(item: TranscriptEntry) -> bool:
    return bool(item.node.metadata.get("partial"))


def _who(item: TranscriptEntry) -> str:
    words = [f"<b>{speaker(item)}</b>"]
    if item.node.role == "assistant" and item.node.model:
        words.append(f"<span>{escape(plain(item.node.model))}</span>")
    if item.at:
        exact = datetime.fromtimestamp(item.at, UTC).isoformat(timespec="seconds")
        time = f'<time datetime="{exact}">{shown_time(item.at)}</time>'
        words.append(f'<a href="#{escape(item.node.id)}">{time}</a>')
    if _is_cut(item):
        words.append('<span class="cut">cut off</span>')
    return " ".join(words)


def _part(part: Part, item: TranscriptEntry) -> str:
    match part:
        case Text(text=text):
            return _prose(text) if text.strip() else ""
        case Thinking(text=text):
            return _details("thought", "<span>Thinking</span>", _prose(text)) if text else ""
        case Image():
            return _image(part)
        case File(name=name, text=text):
            head = f'<span class="tool">file</span><span class="about">{escape(plain(name))}</span>'
            return _details("call", head, _labelled("Content", text))
        case ToolCall():
            return _call(part, item.results.get(part.call_uid))


def _prose(text: str) -> str:
    """Words; very long ones are folded below their beginning."""
    shown = plain(text)
    if len(shown) <= FOLDED_OVER:
        return f'<div class="prose" dir="auto">{to_prose(shown)}</div>'
    # At a line end, where there is one: each part is parsed by itself, and a cut inside a line
    # could part a link from its end.
    cut = shown.rfind("\n", 0, FOLDED_OVER // 4)
    cut = cut if cut > 0 else FOLDED_OVER // 4
    rest = f"<span>{len(shown) - cut:,} more characters</span>"
    return f'<div class="prose" dir="auto">{to_prose(shown[:cut])}</div>' + _details(
        "call", rest, f'<div class="prose" dir="auto">{to_prose(shown[cut:])}</div>'
    )


def _image(image: Image) -> str:
    name = escape(plain(image.name or image.media_type))
    # Not SVG, which is a program of its own.
    if image.media_type not in IMAGE_TYPES or not image.data:
        return f'<p class="note">[{image.kind}: {name}]</p>'
    source = f"data:{image.media_type};base64,{escape(image.data)}"
    return f'<img class="picture" alt="{name}" src="{source}">'


# --- tool calls --------------------------------------------------------------------------


def _call(call: ToolCall, result: ExportedResult | None) -> str:
    ended = outcome(result)
    head = (
        f'<span class="tool">{escape(plain(call.name))}</span>'
        f'<span class="about">{escape(plain(call_summary(call)))}</span>'
        f'<span class="end{"" if ended == "done" else " bad"}">{ended}</span>'
    )
    return _details("call", head, _call_inside(call, result))


def _call_inside(call: ToolCall, result: ExportedResult | None) -> str:
    diff = diff_of(result.data) if result is not None else ""
    blocks: list[str] = []
    if diff:
        blocks.append(f'<p class="label">Change</p><pre class="change">{_diff(diff)}</pre>')
    elif arguments(call) != "{}" and not _says_all(call):
        blocks.append(_labelled("Arguments", arguments(call)))
    if result is not None and result.text:
        blocks.append(_labelled("Result", result.text))
    if result is not None:
        blocks += [_image(image) for image in result.images]
    return "".join(blocks)


def _says_all(call: ToolCall) -> bool:
    """True when the line above shows the one argument in full."""
    return len(call.args) == 1 and call_summary(call) in map(str, call.args.values())


def _labelled(label: str, text: str) -> str:
    return f'<p class="label">{label}</p><pre>{escape(plain(text))}</pre>'


def _diff(diff: str) -> str:
    return "\n".join(_diff_line(line) for line in plain(diff).split("\n"))


def _diff_line(line: str) -> str:
    kind = {"+": "add", "-": "del", "@": "at"}.get(line[:1])
    if kind is None or line.startswith(("+++", "---")):
        return escape(line)
    return f'<span class="{kind}">{escape(line)}</span>'


def _details(kind: str, head: str, inside: str) -> str:
    return (
        f'<details class="{kind}"><summary>{head}</summary>'
        f'<div class="inside">{inside}</div></details>'
    )
