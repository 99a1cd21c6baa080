"""The session's actor: commands in, facts appended, turns run, events out.

Owns the order "append, then apply, then publish", recovery and the cursor.  Knows models and tools only through the `Workshop` that
makes its turns.
"""

from weft.session.actor import SessionActor
from weft.session.commands import (
    ANSWERS,
    Abort,
    AbortReceipt,
    Accepted,
    AddNote,
    AnswerQuestion,
    Attach,
    ChangeSetting,
    Command,
    ContinueTurn,
    DequeueSteering,
    Detach,
    EditQueued,
    MarkNode,
    Queued,
    RecallQueues,
    RemoveQueued,
    ReorderQueue,
    RespondToPermission,
    Say,
    Stop,
)
from weft.session.environment import SessionEnvironment, Workshop
from weft.session.follow import Subscription
from weft.session.line import load_line
from weft.session.loading import fold_after, load_state

__all__ = [
    "ANSWERS",
    "Abort",
    "AbortReceipt",
    "Accepted",
    "AddNote",
    "AnswerQuestion",
    "Attach",
    "ChangeSetting",
    "Command",
    "ContinueTurn",
    "DequeueSteering",
    "Detach",
    "EditQueued",
    "MarkNode",
    "Queued",
    "RecallQueues",
    "RemoveQueued",
    "ReorderQueue",
    "RespondToPermission",
    "Say",
    "SessionActor",
    "SessionEnvironment",
    "Stop",
    "Subscription",
    "Workshop",
    "fold_after",
    "load_line",
    "load_state",
]
