"""Blocks as lines of the record: every kind of block, for one width and one theme."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, assert_never

from weft.cli.chat.paint.answer_flow import MAX_WIDTH, markdown_painter
from weft.cli.chat.paint.card_text import long_duration, shows_diff
from weft.cli.chat.paint.diff_rows import diff_lines, read_diff
from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan, line_of, wrapped
from weft.cli.chat.paint.text_cells import cells
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.paint.tool_cards import agents_lines, lookup_lines, money, tool_lines
from weft.cli.sanitize import clean, clean_line, visible
from weft.events import Todo
from weft.view import (
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
    thousands,
)

PASTED_LINES = 8
"""Of more lines that were pasted, the record shows the first ones."""
SHOWN_PASTED = 3
FOLDED_LETTERS = 1000
"""Of more characters in few lines, too."""
SHOWN_LETTERS = 240
"""Characters of a line that are shown of a text that is folded."""
LONGEST_SHOWN = 3000
"""Characters of a message of few lines that are shown where it is not known what was pasted."""
SHOWN_LAST = 2
"""Lines at the end of a message that are shown where it is not known what was pasted."""
_MARKS = {"quiet": "·", "info": "·", "warning": "!", "error": "✗", "stopped": "■"}
_MARK_STYLES = {"quiet": "quiet", "info": "quiet", "warning": "ask", "error": "bad"}
_MARK_STYLES["stopped"] = "ask"
_BOXES = {"done": "☑", "cancelled": "☒"}


def block_lines(block: AnyBlock, width: int, theme: PaintTheme) -> list[StyledLine]:
    """The lines of a block, without an empty one around them."""
    text_width = min(width, MAX_WIDTH)
    match block:
        case UserBlock():
            return _user(block, text_width)
        case AnswerBlock(text=text):
            return markdown_painter(width, theme).lines(clean(text))
        case ThinkingBlock(seconds=seconds):
            took = f" for {long_duration(seconds)}" if seconds >= 1 else ""
            return [line_of((f"∴ Thought{took} · Ctrl+O", "quiet italic"))]
        case ToolCard():
            return tool_lines(block, width, theme)
        case LookupCard():
            return lookup_lines(block, width, theme)
        case AgentsCard():
            return agents_lines(block, width)
        case TodoBlock(items=items):
            return _todos(items, text_width)
        case TurnEndBlock():
            return wrapped([StyledSpan(turn_end_text(block, width), "quiet")], width)
        case PermissionBlock():
            return preview_lines(block, width, theme)
        case QuestionBlock():
            return _question(block, text_width)
        case PlanBlock(plan=plan):
            return _plan(plan, text_width)
        case NoteBlock():
            return _note(block, text_width)
        case TableBlock(title=title, rows=rows):
            return _table(title, rows, width)
        case _:
            assert_never(block)


def _beside(mark: StyledSpan, spans: Sequence[StyledSpan], width: int) -> list[StyledLine]:
    """A mark, and text that is wrapped beside it."""
    return wrapped(spans, width, first=(mark,), rest=(StyledSpan(" " * cells(mark.text)),))


def _user(block: UserBlock, width: int) -> list[StyledLine]:
    said = _folded_pastes(block) if block.pasted else _folded_middle(_typed(block.text))
    painted = _beside(StyledSpan("› ", "bold you"), said, width)
    if block.attached:
        names = f"+ {', '.join(clean_line(name) for name in block.attached)}"
        painted += _beside(StyledSpan("  "), [StyledSpan(names, "quiet")], width)
    return painted


def _typed(text: str) -> str:
    return clean(text).expandtabs(4).strip("\n")


def _folded_middle(text: str) -> list[StyledSpan]:
    """A message of which is not known what was pasted: the user's words are mostly around it."""
    lines = text.split("\n")
    if len(lines) <= PASTED_LINES:
        return _folded_letters(text)
    left_out = len(lines) - SHOWN_PASTED - SHOWN_LAST
    return [
        StyledSpan("\n".join([*map(_short_line, lines[:SHOWN_PASTED]), ""]), "bold"),
        StyledSpan(f"… {left_out} more lines", "quiet"),
        StyledSpan("\n".join(["", *map(_short_line, lines[-SHOWN_LAST:])]), "bold"),
    ]


