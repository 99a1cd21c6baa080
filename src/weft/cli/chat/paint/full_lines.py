"""Blocks unfolded: every line of an output, a thought, a prompt or a paste, none of them cut."""

from __future__ import annotations

from weft.cli.chat.paint.answer_flow import MAX_WIDTH
from weft.cli.chat.paint.card_text import (
    LOOKUPS,
    CardText,
    card_text,
    long_duration,
    printed_lines,
)
from weft.cli.chat.paint.diff_rows import cut_rows, diff_lines
from weft.cli.chat.paint.record_lines import block_lines
from weft.cli.chat.paint.styled_text import StyledLine, StyledSpan, line_of, wrapped
from weft.cli.chat.paint.text_cells import cells
from weft.cli.chat.paint.theme import PaintTheme
from weft.cli.chat.paint.tool_cards import MARK, MARK_STYLES, agent_title, agents_lines
from weft.cli.sanitize import clean
from weft.view import (
    AgentsCard,
    AnyBlock,
    LookupCard,
    ThinkingBlock,
    ToolCard,
    UserBlock,
)

_INDENT = StyledSpan("  ")


def full_lines(block: AnyBlock, width: int, theme: PaintTheme) -> list[StyledLine]:
    """All lines of a block, each as a row that fits: in a viewer no terminal breaks it."""
    return [row for line in whole_lines(block, width, theme) for row in _fitting(line, width)]


def whole_lines(block: AnyBlock, width: int, theme: PaintTheme) -> list[StyledLine]:
    """All lines of a block; those of an output as they were, for the terminal to break."""
    match block:
        case UserBlock():
            return _said(block, min(width, MAX_WIDTH))
        case ThinkingBlock():
            return _thought(block, min(width, MAX_WIDTH))
        case ToolCard():
            return _card(block, width, theme)
        case LookupCard(cards=cards):
            return [line for card in cards for line in _card(card, width, theme)]
        case AgentsCard():
            return _agents(block, width)
        case _:
            return block_lines(block, width, theme)


def is_folded(block: AnyBlock, width: int, theme: PaintTheme) -> bool:
    """Whether the record shows less of it than there is."""
    match block:
        case ThinkingBlock() | LookupCard():
            return True
        case UserBlock() | ToolCard() | AgentsCard():
            shown = block_lines(block, width, theme)
            return len(full_lines(block, width, theme)) > len(shown)
        case _:
            return False


def source_text(block: AnyBlock, theme: PaintTheme) -> str:
    """What a copy of the block holds: what was said or printed, without marks and indents."""
    match block:
        case UserBlock(text=text) | ThinkingBlock(text=text):
            return clean(text).strip("\n")
        case ToolCard():
            return _card_source(block, theme)
        case LookupCard(cards=cards):
            return "\n".join(_card_source(card, theme) for card in cards)
        case AgentsCard(agents=agents):
            return "\n\n".join(clean(agent.text).strip("\n") for agent in agents)
        case _:
            # As wide as a line can be, so that no sentence is broken.
            return "\n".join(line.text for line in block_lines(block, MAX_WIDTH, theme))


def _said(block: UserBlock, width: int) -> list[StyledLine]:
    text = clean(block.text).expandtabs(4).strip("\n")
    mark, rest = (StyledSpan("› ", "bold you"),), (_INDENT,)
    lines = wrapped([StyledSpan(text, "bold")], width, first=mark, rest=rest)
    if block.attached:
        names = f"+ {', '.join(clean(name) for name in block.attached)}"
        lines += wrapped([StyledSpan(names, "quiet")], width, first=rest, rest=rest)
    return lines


def _thought(block: ThinkingBlock, width: int) -> list[StyledLine]:
    took = f" for {long_duration(block.seconds)}" if block.seconds >= 1 else ""
    text = StyledSpan(clean(block.text).expandtabs(4).strip("\n"), "italic")
    rest = (_INDENT,)
    head = line_of((f"∴ Thought{took}", "quiet italic"))
    return [head, *wrapped([text], width, first=rest, rest=rest)]


def _card(card: ToolCard, width: int, theme: PaintTheme) -> list[StyledLine]:
    said = card_text(card, theme.folder)
    # A command as it was written, line breaks included.
    command = card.args.get("command")
    target = clean(command).expandtabs(4).strip("\n") if isinstance(command, str) else said.target
    spans = [StyledSpan(f"{said.verb} " if said.verb else ""), StyledSpan(target)]
    if said.result:
        spans.append(StyledSpan(f"  {said.result}", "quiet"))
    mark = StyledSpan(said.mark or MARK, MARK_STYLES[said.end])
    lines = wrapped(spans, width, first=(mark,), rest=(_INDENT,))
    if said.diff is not None:
        return lines + diff_lines(said.diff, width, path=said.path, has_rows=theme.has_rows)
    output = said.output or _unsaid(card, said)
    return lines + [line_of(_INDENT, (row, "")) for row in output]


def _unsaid(card: ToolCard, said: CardText) -> tuple[str, ...]:
    """What a card only names: what a read or a search gave, and the content of a new file."""
    if card.name in LOOKUPS:
        return printed_lines(card.result.text)
    content = card.args.get("content")
    return printed_lines(content) if said.verb == "Created" and isinstance(content, str) else ()


def _card_source(card: ToolCard, theme: PaintTheme) -> str:
    said = card_text(card, theme.folder)
    diff = card.result.data.get("diff")
    if said.diff is not None and isinstance(diff, str):
        return clean(diff)
    output = said.output or _unsaid(card, said)
    return "\n".join(output) or f"{said.verb} {said.target}".lstrip()


def _agents(card: AgentsCard, width: int) -> list[StyledLine]:
    """The card, and below it what each agent reported."""
    lines = agents_lines(card, width)
    rest = (_INDENT,)
    for agent in card.agents:
        if text := clean(agent.text).expandtabs(4).strip("\n"):
            lines.append(line_of(_INDENT, (agent_title(agent), "bold")))
            lines += wrapped([StyledSpan(text)], min(width, MAX_WIDTH), first=rest, rest=rest)
    return lines


def _fitting(line: StyledLine, width: int) -> list[StyledLine]:
    """A line as rows of the window: code and output are cut where it ends, not between words."""
    if cells(line.text) <= width:
        return [line]
    indent = line.spans[:1] if line.spans[0] == _INDENT else ()
    room = width - 2 if indent else width
    rows = cut_rows(list(line.spans[len(indent) :]), room)
    return [StyledLine((*indent, *row)) for row in rows]
