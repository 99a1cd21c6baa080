"""All folds of one session together: the whole state, as a function of the log.

A fork begins with facts of the log it came from.  Those carry that log's `session_id`; of them only
what a fork inherits is folded (tree, settings, files, todos), never the queue, open requests,
money, or which inputs were seen.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from weft.events import (
    FACTS,
    AnyFact,
    ArchitectPlan,
    ArchitectStep,
    AsideAnswered,
    BoundaryChanged,
    BranchesEnded,
    BranchesStarted,
    BranchFailed,
    ChildFinished,
    ChildStarted,
    Compacted,
    CompactionUndone,
    Fact,
    FileTouched,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    HeadMoved,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputScheduled,
    InputsReordered,
    ModeChanged,
    ModelCallStarted,
    NewMessage,
    NodeEdited,
    NodeMarked,
    NodesJoined,
    NodeSplit,
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    PlanEdited,
    PrefixFrozen,
    QuestionAnswered,
    QuestionAsked,
    QueuesRecalled,
    RefDeleted,
    RefMoved,
    ResultsCleared,
    Rewound,
    ScheduleEnded,
    ScheduleFired,
    SessionCreated,
    SessionHosted,
    SessionRestarted,
    SettingChanged,
    SkillChanged,
    SubtreeDeleted,
    SubtreeRestored,
    SystemNote,
    Todo,
    TodoChanged,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    TurnParked,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
    UnknownFact,
    UsageRecorded,
    WorkspaceSaved,
    WorkspaceSnapshot,
)
from weft.ids import BlobId, SessionId
from weft.state.about import SessionSummary
from weft.state.background import BackgroundCommandLog
from weft.state.boundaries import EditBoundaries
from weft.state.children import ChildSessions
from weft.state.files import TouchedFiles
from weft.state.goals import SessionGoal
from weft.state.hosted_grants import HostedGrants
from weft.state.inputs import InputMemory
from weft.state.ledger import UsageLedger
from weft.state.plan import PlanState
from weft.state.queue import InputQueue
from weft.state.schedules import PromptSchedules
from weft.state.settings import SessionSettings
from weft.state.turn import OpenTurnState
from weft.tree import ConversationTree

# A snapshot is only a cache of the fold. One that another fold made would be taken for the truth,
# and no error would show it: raise this with every change of what a fold computes.
REMEMBERED: Final = 10_000
"""How many files that the model has seen are remembered; the one seen longest ago goes first."""
FOLD_VERSION: Final = "37"
"""Changes whenever a fold does; a snapshot of another version is dropped."""

# By type, so that a fact costs two or three calls and not one for every fold: opening a long
# session without a snapshot is this loop.
_FOLDED_BY: dict[type[Fact], tuple[str, ...]] = {
    SessionCreated: ("tree", "settings", "about", "files"),
    SettingChanged: ("settings", "hosting"),
    SessionHosted: ("hosting", "files"),
    ModeChanged: ("settings",),
    SystemNote: ("tree", "background", "about"),
    AsideAnswered: ("tree",),
    NewMessage: ("tree", "turn", "about"),
    NodeEdited: ("tree",),
    NodeSplit: ("tree",),
    NodesJoined: ("tree",),
    NodeMarked: ("tree",),
    SubtreeDeleted: ("tree",),
    SubtreeRestored: ("tree",),
    HeadMoved: ("tree",),
    RefMoved: ("tree", "files"),
    RefDeleted: ("tree",),
    Rewound: ("tree", "files"),
    Compacted: (
        "turn",
        "tree",
    ),
    ResultsCleared: ("tree",),
    CompactionUndone: ("tree",),
    InputQueued: ("queue",),
    InputPromoted: ("queue", "schedules"),
    InputEdited: ("queue", "schedules"),
    InputRemoved: ("queue", "schedules"),
    InputsReordered: ("queue",),
    QueuesRecalled: ("queue",),
    TurnStarted: ("turn", "about", "children", "plan", "files", "goal"),
    ModelCallStarted: ("turn", "ledger", "goal"),
    ChildStarted: ("children",),
    ChildFinished: ("ledger", "children"),
    ArchitectPlan: ("plan",),
    PlanEdited: ("plan",),
    PlanDecided: ("plan",),
    ArchitectStep: ("plan",),
    ToolExecuting: ("turn", "files"),
    ToolComplete: ("tree", "turn"),
    FileTouched: ("files",),
    WorkspaceSaved: ("files",),
    WorkspaceSnapshot: ("files",),
    TurnWaiting: ("turn", "goal"),
    TurnWoken: ("turn", "goal"),
    InputScheduled: ("schedules",),
    ScheduleFired: ("schedules",),
    ScheduleEnded: ("schedules",),
    TurnParked: ("turn",),
    TurnFinished: ("turn", "hosting", "schedules", "goal"),
    GoalSet: ("goal",),
    GoalPaused: ("goal",),
    GoalChecked: ("goal",),
    GoalEnded: ("goal",),
    SessionRestarted: ("turn", "goal"),
    PermissionRequest: ("turn", "goal"),
    PermissionResolved: ("turn", "hosting", "goal"),
    QuestionAsked: ("turn", "goal"),
    QuestionAnswered: ("turn", "goal"),
    TodoChanged: ("todos",),
    SkillChanged: ("skills",),
    BoundaryChanged: ("boundaries",),
    BranchesStarted: ("generations", "tree"),
    BranchFailed: ("generations",),
    BranchesEnded: ("generations",),
}
"""Which folds take in which kind.

