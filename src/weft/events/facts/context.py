"""Facts of the model's context: compaction, prompt prefix, boundaries, skills, to-do list, and what
the session added to its project's decision graph.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from weft.events.base import FactBase
from weft.ids import BlobId, CallUid, DecisionId, NodeId, SessionId


class FailedCommand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command that failed when it was last run."""

    command: str
    exit_code: int = 0
    """0 where it did not end by itself: it took too long, or was held back."""
    output: str = ""
    """Its last lines."""


class EditedFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many lines of a file edits have added and removed."""

    path: str
    added: int = 0
    removed: int = 0


class Todo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of the model's to-do list."""

    id: str
    text: str
    status: Literal["pending", "in_progress", "done", "cancelled"] = "pending"


class KeptRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What outlives compactions word for word, and the next one goes on with: taken from the
    record, never from a summary.
    """

    rules: tuple[str, ...] = ()
    """Sentences of the user with an order or a ban."""
    more_rules: int = 0
    """Others that there is no room for."""
    values: tuple[str, ...] = ()
    """Sentences with exact values, of messages that are no longer kept whole."""
    messages: tuple[str, ...] = ()
    """The user's own messages, oldest first."""
    more_messages: int = 0
    """Older ones that there is no room for."""
    failures: tuple[FailedCommand, ...] = ()
    done: tuple[str, ...] = ()
    """Tasks that were finished and have left the list."""
    todos: tuple[Todo, ...] = ()
    """The list of tasks as the part that went has it."""
    edits: tuple[EditedFile, ...] = ()
    pinned: tuple[NodeId, ...] = ()
    """Messages of the user that nothing was taken from, because they were pinned."""


class Compacted(FactBase, frozen=True, tag="compacted"):
    """The model reads the line up to `upto` as a summary."""

    upto: NodeId
    summary: str
    carried: tuple[str, ...] = ()
    """What is carried by structure: pinned nodes, files, tasks, boundaries."""
    tokens_before: int = 0
    tokens_after: int = 0
    kept: KeptRecord | None = None
    """What is carried besides; None in compactions of older programs."""
    struck: tuple[str, ...] = ()
    """Lines of the summary that the record contradicts; they are not in `summary`."""


class ResultsCleared(FactBase, frozen=True, tag="results_cleared"):
    """The model reads a line in the place of these results."""

    upto: NodeId
    """The end of the line when it was done; it counts where this is an ancestor of the head."""
    results: dict[CallUid, int]
    """Call → how many characters of its result stay.  All that are cleared on the line: the newest
    such fact counts alone."""
    tokens_before: int = 0
    tokens_after: int = 0


class CompactionUndone(FactBase, frozen=True, tag="compaction_undone"):
    """A compaction, or the clearing of results, no longer counts."""

    compaction: int
    """`seq` of the compaction, or of the clearing."""
    log: SessionId | None = None
    """The log that holds it; None is this one, another name one that a fork shares."""


class PrefixFrozen(FactBase, frozen=True, tag="prefix_frozen"):
    """A new epoch of the prompt's prefix began."""

    # A blob under its hash: system prompt and tools are long, and sessions with the same ones share
    # it.
    prefix: BlobId
    reason: str = ""


class BoundaryChanged(FactBase, frozen=True, tag="boundary_changed"):
    """Edits of a file are held to a range of lines (0-based, inclusive); None lifts it."""

    path: str
    first: int | None = None
    last: int | None = None
    """`first - 1` when all lines of the range were removed."""
    base: BlobId | None = None
    """The version of the file that these lines belong to; stored as a blob, so that the range can
    follow any change."""
    moves: int = 0
    """Set when the range only moved along with an edit: `seq` of the fact that set the boundary."""


class SkillChanged(FactBase, frozen=True, tag="skill_changed"):
    """A skill was switched on or off."""

    name: str
    active: bool


class TodoChanged(FactBase, frozen=True, tag="todo_changed"):
    """The to-do list is now this."""

    items: tuple[Todo, ...] = ()


# The nodes and edges themselves are facts of the project's stream (`weft.decisions`), in the same
# append: they outlive the session.
class DecisionLogged(FactBase, frozen=True, tag="decision_logged"):
    """The session added to its project's decision graph, or changed it."""

    ids: tuple[DecisionId, ...] = ()
    """The nodes, the one it is about first."""
    project_id: str = ""
    summary: str = ""
    """One line, for display."""
    node: NodeId | None = None
    """The message it came from."""
    call_uid: CallUid | None = None
    """The call it came from."""
