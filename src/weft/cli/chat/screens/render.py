"""Blocks to text for a terminal: the one place where foreign words meet escape sequences.

Everything foreign goes through `sanitize` first, so that every escape sequence in the result is
ours.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, assert_never

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text
from rich.theme import Theme

from weft.cli.sanitize import clean, clean_line, visible
from weft.view import (
    AnswerBlock,
    AnyBlock,
    NoteBlock,
    PermissionBlock,
    PlanBlock,
    QuestionBlock,
    TableBlock,
    ThinkingBlock,
    ToolCard,
    UserBlock,
    describe_call,
    step_title,
    steps_of,
)

MAX_WIDTH = 120
OUTPUT_LINES = 8
"""Lines of a tool's output that are shown."""
DIFF_LINES = 60
"""Lines of a change that was made which are shown; one that is asked about is shown whole."""

_THEME = Theme({"markdown.code": "bold cyan", "markdown.block_quote": "dim"})
_LEVELS = {"quiet": "dim", "info": "cyan", "warning": "yellow", "error": "red"}
_MARKS = {"quiet": "·", "info": "·", "warning": "!", "error": "✗"}


class BlockRenderer:
    """Paints for one kind of terminal."""

    def __init__(
        self, *, width: int, styled: bool = True, coloured: bool = True, unicode: bool = True
    ) -> None:
        self._width = max(20, min(width, MAX_WIDTH))
        self._styled = styled
        self._coloured = coloured
        self._unicode = unicode

    def paint(self, block: AnyBlock) -> str:
        """The block as text that may be written to the terminal, an empty line before it."""
        shown = self._render(_drawn(block)).strip("\n")
        gap = "" if isinstance(block, NoteBlock | ToolCard | ThinkingBlock) else "\n"
        return f"{gap}{shown}\n" if shown else ""

    def _render(self, drawn: RenderableType) -> str:
        # Rich must not interpret anything in foreign text: no markup (`[red]`), no emoji codes, no
        # guessed highlighting.
        console = Console(
            file=io.StringIO(),
            width=self._width,
            force_terminal=self._styled,
            color_system="standard" if self._styled else None,
            no_color=not self._coloured,
            theme=_THEME,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        console.print(drawn)
        assert isinstance(console.file, io.StringIO)
        # Rich pads lines to the full width; copied from the terminal, they would end in spaces.
        shown = "\n".join(line.rstrip() for line in console.file.getvalue().split("\n"))
        return shown if self._unicode else _ascii(shown)


def _drawn(block: AnyBlock) -> RenderableType:
    match block:
        case UserBlock(text=text, attached=attached):
            return _user(text, attached)
        case AnswerBlock(text=text):
            return _Markdown(clean(text).strip("\n"))
        case ThinkingBlock(text=text):
            return Text(f"∴ {_cut(clean_line(text), 200)}", "dim italic")
        case ToolCard():
            return _card(block)
        case PermissionBlock():
            return _permission(block)
        case QuestionBlock(text=text):
            return _Beside(Text("? ", "bold yellow"), Text(clean(text).strip("\n"), "bold"))
        case PlanBlock(plan=plan):
            return _plan(plan)
        case NoteBlock(text=text, level=level):
            return _Beside(
                Text(f"{_MARKS[level]} ", _LEVELS[level]), Text(clean(text), _LEVELS[level])
            )
        case TableBlock(title=title, rows=rows):
            return _table(title, rows)
        case _:
            assert_never(block)


def _user(text: str, attached: tuple[str, ...]) -> RenderableType:
    said = Text(clean(text).strip("\n"), "bold")
    if attached:
        said.append(f"\n+ {', '.join(clean_line(name) for name in attached)}", "dim")
    return _Beside(Text("› ", "bold cyan"), said)


def _card(card: ToolCard) -> RenderableType:
    result = card.result
    colour = "red" if result.is_error else "green"
    if result.status in ("denied", "aborted", "interrupted"):
        colour = "yellow"
    head = Text(_head(card))
    if how := _how_it_ended(card):
        head.append(f"  {how}", "dim")
    body = _body(card)
    line = _Beside(Text("● ", colour), head)
    return line if body is None else Group(line, Padding(body, (0, 0, 0, 2)))


def _head(card: ToolCard) -> str:
    described = clean_line(describe_call(card.name, card.args))
    return _cut(described, 200)


def _how_it_ended(card: ToolCard) -> str:
    result = card.result
    how: list[str] = []
    if result.status != "done":
        how.append(result.status)
    code = result.data.get("exit_code")
    if code:
        how.append(f"exit {code}")
    if card.name in ("read", "list", "find", "grep") and not result.is_error:
        count = len(result.text.splitlines())
        how.append("1 line" if count == 1 else f"{count} lines")
    if card.duration_ms >= 1000:
        how.append(f"{card.duration_ms / 1000:.1f} s")
    return ", ".join(how)


def _body(card: ToolCard) -> RenderableType | None:
    result = card.result
    if result.status == "aborted":
        return None
    diff = result.data.get("diff")
    if isinstance(diff, str) and diff and not result.is_error:
        # The diff stands right above, in the request that the user has just approved.
        if card.was_shown:
            return None
        return diff_text(_diff_body(clean(diff)), limit=DIFF_LINES)
    if result.is_error or card.name not in (
        "read",
        "list",
        "find",
        "grep",
        "write",
        "edit",
        "multi_edit",
    ):
        return _output(result.text)
    return None


def _output(text: str) -> RenderableType | None:
    """The end of what a tool said, which is where the news are; and its first line."""
    lines = [line.rstrip() for line in clean(text).strip("\n").split("\n")]
    if not any(lines):
        return None
    if len(lines) > OUTPUT_LINES + 1:
        left_out = len(lines) - OUTPUT_LINES
        lines = [*lines[:2], f"… {left_out} lines left out …", *lines[-(OUTPUT_LINES - 2) :]]
    return Text("\n".join(_cut(line, 500) for line in lines), "dim")


def _diff_body(diff: str) -> str:
    """Without the two lines that name the file: the card has named it."""
    lines = diff.split("\n")
    return "\n".join(lines[2:] if diff.startswith("--- ") else lines)


def diff_text(diff: str, limit: int | None = None) -> Text:
    """A change with its colours."""
    lines = diff.expandtabs(4).split("\n")
    shown = Text()
    # Limited by lines before they are styled: a diff may have a hundred thousand of them.
    for line in lines[:limit]:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        if line.startswith(("+++", "---")):
            style = "bold"
        shown.append(f"{line}\n", style or None)
    if limit is not None and len(lines) > limit:
        shown.append(f"… {len(lines) - limit} more lines\n", "dim")
    shown.rstrip()
    return shown


def _permission(block: PermissionBlock) -> RenderableType:
    """All of it, with nothing hidden."""
    title = Text(f"{clean_line(block.tool)} needs your approval", "bold yellow")
    if block.reason:
        title.append(f" ({visible(block.reason)})", "yellow")
    preview = block.preview or block.target
    if preview.startswith("--- "):
        body: Text = diff_text(visible(preview.expandtabs(4)))
    else:
        body = Text(visible(preview), "bold")
        count = preview.count("\n") + 1
        if count > 1:
            title.append(f" ({count} lines)", "yellow")
    edge = Text("▌ ", "yellow")
    return Group(title, _Beside(edge, body, repeat=True))


def _plan(plan: dict[str, Any]) -> RenderableType:
    """All of it: the user has to approve it."""
    drawn: list[RenderableType] = [
        _Beside(
            Text("▌ ", "magenta"), Text(f"Plan: {visible(str(plan.get('summary', '')))}", "bold")
        )
    ]
    for number, step in enumerate(steps_of(plan), start=1):
        drawn.append(
            _Beside(Text(f"{number:>2}. ", "bold"), Text(visible(step_title(step)), "bold"))
        )
        boundary = step.get("boundary")
        if isinstance(boundary, dict):
            lines = f"lines {_from_one(boundary, 'first')} to {_from_one(boundary, 'last')} only"
            drawn.append(Padding(Text(lines, "dim"), (0, 0, 0, 4)))
        if details := str(step.get("details") or "").strip("\n"):
            drawn.append(Padding(Text(visible(details), "dim"), (0, 0, 0, 4)))
        if check := step.get("check"):
            drawn.append(Padding(Text(f"check: {visible(str(check))}", "cyan"), (0, 0, 0, 4)))
    return Group(*drawn)


def _from_one(boundary: dict[str, Any], name: str) -> str:
    """A line's number as people count."""
    number = boundary.get(name)
    return str(number + 1) if isinstance(number, int) else "?"


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2))
    first = True
    for row in rows:
        if first:
            for place in range(len(row)):
                grid.add_column(style="bold" if place == 0 else "", overflow="fold")
            first = False
        grid.add_row(*(Text(clean(cell)) for cell in row))
    return (
        Group(Text(clean_line(title), "bold cyan"), Padding(grid, (0, 0, 0, 2))) if title else grid
    )


