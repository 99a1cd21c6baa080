"""The codec of every wire: events and answers in flight as frames, errors as they were raised.

A frame is `{"s": session, "e": [event, …]}`, or `{"s": session, "closed": why}` as the last one.
An event is a fact or a signal as `weft.events` encodes it, or a `draft`: all that has come of an
answer in flight, which takes the place of what a reader knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

import msgspec

from weft import errors
from weft.errors import UsageError, WeftError
from weft.events import Event, FactBase, Signal, UnknownFact, decode_event, encode
from weft.ids import NodeId, SessionId
from weft.session.log.answer_in_flight import told_again
from weft.store import Draft, DraftCall

_DRAFT: Final = b'{"kind":"draft"'


class EncodedEvents:
    """Some events of one session, encoded for each wire when first asked for."""

    def __init__(self, session_id: str, events: Iterable[tuple[int | None, bytes]]) -> None:
        """Each event with its `seq`; None for what is not stored."""
        self._session_id = session_id
        self.events = tuple(events)
        self.weight = sum(len(body) for _, body in self.events)

    def after(self, seq: int) -> EncodedEvents:
        """Those that a reader with this cursor has not seen."""
        left = [each for each in self.events if each[0] is None or each[0] > seq]
        return self if len(left) == len(self.events) else EncodedEvents(self._session_id, left)

    @cached_property
    def sse(self) -> bytes:
        """As server-sent events; only facts have an id, which the reader comes back with."""
        return b"".join(
            b"data: %b\n\n" % body if seq is None else b"id: %d\ndata: %b\n\n" % (seq, body)
            for seq, body in self.events
        )

    @cached_property
    def frame(self) -> bytes:
        """As one frame."""
        bodies = b",".join(body for _, body in self.events)
        return b'{"s":%b,"e":[%b]}' % (msgspec.json.encode(self._session_id), bodies)

    @cached_property
    def frame_text(self) -> str:
        """As one frame of a WebSocket, which takes text."""
        return self.frame.decode()


def encoded(event: Event) -> tuple[int | None, bytes]:
    """An event and its `seq`, if it is stored."""
    # A tuple: with a union each event would wait several times as long.
    seq = event.seq if isinstance(event, (FactBase, UnknownFact)) else None
    return seq, encode(event)


class DraftEvent(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="draft", gc=False
):
    """An answer in flight, with all that has come of it."""

    session_id: SessionId
    node_id: NodeId
    text: str = ""
    thinking: str = ""
    calls: tuple[DraftCall, ...] = ()
    after_seq: int = 0
    """The last fact before it."""

    @property
    def draft(self) -> Draft:
        """The same as the session has it."""
        return Draft(node=self.node_id, text=self.text, thinking=self.thinking, calls=self.calls)

    def pieces(self) -> list[Signal]:
        """The same as signals, each part as one piece from the beginning."""
        return list(told_again((self.draft,), self.session_id, self.after_seq))


def encoded_drafts(
    session_id: SessionId, drafts: Iterable[Draft], after_seq: int
) -> Iterator[tuple[None, bytes]]:
    """Each answer in flight as an event of the wire."""
    for draft in drafts:
        event = DraftEvent(
            session_id=session_id,
            node_id=draft.node,
            text=draft.text,
            thinking=draft.thinking,
            calls=draft.calls,
            after_seq=after_seq,
        )
        yield None, msgspec.json.encode(event)


def decode_wire_event(body: bytes) -> Event | DraftEvent:
    """One event of a frame or of a stream.

    Raises:
        Corrupt: it is none.
    """
    if body.startswith(_DRAFT):
        return msgspec.json.decode(body, type=DraftEvent)
    return decode_event(body)


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong."""

    kind: str
    """The name of the error as Python has it, or a word: `no_token`, `too_large`, …"""
    message: str
    """A sentence for the user."""
    details: dict[str, Any] = {}


def error_body(error: WeftError) -> ErrorBody:
    """An error as data."""
    return ErrorBody(kind=type(error).__name__, message=str(error), details=_details(error))


def raised_error(body: ErrorBody, unknown: type[WeftError] = UsageError) -> WeftError:
    """The error that a body tells of, as it was raised; `unknown` where we have no such kind."""
    kind = getattr(errors, body.kind, unknown)
    if not (isinstance(kind, type) and issubclass(kind, WeftError)):
        kind = UsageError
    # Without its constructor, which takes other arguments than the finished sentence.
    error: WeftError = kind.__new__(kind, body.message)
    error.args = (body.message,)
    error.__dict__.update(body.details)
    return error


def _details(error: WeftError) -> dict[str, Any]:
    """The facts of an error that JSON can carry."""
    plain = (str, int, float, bool, type(None))
    kept: dict[str, Any] = {}
    for name, value in vars(error).items():
        if isinstance(value, plain):
            kept[name] = value
        elif isinstance(value, list | tuple) and all(isinstance(each, plain) for each in value):
            kept[name] = list(value)
        elif isinstance(value, dict) and all(isinstance(each, plain) for each in value.values()):
            kept[name] = value
    return kept
