"""The session's actor: commands in, facts appended, turns run, events out.

Owns the order "append, then apply, then publish", recovery and the cursor.  Knows models and tools only through the `Workshop` that
makes its turns.
"""

from weft.session.actor import SessionActor
from weft.session.branching import branches, current_branch
from weft.session.commands import (
    ANSWERS,
    Abort,
    AbortReceipt,
    Accepted,
    AddNote,
    AnswerQuestion,
    Attach,
    Branch,
    BranchAt,
    ChangeSetting,
    Command,
    Compact,
    ContinueTurn,
    DeleteBranch,
    DequeueSteering,
    Detach,
    EditNode,
    EditQueued,
    MarkNode,
    Queued,
    RecallQueues,
    RecordUsage,
    RemoveQueued,
    RenameBranch,
    ReorderQueue,
    RespondToPermission,
    Say,
    SetCheckpoint,
    Stop,
    SwitchBranch,
    ToggleCollapse,
    UndoCompaction,
)
from weft.session.environment import SessionEnvironment, Workshop
from weft.session.follow import Subscription
from weft.session.gate import Leave
from weft.session.line import load_line, load_revisions
from weft.session.loading import fold_after, load_state

__all__ = [
    "ANSWERS",
    "Abort",
    "AbortReceipt",
    "Accepted",
    "AddNote",
    "AnswerQuestion",
    "Attach",
    "Branch",
    "BranchAt",
    "ChangeSetting",
    "Command",
    "Compact",
    "ContinueTurn",
    "DeleteBranch",
    "DequeueSteering",
    "Detach",
    "EditNode",
    "EditQueued",
    "Leave",
    "MarkNode",
    "Queued",
    "RecallQueues",
    "RecordUsage",
    "RemoveQueued",
    "RenameBranch",
    "ReorderQueue",
    "RespondToPermission",
    "Say",
    "SessionActor",
    "SessionEnvironment",
    "SetCheckpoint",
    "Stop",
    "Subscription",
    "SwitchBranch",
    "ToggleCollapse",
    "UndoCompaction",
    "Workshop",
    "branches",
    "current_branch",
    "fold_after",
    "load_line",
    "load_revisions",
    "load_state",
]
