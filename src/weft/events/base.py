"""What every fact and every signal carries."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.ids import InputId, SessionId


class CommandCause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The command that an append came from; kept on the first fact of the append, so that a repeat is recognised for ever."""

    input_id: InputId
    digest: str
    """Hash of the command's arguments: the same id with another digest is refused."""
    answer: Any = None
    """What the command answered; a repeat gets it again."""


class FactBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """A durable event.  The session's actor stamps the three fields when it appends."""

    session_id: SessionId = SessionId("")
    seq: int = 0
    """Its place in the stream: 1, 2, 3, … with no gap and no repeat."""
    at: float = 0.0
    """Wall-clock seconds; for showing, never for ordering."""
    cause: CommandCause | None = None


class SignalBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """A live event: published, never stored, never moves a cursor."""

    session_id: SessionId = SessionId("")
    after_seq: int = 0
    """The last fact that had been published when this was."""
    at: float = 0.0
