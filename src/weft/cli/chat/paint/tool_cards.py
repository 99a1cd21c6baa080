"""Tool cards as lines: a mark and a verb, the result at the end of the first line, then what
matters of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.cli.chat.paint.card_text import (
    CardText,
    card_text,
    duration,
    lookup_texts,
)
from weft.cli.chat.paint.diff_rows import MAX_ROWS, NARROW, NARROWEST, diff_lines
from weft.cli.chat.paint.path_links import file_link
from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan, line_of, wrapped
from weft.cli.chat.paint.text_cells import cells, fit, word_wrap
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.sanitize import clean_line
from weft.view import (
    SUCCESSFUL,
    AgentEnd,
    AgentsCard,
    LookupCard,
    ToolCard,
    count_of,
    finish_sentence,
)

MARK = "● "
FIRST_LINES = 1
LAST_LINES = 4
"""Of the output of a command that worked: its first line and its last ones."""
FAILED_LINES = 10
SENTENCES = 3
SENTENCE_ROWS = 2
"""A failure that says no more than this is wrapped: most are one sentence of a tool's own."""
KEY_HINT = " · Ctrl+O"
STOPPED_LINES = 4
LOOKUP_LINES = 2
MARK_STYLES = {"done": "good", "failed": "bad", "stopped": "ask"}


def tool_lines(card: ToolCard, width: int, theme: PaintTheme) -> list[StyledLine]:
    """A card."""
    said = card_text(card, theme.folder)
    lines = _head(said, width, theme)
    if said.diff is not None:
        return lines + diff_lines(
            said.diff, width, path=said.path, has_rows=theme.has_rows, limit=MAX_ROWS
        )
    return lines + _output(said, width)


def head_lines(card: ToolCard, width: int, theme: PaintTheme) -> list[StyledLine]:
    """A card whose change stands above it already."""
    return _head(card_text(card, theme.folder), width, theme)


def _head(said: CardText, width: int, theme: PaintTheme) -> list[StyledLine]:
    mark = StyledSpan(said.mark or MARK, MARK_STYLES[said.end])
    lead = f"{said.verb} " if said.verb else ""
    link = file_link(said.path, theme.folder) if said.path else ""
    room = width - cells(mark.text) - cells(lead)
    target = StyledSpan(fit(said.target, room), "", 0, link)
    first = (mark, StyledSpan(lead), target)
    if not said.result:
        return [line_of(*first)]
    result = StyledSpan(said.result, "quiet")
    # In a narrow window the result always has its own line, so that results stand below each other.
    if width > NARROWEST and cells(said.target) + 2 + cells(said.result) <= room:
        return [line_of(*first, ("  ", ""), result)]
    indent = (StyledSpan("  "),)
    return [line_of(*first), *wrapped([result], width, first=indent, rest=indent)]


def _output(said: CardText, width: int) -> list[StyledLine]:
    lines = said.output
    if said.end == "done":
        if len(lines) <= FIRST_LINES + LAST_LINES + 1:
            return [_printed(line, width) for line in lines]
        left_out = len(lines) - FIRST_LINES - LAST_LINES
        return [
            *(_printed(line, width) for line in lines[:FIRST_LINES]),
            _more(f"… {left_out} more lines"),
            *(_printed(line, width) for line in lines[-LAST_LINES:]),
        ]
    if said.end == "failed" and len(lines) <= SENTENCES:
        return [row for line in lines for row in _sentence(line, width)]
    last = FAILED_LINES if said.end == "failed" else STOPPED_LINES
    if len(lines) <= last + 1:
        # A tool of ours says what was wrong first, and shows the place below it.
        above = _sentence(lines[0], width) if said.end == "failed" else []
        return [*above, *(_printed(line, width) for line in lines[1 if above else 0 :])]
    return [
        _more(f"… {len(lines) - last} earlier lines"),
        *(_printed(line, width) for line in lines[-last:]),
    ]


def _printed(line: str, width: int) -> StyledLine:
    # One row for a line of output: a log's lines may be longer than a screen.
    return line_of(("  ", ""), (fit(line, width - 2), "quiet"))


def _sentence(line: str, width: int) -> list[StyledLine]:
    """Why it failed, in at most two rows; what is cut names the key that shows it."""
    rows = word_wrap(line, width - 2)
    if len(rows) <= SENTENCE_ROWS:
        return [line_of(("  ", ""), (row, "quiet")) for row in rows]
    last = " ".join(rows[SENTENCE_ROWS - 1 :])
    return [
        *(_printed(row, width) for row in rows[: SENTENCE_ROWS - 1]),
        _more(fit(last, width - 2 - cells(KEY_HINT))),
    ]


def _more(text: str) -> StyledLine:
    return line_of(("  ", ""), (f"{text}{KEY_HINT}", "quiet"))


def lookup_lines(card: LookupCard, width: int, theme: PaintTheme) -> list[StyledLine]:
    """Reads and searches as one card: names always, at most two lines of them."""
    words: list[_LookupWord] = []
    for number, said in enumerate(lookup_texts(card, theme.folder)):
        for place, name in enumerate(said.names):
            lead = f"{said.verb} " if place == 0 else ""
            if place:
                words[-1].spans.append(StyledSpan(","))
            elif number:
                words[-1].spans.append(StyledSpan(" ·", "quiet"))
            link = file_link(name, theme.folder) if said.verb == "Read" else ""
            words += _lookup_words(lead, name, width - 4, link)
    return _filled(words, width)


class _LookupWord(NamedTuple):
    """What stays on one row; a name, or what was found of the one before it."""

    spans: list[StyledSpan]
    names: int = 1


