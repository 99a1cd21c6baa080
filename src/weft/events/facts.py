"""The closed union of facts: everything a log may hold.

Each class is one kind, past tense, small.  The tag is its stored name for ever: a change that old readers would misread gets a
new tag (`new_message@2`), and the old one an upcaster in `events.upcast`.  `docs/formats/facts.md` describes every field.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from weft.events.base import FactBase
from weft.ids import BlobId, CallUid, EntryId, NodeId, RequestId, SessionId, TurnId
from weft.messages import Node, Part, ToolResult, Usage
from weft.permissions import PermissionRule

Delivery: TypeAlias = Literal["steering", "follow_up"]
Effect: TypeAlias = Literal["pure", "checkable", "unknown"]
"""`pure` may run again; `checkable` can be found out from file hashes; `unknown` is never repeated silently."""
FinishReason: TypeAlias = Literal[
    "stop",
    "submitted",
    "aborted",
    "max_turns",
    "max_budget",
    "no_progress",
    "mistakes",
    "context_overflow",
    "schema_failed",
    "provider_error",
    "auth_error",
    "halted",
]
Purpose: TypeAlias = Literal["turn", "title", "compaction", "summary", "repair", "branch", "plan"]
PermissionAction: TypeAlias = Literal["allow_once", "allow_turn", "allow_always", "deny"]


# --- the session -----------------------------------------------------------------------


class CallOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The call a child session works for."""

    session_id: SessionId
    node: NodeId | None = None
    call_uid: CallUid | None = None


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a fork shares another log: everything up to and including `seq`, cut at `node`."""

    session_id: SessionId
    seq: int
    node: NodeId | None = None


class SessionCreated(FactBase, frozen=True, tag="session_created"):
    """First fact of every session."""

    project_path: str = ""
    project_id: str = ""
    title: str = ""
    model: str = ""
    settings: dict[str, Any] = {}
    """Settings the session starts with, by name."""
    parent: CallOrigin | None = None
    fork: ForkPoint | None = None
    imported: bool = False


class SettingChanged(FactBase, frozen=True, tag="setting_changed"):
    """One setting has a new value: model, thinking, permission_mode, title, archived, budget, …"""

    name: str
    value: Any = None


class ModeChanged(FactBase, frozen=True, tag="mode_changed"):
    """The session works in another mode: `normal` or `architect`."""

    mode: str


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a command ended that went on beside the turns."""

    id: str
    """The name under which it ran, `bg_1`."""
    exit_code: int | None = None
    """Negative: ended by that signal; None when nobody saw its end."""
    why: Literal["exited", "stopped", "lost"] = "exited"
    """`lost`: the program that ran it died first."""


class SystemNote(FactBase, frozen=True, tag="system_note"):
    """A line for the people who watch; with `to_model`, for the model too."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    to_model: bool = False
    node: NodeId | None = None
    """The head when it was said: the model sees it after that node."""
    background: CommandEnd | None = None
    """The end of a background command, which this note tells."""


class ErrorRaised(FactBase, frozen=True, tag="error_raised"):
    """Something of the session failed; published once."""

    message: str
    where: str = ""
    """Which part: turn, tool, hook, store, …"""
    error: str = ""
    """Class name, for programs."""


class SessionRestarted(FactBase, frozen=True, tag="session_restarted"):
    """The supervisor brought the session back from its log."""

    reason: str = ""


# --- the tree --------------------------------------------------------------------------


class NewMessage(FactBase, frozen=True, tag="new_message"):
    """A node was added; with `advance` the head moves to it."""

    node: Node
    advance: bool = True


class NodeEdited(FactBase, frozen=True, tag="node_edited"):
    """A node has a new revision; earlier ones are kept."""

    node: NodeId
    revision: int
    parts: tuple[Part, ...] = ()


class NodeMarked(FactBase, frozen=True, tag="node_marked"):
    """A mark of a node changed: bookmark, pin, label, rating, hidden, …; None removes it."""

    node: NodeId
    mark: str
    value: Any = None


class SubtreeDeleted(FactBase, frozen=True, tag="subtree_deleted"):
    """A node and all below it are hidden; can be undone."""

    node: NodeId


class SubtreeRestored(FactBase, frozen=True, tag="subtree_restored"):
    """A deleted subtree is back."""

    node: NodeId


class HeadMoved(FactBase, frozen=True, tag="head_moved"):
    """The next turn starts at another node; None is before the first one."""

    node: NodeId | None = None


class RefMoved(FactBase, frozen=True, tag="ref_moved"):
    """A named ref points at a node: a branch or a checkpoint."""

    name: str
    node: NodeId | None = None
    ref: Literal["branch", "checkpoint"] = "branch"


class RefDeleted(FactBase, frozen=True, tag="ref_deleted"):
    """A named ref is gone; its nodes are not."""

    name: str


class FileChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file, link or folder before and after; no content and no mode is "not there"."""

    path: str
    before: BlobId | None = None
    """Content, or a link's target; None for a folder, and for what is too large to be kept."""
    after: BlobId | None = None
    mode_before: int = 0
    """Kind and permissions, as `lstat` has them."""
    mode_after: int = 0


