"""The bases of facts and signals: what every one of them carries."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.ids import InputId, SessionId


class CommandCause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The command that an append came from.

    Kept on the first fact of the append, so that a repeat is recognised for ever.
    """

    input_id: InputId
    digest: str
    """Hash of the command's arguments: the same id with another digest is refused."""
    answer: Any = None
    """What the command answered; a repeat gets it again."""


# Stored for good, without the fields that are at their default: a new field needs a default, and a
# default must never change, or facts of old logs would change their meaning.
# Without the garbage collector: what is made of values and never changed is part of no cycle.
class FactBase(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False
):
    """A durable event.  The session's actor stamps the three fields when it appends."""

    session_id: SessionId = SessionId("")
    seq: int = 0
    """Its place in the stream: 1, 2, 3, … with no gap and no repeat."""
    # A clock may be set back; `seq` is the only order.
    at: float = 0.0
    """Wall-clock seconds; for showing, never for ordering."""
    cause: CommandCause | None = None


class SignalBase(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False
):
    """A live event: published, never stored, never moves a cursor."""

    session_id: SessionId = SessionId("")
    # Signals have no number of their own and may be lost. With this a subscriber can tell one that
    # is older than the facts it has read, and drop it.
    after_seq: int = 0
    """The last fact that had been published when this was."""
    at: float = 0.0

    @property
    def weight(self) -> int:
        """Characters that it holds, whatever its fields are called."""
        return sum(len(each) for each in msgspec.structs.astuple(self) if isinstance(each, str))
