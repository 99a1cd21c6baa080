"""Decision of a command: the facts it appends, its answer, and what a decision may look at.

The groups of commands are named here and not with the functions that decide them, so that a session
loads only the functions that it has commands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from weft.errors import SessionBusy
from weft.events import Fact
from weft.ids import BlobId
from weft.session.commands import (
    AddNote,
    AnswerQuestion,
    BeginCall,
    BranchAt,
    BringOver,
    ChangeSetting,
    ClearBoundary,
    CompactNow,
    ContinueTurn,
    CycleModel,
    CycleThinking,
    DecidePlan,
    DeleteBranch,
    DequeueSteering,
    EditNode,
    EditPlan,
    EditQueued,
    MarkNode,
    RecallQueues,
    RecordUsage,
    RemoveQueued,
    RenameBranch,
    ReorderQueue,
    RespondToPermission,
    SendPrompt,
    SetBoundary,
    SetCheckpoint,
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

PromptCommand: TypeAlias = SendPrompt | ContinueTurn | WakeTurn
QueueCommand: TypeAlias = EditQueued | RemoveQueued | ReorderQueue | RecallQueues | DequeueSteering
RequestCommand: TypeAlias = RespondToPermission | AnswerQuestion | DecidePlan | EditPlan
SettingCommand: TypeAlias = ChangeSetting | CycleModel | CycleThinking | SetMode | SwitchSkill
HeadCommand: TypeAlias = EditNode | BranchAt | SwitchBranch
NameCommand: TypeAlias = RenameBranch | DeleteBranch | SetCheckpoint
LineCommand: TypeAlias = (
    HeadCommand | NameCommand | MarkNode | ToggleCollapse | CompactNow | UndoCompaction
)
BoundaryCommand: TypeAlias = SetBoundary | ClearBoundary
RecordCommand: TypeAlias = AddNote | BringOver | BeginCall | RecordUsage | StopBackground


class DecidedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be appended, answered and done."""

    facts: tuple[Fact, ...] = ()
    answer: Any = None
    blobs: Mapping[BlobId, bytes] = {}
    then: Literal["nothing", "start_turn", "compact"] = "nothing"
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


def refuse_while_running(state: SessionState, context: DecisionContext, action: str) -> None:
    """Refuse what would change the line under a running turn.

    Raises:
        SessionBusy: a turn runs.
    """
    if context.running:
        raise SessionBusy(state.session_id, action)