class Rewound(FactBase, frozen=True, tag="rewound"):
    """Conversation, files or both go back to a node.

    With files it is the intent: they are put back after it is durable, and a second fact settles it.
    """

    to: NodeId | None = None
    conversation: bool = True
    files: tuple[FileChange, ...] = ()
    """What is to be put back; in a fact that settles, what was found otherwise after all."""
    undoes: int = 0
    """`seq` of the rewind that this takes back."""
    left: NodeId | None = None
    """Where the conversation stood before."""
    settles: int = 0
    """`seq` of the rewind whose files have been put back with this."""


# --- the queue -------------------------------------------------------------------------


class InputQueued(FactBase, frozen=True, tag="input_queued"):
    """Something said while a turn ran, kept until it is its time."""

    entry_id: EntryId
    delivery: Delivery
    parts: tuple[Part, ...] = ()
    options: dict[str, Any] = {}
    """Options that hold for this message only."""


class InputPromoted(FactBase, frozen=True, tag="input_promoted"):
    """Queued entries became nodes of the conversation."""

    entries: tuple[EntryId, ...]


class InputEdited(FactBase, frozen=True, tag="input_edited"):
    """A queued entry says something else."""

    entry_id: EntryId
    parts: tuple[Part, ...] = ()


class InputRemoved(FactBase, frozen=True, tag="input_removed"):
    """A queued entry was taken away."""

    entry_id: EntryId


class InputsReordered(FactBase, frozen=True, tag="inputs_reordered"):
    """The queued entries have another order."""

    entries: tuple[EntryId, ...]


class QueuesRecalled(FactBase, frozen=True, tag="queues_recalled"):
    """Both queues were handed back to a person and emptied."""

    entries: tuple[EntryId, ...]


# --- the turn --------------------------------------------------------------------------


class TurnStarted(FactBase, frozen=True, tag="turn_started"):
    """The model is put to work at the head."""

    turn_id: TurnId
    node: NodeId | None = None
    """The node it starts from."""
    options: dict[str, Any] = {}
    """Options of this turn only: model, tools, max_turns, schema, …"""
    continued: bool = False
    """True when it goes on from an interrupted or limited turn."""


class ModelCallStarted(FactBase, frozen=True, tag="model_call_started"):
    """A request is about to be sent."""

    turn_id: TurnId
    """Empty for a call that belongs to no turn."""
    node: NodeId
    """The node that the answer will become; drafts carry its id.  Of any other purpose than a turn: the call's own name."""
    model: str
    prefix: BlobId | None = None
    purpose: Purpose = "turn"
    attempt: int = 1
    input_tokens: int = 0
    """About how much it is told; 0 where the ledger tells."""


class UsageRecorded(FactBase, frozen=True, tag="usage_recorded"):
    """What a model call used; `estimated` when the vendor could not tell us."""

    usage: Usage
    model: str
    purpose: Purpose = "turn"
    estimated: bool = False
    turn_id: TurnId | None = None
    node: NodeId | None = None


class ToolExecuting(FactBase, frozen=True, tag="tool_executing"):
    """The intent record: this call is about to take effect."""

    call_uid: CallUid
    node: NodeId
    tool_name: str
    target: str = ""
    """What it works on, for people: a path, a command."""
    args: dict[str, Any] = {}
    effect: Effect = "unknown"
    attempt: int = 1
    pre_hashes: dict[str, str] = {}
    """Hash of each file before, "" where there was none; lets recovery find out what happened."""
    post_hashes: dict[str, str] = {}
    """Hash that each file will have after; with `pre_hashes` it settles the doubt."""