def _folded_letters(text: str) -> list[StyledSpan]:
    """A message of few lines, of which one may hold a whole file."""
    if len(text) <= LONGEST_SHOWN:
        return [StyledSpan(text, "bold")]
    first, last = _first_letters(text, SHOWN_LETTERS), text[-SHOWN_LETTERS:].partition(" ")[2]
    left_out = len(text) - len(first) - len(last)
    more = StyledSpan(f" … {left_out:,} more characters … ", "quiet")
    return [StyledSpan(first, "bold"), more, StyledSpan(last, "bold")]


def _first_letters(text: str, count: int) -> str:
    """The beginning of a text, up to a space where there is one."""
    return text[:count].rpartition(" ")[0] or text[:count]


def _short_line(line: str) -> str:
    return line if len(line) <= LONGEST_SHOWN else f"{_first_letters(line, SHOWN_LETTERS)} …"


def _folded_pastes(block: UserBlock) -> list[StyledSpan]:
    """All that was typed, and the first lines of what was pasted."""
    spans: list[StyledSpan] = []
    place = 0
    for first, last in block.pasted:
        _add_typed(spans, block.text[place:first])
        # What is pasted is cleaned by itself: it must not change how typed words are read.
        lines = _typed(block.text[first:last]).split("\n")
        if len(lines) <= PASTED_LINES and last - first > FOLDED_LETTERS:
            shown = _first_letters(" ".join(lines), SHOWN_LETTERS)
            _add_typed(spans, shown)
            spans.append(
                StyledSpan(f" … {last - first - len(shown):,} more pasted characters", "quiet")
            )
        elif len(lines) <= PASTED_LINES:
            _add_typed(spans, block.text[first:last])
        else:
            _add_typed(spans, "\n".join([*map(_short_line, lines[:SHOWN_PASTED]), ""]))
            left_out = len(lines) - SHOWN_PASTED
            spans.append(StyledSpan(f"… {left_out} more pasted lines", "quiet"))
        place = last
    _add_typed(spans, block.text[place:].rstrip("\n"))
    return spans


def _add_typed(spans: list[StyledSpan], text: str) -> None:
    shown = clean(text).expandtabs(4)
    if not spans:
        shown = shown.lstrip("\n")
    elif shown and spans[-1].style == "quiet" and not shown.startswith("\n"):
        # The line that says how much is folded has nothing behind it.
        shown = f"\n{shown}"
    if shown:
        spans.append(StyledSpan(shown, "bold"))


def _todos(items: tuple[Todo, ...], width: int) -> list[StyledLine]:
    lines: list[StyledLine] = []
    for item in items:
        style = "bold" if item.status == "in_progress" else ""
        style = "quiet" if item.status in _BOXES else style
        mark = StyledSpan(f"{_BOXES.get(item.status, '☐')} ", style)
        lines += _beside(mark, [StyledSpan(clean_line(item.text), style)], width)
    return lines


def turn_end_text(block: TurnEndBlock, width: int) -> str:
    """`· 25 s · 10:17 · 4 calls · ↑ 12.3k ↓ 0.4k · $0.03`, in one line: where room is short, the
    time of day goes first and then the tokens.
    """
    clock = datetime.fromtimestamp(block.ended_at).strftime("%H:%M") if block.ended_at else ""
    has_tokens = block.input_tokens or block.output_tokens
    tokens = f"↑ {thousands(block.input_tokens)} ↓ {thousands(block.output_tokens)}"
    parts = [
        long_duration(max(1.0, block.seconds)),
        clock,
        count_of(block.calls, "call") if block.calls else "",
        tokens if has_tokens else "",
        money(block.cost_usd),
    ]
    for place in (1, 3):
        if cells(_with_dots(parts)) > width:
            parts[place] = ""
    return _with_dots(parts)


def _with_dots(parts: list[str]) -> str:
    return f"· {' · '.join(part for part in parts if part)}"


def _question(block: QuestionBlock, width: int) -> list[StyledLine]:
    spans = [StyledSpan(clean(block.text).strip("\n"), "" if block.answer else "bold")]
    if block.answer:
        spans.append(StyledSpan("  → ", "quiet"))
        spans.append(StyledSpan(clean(block.answer).strip("\n"), "bold"))
    return _beside(StyledSpan("? ", "bold you"), spans, width)


def _note(block: NoteBlock, width: int) -> list[StyledLine]:
    """What happened, and below it what to do: wrapped, never cut."""
    level = block.level
    style = {"quiet": "quiet", "stopped": "ask"}.get(level, "")
    mark = StyledSpan(f"{_MARKS[level]} ", _MARK_STYLES[level])
    text, address = _address_below(clean(block.text).strip("\n"))
    lines = _beside(mark, [StyledSpan(text, style)], width)
    if address:
        # In one piece, so that it can be clicked and copied: the terminal breaks it.
        lines.append(StyledLine((StyledSpan(address),), is_code=True))
    if block.advice:
        lines += _beside(StyledSpan("  "), [StyledSpan(clean(block.advice), style)], width)
    return lines


