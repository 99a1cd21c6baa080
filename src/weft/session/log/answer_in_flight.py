"""An answer in flight, put together from the signals that show it: what a screen that joins in the
middle of it is to draw.
"""

from __future__ import annotations

from typing import TypeAlias

from weft.events import TextDelta, ThinkingDelta, ToolArgsDelta
from weft.ids import NodeId
from weft.store import Draft, DraftCall

AnswerDelta: TypeAlias = TextDelta | ThinkingDelta | ToolArgsDelta


class AnswerInFlight:
    """What has come of one answer."""

    def __init__(self, node: NodeId, after_seq: int = 0) -> None:
        self.node = node
        self.after_seq = after_seq
        """The last fact before it."""
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: dict[int, tuple[str, list[str]]] = {}

    @property
    def text(self) -> str:
        """Its words."""
        return "".join(self._text)

    @property
    def draft(self) -> Draft:
        """All of it."""
        return Draft(
            node=self.node,
            text=self.text,
            thinking="".join(self._thinking),
            calls=tuple(
                DraftCall(index=index, tool=tool, arguments="".join(pieces))
                for index, (tool, pieces) in sorted(self._calls.items())
            ),
        )

    def begins_again(self, delta: AnswerDelta) -> bool:
        """Whether a piece is the first of the same answer, sent anew."""
        match delta:
            case TextDelta(offset=0):
                return bool(self._text)
            case ThinkingDelta(offset=0):
                return bool(self._thinking)
            case _:
                return False

    def add(self, delta: AnswerDelta) -> None:
        """Take one more piece in."""
        match delta:
            case TextDelta(text=text):
                self._text.append(text)
            case ThinkingDelta(text=text):
                self._thinking.append(text)
            case ToolArgsDelta(index=index, tool_name=tool, text=text):
                self._calls.setdefault(index, (tool, []))[1].append(text)


def with_delta(known: AnswerInFlight | None, delta: AnswerDelta) -> AnswerInFlight:
    """The answer with one more piece: the known one, or a new one where another answer has begun,
    or the same one over again.
    """
    if known is None or known.node != delta.node_id or known.begins_again(delta):
        known = AnswerInFlight(delta.node_id, delta.after_seq)
    known.add(delta)
    return known
