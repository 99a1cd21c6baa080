"""Folds: queue, ledger, settings, todos, files, the open turn, and all of them together with the
tree.

Pure: facts in, state out.  Nothing here waits, reads a clock or touches a disk.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.state.about import SessionSummary
from weft.state.background import BackgroundCommand, BackgroundCommandLog
from weft.state.boundaries import EditBoundaries, EditBoundary
from weft.state.children import ChildSession, ChildSessions
from weft.state.files import (
    LeftFile,
    SavedWorkspace,
    SnapshotPlace,
    TouchedFile,
    TouchedFiles,
    note_left_out,
)
from weft.state.goals import GOAL_OPTION, GOAL_TIMED, SessionGoal
from weft.state.inputs import InputMemory
from weft.state.ledger import UsageLedger, used_by
from weft.state.plan import DoneStep, PlanState, StepState
from weft.state.queue import InputQueue, QueueEntry, combine_queue_entries_to_text
from weft.state.schedules import OpenSchedule, PromptSchedules
from weft.state.session import FOLD_VERSION, SessionState, TodoList, fold
from weft.state.settings import SessionSettings
from weft.state.turn import (
    GONE_ON_BY_USER,
    AnsweredRequest,
    ModelCall,
    OpenTurn,
    OpenTurnState,
    Request,
)

if TYPE_CHECKING:  # loaded when they are first used
    from weft.state.snapshot_codec import pack, restore, snapshot, unpack

__all__ = [
    "FOLD_VERSION",
    "GOAL_OPTION",
    "GOAL_TIMED",
    "GONE_ON_BY_USER",
    "AnsweredRequest",
    "BackgroundCommand",
    "BackgroundCommandLog",
    "ChildSession",
    "ChildSessions",
    "DoneStep",
    "EditBoundaries",
    "EditBoundary",
    "InputMemory",
    "InputQueue",
    "LeftFile",
    "ModelCall",
    "OpenSchedule",
    "OpenTurn",
    "OpenTurnState",
    "PlanState",
    "PromptSchedules",
    "QueueEntry",
    "Request",
    "SavedWorkspace",
    "SessionGoal",
    "SessionSettings",
    "SessionState",
    "SessionSummary",
    "SnapshotPlace",
    "StepState",
    "TodoList",
    "TouchedFile",
    "TouchedFiles",
    "UsageLedger",
    "combine_queue_entries_to_text",
    "fold",
    "note_left_out",
    "pack",
    "restore",
    "snapshot",
    "unpack",
    "used_by",
]

_HOMES = {
    "pack": "snapshot_codec",
    "restore": "snapshot_codec",
    "snapshot": "snapshot_codec",
    "unpack": "snapshot_codec",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
