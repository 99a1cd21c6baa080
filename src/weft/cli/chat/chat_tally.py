"""What came of a chat: its turns, its time, what it cost and which files it changed."""

from __future__ import annotations

from weft.cli.chat.paint.card_text import card_text, long_duration
from weft.cli.chat.paint.tool_cards import money
from weft.events import Event, TurnFinished
from weft.view import AnyBlock, ToolCard, count_of

FILES = 3
"""Files that are named; the others are counted."""


class ChatTally:
    """Counts what is shown of a conversation while the chat is open."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._turns = 0
        self._spent: float | None = 0.0
        """By this chat, in all its conversations; None when a price is not known."""
        self._before: float | None = 0.0
        """What the conversation had cost when it was last looked at."""
        self._files: dict[str, tuple[int, int]] = {}

    def open(self, cost_usd: float | None) -> None:
        """Another conversation is shown; what it cost before is not of this chat."""
        self._before = cost_usd

    def take(self, event: Event, blocks: list[AnyBlock], cost_usd: float | None) -> None:
        """Take in one more event, the blocks that it gave, and what the conversation cost now."""
        if cost_usd is None or self._before is None or self._spent is None:
            self._spent = None
        else:
            self._spent += max(0.0, cost_usd - self._before)
        self._before = cost_usd
        self._turns += isinstance(event, TurnFinished)
        for block in blocks:
            # Only what an edit shows: what a command changed is not counted line by line.
            if isinstance(block, ToolCard) and "diff" in block.result.data:
                self._edited(block)

    def _edited(self, card: ToolCard) -> None:
        if (found := edited_lines(card, self._folder)) is None:
            return
        path, added, removed = found
        before = self._files.get(path, (0, 0))
        self._files[path] = (before[0] + added, before[1] + removed)

    def text(self, *, seconds: float) -> str:
        """`12 turns · 7 min · $0.07 · calc.py +1 −1`; nothing for a chat without a turn."""
        if not self._turns:
            return ""
        time = long_duration(seconds if seconds < 60 else seconds // 60 * 60)
        parts = [count_of(self._turns, "turn"), time, money(self._spent)]
        parts += [
            f"{path} +{added} −{removed}"
            for path, (added, removed) in list(self._files.items())[:FILES]
        ]
        if len(self._files) > FILES:
            parts.append(f"{count_of(len(self._files) - FILES, 'file')} more")
        return " · ".join(part for part in parts if part)


def edited_lines(card: ToolCard, folder: str) -> tuple[str, int, int] | None:
    """The file that a card changed, and the lines that were added and removed; None for a card
    that changed none.
    """
    said = card_text(card, folder)
    if said.end != "done" or not said.path or "diff" not in card.result.data:
        return None
    if said.diff is not None:
        return said.path, said.diff.added, said.diff.removed
    content = card.args.get("content")
    return said.path, len(content.splitlines()) if isinstance(content, str) else 0, 0
