"""Cards that belong together: reads and searches in a row, agents that work at the same time.

A card of a group is held back until something else begins; then the whole group is one block.
"""

from __future__ import annotations

from weft.view.blocks import (
    AgentEnd,
    AgentsCard,
    AnyBlock,
    LookupCard,
    ThinkingBlock,
    ToolCard,
)

LOOKUPS = frozenset(("read", "list", "find", "grep"))
"""Tools that only look."""


class LookupGroup:
    """Reads and searches in a row, with the thoughts between them."""

    def __init__(self) -> None:
        self._cards: list[ToolCard] = []
        self._thoughts: list[ThinkingBlock] = []

    @property
    def card(self) -> LookupCard | None:
        """What is held back."""
        return LookupCard(cards=tuple(self._cards)) if self._cards else None

    def pass_on(self, blocks: list[AnyBlock]) -> list[AnyBlock]:
        """The blocks that can be shown now."""
        shown: list[AnyBlock] = []
        for block in blocks:
            if isinstance(block, ToolCard) and block.name in LOOKUPS and not block.result.is_error:
                self._cards.append(block)
            # A thought between two reads does not part them: many models think before each call.
            elif isinstance(block, ThinkingBlock) and self._cards:
                self._thoughts.append(block)
            else:
                shown += [*self.flush(), block]
        return shown

    def flush(self) -> list[AnyBlock]:
        """What was held back: something else begins."""
        shown: list[AnyBlock] = [*self._thought(), *([self.card] if self.card else [])]
        self._cards, self._thoughts = [], []
        return shown

    def _thought(self) -> list[AnyBlock]:
        thoughts = self._thoughts
        if not thoughts:
            return []
        text = "\n\n".join(thought.text for thought in thoughts)
        seconds = sum(thought.seconds for thought in thoughts)
        return [ThinkingBlock(text=text, node_id=thoughts[-1].node_id, seconds=seconds)]


class AgentGroup:
    """Agents of one round: a card for all of them when the last one has ended."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._begun: list[str] = []
        self._ended: dict[str, AgentEnd] = {}

    def began(self, call_uid: str) -> None:
        """An agent was put to work for this call."""
        self._open.add(call_uid)
        self._begun.append(call_uid)

    def is_open(self, call_uid: str) -> bool:
        """An agent works for this call."""
        return call_uid in self._open

    def ended(self, call_uid: str, end: AgentEnd) -> list[AnyBlock]:
        """It has ended; the card, when it was the last one."""
        self._open.discard(call_uid)
        self._ended[call_uid] = end
        return [] if self._open else self.flush()

    def flush(self) -> list[AnyBlock]:
        """The card of those that have ended, whatever the others do."""
        self._open.clear()
        begun, self._begun = self._begun, []
        ended, self._ended = self._ended, {}
        # In the order in which they were seen at work.
        agents = tuple(ended[call_uid] for call_uid in begun if call_uid in ended)
        return [AgentsCard(agents=agents)] if agents else []
