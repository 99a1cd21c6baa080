"""Blocks in words, for screen readers and simple terminals: no marks, no rules, nothing redrawn.

A sentence for each thing; a table is read row by row with its headings, a change line by line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, assert_never

from weft.cli.chat.paint.card_text import (
    CardText,
    card_text,
    long_duration,
    lookup_texts,
    shows_diff,
)
from weft.cli.chat.paint.diff_rows import FileDiff, read_diff
from weft.cli.chat.paint.full_lines import source_text
from weft.cli.chat.paint.markdown_inline import inline_text
from weft.cli.chat.paint.markdown_parts import (
    MarkdownPart,
    cells_of,
    markdown_parts,
    source_lines,
)
from weft.cli.chat.paint.text_cells import word_wrap
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.paint.tool_cards import FAILED_LINES, FIRST_LINES, LAST_LINES, money
from weft.cli.sanitize import clean, clean_line, visible
from weft.view import (
    SUCCESSFUL,
    AgentsCard,
    AnswerBlock,
    AnyBlock,
    LookupCard,
    NoteBlock,
    PermissionBlock,
    PlanBlock,
    QuestionBlock,
    TableBlock,
    ThinkingBlock,
    TodoBlock,
    ToolCard,
    TurnEndBlock,
    UserBlock,
    count_of,
    step_title,
    steps_of,
)

DIFF_LINES = 40
_STATES = {
    "pending": "To do",
    "in_progress": "Doing",
    "done": "Done",
    "cancelled": "Left out",
}
_BAR = "█░"
"""A bar only repeats a number."""
_CODE = re.compile(r"(?:^|\s)Code(?:, \S+)?:$")
"""The line before code."""
_EXACT = ("Removed line ", "Added line ", "Command: ")
_LEVELS = {"error": "Error: ", "warning": "Warning: "}


def plain_lines(block: AnyBlock, folder: str = "") -> list[str]:
    """A block as lines of plain words."""
    match block:
        case UserBlock(text=text, attached=attached):
            more = [f"Attached: {', '.join(clean_line(each) for each in attached)}."]
            return [f"You: {clean(text).strip()}", *(more if attached else [])]
        case AnswerBlock(text=text):
            return ["Weft:", *markdown_words(clean(text))]
        case ThinkingBlock(seconds=seconds):
            return [f"Thought for {long_duration(seconds)}." if seconds >= 1 else "Thought."]
        case ToolCard():
            return _card(card_text(block, folder))
        case LookupCard():
            said = [f"{each.verb} {', '.join(each.names)}" for each in lookup_texts(block, folder)]
            return [f"{each}." for each in said]
        case AgentsCard():
            return _agents(block)
        case TodoBlock(items=items):
            return [f"{_STATES[item.status]}: {clean_line(item.text)}" for item in items]
        case TurnEndBlock():
            return [_turn_end(block)]
        case PermissionBlock():
            return _preview(block)
        case QuestionBlock(text=text, answer=answer):
            asked = f"Question: {clean(text).strip()}"
            return [f"{asked} Answer: {clean(answer).strip()}" if answer else asked]
        case PlanBlock(plan=plan):
            return _plan(plan)
        case NoteBlock(text=text, level=level, advice=advice):
            return [f"{_LEVELS.get(level, '')}{clean(text)}", *([clean(advice)] if advice else [])]
        case TableBlock(title=title, rows=rows):
            return _table(title, rows)
        case _:
            assert_never(block)


def wrapped_words(lines: Sequence[str], width: int) -> list[str]:
    """Lines cut between their words, as rows of a window.  Code, changes and commands stay as they
    are: what is copied, or allowed, must be what it is.
    """
    rows: list[str] = []
    for number, line in enumerate(lines):
        is_code = number > 0 and _CODE.search(lines[number - 1])
        rows += [line] if is_code or line.startswith(_EXACT) else word_wrap(line, width)
    return rows


def whole_plain_lines(block: AnyBlock, folder: str = "") -> list[str]:
    """A block as lines of plain words, with all that it printed or changed."""
    head = plain_lines(block, folder)
    if not isinstance(block, ToolCard):
        return head
    changed = card_text(block, folder).diff
    if changed is not None and changed.rows:
        return [*head[:1], *_changed(changed)]
    return [*head[:1], *source_text(block, PaintTheme(folder=folder)).split("\n")]


def _card(said: CardText) -> list[str]:
    counts = said.diff
    if counts is not None and counts.rows:
        added = f"{count_of(counts.added, 'line')} added, {counts.removed} removed"
        how = f", {said.result.partition(' · ')[2]}" if " · " in said.result else ""
        # Lines that were read out with the question are not read out again.
        lines = [] if "you allowed it" in how else _changed(counts, DIFF_LINES)
        return [f"{said.verb} {said.target}, {added}{how}.", *lines]
    how = said.result.replace(" · ", ", ")
    joint = " " if how.startswith("—") else ", "
    verb = "You ran" if said.mark else said.verb
    return [f"{verb} {said.target}{joint if how else ''}{how}.", *_printed(said)]


def _printed(said: CardText) -> list[str]:
    lines = said.output
    if said.end != "done":
        return [*_left_out(len(lines) - FAILED_LINES, "earlier"), *lines[-FAILED_LINES:]]
    if len(lines) <= FIRST_LINES + LAST_LINES + 1:
        return list(lines)
    left_out = _left_out(len(lines) - FIRST_LINES - LAST_LINES, "more")
    return [*lines[:FIRST_LINES], *left_out, *lines[-LAST_LINES:]]


def _left_out(count: int, which: str) -> list[str]:
    return [f"{count} {which} {'line' if count == 1 else 'lines'} not shown."] if count > 0 else []


def _changed(diff: FileDiff, limit: int | None = None) -> list[str]:
    """A change line by line; unchanged lines are not read out."""
    rows = [row for row in diff.rows if row.kind in ("removed", "added", "file")]
    shown = rows if limit is None else rows[:limit]
    words = {"removed": "Removed", "added": "Added"}
    removed, added = ({row.text.strip() for row in rows if row.kind == kind} for kind in words)
    lines = [
        f"File {row.text}:"
        if row.kind == "file"
        else f"{words[row.kind]} line {row.number}"
        f"{_spaces(row.text) if row.text.strip() in removed & added else ''}: {row.text.strip()}"
        for row in shown
    ]
    return [*lines, *_left_out(len(rows) - len(shown) + diff.left_out, "more")]


def _spaces(text: str) -> str:
    """What cannot be heard of a line that differs from another in nothing else."""
    indent, end = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
    behind = f", with {end} spaces at its end" if end and text.strip() else ""
    return f", indented by {indent}{behind}"


def _preview(block: PermissionBlock) -> list[str]:
    """All of what is about to happen."""
    preview = block.preview or block.target
    lines = (
        _changed(read_diff(visible(preview.replace("\t", "    "))))
        if shows_diff(block)
        else [f"Command: {visible(preview)}"]
    )
    return [*lines, *([visible(block.reason)] if block.reason else [])]


def _agents(block: AgentsCard) -> list[str]:
    lines = [f"{count_of(len(block.agents), 'agent')} ended."]
    for agent in block.agents:
        title = clean_line(agent.title) or clean_line(agent.name)
        said = clean_line(agent.text) if agent.reason in SUCCESSFUL else agent.reason
        lines.append(f"{title}, {count_of(agent.calls, 'call')}: {said}")
    return lines


def _turn_end(block: TurnEndBlock) -> str:
    parts = [f"Done in {long_duration(max(1.0, block.seconds))}"]
    if block.calls:
        parts.append(count_of(block.calls, "call"))
    if cost := money(block.cost_usd):
        parts.append(cost)
    return f"{', '.join(parts)}."


def _plan(plan: dict[str, Any]) -> list[str]:
    lines = [f"Plan: {visible(str(plan.get('summary', '')))}"]
    for number, step in enumerate(steps_of(plan), start=1):
        lines.append(f"Step {number}: {visible(step_title(step))}")
        boundary = step.get("boundary")
        if isinstance(boundary, dict):
            first, last = boundary.get("first"), boundary.get("last")
            if isinstance(first, int) and isinstance(last, int):
                lines.append(f"Only lines {first + 1} to {last + 1}.")
        if details := str(step.get("details") or "").strip("\n"):
            lines.append(visible(details))
        if check := step.get("check"):
            lines.append(f"Check: {visible(str(check))}")
    return lines


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [f"{clean_line(title)}:"] if title else []
    cleaned = [[clean(cell).strip("\n") for cell in row] for row in rows]
    # A row of headings has nothing in front; each value is read with its own.
    heads = cleaned[0][1:] if cleaned and not cleaned[0][0] and len(cleaned[0]) > 2 else []
    for first, *rest in cleaned[1:] if heads else cleaned:
        if heads:
            rest = [f"{head} {cell}" for head, cell in zip(heads, rest, strict=False) if cell]
        said = ", ".join(cell for cell in rest if cell and cell.strip(_BAR))
        lines.append(f"{first}: {said}" if said and first else said or first)
    return [line for line in lines if line]


# -- answers


def markdown_words(text: str) -> list[str]:
    """Markdown as lines of words: no marks, code as it is, tables row by row."""
    return [line for part in markdown_parts(source_lines(text)) for line in _part_words(part)]


def _part_words(part: MarkdownPart) -> list[str]:
    inside = "\n".join(line.text for line in part.lines)
    match part.kind:
        case "code":
            name = part.mark.split()[0] if part.mark.split() else ""
            return [f"Code{f', {name}' if name else ''}:", inside, "End of code."]
        case "table":
            return _table_words(part)
        case "rule":
            return []
        case "item":
            mark = "" if part.mark in "-*+" else f"{part.mark} "
            words = markdown_words(inside)
            return [f"{mark}{words[0]}", *words[1:]] if words else []
        case "quote":
            return ["Quote:", *markdown_words(inside)]
        case "heading":
            return [f"Heading: {_inline(inside)}"]
        case _:
            return [_inline(inside)]


def _inline(text: str) -> str:
    return "".join(span.text for span in inline_text(text).spans)


def _table_words(part: MarkdownPart) -> list[str]:
    head, _, *body = [cells_of(line.text) for line in part.lines]
    return [
        f"Row {number}: "
        + ", ".join(
            f"{_inline(name)} {_inline(cell)}" for name, cell in zip(head, row, strict=False)
        )
        + "."
        for number, row in enumerate(body, start=1)
    ]
