"""The tree of a session as people see it: every message with its beginning, and the names in it.

Values only; `api` reads the words from the log, `outline` draws the rows.
"""

from __future__ import annotations

import msgspec

from weft.ids import NodeId
from weft.messages import Role
from weft.tree import Branch


# There is one for every message, and none can be part of a cycle: the garbage collector, which
# would run again and again while a long tree is listed, does not track them.
class TreeMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One message of the tree."""

    id: NodeId
    parent: NodeId | None
    role: Role
    text: str = ""
    """The beginning of what it says, in one line."""
    calls: int = 0
    is_partial: bool = False
    is_pinned: bool = False
    revision: int = 0
    """How often it was edited."""
    at: float = 0.0
    """When it was stored; 0 where its words were not read."""
    cost_usd: float | None = None
    """What the model call that made it cost; None where that is not known."""


class CheckpointInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A named place."""

    name: str
    node: NodeId | None


class TreeView(msgspec.Struct, frozen=True, kw_only=True):
    """All messages of a session, parents before their children, and the names in it."""

    messages: tuple[TreeMessage, ...]
    head: NodeId | None
    """Where the conversation stands."""
    branches: tuple[Branch, ...]
    checkpoints: tuple[CheckpointInfo, ...] = ()
    summarized_to: NodeId | None = None
    """What the model sees as a summary ends here; None when it sees everything."""
    can_undo_compaction: bool = False
    """There is a summary on this line, or there are cleared results."""