class ToolComplete(FactBase, frozen=True, tag="tool_complete"):
    """A call is settled: done, failed, denied, aborted or interrupted."""

    call_uid: CallUid
    node: NodeId
    result: ToolResult
    is_error: bool = False
    duration_ms: int = 0


class FileTouched(FactBase, frozen=True, tag="file_touched"):
    """A file, link or folder of the project changed by a tool."""

    path: str
    """Relative to the project, with forward slashes."""
    action: Literal["created", "modified", "deleted"]
    before: BlobId | None = None
    """Content, or a link's target; None for a folder, and where it is not known."""
    after: BlobId | None = None
    call_uid: CallUid | None = None
    mode_before: int = 0
    """Kind and permissions, as `lstat` has them; 0 where nothing was, or not known."""
    mode_after: int = 0
    missing: str = ""
    """Why what was there before was not kept; empty when it was."""
    is_certain: bool = True
    """False when somebody else may have changed it: another command ran at the same time, or the program was interrupted."""


class TurnFinished(FactBase, frozen=True, tag="turn_finished"):
    """The turn is over, and why."""

    turn_id: TurnId
    reason: FinishReason
    retries: int = 0
    iterations: int = 0
    detail: str = ""
    """One sentence for people where the reason alone says too little."""
    deliverable: Any = None


# --- asking people ---------------------------------------------------------------------


class PermissionRequest(FactBase, frozen=True, tag="permission_request"):
    """A call waits for leave."""

    request_id: RequestId
    call_uid: CallUid
    node: NodeId
    tool_name: str
    tool_path: str = ""
    preview: str = ""
    """Exactly what the person is shown: a command, a diff."""
    shown_hash: str = ""
    """Hash of what is shown; an answer counts for that and nothing else."""
    always_pattern: str = ""
    """The rule that "always" would grant."""
    reason: str = ""
    child: SessionId | None = None
    """The child session that asks; the answer is handed on to it."""
    outlives_turn: bool = False
    """A background child asks: the request stays open when the turn ends."""
    args: dict[str, Any] | None = None
    """The input that is asked about, where no call of `node` says it: a hook changed it, or a child
    asks."""


class PermissionResolved(FactBase, frozen=True, tag="permission_resolved"):
    """The person (or a rule, an abort, the end of the turn) answered."""

    request_id: RequestId
    action: PermissionAction
    by: str = ""
    reason: str = ""
    pattern: str = ""
    """What `allow_turn` and `allow_always` grant."""
    saved: bool = False
    """It was also kept as a rule, for later sessions on the project."""
    instead: dict[str, Any] | None = None
    """Of a `deny`: another input that the call may run with, once it has been judged like any
    other."""
    rules: tuple[PermissionRule, ...] = ()
    """What the answer allows, asks or denies from now on, for the session in this process."""


class QuestionAsked(FactBase, frozen=True, tag="question_asked"):
    """The model asks the person something."""

    request_id: RequestId
    call_uid: CallUid
    node: NodeId
    question: str
    options: tuple[str, ...] = ()
    child: SessionId | None = None
    """The child session that asks; the answer is handed on to it."""
    outlives_turn: bool = False
    """A background child asks: the question stays open when the turn ends."""


class QuestionAnswered(FactBase, frozen=True, tag="question_answered"):
    """The answer to a question."""

    request_id: RequestId
    answer: str = ""
    by: str = ""


# --- context ---------------------------------------------------------------------------


class Compacted(FactBase, frozen=True, tag="compacted"):
    """The line up to `upto` is told to the model as a summary."""

    upto: NodeId
    summary: str
    carried: tuple[str, ...] = ()
    """What is carried by structure: pinned nodes, files, open tasks."""
    tokens_before: int = 0
    tokens_after: int = 0


class CompactionUndone(FactBase, frozen=True, tag="compaction_undone"):
    """A compaction no longer counts."""

    compaction: int
    """`seq` of the compaction."""
    log: SessionId | None = None
    """The log that holds it; None is this one, another name one that a fork shares."""


