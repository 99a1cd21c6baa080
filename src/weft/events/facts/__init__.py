"""The closed union of facts: everything a log may hold.

Each class is one kind, past tense, small.  The tag is its stored name for ever: a change that old
readers would misread gets a new tag (`new_message@2`), and the old one an upcaster in
`events.upcast`.  `docs/formats/facts.md` describes every field.
"""

from typing import TypeAlias

from weft.events.facts.agents import (
    ArchitectPlan,
    ArchitectStep,
    ChildFinished,
    ChildStarted,
    FanBase,
    FanCandidateDropped,
    FanCandidateEnded,
    FanCandidateRestored,
    FanCandidateStarted,
    FanClosed,
    FanJudged,
    FanKept,
    FanSlot,
    FanStarted,
    FanVerified,
    PlanDecided,
    PlanEdited,
)
from weft.events.facts.asides import AsideAnswered
from weft.events.facts.context import (
    BoundaryChanged,
    Compacted,
    CompactionUndone,
    DecisionLogged,
    EditedFile,
    FailedCommand,
    KeptRecord,
    PrefixFrozen,
    ResultsCleared,
    SkillChanged,
    Todo,
    TodoChanged,
)
from weft.events.facts.files import (
    IncludedFile,
    LeftOutFile,
    SnapshotChange,
    WorkspaceSaved,
    WorkspaceSnapshot,
)
from weft.events.facts.goals import GoalChecked, GoalEnded, GoalPaused, GoalSet
from weft.events.facts.requests import (
    PermissionAction,
    PermissionRequest,
    PermissionResolved,
    QuestionAnswered,
    QuestionAsked,
)
from weft.events.facts.schedules import (
    InputScheduled,
    ScheduleEnded,
    ScheduleFired,
    UnattendedPermission,
)
from weft.events.facts.session import (
    CallOrigin,
    CommandEnd,
    ErrorRaised,
    ForkPoint,
    ModeChanged,
    SessionCreated,
    SessionHosted,
    SessionRestarted,
    SettingChanged,
    SystemNote,
)
from weft.events.facts.tree import (
    BranchesEnded,
    BranchesStarted,
    BranchFailed,
    BranchSlot,
    FileChange,
    HeadMoved,
    MovedNode,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    RefDeleted,
    RefMoved,
    Rewound,
    SubtreeDeleted,
    SubtreeRestored,
)
from weft.events.facts.turn import (
    CallPermission,
    Delivery,
    Effect,
    FileTouched,
    FinishReason,
    FinishWords,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputsReordered,
    ModelCallStarted,
    Purpose,
    QueuesRecalled,
    StoredReason,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnParked,
    TurnStarted,
    UsageRecorded,
    finish_words,
)
from weft.events.facts.waits import TurnWaiting, TurnWoken, WaitSubject

__all__ = [
    "ArchitectPlan",
    "ArchitectStep",
    "AsideAnswered",
    "BoundaryChanged",
    "BranchFailed",
    "BranchSlot",
    "BranchesEnded",
    "BranchesStarted",
    "CallOrigin",
    "CallPermission",
    "ChildFinished",
    "ChildStarted",
    "CommandEnd",
    "Compacted",
    "CompactionUndone",
    "DecisionLogged",
    "Delivery",
    "EditedFile",
    "Effect",
    "ErrorRaised",
    "Fact",
    "FailedCommand",
    "FanBase",
    "FanCandidateDropped",
    "FanCandidateEnded",
    "FanCandidateRestored",
    "FanCandidateStarted",
    "FanClosed",
    "FanJudged",
    "FanKept",
    "FanSlot",
    "FanStarted",
    "FanVerified",
    "FileChange",
    "FileTouched",
    "FinishReason",
    "FinishWords",
    "ForkPoint",
    "GoalChecked",
    "GoalEnded",
    "GoalPaused",
    "GoalSet",
    "HeadMoved",
    "IncludedFile",
    "InputEdited",
    "InputPromoted",
    "InputQueued",
    "InputRemoved",
    "InputScheduled",
    "InputsReordered",
    "KeptRecord",
    "LeftOutFile",
    "ModeChanged",
    "ModelCallStarted",
    "MovedNode",
    "NewMessage",
    "NodeEdited",
    "NodeMarked",
    "NodeSplit",
    "NodesJoined",
    "PermissionAction",
    "PermissionRequest",
    "PermissionResolved",
    "PlanDecided",
    "PlanEdited",
    "PrefixFrozen",
    "Purpose",
    "QuestionAnswered",
    "QuestionAsked",
    "QueuesRecalled",
    "RefDeleted",
    "RefMoved",
    "ResultsCleared",
    "Rewound",
    "ScheduleEnded",
    "ScheduleFired",
    "SessionCreated",
    "SessionHosted",
    "SessionRestarted",
    "SettingChanged",
    "SkillChanged",
    "SnapshotChange",
    "StoredReason",
    "SubtreeDeleted",
    "SubtreeRestored",
    "SystemNote",
    "Todo",
    "TodoChanged",
    "ToolComplete",
    "ToolExecuting",
    "TurnFinished",
    "TurnParked",
    "TurnStarted",
    "TurnWaiting",
    "TurnWoken",
    "UnattendedPermission",
    "UsageRecorded",
    "WaitSubject",
    "WorkspaceSaved",
    "WorkspaceSnapshot",
    "finish_words",
]

Fact: TypeAlias = (
    SessionCreated
    | SettingChanged
    | ModeChanged
    | SystemNote
    | ErrorRaised
    | SessionHosted
    | SessionRestarted
    | NewMessage
    | NodeEdited
    | NodeSplit
    | NodesJoined
    | NodeMarked
    | SubtreeDeleted
    | SubtreeRestored
    | HeadMoved
    | RefMoved
    | RefDeleted
    | Rewound
    | BranchesStarted
    | BranchFailed
    | BranchesEnded
    | InputQueued
    | InputPromoted
    | InputEdited
    | InputRemoved
    | InputsReordered
    | QueuesRecalled
    | TurnStarted
    | ModelCallStarted
    | UsageRecorded
    | ToolExecuting
    | ToolComplete
    | FileTouched
    | WorkspaceSaved
    | WorkspaceSnapshot
    | TurnWaiting
    | TurnWoken
    | InputScheduled
    | ScheduleFired
    | ScheduleEnded
    | GoalSet
    | GoalPaused
    | GoalChecked
    | GoalEnded
    | TurnFinished
    | TurnParked
    | AsideAnswered
    | PermissionRequest
    | PermissionResolved
    | QuestionAsked
    | QuestionAnswered
    | Compacted
    | ResultsCleared
    | CompactionUndone
    | PrefixFrozen
    | BoundaryChanged
    | SkillChanged
    | TodoChanged
    | DecisionLogged
    | ChildStarted
    | ChildFinished
    | ArchitectPlan
    | PlanEdited
    | PlanDecided
    | ArchitectStep
    | FanStarted
    | FanCandidateStarted
    | FanCandidateEnded
    | FanVerified
    | FanKept
    | FanJudged
    | FanCandidateDropped
    | FanCandidateRestored
    | FanClosed
)
