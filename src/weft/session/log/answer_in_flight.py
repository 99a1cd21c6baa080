"""Answers in flight, put together from the signals that show them: what a screen that joins in the
middle is to draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from weft.events import (
    AnswerRestarted,
    AnyFact,
    Event,
    ModelCallStarted,
    NewMessage,
    Signal,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    TurnFinished,
)
from weft.ids import NodeId, SessionId
from weft.store import Draft, DraftCall

AnswerDelta: TypeAlias = TextDelta | ThinkingDelta | ToolArgsDelta
ANSWER_DELTAS: Final = (TextDelta, ThinkingDelta, ToolArgsDelta)
"""The same for `isinstance`: with a union each piece of an answer would wait three times as
long."""
MOST_UNREAD: Final = 512
"""Pieces that are held as they came: each weighs a multiple of its text."""


class _Words:
    """Text that grows."""

    __slots__ = ("_length", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._length = len(text)

    def put(self, offset: int, text: str) -> None:
        # A piece that does not stand at the end takes the place of what came after it: the answer
        # began again, or is told again.
        if offset != self._length:
            self._pieces = [self.text[:offset]]
            self._length = len(self._pieces[0])
        self._pieces.append(text)
        self._length += len(text)

    def put_run(self, pieces: Sequence[AnswerDelta]) -> bool:
        """Add the text of a message where all pieces are of it and follow each other; False, and
        nothing is added, where they do not.
        """
        node, end = pieces[0].node_id, self._length
        for piece in pieces:
            if type(piece) is not TextDelta or piece.offset != end or piece.node_id != node:
                return False
            end += len(piece.text)
        self._pieces.append("".join([piece.text for piece in pieces]))
        self._length = end
        return True

    @property
    def text(self) -> str:
        return "".join(self._pieces)


class AnswerInFlight:
    """What has come of one answer."""

    def __init__(self, draft: Draft, after_seq: int) -> None:
        self.node = draft.node
        self.after_seq = after_seq
        """The last fact before it."""
        self._text = _Words(draft.text)
        self._thinking = _Words(draft.thinking)
        self._calls = {call.index: (call.tool, _Words(call.arguments)) for call in draft.calls}

    @property
    def text(self) -> str:
        """Its words."""
        return self._text.text

    @property
    def thinking(self) -> str:
        """Its reasoning."""
        return self._thinking.text

    @property
    def draft(self) -> Draft:
        """All of it."""
        return Draft(
            node=self.node,
            text=self.text,
            thinking=self.thinking,
            calls=tuple(
                DraftCall(index=index, tool=tool, arguments=arguments.text)
                for index, (tool, arguments) in sorted(self._calls.items())
            ),
        )

    def shown(self, delta: AnswerDelta) -> str:
        """What has come of the part that a piece belongs to."""
        match delta:
            case TextDelta():
                return self.text
            case ThinkingDelta():
                return self.thinking
            case ToolArgsDelta(index=index):
                return self._calls[index][1].text if index in self._calls else ""

    def add_run(self, pieces: Sequence[AnswerDelta]) -> bool:
        """Take pieces in, if all of them are the text of this answer as it goes on: most are."""
        return self._text.put_run(pieces)

    def add(self, delta: AnswerDelta) -> None:
        """Take one more piece in."""
        match delta:
            case TextDelta(offset=offset, text=text):
                self._text.put(offset, text)
            case ThinkingDelta(offset=offset, text=text):
                self._thinking.put(offset, text)
            case ToolArgsDelta(index=index, tool_name=tool, offset=offset, text=text):
                self._calls.setdefault(index, (tool, _Words()))[1].put(offset, text)


class AnswersInFlight:
    """The answers of a session that are in flight, by node."""

    def __init__(self) -> None:
        self._known: dict[NodeId, AnswerInFlight] = {}
        self._unread: list[AnswerDelta] = []
        """Pieces in the order in which they came, which nobody has asked for yet: most answers are
        whole before anyone does, and a piece must cost next to nothing.
        """

    @property
    def _answers(self) -> dict[NodeId, AnswerInFlight]:
        """By node, with every piece that has come."""
        if self._unread:
            self._read_pieces()
        return self._known

    def _read_pieces(self) -> None:
        pieces, self._unread = self._unread, []
        if self._answer_of(pieces[0]).add_run(pieces):
            return
        for piece in pieces:
            self._answer_of(piece).add(piece)

    def _answer_of(self, piece: AnswerDelta) -> AnswerInFlight:
        answer = self._known.get(piece.node_id)
        if answer is None:
            answer = AnswerInFlight(Draft(node=piece.node_id), piece.after_seq)
            self._known[piece.node_id] = answer
        return answer

    def get(self, node: NodeId) -> AnswerInFlight | None:
        """What has come of this one."""
        return self._answers.get(node)

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """All of them, the one that was begun last at the end."""
        return tuple(answer.draft for answer in self._answers.values())

    def put(self, draft: Draft, after_seq: int) -> None:
        """An answer of which this much came before it was heard here."""
        self._answers[draft.node] = AnswerInFlight(draft, after_seq)

    def take(self, signal: Signal) -> None:
        """Take a signal in, if it is about an answer."""
        if isinstance(signal, ANSWER_DELTAS):
            self.take_piece(signal)
        elif isinstance(signal, AnswerRestarted):
            self._answers.pop(signal.node_id, None)

    def take_piece(self, piece: AnswerDelta) -> None:
        """Take a piece of an answer in."""
        unread = self._unread
        unread.append(piece)
        if len(unread) == MOST_UNREAD:
            self._read_pieces()

    def news_of(self, delta: AnswerDelta) -> tuple[Signal, ...]:
        """A piece, which may have been told before, as signals that only go on from what is known
        of its answer.
        """
        known = self._answers.get(delta.node_id)
        have = "" if known is None else known.shown(delta)
        if delta.offset == len(have):
            return (delta,)
        if delta.text.startswith(have) and delta.offset == 0:
            rest = delta.text[len(have) :]
            return (msgspec.structs.replace(delta, offset=len(have), text=rest),) if rest else ()
        # The answer began again, and that was not heard.
        restarted = AnswerRestarted(
            session_id=delta.session_id, after_seq=delta.after_seq, node_id=delta.node_id
        )
        return (restarted, delta)

    def take_fact(self, fact: AnyFact) -> None:
        """Let go of what is in the log now, or never will be."""
        if not self._unread and not self._known:
            return
        match fact:
            case NewMessage(node=node):
                self._unread = [piece for piece in self._unread if piece.node_id != node.id]
                self._known.pop(node.id, None)
            # A turn has one answer in flight: the next call voids what an earlier one left.
            case ModelCallStarted(purpose="turn", node=node):
                self._drop_before(fact.seq, but=node)
            case TurnFinished():
                self._drop_before(fact.seq)
            case _:
                pass

    def _drop_before(self, seq: int, but: NodeId | None = None) -> None:
        # Not those that began after this fact: from another process signals may come before it.
        gone = [
            node for node, answer in self._answers.items() if answer.after_seq < seq and node != but
        ]
        for node in gone:
            del self._answers[node]


def is_of_answer(event: Event) -> bool:
    """Whether it is about an answer in flight."""
    return isinstance(event, TextDelta | ThinkingDelta | ToolArgsDelta | AnswerRestarted)


def told_again(drafts: Iterable[Draft], session: SessionId, after_seq: int) -> Iterator[Signal]:
    """Answers in flight as signals, each part as one piece from the beginning."""
    for draft in drafts:
        if draft.thinking:
            yield ThinkingDelta(
                session_id=session,
                after_seq=after_seq,
                node_id=draft.node,
                offset=0,
                text=draft.thinking,
            )
        if draft.text:
            yield TextDelta(
                session_id=session,
                after_seq=after_seq,
                node_id=draft.node,
                offset=0,
                text=draft.text,
            )
        for call in draft.calls:
            yield ToolArgsDelta(
                session_id=session,
                after_seq=after_seq,
                node_id=draft.node,
                index=call.index,
                tool_name=call.tool,
                text=call.arguments,
            )