class PrefixFrozen(FactBase, frozen=True, tag="prefix_frozen"):
    """A new epoch of the prompt's prefix began."""

    prefix: BlobId
    reason: str = ""


class BoundaryChanged(FactBase, frozen=True, tag="boundary_changed"):
    """Edits of a file are held to a range of lines (0-based, inclusive); None lifts it."""

    path: str
    first: int | None = None
    last: int | None = None
    """`first - 1` when all lines of the range were removed."""
    base: BlobId | None = None
    """The version of the file that these lines are of; kept as a blob, so that the range can follow any change."""
    moves: int = 0
    """Set when the range only moved along with an edit: `seq` of the fact that set the boundary."""


class SkillChanged(FactBase, frozen=True, tag="skill_changed"):
    """A skill was switched on or off."""

    name: str
    active: bool


class Todo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task of the list that the model keeps."""

    id: str
    text: str
    status: Literal["pending", "in_progress", "done", "cancelled"] = "pending"


class TodoChanged(FactBase, frozen=True, tag="todo_changed"):
    """The task list is now this."""

    items: tuple[Todo, ...] = ()


# --- families: children, plans, fans, decisions ------------------------------------------


class ChildStarted(FactBase, frozen=True, tag="child_started"):
    """A session of its own works for one of our calls."""

    child: SessionId
    call_uid: CallUid | None = None
    node: NodeId | None = None
    purpose: Literal["agent", "candidate", "step"] = "agent"
    name: str = ""
    background: bool = False
    """It goes on beside the turns; its end is told when it comes."""


class ChildFinished(FactBase, frozen=True, tag="child_finished"):
    """A child came to its end."""

    child: SessionId
    reason: FinishReason
    usage: Usage | None = None
    """What it used that no earlier end of it has told."""
    text: str = ""
    models: dict[str, Usage] = {}
    """The same, model by model."""
    turn_id: TurnId | None = None
    """The turn it worked for."""
    node: NodeId | None = None
    """The node whose call it worked for."""
    descendants: int = 0
    """Agents that worked below it."""


class ArchitectPlan(FactBase, frozen=True, tag="architect_plan"):
    """The planner proposes a plan."""

    plan_id: str
    plan: dict[str, Any]
    turn_id: TurnId | None = None


class PlanEdited(FactBase, frozen=True, tag="plan_edited"):
    """A person changed the plan."""

    plan_id: str
    plan: dict[str, Any]


class PlanDecided(FactBase, frozen=True, tag="plan_decided"):
    """The plan was approved or turned down."""

    plan_id: str
    approved: bool
    reason: str = ""
    by: str = ""


class ArchitectStep(FactBase, frozen=True, tag="architect_step"):
    """One step of the plan started or ended."""

    plan_id: str
    index: int
    status: Literal["started", "passed", "failed", "skipped", "replanned"]
    detail: str = ""
    child: SessionId | None = None


class FanStarted(FactBase, frozen=True, tag="fan_started"):
    """N candidates start from one node."""

    fan_id: str
    node: NodeId | None
    children: tuple[SessionId, ...] = ()
    models: tuple[str, ...] = ()


class FanKept(FactBase, frozen=True, tag="fan_kept"):
    """One candidate was kept."""

    fan_id: str
    child: SessionId


class DecisionLogged(FactBase, frozen=True, tag="decision_logged"):
    """The session wrote to the project's decision graph."""

    decision: str
    """Id on the project stream."""
    summary: str = ""


Fact: TypeAlias = (
    SessionCreated
    | SettingChanged
    | ModeChanged
    | SystemNote
    | ErrorRaised
    | SessionRestarted
    | NewMessage
    | NodeEdited
    | NodeMarked
    | SubtreeDeleted
    | SubtreeRestored
    | HeadMoved
    | RefMoved
    | RefDeleted
    | Rewound
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
    | TurnFinished
    | PermissionRequest
    | PermissionResolved
    | QuestionAsked
    | QuestionAnswered
    | Compacted
    | CompactionUndone
    | PrefixFrozen
    | BoundaryChanged
    | SkillChanged
    | TodoChanged
    | ChildStarted
    | ChildFinished
    | ArchitectPlan
    | PlanEdited
    | PlanDecided
    | ArchitectStep
    | FanStarted
    | FanKept
    | DecisionLogged
)