A kind that is not here is kept and means nothing to the state (yet).
"""

_ON_LINES = frozenset({NewMessage, UsageRecorded, ChildFinished, NodeSplit, NodesJoined})
"""What the sums of lines hang on."""
_FOLDED_FURTHER = _ON_LINES | {ToolComplete, PrefixFrozen, GoalSet}
"""What `SessionState._fold_further` takes in."""

# What is owed stays behind: queue, requests, open turn, usage and background commands are still the
# other session's own.
_INHERITED = frozenset({"tree", "settings", "files", "todos", "skills", "boundaries"})


class TodoList(msgspec.Struct):
    """The to-do list that the model keeps, as it is now."""

    items: tuple[Todo, ...] = ()

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if isinstance(fact, TodoChanged):
            self.items = fact.items


class ActiveSkills(msgspec.Struct):
    """The names of the active skills, in the order in which they were switched on."""

    # A map for its order, in which the system prompt shows them: the order of a set differs from
    # process to process.
    names: dict[str, bool] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case SkillChanged(name=name, active=True):
                self.names[name] = True
            case SkillChanged(name=name, active=False):
                self.names.pop(name, None)
            case _:
                pass


class FileReads(msgspec.Struct):
    """Which version of each file the model has seen, so that it still counts after a restart.

    Path → the hash that the model knows; the last seen is last.
    """

    seen: dict[str, BlobId] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if not isinstance(fact, ToolComplete):
            return
        # `data` is open: a tool from elsewhere may use the name for something else.
        read = fact.result.data.get("read")
        for path, digest in read.items() if isinstance(read, dict) else ():
            self._saw(path, digest)

    def _saw(self, path: str, digest: BlobId) -> None:
        # Out and in again: the order of a dict is that of the first insertion, and the oldest goes
        # first.
        self.seen.pop(path, None)
        self.seen[path] = digest
        if len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]


class OpenGenerations(msgspec.Struct):
    """Generations of branches that have begun and not ended, by their ids.

    What is left here after a crash is settled from the drafts of their nodes.
    """

    started: dict[str, BranchesStarted] = {}
    failed: dict[str, tuple[int, ...]] = {}
    """The slots of each that have failed."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case BranchesStarted(gen_id=gen_id):
                self.started[gen_id] = fact
            case BranchFailed(gen_id=gen_id, slot=slot):
                self.failed[gen_id] = (*self.failed.get(gen_id, ()), slot)
            case BranchesEnded(gen_id=gen_id):
                self.started.pop(gen_id, None)
                self.failed.pop(gen_id, None)
            case _:
                pass


