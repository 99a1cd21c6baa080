"""What each turn of the present line was: its words, its time, its calls and its files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from weft.api.inspection import LineTurn
from weft.cli.chat.chat_tally import edited_lines
from weft.cli.chat.conversation import ChatConversation
from weft.cli.chat.paint.card_text import card_text
from weft.cli.sanitize import clean_line
from weft.ids import NodeId, time_of
from weft.view import ToolCard, count_of

FILES = 2
"""Files of a turn that are named; the others are counted."""


class TurnOutline(msgspec.Struct, frozen=True, kw_only=True):
    """One turn, or a part of one that a message of the user's began."""

    node: NodeId
    """The user's message."""
    parent: NodeId | None
    """What came before it; None for the first."""
    text: str
    """The message as it was sent."""
    at: float
    calls: tuple[str, ...]
    """What each tool call did: `Edited calc.py`."""
    files: tuple[tuple[str, int, int], ...]
    """Each file that was edited, with the lines that were added and removed."""
    other_changes: int = 0
    """Changes of files that no edit shows: by commands."""

    @property
    def label(self) -> str:
        """The message in one line."""
        return clean_line(self.text) or "(no text)"

    @property
    def time(self) -> str:
        """`10:15`, with its day where that was another."""
        return clock_time(self.at) if self.at else ""

    @property
    def call_count(self) -> str:
        """`4 calls`"""
        return count_of(len(self.calls), "call") if self.calls else ""

    @property
    def file_changes(self) -> str:
        """`calc.py +1 −1`, or that there were none although it called tools."""
        if self.files:
            shown = [f"{path} +{plus} −{minus}" for path, plus, minus in self.files[:FILES]]
            more = len(self.files) - FILES
            return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])
        if self.other_changes:
            return "files changed by commands"
        return "no file changes" if self.calls else ""


async def turn_outlines(conversation: ChatConversation) -> list[TurnOutline]:
    """Every turn of the present line, the oldest first."""
    folder = conversation.app.project_path
    return [_outline(turn, folder) for turn in await conversation.line_turns()]


def _outline(turn: LineTurn, folder: str) -> TurnOutline:
    cards = [ToolCard(name=call.name, args=call.args, result=result) for call, result in turn.calls]
    edits = [found for card in cards if (found := edited_lines(card, folder)) is not None]
    said = [card_text(card, folder) for card in cards]
    return TurnOutline(
        node=turn.node,
        parent=turn.parent,
        text=turn.text,
        at=time_of(turn.node),
        calls=tuple(f"{each.verb} {each.target}".strip() for each in said),
        files=summed(edits),
        other_changes=max(0, turn.changes - len(edits)),
    )


def summed(edits: Iterable[tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    """Edits of the same file taken together."""
    found: dict[str, tuple[int, int]] = {}
    for path, added, removed in edits:
        before = found.get(path, (0, 0))
        found[path] = (before[0] + added, before[1] + removed)
    return tuple((path, added, removed) for path, (added, removed) in found.items())


def clock_time(at: float) -> str:
    """A time of day, with its day where that is not today."""
    then, now = datetime.fromtimestamp(at), datetime.now()
    return then.strftime("%H:%M" if then.date() == now.date() else "%d %b %H:%M")
