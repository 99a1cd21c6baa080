"""The Markdown that models write, as HTML that can do nothing.

Understands what answers are made of (paragraphs, headings, lists, code, tables, quotes, emphasis, links) and shows everything else as it
is.  Every character of the text is escaped here; the only tags and attributes that come out are the ones written in this file, and a
link leads to `http`, `https` or nowhere.  Nothing is fetched: a picture is shown as its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Final

DEEPEST: Final = 6
"""Quotes and lists inside each other; what is deeper is shown as plain text."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,30}).*")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_RULE = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*")
_QUOTE = re.compile(r" {0,3}> ?")
_BULLET = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])\s+(?=\S)")
_DIVIDER = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")

# Every repetition is bounded, so that no text takes longer than its length allows.
_INLINE = re.compile(
    r"(?P<ticks>`{1,8})(?!`)(?P<code>.{1,1000}?)(?<!`)(?P=ticks)(?!`)"
    r"|!\[(?P<alt>[^\[\]\n]{0,300})\]\([^\s()]{0,2000}\)"
    r"|\[(?P<label>[^\[\]\n]{1,300})\]\((?P<href>https?://[^\s()<>\"]{1,2000})\)"
    r"|(?P<url>https?://[^\s<>\"'`)\]]{1,2000})"
    r"|\*\*(?=\S)(?P<bold>.{1,1000}?)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<star>[^*]{1,500}?)(?<=\S)\*(?![\w*])"
    r"|(?<![\w_])_(?=[^\s_])(?P<line>[^_]{1,500}?)(?<=\S)_(?![\w_])"
    r"|~~(?=\S)(?P<gone>.{1,500}?)(?<=\S)~~",
    re.DOTALL,
)


def to_prose(text: str) -> str:
    """The text as HTML."""
    return _blocks(text.split("\n"), 0)


# --- blocks ------------------------------------------------------------------------------


def _blocks(lines: list[str], depth: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        html, at = _block(lines, at, depth)
        out.append(html)
    return "\n".join(out)


def _block(lines: list[str], at: int, depth: int) -> tuple[str, int]:
    """The block that begins at this line, and the line after it."""
    line = lines[at]
    if fence := _FENCE.fullmatch(line):
        return _code_block(lines, at, fence.group(1))
    if heading := _HEADING.fullmatch(line):
        level = min(6, len(heading.group(1)) + 2)
        return f"<h{level}>{_inline(heading.group(2))}</h{level}>", at + 1
    if _RULE.fullmatch(line):
        return "<hr>", at + 1
    if depth < DEEPEST and _QUOTE.match(line):
        quoted, end = _while(lines, at, lambda each: bool(_QUOTE.match(each)))
        inner = _blocks([_QUOTE.sub("", each, count=1) for each in quoted], depth + 1)
        return f"<blockquote>{inner}</blockquote>", end
    if depth < DEEPEST and _BULLET.match(line):
        return _list(lines, at, depth)
    if "|" in line and at + 1 < len(lines) and _is_divider(lines[at + 1]):
        return _table(lines, at)
    return _paragraph(lines, at)


def _while(lines: list[str], at: int, holds: Callable[[str], bool]) -> tuple[list[str], int]:
    end = at
    while end < len(lines) and holds(lines[end]):
        end += 1
    return lines[at:end], end


def _code_block(lines: list[str], at: int, fence: str) -> tuple[str, int]:
    """Up to the closing fence, or the end of the text."""
    end = at + 1
    while end < len(lines):
        closing = lines[end].strip()
        if closing.startswith(fence) and not closing.strip(fence[0]):
            break
        end += 1
    body = "\n".join(lines[at + 1 : end])
    return f"<pre><code>{escape(body)}</code></pre>", end + 1


def _list(lines: list[str], at: int, depth: int) -> tuple[str, int]:
    """All items of one kind at this depth; what is indented below an item belongs to it."""
    first = _BULLET.match(lines[at])
    assert first is not None
    indent, ordered = len(first.group(1)), first.group(2)[0].isdigit()
    items: list[list[str]] = []
    while at < len(lines):
        bullet = _BULLET.match(lines[at])
        if bullet and len(bullet.group(1)) <= indent + 1:
            if bullet.group(2)[0].isdigit() != ordered or len(bullet.group(1)) < indent:
                break
            width = bullet.end()
            items.append([lines[at][width:]])
        elif _goes_on(lines, at, indent):
            items[-1].append(_outdented(lines[at], width))
        else:
            break
        at += 1
    tag = "ol" if ordered else "ul"
    start = first.group(2)[:-1]
    number = f' start="{start}"' if ordered and start != "1" else ""
    body = "".join(f"<li>{_item(item, depth)}</li>" for item in items)
    return f"<{tag}{number}>{body}</{tag}>", at


def _goes_on(lines: list[str], at: int, indent: int) -> bool:
    """True when this line belongs to the item above it: indented, or blank before such a one."""
    if lines[at].strip():
        return len(lines[at]) - len(lines[at].lstrip()) > indent
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return bool(following.strip()) and len(following) - len(following.lstrip()) > indent


def _outdented(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip())) :]


def _item(lines: list[str], depth: int) -> str:
    """An item: just its words, where it is one paragraph."""
    if all(line.strip() and not _starts_block(line) for line in lines[1:]):
        return _lines(lines)
    return _blocks(lines, depth + 1)


def _is_divider(line: str) -> bool:
    return len(line) <= 1_000 and "-" in line and "|" in line and bool(_DIVIDER.fullmatch(line))


def _table(lines: list[str], at: int) -> tuple[str, int]:
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in _cells(lines[at]))
    rows, end = _while(lines, at + 2, lambda each: "|" in each)
    body = "".join(
        "<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in _cells(row)) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>', end


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _paragraph(lines: list[str], at: int) -> tuple[str, int]:
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _starts_block(lines[end]):
        end += 1
    return f"<p>{_lines(lines[at:end])}</p>", end


def _starts_block(line: str) -> bool:
    return any(
        pattern.match(line) is not None for pattern in (_FENCE, _HEADING, _QUOTE, _BULLET)
    ) or bool(_RULE.fullmatch(line))


def _lines(lines: list[str]) -> str:
    return _inline("\n".join(line.strip() for line in lines)).replace("\n", "<br>\n")


# --- inline ------------------------------------------------------------------------------


def _inline(text: str, depth: int = 0) -> str:
    out: list[str] = []
    at = 0
    for found in _INLINE.finditer(text):
        out += [escape(text[at : found.start()]), _span(found, depth)]
        at = found.end()
    out.append(escape(text[at:]))
    return "".join(out)


def _span(found: re.Match[str], depth: int) -> str:
    if found["code"] is not None:
        return f"<code>{escape(found['code'].strip() or found['code'])}</code>"
    if found["alt"] is not None:
        return f"<em>[image: {escape(found['alt'])}]</em>"
    if found["href"] is not None:
        return _link(found["href"], _inner(found["label"], depth))
    if found["url"] is not None:
        url = found["url"].rstrip(".,;:!?")
        return _link(url, escape(url)) + escape(found["url"][len(url) :])
    for group, tag in (("bold", "strong"), ("star", "em"), ("line", "em"), ("gone", "del")):
        if found[group] is not None:
            return f"<{tag}>{_inner(found[group], depth)}</{tag}>"
    return escape(found.group())


def _inner(text: str, depth: int) -> str:
    """The words inside emphasis or a link; no link inside a link, and no endless nesting."""
    return _inline(text, depth + 1) if depth < 3 and "://" not in text else escape(text)


def _link(url: str, words: str) -> str:
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{words}</a>'
