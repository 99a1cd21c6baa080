"""A node without its words: where it stands, what hangs on it, and where its words are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from weft.ids import CallUid, NodeId, SessionId
from weft.messages import Role

WIDE: Final = 256
"""So many children of one node are rare."""


# There is one for every node and result of a long session: it is an array in snapshots, not a map,
# and since it cannot be part of a cycle, the garbage collector does not track it.
class LogPosition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where words are kept: a log, and a `seq` in it."""

    log: SessionId
    seq: int


# All of them stay in memory as long as the session is open. Most have no results, marks or earlier
# revisions, and an empty map for each of these would weigh more than all that they hold.
# Nor can one be part of a cycle.
class NodeSkeleton(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A node without its words."""

    parent: NodeId | None
    role: Role
    at: LogPosition
    """Where the newest revision is kept."""
    parent_revision: int = 0
    revision: int = 0
    earlier: tuple[LogPosition, ...] = ()
    """Where revisions 0, 1, … before the newest are kept."""
    calls: tuple[CallUid, ...] = ()
    """The calls an assistant node made, in the model's order."""
    places: dict[CallUid, LogPosition] | None = None
    children: tuple[NodeId, ...] = ()
    marked: dict[str, Any] | None = None
    partial: bool = False
    depth: int = 1
    """How many nodes its line has: 1 for a root."""
    hidden: bool = False
    """It was deleted, or a node above it."""

    @property
    def results(self) -> Mapping[CallUid, LogPosition]:
        """Where the results of its calls are kept."""
        return self.places or {}

    @property
    def marks(self) -> Mapping[str, Any]:
        """Its marks by name."""
        return self.marked or {}

    def take_result(self, call_uid: CallUid, at: LogPosition) -> None:
        """A result was recorded.

        The first counts: recovery may have settled a call whose tool reports later, and what the
        model has read must not change.
        """
        if self.places is None:
            self.places = {}
        self.places.setdefault(call_uid, at)

    def add_child(self, child: NodeId) -> None:
        """Hang a child on it, as the last one."""
        if len(self.children) < WIDE:
            self.children += (child,)
            return
        # As a list, which reads the same: to copy a tuple for every further child would take time
        # that grows with the square of their number.
        if type(self.children) is tuple:
            self.children = cast("tuple[NodeId, ...]", list(self.children))
        cast("list[NodeId]", self.children).append(child)

    def set_mark(self, mark: str, value: Any) -> None:
        """Set a mark, or with None remove it."""
        marks = self.marked or {}
        if value is None:
            marks.pop(mark, None)
        else:
            marks[mark] = value
        self.marked = marks or None

    def copied(self) -> NodeSkeleton:
        """An equal one that can be changed without changing this one."""
        return msgspec.structs.replace(
            self,
            places=None if self.places is None else dict(self.places),
            marked=None if self.marked is None else dict(self.marked),
            children=tuple(self.children),
        )
