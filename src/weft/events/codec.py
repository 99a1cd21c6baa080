"""The codec: facts and signals to bytes and back.

A fact of an unknown kind comes from a newer program: it is kept byte for byte as `UnknownFact`,
counts for its `seq`, and means nothing to any fold.  A fact of a known kind whose content does not
fit is damage, and raises.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias, final, get_args

import msgspec

from weft.errors import Corrupt
from weft.events.base import FactBase
from weft.events.facts import Fact
from weft.events.signals import Signal
from weft.events.upcast import UPCASTERS, upcast
from weft.ids import SessionId


# To drop it, or to write only what we understood of it, would destroy what a newer program stored
# as soon as this one exports or copies the log.
@final
class UnknownFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact of a kind that this program does not know, exactly as it was stored."""

    kind: str
    session_id: SessionId
    seq: int
    at: float
    raw: bytes


AnyFact: TypeAlias = Fact | UnknownFact
Event: TypeAlias = Fact | UnknownFact | Signal


# msgspec skips fields that a struct does not have: this reads the head of any fact, of any version.
class _Head(msgspec.Struct):
    kind: str
    seq: int
    session_id: str = ""
    at: float = 0.0


# Taken from the union, so that a class cannot be in the one and not in the other.
FACTS: dict[str, type[Fact]] = {cls.__struct_config__.tag: cls for cls in get_args(Fact)}
"""Every kind of fact by its stored name."""
SIGNALS: dict[str, type[Signal]] = {cls.__struct_config__.tag: cls for cls in get_args(Signal)}
"""Every kind of signal by its wire name."""

_encoder = msgspec.json.Encoder()
_head = msgspec.json.Decoder(_Head)

_DAMAGE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What bytes that we never wrote may raise: not JSON, not a fact, not UTF-8, or nested too
deeply.
"""


# Made when they are first needed: a decoder for so many types takes milliseconds, and a new session
# reads nothing.
@cache
def _facts() -> msgspec.json.Decoder[Fact]:
    return msgspec.json.Decoder(Fact)


@cache
def _events() -> msgspec.json.Decoder[Fact | Signal]:
    return msgspec.json.Decoder(Fact | Signal)


def encode(event: Event | FactBase) -> bytes:
    """The stored (and wire) form of a fact or signal."""
    return event.raw if isinstance(event, UnknownFact) else _encoder.encode(event)


def kind_of(event: Event | FactBase) -> str:
    """The stored name of the event's kind."""
    if isinstance(event, UnknownFact):
        return event.kind
    return str(event.__struct_config__.tag)


def decode(body: bytes, *, stream: str = "fact", seq: int | None = None) -> AnyFact:
    """A stored fact.  `stream` and `seq` say where it was found, for bytes that cannot say so
    themselves.

    Raises:
        Corrupt: the bytes are no fact, or a known kind has content that does not fit it.
    """
    try:
        # Today's kinds first: opening a session comes through here for every fact, and the tag
        # alone selects the type. Only what this refuses is looked at twice.
        return _facts().decode(body)
    except _DAMAGE as error:
        return _decode_old_or_unknown(body, error, stream, seq)


def decode_event(body: bytes) -> Event:
    """A fact or signal from the wire; an unknown kind with a `seq` is kept as `UnknownFact`."""
    try:
        return _events().decode(body)
    except _DAMAGE as error:
        return _decode_old_or_unknown(body, error)


def _decode_old_or_unknown(
    body: bytes, error: Exception, stream: str = "fact", seq: int | None = None
) -> AnyFact:
    try:
        head = _head.decode(body)
    except _DAMAGE:
        raise Corrupt(stream, f"not a fact: {error}", seq=seq) from error
    # The order matters: a known kind that does not fit is damage, and must not pass as unknown.
    if head.kind in FACTS:
        raise Corrupt(head.session_id, f"{head.kind}: {error}", seq=head.seq) from error
    if head.kind in UPCASTERS:
        return _decode_old(body, head)
    return UnknownFact(
        kind=head.kind,
        session_id=SessionId(head.session_id),
        seq=head.seq,
        at=head.at,
        raw=bytes(body),
    )


def _decode_old(body: bytes, head: _Head) -> Fact:
    try:
        newer: dict[str, Any] = upcast(msgspec.json.decode(body), UPCASTERS)
        # A union type is fine at run time.
        return msgspec.convert(newer, Fact)  # type: ignore[no-any-return]
    except (*_DAMAGE, LookupError, TypeError, ValueError) as error:
        # An upcaster is written for what was stored; whatever it stumbles over is damage.
        raise Corrupt(head.session_id, f"{head.kind}: {error}", seq=head.seq) from error
