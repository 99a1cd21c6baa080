"""What a screen has shown, kept so that it can be shown again unfolded."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from weft.errors import UsageError
from weft.view import (
    AgentsCard,
    AnswerBlock,
    AnyBlock,
    LookupCard,
    NoteBlock,
    ThinkingBlock,
    ToolCard,
    UserBlock,
)

MOST_KEPT = 2_000_000
"""Characters of all blocks: a chat that is open all day must not grow with what it has shown."""
LEFT_OUT = NoteBlock(text="there is more before this; /export writes all of it", level="quiet")
_CARDS = (ToolCard, LookupCard, AgentsCard)


class UnfoldedBlock(NamedTuple):
    """A block that is to be printed once more, in full."""

    block: AnyBlock


class ShownRecord:
    """The last blocks that were shown, in their order."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: deque[tuple[AnyBlock, int]] = deque()
        self._size = 0
        self._is_cut = False

    def add(self, block: AnyBlock) -> None:
        """One more was shown."""
        size = _size(block)
        self._kept.append((block, size))
        self._size += size
        # The last one stays however large it is: it is the one that is asked for.
        while self._size > self._most and len(self._kept) > 1:
            self._size -= self._kept.popleft()[1]
            self._is_cut = True

    def blocks(self) -> list[AnyBlock]:
        """All that is kept; the pieces of an answer as one."""
        found: list[AnyBlock] = [LEFT_OUT] if self._is_cut else []
        pieces: list[AnswerBlock] = []
        for block, _ in self._kept:
            if isinstance(block, AnswerBlock) and (
                not pieces or (block.node_id and block.node_id == pieces[0].node_id)
            ):
                pieces.append(block)
                continue
            found += _joined(pieces)
            pieces = [block] if isinstance(block, AnswerBlock) else []
            found += [] if pieces else [block]
        return found + _joined(pieces)

    def card(self, number: int) -> AnyBlock:
        """The card that is so many from the end, 1 for the last.

        Raises:
            UsageError: there are not so many.
        """
        cards = [block for block, _ in self._kept if isinstance(block, _CARDS)]
        if not cards:
            raise UsageError("there is no card to show yet")
        if not 0 < number <= len(cards):
            raise UsageError(f"/show takes a number from 1, the last card, to {len(cards)}")
        return cards[-number]


def _joined(pieces: list[AnswerBlock]) -> list[AnyBlock]:
    if len(pieces) < 2:
        return [*pieces]
    return [msgspec.structs.replace(pieces[0], text="".join(piece.text for piece in pieces))]


def _size(block: AnyBlock) -> int:
    """About how many characters it holds."""
    match block:
        case UserBlock(text=text) | AnswerBlock(text=text) | ThinkingBlock(text=text):
            return 100 + len(text)
        case ToolCard(result=result, output=output, args=args):
            given = sum(len(value) for value in args.values() if isinstance(value, str))
            diff = result.data.get("diff")
            shown = len(diff) if isinstance(diff, str) else 0
            return 500 + len(result.text) + len(output) + given + shown
        case LookupCard(cards=cards):
            return sum(_size(card) for card in cards)
        case AgentsCard(agents=agents):
            return 100 + sum(len(agent.text) for agent in agents)
        case _:
            return 500
