"""What comes into a session's mailbox: commands, and what its own tasks have to say."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from weft.loop import Build, SessionWork, TurnJournal
from weft.session.commands import Command


class TurnWrites(msgspec.Struct, frozen=True):
    """The running turn has something to commit."""

    journal: TurnJournal
    build: Build


class ChildAppend(msgspec.Struct, frozen=True):
    """A session that works for this one has something to put on record here."""

    build: Build
    wake: bool = False


class TurnEnded(msgspec.Struct, frozen=True):
    """The turn's task is over."""

    turn: SessionWork
    error: BaseException | None


class AbortOverdue(msgspec.Struct, frozen=True):
    """A turn did not settle in time after an abort."""

    turn: SessionWork


class TimeOverdue(msgspec.Struct, frozen=True):
    """The time of the turn, or of the goal that this works for, may be over."""

    turn: SessionWork


class StoreReturned(msgspec.Struct, frozen=True):
    """A store that was out of reach answers again."""


OfTurns: TypeAlias = (
    TurnWrites | ChildAppend | TurnEnded | AbortOverdue | TimeOverdue | StoreReturned
)
Message: TypeAlias = Command[Any] | OfTurns