def _lookup_words(lead: str, name: str, width: int, link: str) -> list[_LookupWord]:
    room = width - cells(lead)
    short, mark, found = name.rpartition(" (")
    if cells(name) <= room or not mark:
        return [_LookupWord([StyledSpan(lead), StyledSpan(fit(name, room), "", 0, link)])]
    # Where there is no room for both side by side, what was found stands below.
    below = [_LookupWord([StyledSpan(f"({found}")], 0)] if cells(found) < width else []
    return [_LookupWord([StyledSpan(lead), StyledSpan(fit(short, room), "", 0, link)]), *below]


def _filled(words: Sequence[_LookupWord], width: int) -> list[StyledLine]:
    """Names side by side on two lines; the last one says how many are not shown."""
    rows: list[list[StyledSpan]] = [[StyledSpan(MARK, "good")]]
    used = cells(MARK)
    for place, (spans, names) in enumerate(words):
        left = sum(word.names for word in words[place:])
        more = f"+ {left} more · Ctrl+O"
        # On the last line there is always room for what is said of the rest.
        reserve = cells(more) + 1 if left > names else 0
        gap = 1 if used > cells(MARK) else 0
        if gap and used + gap + _size(spans) + reserve * (len(rows) == LOOKUP_LINES) > width:
            if len(rows) == LOOKUP_LINES:
                rows[-1] += [StyledSpan(" "), StyledSpan(more, "quiet")] if left else []
                break
            rows.append([StyledSpan("  ")])
            used, gap = cells(MARK), 0
            if not names and used + _size(spans) + reserve > width:
                continue
            spans = _narrowed(spans, used + _size(spans) + reserve - width)
        rows[-1] += [StyledSpan(" " * gap), *spans]
        used += gap + _size(spans)
    return [StyledLine(tuple(row)) for row in rows]


def _size(spans: Sequence[StyledSpan]) -> int:
    return sum(cells(span.text) for span in spans)


def _narrowed(spans: list[StyledSpan], over: int) -> list[StyledSpan]:
    """A word with a shorter name, where it is so many cells too wide."""
    if over <= 0:
        return spans
    lead, name, *rest = spans
    return [lead, name._replace(text=fit(name.text, max(4, cells(name.text) - over))), *rest]


def agents_lines(card: AgentsCard, width: int) -> list[StyledLine]:
    """Agents that worked at the same time: one line for all, one for each."""
    agents = card.agents
    is_done = all(agent.reason in SUCCESSFUL for agent in agents)
    costs = [agent.cost_usd for agent in agents]
    cost = None if None in costs else sum(each or 0.0 for each in costs)
    longest = max((agent.duration_ms for agent in agents), default=0)
    result = " · ".join(part for part in (duration(longest), money(cost)) if part)
    head = line_of(
        (MARK, "good" if is_done else "bad"),
        (count_of(len(agents), "agent"), ""),
        (f"  {result}" if result else "", "quiet"),
    )
    last = len(agents) - 1
    rows = _agents_in_two_rows if width <= NARROW else _agents_in_one_row
    edges = ["└" if place == last else "├" for place in range(len(agents))]
    return [head, *rows(agents, edges, width)]


def _agents_in_one_row(
    agents: Sequence[AgentEnd], edges: Sequence[str], width: int
) -> list[StyledLine]:
    titles = min(max(cells(agent_title(agent)) for agent in agents), max(12, width // 3))
    calls = max(cells(_calls(agent)) for agent in agents)
    room = max(8, width - titles - calls - 10)
    return [
        line_of(
            (f"  {edge} ", "quiet"),
            (_padded(fit(agent_title(agent), titles), titles + 3), ""),
            (_padded(_calls(agent), calls + 3) if calls else "", "quiet"),
            (fit(_said(agent), room), "" if agent.reason in SUCCESSFUL else "bad"),
        )
        for agent, edge in zip(agents, edges, strict=True)
    ]


def _agents_in_two_rows(
    agents: Sequence[AgentEnd], edges: Sequence[str], width: int
) -> list[StyledLine]:
    lines = []
    for agent, edge in zip(agents, edges, strict=True):
        room = width - 4 - (cells(_calls(agent)) + 3 if agent.calls else 0)
        calls = f"   {_calls(agent)}" if agent.calls else ""
        title = fit(agent_title(agent), max(8, room))
        lines.append(line_of((f"  {edge} ", "quiet"), (title, ""), (calls, "quiet")))
        stem = "    " if edge == "└" else "  │ "
        style = "" if agent.reason in SUCCESSFUL else "bad"
        lines.append(line_of((stem, "quiet"), (fit(_said(agent), width - 4), style)))
    return lines


def _padded(text: str, width: int) -> str:
    return f"{text}{' ' * (width - cells(text))}"


def _calls(agent: AgentEnd) -> str:
    return count_of(agent.calls, "call") if agent.calls else ""


def _said(agent: AgentEnd) -> str:
    """What it reported, or why it reported nothing."""
    if agent.reason in SUCCESSFUL:
        return clean_line(agent.text)
    return finish_sentence(agent.reason, "")


def agent_title(agent: AgentEnd) -> str:
    return clean_line(agent.title) or clean_line(agent.name)


def money(cost_usd: float | None) -> str:
    """A cost in a few characters; nothing where it is not known or nothing."""
    if not cost_usd:
        return ""
    if cost_usd < 0.0005:
        return "under $0.001"
    return f"${cost_usd:.2f}" if cost_usd >= 0.01 else f"${cost_usd:.3f}"
