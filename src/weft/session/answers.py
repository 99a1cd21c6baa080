"""Answers of commands: what a session gives back for what it was asked to do.

Plain values, because they travel like the commands: through a mailbox or a socket, and into the log
beside the facts of a command that has an `input_id`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from weft.ids import EntryId, NodeId, TurnId
from weft.state import QueueEntry


class Accepted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was said is durable."""

    status: Literal["started", "steering", "follow_up"]
    turn_id: TurnId | None = None
    entry_id: EntryId | None = None
    seq: int = 0
    """The log's end before it: a reader from there on sees all that comes of it."""


class AbortReceipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an abort stopped, and what is still waiting."""

    turn_id: TurnId | None = None
    """None: no turn ran."""
    surviving: tuple[QueueEntry, ...] = ()
    """Queued messages that are still there."""


class QueuedMessages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Both queues, next one first."""

    steering: tuple[QueueEntry, ...] = ()
    follow_up: tuple[QueueEntry, ...] = ()


RewindAction: TypeAlias = Literal[
    "restore", "delete", "recreate", "conflict", "unavailable", "unchanged"
]
"""`restore` it, `delete` what the session made, `recreate` what it removed; or leave it as it is:
it was changed outside the session (`conflict`), what it was is gone (`unavailable`), or it is so
already.
"""


class RewindItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rewind does with one file, link or folder."""

    path: str
    action: RewindAction
    reason: str = ""


class RewindPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rewind does, or did."""

    to: NodeId | None
    conversation: bool
    files: tuple[RewindItem, ...] = ()
    """Every path that the session changed since, in order."""
    left_out: tuple[str, ...] = ()
    """What the file history does not know, so that it is not put back."""
    is_done: bool = False
    """False: a preview."""
    left: NodeId | None = None
    """The end of the line that the conversation leaves, as of `Branch`."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Paths that are left as they are because they were changed outside the session."""
        return tuple(item.path for item in self.files if item.action == "conflict")