class SessionState(msgspec.Struct, kw_only=True):
    """Everything that is known of a session, folded from its log."""

    session_id: SessionId
    seq: int = 0
    """The last own fact that was taken in."""
    # Factories: msgspec copies empty lists and maps for each instance, but it refuses other mutable
    # defaults.
    tree: ConversationTree = msgspec.field(default_factory=ConversationTree)
    queue: InputQueue = msgspec.field(default_factory=InputQueue)
    ledger: UsageLedger = msgspec.field(default_factory=UsageLedger)
    settings: SessionSettings = msgspec.field(default_factory=SessionSettings)
    todos: TodoList = msgspec.field(default_factory=TodoList)
    turn: OpenTurnState = msgspec.field(default_factory=OpenTurnState)
    files: TouchedFiles = msgspec.field(default_factory=TouchedFiles)
    reads: FileReads = msgspec.field(default_factory=FileReads)
    children: ChildSessions = msgspec.field(default_factory=ChildSessions)
    background: BackgroundCommandLog = msgspec.field(default_factory=BackgroundCommandLog)
    plan: PlanState = msgspec.field(default_factory=PlanState)
    skills: ActiveSkills = msgspec.field(default_factory=ActiveSkills)
    boundaries: EditBoundaries = msgspec.field(default_factory=EditBoundaries)
    generations: OpenGenerations = msgspec.field(default_factory=OpenGenerations)
    about: SessionSummary = msgspec.field(default_factory=SessionSummary)
    inputs: InputMemory = msgspec.field(default_factory=InputMemory)
    hosting: HostedGrants = msgspec.field(default_factory=HostedGrants)
    schedules: PromptSchedules = msgspec.field(default_factory=PromptSchedules)
    goal: SessionGoal = msgspec.field(default_factory=SessionGoal)
    prefix: BlobId | None = None
    """The rendered prefix of the present epoch."""

    @property
    def title(self) -> str:
        """What lists call the session."""
        return self.about.title(self.settings)

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in.  No I/O, no clock: replaying and living through it agree."""
        # Facts before the fork carry the id of their own log, and their `seq` counts there.
        own = fact.session_id == self.session_id
        if own:
            self.seq = fact.seq
        if type(fact) is UnknownFact:
            return
        kind = type(fact)
        names = _FOLDED_BY.get(kind, ())
        if not own:
            self._inherit(fact, names)
            return
        for name in names:
            getattr(self, name).apply(fact)
        # Of any kind: a cause stands on the first fact of its append, whatever that is.
        if fact.cause is not None:
            self.inputs.apply(fact)
        if kind in _FOLDED_FURTHER and (kind is not NewMessage or self.ledger.loose):
            self._fold_further(fact)

    def _fold_further(self, fact: Fact) -> None:
        """Take in what only some facts of a kind have, or what hangs on another fold."""
        match fact:
            case UsageRecorded():
                self.ledger.record(fact, self.tree)
            case ToolComplete():
                if fact.result.data:
                    self.reads.apply(fact)
                    self.background.apply(fact)
            case PrefixFrozen():
                self.prefix = fact.prefix
            case GoalSet(revision=0):
                self.goal.cost_before = self.ledger.total.cost_usd or 0.0
            case GoalSet():
                pass
            case _:
                self.ledger.place(fact, self.tree)

    def _inherit(self, fact: Fact, names: tuple[str, ...]) -> None:
        """Take in a fact of the past that a fork shares."""
        for name in names:
            if name in _INHERITED:
                getattr(self, name).apply(fact)
        if type(fact) is UsageRecorded:
            # Of the ledger a fork inherits this alone: what was used is its source's, but its
            # first request is as long as the line, and has to fit.
            self.ledger.calibrate(fact)

    def fork(self, session_id: SessionId) -> SessionState:
        """The state of a new session that shares the past of this one, before its first own fact.

        Equal to folding this session's log as another's past, without reading it: the nodes of the
        tree are shared.
        """
        inherited = {name: _copied(getattr(self, name)) for name in _INHERITED - {"tree"}}
        ledger = UsageLedger(ratios=self.ledger.ratios.copy())
        return SessionState(
            session_id=session_id, tree=self.tree.fork(), ledger=ledger, **inherited
        )

    def apply_all(self, facts: Iterable[AnyFact]) -> None:
        """Take many facts in, in order."""
        for fact in facts:
            self.apply(fact)


def _copied(state: msgspec.Struct) -> Any:
    """An equal fold with maps and lists of its own; what they hold is never changed in place."""
    fields = {name: getattr(state, name) for name in state.__struct_fields__}
    own = {name: copy.copy(value) for name, value in fields.items()}
    return msgspec.structs.replace(state, **own)


def fold(facts: Iterable[AnyFact], start: SessionState) -> SessionState:
    """Fold facts onto `start`, in place, and return it."""
    start.apply_all(facts)
    return start


# A class that left the union of facts would otherwise stay here unnoticed and never match.
assert set(_FOLDED_BY) <= set(FACTS.values())