def _address_below(text: str) -> tuple[str, str]:
    """The text, and the address in its last line where that is all that the line has."""
    before, _, last = text.rpartition("\n")
    if before and " " not in last and last.startswith(("http://", "https://")):
        return before, last
    return text, ""


def preview_lines(block: PermissionBlock, width: int, theme: PaintTheme) -> list[StyledLine]:
    """What a user is about to allow: all of it, and nothing in it can hide."""
    preview = block.preview or block.target
    if shows_diff(block):
        shown = read_diff(visible(preview.replace("\t", "    ")))
        lines = diff_lines(shown, width, path=block.target, has_rows=theme.has_rows)
    else:
        indent = (StyledSpan("  "),)
        lines = wrapped([StyledSpan(visible(preview))], width, first=indent, rest=indent)
    if block.reason:
        indent = (StyledSpan("  "),)
        reason = StyledSpan(visible(block.reason), "quiet")
        lines += wrapped([reason], min(width, MAX_WIDTH), first=indent, rest=indent)
    return lines


def _plan(plan: dict[str, Any], width: int) -> list[StyledLine]:
    """All of it: the user has to approve it."""
    summary = visible(str(plan.get("summary", "")))
    lines = _beside(StyledSpan("▌ ", "mode"), [StyledSpan(f"Plan: {summary}", "bold")], width)
    indent = StyledSpan("    ")
    for number, step in enumerate(steps_of(plan), start=1):
        title = StyledSpan(visible(step_title(step)), "bold")
        lines += _beside(StyledSpan(f"{number:>2}. ", "bold"), [title], width)
        boundary = step.get("boundary")
        if isinstance(boundary, dict):
            said = f"lines {_from_one(boundary, 'first')} to {_from_one(boundary, 'last')} only"
            lines += _beside(indent, [StyledSpan(said, "quiet")], width)
        if details := str(step.get("details") or "").strip("\n"):
            lines += _beside(indent, [StyledSpan(visible(details), "quiet")], width)
        if check := step.get("check"):
            lines += _beside(indent, [StyledSpan(f"check: {visible(str(check))}", "code")], width)
    return lines


def _from_one(boundary: dict[str, Any], name: str) -> str:
    """A line's number as people count."""
    number = boundary.get(name)
    return str(number + 1) if isinstance(number, int) else "?"


def _table(title: str, rows: Sequence[tuple[str, ...]], width: int) -> list[StyledLine]:
    lines = [line_of((clean_line(title), "bold you"))] if title else []
    if not rows:
        return lines
    indent = 2 if title else 0
    cleaned = [[clean(cell).strip("\n") for cell in row] for row in rows]
    widths = _table_widths(cleaned, width - indent)
    for row in cleaned:
        columns = [
            wrapped(
                [StyledSpan(_short_bar(cell, widths[place]), "bold" if place == 0 else "")],
                widths[place],
            )
            for place, cell in enumerate(row)
        ]
        for number in range(max(len(column) for column in columns)):
            spans = [StyledSpan(" " * indent)]
            for place, column in enumerate(columns):
                line = column[number] if number < len(column) else StyledLine(())
                spans += line.spans
                spans.append(StyledSpan(" " * (widths[place] - cells(line.text) + 2)))
            lines.append(StyledLine(tuple(spans[:-1])))
    return lines


def _short_bar(cell: str, width: int) -> str:
    """A bar that has no room, shorter; any other cell as it is, to be wrapped."""
    if len(cell) <= width or not set(cell) <= {"█", "░"}:
        return cell
    first, last = cell.find("█"), cell.rfind("█") + 1
    if not last:
        return "░" * width
    begin = min(width - 1, first * width // len(cell))
    end = max(begin + 1, round(last * width / len(cell)))
    return "░" * begin + "█" * (end - begin) + "░" * (width - end)


def _table_widths(rows: list[list[str]], width: int) -> list[int]:
    count = max(len(row) for row in rows)
    widths = [1] * count
    for row in rows:
        for place, cell in enumerate(row):
            widths[place] = max(widths[place], *(cells(line) for line in cell.split("\n")))
    while sum(widths) + 2 * (count - 1) > width and max(widths) > 4:
        widths[widths.index(max(widths))] -= 1
    return widths