class _Beside:
    """A mark, and text that wraps beside it; with `repeat` the mark stands before every line."""

    def __init__(self, mark: Text, text: RenderableType, *, repeat: bool = False) -> None:
        self._mark = mark
        self._text = text
        self._repeat = repeat

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(8, options.max_width - self._mark.cell_len)
        lines = console.render_lines(
            self._text, options.update(width=room, overflow="fold"), pad=False
        )
        mark = Segment(self._mark.plain, console.get_style(self._mark.style))
        blank = Segment(" " * self._mark.cell_len)
        for place, line in enumerate(lines):
            yield mark if place == 0 or self._repeat else blank
            yield from line
            yield Segment.line()


class _LeftHeading(Heading):
    """A heading on the left, where text is."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text
        text.justify = "left"
        text.stylize("bold underline" if self.tag in ("h1", "h2") else "bold")
        yield text


class _Markdown(Markdown):
    """Markdown in the terminal's own colours; links show where they lead."""

    elements = {**Markdown.elements, "heading_open": _LeftHeading}

    def __init__(self, text: str) -> None:
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _ascii(text: str) -> str:
    """For terminals that cannot show more."""
    plain = {
        "●": "*",
        "›": ">",
        "∴": "~",
        "·": "-",
        "✗": "x",
        "…": "...",
        "▌": "|",
        "•": "*",
        "⤷": ">",
    }
    return "".join(plain.get(letter, letter) for letter in text).encode("ascii", "replace").decode()
