"""The session's actor: commands in, facts appended, turns run, events out.

Owns the order "append, then apply, then publish", recovery and the cursor.  Knows models and tools
only through the `TurnFactory` that makes its turns.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.session.actor import SessionActor
from weft.session.answers import (
    AbortReceipt,
    Accepted,
    QueuedMessages,
    RewindItem,
    RewindPlan,
)
from weft.session.commands import (
    UNNAMED_CLIENT,
    AbortTurn,
    AddNote,
    AnswerQuestion,
    AnyCommand,
    AttachClient,
    BeginCall,
    BranchAt,
    BringOver,
    ChangeSetting,
    ChildCommand,
    ClearBoundary,
    Command,
    CompactNow,
    ContinueTurn,
    CycleModel,
    CycleThinking,
    DecidePlan,
    DeleteBranch,
    DequeueSteering,
    DetachClient,
    EditNode,
    EditPlan,
    EditQueued,
    ForwardRequest,
    MarkNode,
    RecallQueues,
    RecordUsage,
    RemoveQueued,
    RenameBranch,
    ReorderQueue,
    ReportChild,
    Reserve,
    RespondToPermission,
    RewindTo,
    SendPrompt,
    SetBoundary,
    SetCheckpoint,
    SetMode,
    Settle,
    StopBackground,
    StopSession,
    SwitchBranch,
    SwitchSkill,
    ToggleCollapse,
    UndoCompaction,
    UndoRewind,
    WakeTurn,
    answer_of,
    checked,
    digest,
)
from weft.session.environment import (
    FileFinder,
    FileNow,
    FileRestorer,
    FoundFile,
    LineReader,
    PermissionSources,
    PriceList,
    RecoveryProbe,
    SessionEnvironment,
    TurnFactory,
)
from weft.session.log.line import LineCacheBudget
from weft.session.permission_gate import GrantedPermissions
from weft.session.port import SessionPort
from weft.session.subscriptions.event_hub import EventHub
from weft.session.subscriptions.subscription import Subscription
from weft.tree import Branch

if TYPE_CHECKING:  # loaded when they are first used
    from weft.session.decide.branches import branches, current_branch, node_at
    from weft.session.decide.children import child_end
    from weft.session.log.load import fold_after, load_state, load_with_snapshot
    from weft.session.log.stored_line import (
        CallRecord,
        load_beginnings,
        load_call_records,
        load_line,
        load_nodes,
        load_revisions,
        unspill_entries,
    )

__all__ = [
    "UNNAMED_CLIENT",
    "AbortReceipt",
    "AbortTurn",
    "Accepted",
    "AddNote",
    "AnswerQuestion",
    "AnyCommand",
    "AttachClient",
    "BeginCall",
    "Branch",
    "BranchAt",
    "BringOver",
    "CallRecord",
    "ChangeSetting",
    "ChildCommand",
    "ClearBoundary",
    "Command",
    "CompactNow",
    "ContinueTurn",
    "CycleModel",
    "CycleThinking",
    "DecidePlan",
    "DeleteBranch",
    "DequeueSteering",
    "DetachClient",
    "EditNode",
    "EditPlan",
    "EditQueued",
    "EventHub",
    "FileFinder",
    "FileNow",
    "FileRestorer",
    "ForwardRequest",
    "FoundFile",
    "GrantedPermissions",
    "LineCacheBudget",
    "LineReader",
    "MarkNode",
    "PermissionSources",
    "PriceList",
    "QueuedMessages",
    "RecallQueues",
    "RecordUsage",
    "RecoveryProbe",
    "RemoveQueued",
    "RenameBranch",
    "ReorderQueue",
    "ReportChild",
    "Reserve",
    "RespondToPermission",
    "RewindItem",
    "RewindPlan",
    "RewindTo",
    "SendPrompt",
    "SessionActor",
    "SessionEnvironment",
    "SessionPort",
    "SetBoundary",
    "SetCheckpoint",
    "SetMode",
    "Settle",
    "StopBackground",
    "StopSession",
    "Subscription",
    "SwitchBranch",
    "SwitchSkill",
    "ToggleCollapse",
    "TurnFactory",
    "UndoCompaction",
    "UndoRewind",
    "WakeTurn",
    "answer_of",
    "branches",
    "checked",
    "child_end",
    "current_branch",
    "digest",
    "fold_after",
    "load_beginnings",
    "load_call_records",
    "load_line",
    "load_nodes",
    "load_revisions",
    "load_state",
    "load_with_snapshot",
    "node_at",
    "unspill_entries",
]

_HOMES = {
    "CallRecord": "log.stored_line",
    "branches": "decide.branches",
    "child_end": "decide.children",
    "current_branch": "decide.branches",
    "fold_after": "log.load",
    "load_beginnings": "log.stored_line",
    "load_call_records": "log.stored_line",
    "load_line": "log.stored_line",
    "load_nodes": "log.stored_line",
    "load_revisions": "log.stored_line",
    "load_state": "log.load",
    "load_with_snapshot": "log.load",
    "node_at": "decide.branches",
    "unspill_entries": "log.stored_line",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
