"""Decision of a command: the facts it appends, its answer, and what a decision may look at.

The groups of commands are named here and not with the functions that decide them, so that a session
loads only the functions that it has commands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from weft.errors import SessionBusy
from weft.events import Fact, TurnWaiting, UnattendedPermission
from weft.ids import BlobId
from weft.session.commands import (
    AddNote,
    AnswerQuestion,
    BeginCall,
    BeginWait,
    BranchAt,
    BringOver,
    CancelWait,
    ChangeSetting,
    ClearBoundary,
    ClearGoal,
    CompactNow,
    ContinueTurn,
    CycleModel,
    CycleThinking,
    DecidePlan,
    DeleteBranch,
    DequeueSteering,
    EditGoal,
    EditNode,
    EditPlan,
    EditQueued,
    ExcludeNode,
    MarkNode,
    PauseGoal,
    RecallQueues,
    RecordUsage,
    RemoveQueued,
    RenameBranch,
    ReorderQueue,
    RespondToPermission,
    ResumeGoal,
    ScheduleInput,
    SendPrompt,
    SetBoundary,
    SetCheckpoint,
    SetGoal,
    SetMode,
    StopBackground,
    SwitchBranch,
    SwitchSkill,
    ToggleCollapse,
    UndoCompaction,
    WakeTurn,
)
from weft.session.environment import FoundFile
from weft.state import SessionState
from weft.thinking_levels import KnownLevels

PromptCommand: TypeAlias = SendPrompt | ContinueTurn
QueueCommand: TypeAlias = EditQueued | RemoveQueued | ReorderQueue | RecallQueues | DequeueSteering
RequestCommand: TypeAlias = RespondToPermission | AnswerQuestion | DecidePlan | EditPlan
SettingCommand: TypeAlias = ChangeSetting | CycleModel | CycleThinking | SetMode | SwitchSkill
HeadCommand: TypeAlias = EditNode | BranchAt | SwitchBranch
NameCommand: TypeAlias = RenameBranch | DeleteBranch | SetCheckpoint
LineCommand: TypeAlias = (
    HeadCommand
    | NameCommand
    | MarkNode
    | ExcludeNode
    | ToggleCollapse
    | CompactNow
    | UndoCompaction
)
BoundaryCommand: TypeAlias = SetBoundary | ClearBoundary
UnattendedCommand: TypeAlias = ScheduleInput | BeginWait | CancelWait | WakeTurn
GoalCommand: TypeAlias = SetGoal | EditGoal | PauseGoal | ResumeGoal | ClearGoal
RecordCommand: TypeAlias = AddNote | BringOver | BeginCall | RecordUsage | StopBackground


class DecidedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be appended, answered and done."""

    facts: tuple[Fact, ...] = ()
    answer: Any = None
    blobs: Mapping[BlobId, bytes] = {}
    then: Literal["nothing", "start_turn", "start_asleep", "go_on", "compact", "goal", "check"] = (
        "nothing"
    )
    """`start_asleep`: a turn that waits first, and asks no model before that; `go_on`: with the
    turn that a dead process left open, when the facts are durable; `goal`: with what comes next
    for the goal; `check`: run its check."""
    focus: str = ""
    """What a compaction is to pay attention to."""
    rule: str = ""
    """A permission rule that the user saves; stored before the answer counts."""


class DecisionContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision may know besides the state."""

    now: float
    running: bool
    """A turn of this process is at work."""
    file: FoundFile | None = None
    """The file that the command names."""
    levels: KnownLevels = None
    """The thinking levels of the model that the session has after this command."""
    is_sandboxed: bool = True
    """Commands of the session run in a sandbox; looked at for a goal alone."""
    waited: TurnWaiting | None = None
    """What the command waits for, looked at; its turn and its id are still to come."""
    sealed: Callable[..., UnattendedPermission | None] = lambda name, said, besides=None: None
    """What the session may do now, and what is named besides, given to the schedule or goal of this
    id that says this; None where nothing can be."""
    sealed_plainly: Callable[[str, str], UnattendedPermission | None] = lambda name, said: None
    """The same with nothing but the seal."""
    is_sealed: Callable[[str, UnattendedPermission | None, str], bool] = lambda name, given, said: (
        False
    )
    """Whether this was given to it by the user."""


def refuse_while_running(state: SessionState, context: DecisionContext, action: str) -> None:
    """Refuse what would change the line under a running turn.

    Raises:
        SessionBusy: a turn runs.
    """
    if context.running:
        raise SessionBusy(state.session_id, action)
