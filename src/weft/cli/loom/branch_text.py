"""Branches as people read them: wrapped and coloured on a terminal, elsewhere as they are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from weft.cli.chat.paint.text_cells import cells, fit, word_wrap
from weft.cli.commands.table import money, print_table
from weft.cli.loom.node_references import short_id
from weft.cli.sanitize import clean, clean_line
from weft.cli.stdio import write, write_line
from weft.loom import LoomNode

NARROW: Final = 60
"""Columns below which lists leave out what is not needed to go on."""
_INDENT: Final = 3
_NAME: Final = 60
_LABEL: Final = 10
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_REMOVED, _ADDED = "\x1b[31;9m", "\x1b[32;4m"
"""Not by colours alone: some cannot tell these two."""


def is_terminal() -> bool:
    """Whether the output is read on a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_coloured() -> bool:
    """Whether the output may have colours."""
    return is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb"


def width() -> int:
    """Of the terminal that the output goes to; 80 where there is none."""
    try:
        return max(20, os.get_terminal_size(1).columns)
    except OSError:
        return 80


def painted(text: str, code: str) -> str:
    """A text of ours with a colour, where there are colours."""
    return f"{code}{text}{_PLAIN}" if is_coloured() else text


def bold(text: str) -> str:
    """What is to be found first."""
    return painted(text, _BOLD)


def dim(text: str) -> str:
    """What is there for those who look for it."""
    return painted(text, _DIM)


def write_painted(line: str) -> None:
    """A line whose foreign text was cleaned: cleaning it again would take its colours."""
    if is_terminal():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    else:
        write_line(line)


def short_model(name: str | None) -> str:
    """A model's name without its provider and path."""
    return (name or "").partition(":")[2].rpartition("/")[2] or name or ""


def one_line(text: str) -> str:
    """A text in one line, fit for a terminal."""
    return clean_line(" ".join(text.split()))


def counted(count: int, what: str = "node") -> str:
    """So many of them."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def tree_name(name: str, text: str) -> str:
    """What a tree is called: by its name, or by the first words of its text."""
    words = one_line(name or text)
    return words if len(words) <= _NAME else f"{words[:_NAME].rpartition(' ')[0]}…"


def node_signs(node: LoomNode) -> str:
    """What is marked at a node, in a few characters."""
    signs = ["★"] * node.bookmarked + ["◐"] * node.partial + ["hidden"] * node.hidden
    if node.rating is not None:
        signs.append(f"{node.rating:+}")
    return " ".join(signs)


def node_data(node: LoomNode) -> dict[str, Any]:
    """A node as JSON shows it."""
    data: dict[str, Any] = msgspec.to_builtins(node)
    if data.get("tokens") is None:
        data.pop("tokens", None)
    return data


def write_branch(number: int, node: LoomNode) -> None:
    """A branch whole, with its number and id."""
    facts = [short_model(node.model)]
    if node.cost_usd:
        facts.append(money(node.cost_usd))
    if node.partial:
        facts.append("broken off")
    if not is_terminal():
        write_line("  ".join([f"{number}", node.id, node.model or "", *facts[1:]]).rstrip())
        write(f"{node.text}\n\n")
        return
    about = "  ".join([short_id(node.id), *map(clean_line, filter(None, facts))])
    write_painted(f"{bold(f'{number}')}  {dim(fit(about, width() - _INDENT))}")
    for row in wrapped(node.text.strip("\n")):
        write_painted(row)
    write_painted("")


def wrapped(text: str) -> list[str]:
    """Foreign text in rows of the terminal, indented."""
    room = max(20, width() - _INDENT - 1)
    rows = word_wrap(clean(text).expandtabs(4), room)
    return [f"{'':{_INDENT}}{row.strip()}".rstrip() for row in rows]


def write_fact(label: str, text: str) -> None:
    """A line that says one thing; in rows of the terminal where it is longer."""
    rows = [text]
    if is_terminal():
        rows = word_wrap(clean_line(text), max(10, width() - _LABEL - 1))
    for place, row in enumerate(rows):
        write_line(f"{label if not place else '':{_LABEL}}{row}".rstrip())


def write_rows(
    rows: Sequence[Sequence[str]], head: Sequence[str], *, narrow: Sequence[int]
) -> None:
    """A table whose last column is cut to fit; in a narrow window only the columns `narrow`, and
    never one that is empty.
    """
    is_narrow = is_terminal() and width() < NARROW
    shown = [
        place
        for place in (narrow if is_narrow else range(len(head)))
        if any(row[place] for row in rows)
    ]
    print_table([[row[at] for at in shown] for row in rows], head=[head[at] for at in shown])


def diff_text(parts: Sequence[tuple[str, str, str]]) -> str:
    """Two texts in one: coloured, or with the marks of `wdiff`; on a terminal in rows."""
    pieces: list[tuple[str, str]] = []
    for kind, first, second in _joined(parts):
        if kind == "same":
            pieces.append((first, ""))
            continue
        if first:
            pieces.append((first, _REMOVED) if is_coloured() else (f"[-{first}-]", ""))
        if second:
            pieces.append((second, _ADDED) if is_coloured() else (f"{{+{second}+}}", ""))
    if not is_terminal():
        return "".join(text for text, _ in pieces)
    return _in_rows([(clean(text).expandtabs(4), code) for text, code in pieces], width() - 1)


def _in_rows(pieces: Sequence[tuple[str, str]], room: int) -> str:
    """Painted pieces broken between their words."""
    shown: list[str] = []
    used = 0
    for text, code in pieces:
        for word in re.findall(r"\n|[^\S\n]+|\S+", text):
            length = cells(word)
            if word == "\n" or (used and used + length > room):
                shown.append("\n")
                used = 0
            # A blank at which a row ends is not seen, and would begin the next.
            if word == "\n" or (word.isspace() and not used and shown):
                continue
            shown.append(f"{code}{word}{_PLAIN}" if code else word)
            used += length
    return "".join(shown)


def _joined(parts: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The parts with neighbours in one: where two words differ, so does the blank between them."""
    found: list[tuple[str, str, str]] = []
    for place, (kind, first, second) in enumerate(parts):
        is_blank = 0 < place < len(parts) - 1 and kind == "same" and first in (" ", "  ")
        if found and found[-1][0] == "changed" and (kind == "changed" or is_blank):
            _, before, behind = found.pop()
            found.append(("changed", before + first, behind + second))
        else:
            found.append((kind, first, second))
    return found


def tail(text: str, room: int) -> str:
    """The end of a text in one line, as much as fits."""
    line = one_line(text)
    if cells(line) <= room:
        return line
    kept = line[-room:]
    while cells(kept) > room - 1:
        kept = kept[1:]
    return f"…{kept}"
