"""Everything a client can ask of a session, as values.

The mailbox, a socket, HTTP and `weft.sync` carry the same ones.  A command with an `input_id` is carried out once: its digest and its
answer are kept with the facts it caused.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.events import PermissionAction, Purpose
from weft.ids import EntryId, InputId, NodeId, RequestId, TurnId
from weft.messages import Part, Usage, clean_value
from weft.permissions import PermissionRule
from weft.state import QueueEntry


class CommandBase(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="command", omit_defaults=True
):
    """What all commands share."""

    input_id: InputId | None = None
    client: str = ""
    """The attached client that sends it; empty for a program that did not attach."""


class SendPrompt(CommandBase, frozen=True, tag="say"):
    """Start a turn with this, or queue it while one runs."""

    parts: tuple[Part, ...]
    when_busy: Literal["steering", "follow_up", "refuse"] = "steering"
    options: dict[str, Any] = {}
    waits: bool = False
    """The sender waits for the turn's end, so a queued message is sent whatever way the present turn ends."""
    context: tuple[Part, ...] = ()
    """What hooks add, on the way; no part of what the sender asks for, and so not of its digest."""


class ContinueTurn(CommandBase, frozen=True, tag="continue_turn"):
    """Go on from exactly what is stored."""

    options: dict[str, Any] = {}


class AbortTurn(CommandBase, frozen=True, tag="abort"):
    """Stop the turn that runs."""

    reason: str = ""


class EditQueued(CommandBase, frozen=True, tag="edit_queued"):
    """Change what a queued message says."""

    entry_id: EntryId
    parts: tuple[Part, ...]


class RemoveQueued(CommandBase, frozen=True, tag="remove_queued"):
    """Take one message out of the queue."""

    entry_id: EntryId


class ReorderQueue(CommandBase, frozen=True, tag="reorder_queue"):
    """Give the queue another order."""

    entries: tuple[EntryId, ...]


class RecallQueues(CommandBase, frozen=True, tag="recall_queues"):
    """Hand both queues back and empty them."""


class DequeueSteering(CommandBase, frozen=True, tag="dequeue_steering"):
    """Hand the next steering message back."""


class RespondToPermission(CommandBase, frozen=True, tag="respond_to_permission"):
    """Answer a request for leave."""

    action: PermissionAction
    request_id: RequestId | None = None
    reason: str = ""
    save: bool = False
    instead: dict[str, Any] | None = None
    """With `deny`, so that whoever does not know of it runs nothing: the input to run in the place
    of the one that was shown."""
    rules: tuple[PermissionRule, ...] = ()
    """What is allowed, asked or denied in the session from now on."""
    interrupt: bool = False
    """With `deny`: the turn is to end as well."""


class AnswerQuestion(CommandBase, frozen=True, tag="answer_question"):
    """Answer what the model asked."""

    request_id: RequestId
    answer: str


class AddNote(CommandBase, frozen=True, tag="add_note"):
    """Say something as the system."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    to_model: bool = False


class ChangeSetting(CommandBase, frozen=True, tag="change_setting"):
    """Give a setting another value; None removes it."""

    name: str
    value: Any = None


class MarkNode(CommandBase, frozen=True, tag="mark_node"):
    """Pin, bookmark, label or rate a node; None takes the mark away."""

    node: NodeId
    mark: str
    value: Any = True


class EditNode(CommandBase, frozen=True, tag="edit_node"):
    """Give a node a new revision; the earlier ones are kept."""

    node: NodeId
    parts: tuple[Part, ...]


class BranchAt(CommandBase, frozen=True, tag="branch_at"):
    """Let the line end at a node and go on from there; the line that is left keeps its name."""

    node: NodeId | None
    name: str = ""


class SwitchBranch(CommandBase, frozen=True, tag="switch_branch"):
    """Go on with another branch."""

    name: str


class RenameBranch(CommandBase, frozen=True, tag="rename_branch"):
    """Give a branch another name."""

    name: str
    new_name: str


class DeleteBranch(CommandBase, frozen=True, tag="delete_branch"):
    """Forget a branch's name; its messages stay."""

    name: str


class SetCheckpoint(CommandBase, frozen=True, tag="set_checkpoint"):
    """Name the place where the conversation stands."""

    label: str = ""


class RewindTo(CommandBase, frozen=True, tag="rewind"):
    """Let files, conversation or both go back to what they were when a message was done."""

    to: NodeId | None = None
    """The message; None is before the first one."""
    checkpoint: str = ""
    """Go back to what files were when this checkpoint was set, `to` being its message."""
    files: bool = True
    conversation: bool = True
    preview: bool = False
    """Only say what would happen."""
    overwrite: tuple[str, ...] = ()
    """Paths that go back although somebody else has changed them since."""


class UndoRewind(CommandBase, frozen=True, tag="undo_rewind"):
    """Take the last rewind back."""

    preview: bool = False
    overwrite: tuple[str, ...] = ()


class CompactNow(CommandBase, frozen=True, tag="compact"):
    """Tell the model the older part of the line as a summary from now on."""

    focus: str = ""


class UndoCompaction(CommandBase, frozen=True, tag="undo_compaction"):
    """Let the newest compaction of the line no longer count."""


class SwitchSkill(CommandBase, frozen=True, tag="switch_skill"):
    """Switch a skill on or off."""

    name: str
    active: bool = True


class SetMode(CommandBase, frozen=True, tag="set_mode"):
    """Work as `normal` or as `architect` from the next turn on."""

    mode: str


class DecidePlan(CommandBase, frozen=True, tag="decide_plan"):
    """Approve the plan that waits, or turn it down."""

    approved: bool
    reason: str = ""


class EditPlan(CommandBase, frozen=True, tag="edit_plan"):
    """Put another plan in the place of the one that waits."""

    plan: dict[str, Any]


class BeginCall(CommandBase, frozen=True, tag="begin_call"):
    """A model is about to be asked beside the turns; answers the call's name."""

    model: str
    purpose: Purpose
    input_tokens: int = 0
    """About how much it is told."""


class RecordUsage(CommandBase, frozen=True, tag="record_usage"):
    """Enter what a model call beside the session used into its ledger."""

    usage: Usage
    model: str
    purpose: Purpose = "summary"
    call: NodeId | None = None
    """The call's name, where it was begun."""
    estimated: bool = False


class BringOver(CommandBase, frozen=True, tag="bring_over"):
    """Tell the present line what was learned on another one; answers the text."""

    node: NodeId
    """Where the other line ends."""
    text: str = ""
    """What a model made of it; no part of what is asked for, and so not of its digest."""


class CycleModel(CommandBase, frozen=True, tag="cycle_model"):
    """Go on with the next model of a rotation; answers its name."""

    rotation: tuple[str, ...]
    """Each `provider:model[:effort]`."""


class CycleThinking(CommandBase, frozen=True, tag="cycle_thinking"):
    """Think one level harder, and after the hardest not at all; answers the level."""


class StopBackground(CommandBase, frozen=True, tag="stop_background"):
    """Somebody stops what goes on beside the turns; answers nothing."""

    child: str
    """The session of an agent, or the name of a command."""


class SetBoundary(CommandBase, frozen=True, tag="set_boundary"):
    """Hold edits of a file to a range of lines, from 0, both included."""

    path: str
    first: int
    last: int


class ClearBoundary(CommandBase, frozen=True, tag="clear_boundary"):
    """Lift the boundary of a file; None: all of them."""

    path: str | None = None


class ToggleCollapse(CommandBase, frozen=True, tag="toggle_collapse"):
    """Fold or unfold the tool calls of a message; None: of all."""

    node: NodeId | None = None


class AttachClient(CommandBase, frozen=True, tag="attach"):
    """A client comes to watch or to drive."""

    role: Literal["viewer", "driver"] = "viewer"


class DetachClient(CommandBase, frozen=True, tag="detach"):
    """A client goes."""


class StopSession(CommandBase, frozen=True, tag="stop"):
    """End the session's life in this process; its record stays.  Answers whether it ended."""

    reason: str = "stopped"
    if_unused: bool = False
    """Only when no turn runs, nobody watches and nothing else waits to be carried out."""


Command: TypeAlias = (
    SendPrompt
    | ContinueTurn
    | AbortTurn
    | EditQueued
    | RemoveQueued
    | ReorderQueue
    | RecallQueues
    | DequeueSteering
    | RespondToPermission
    | AnswerQuestion
    | AddNote
    | ChangeSetting
    | MarkNode
    | EditNode
    | BranchAt
    | SwitchBranch
    | RenameBranch
    | DeleteBranch
    | SetCheckpoint
    | ToggleCollapse
    | SetMode
    | DecidePlan
    | EditPlan
    | BeginCall
    | RecordUsage
    | BringOver
    | CycleModel
    | CycleThinking
    | StopBackground
    | SwitchSkill
    | SetBoundary
    | ClearBoundary
    | CompactNow
    | RewindTo
    | UndoRewind
    | UndoCompaction
    | AttachClient
    | DetachClient
    | StopSession
)


# --- answers ---------------------------------------------------------------------------


class Accepted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was said is durable."""

    status: Literal["started", "steering", "follow_up"]
    turn_id: TurnId | None = None
    entry_id: EntryId | None = None
    seq: int = 0
    """The log's end before it: a reader from there on sees all that comes of it."""


class AbortReceipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an abort stopped, and what is still waiting."""

    turn_id: TurnId | None = None
    """None: no turn ran."""
    surviving: tuple[QueueEntry, ...] = ()
    """Queued messages that are still there."""


class QueuedMessages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Both queues, next one first."""

    steering: tuple[QueueEntry, ...] = ()
    follow_up: tuple[QueueEntry, ...] = ()


class Branch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named line of the conversation."""

    name: str
    node: NodeId | None
    """Where it ends."""
    is_current: bool = False
    length: int = 0
    """Messages on it, from the first one on."""


RewindAction: TypeAlias = Literal[
    "restore", "delete", "recreate", "conflict", "unavailable", "unchanged"
]
"""`restore` it, `delete` what the session made, `recreate` what it removed; leave it: somebody else changed it (`conflict`), what it was
is gone (`unavailable`), or it is so already."""


class RewindItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rewind does with one file, link or folder."""

    path: str
    action: RewindAction
    reason: str = ""


class RewindPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rewind does, or did."""

    to: NodeId | None
    conversation: bool
    files: tuple[RewindItem, ...] = ()
    """Every path that the session changed since, in order."""
    left_out: tuple[str, ...] = ()
    """What the file history does not know, so that it is not put back."""
    is_done: bool = False
    """False: a preview."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Paths that are left as they are because somebody else has changed them."""
        return tuple(item.path for item in self.files if item.action == "conflict")


ANSWERS: dict[type[CommandBase], Any] = {
    SendPrompt: Accepted,
    ContinueTurn: Accepted,
    AbortTurn: AbortReceipt,
    RecallQueues: QueuedMessages,
    DequeueSteering: QueueEntry | None,
    BranchAt: Branch,
    SwitchBranch: Branch,
    SetCheckpoint: str,
    RewindTo: RewindPlan,
    UndoRewind: RewindPlan,
    BeginCall: str,
    BringOver: str,
    CycleModel: str,
    CycleThinking: str,
}
"""What each command answers, for those who carry answers as bytes; the others answer nothing."""


def checked(command: Command) -> Command:
    """The command as any carrier hands it on: plain data of the right types, with text that can be stored.

    Raises:
        UsageError: something in it is not; nothing has happened.
    """
    try:
        try:
            raw = msgspec.json.encode(command)
        except UnicodeEncodeError:
            raw = msgspec.json.encode(clean_value(msgspec.to_builtins(command)))
        # One kind at a time: a decoder for all of them takes milliseconds to make.
        return msgspec.json.decode(raw, type=type(command))
    except (TypeError, msgspec.MsgspecError) as error:
        raise UsageError(f"this cannot be asked of a session: {error}") from error


def digest(command: Command) -> str:
    """Hash of what a command asks for, without who asks."""
    plain = msgspec.structs.replace(command, input_id=None, client="")
    if isinstance(plain, SendPrompt):
        plain = msgspec.structs.replace(plain, context=())
    if isinstance(plain, BringOver):
        plain = msgspec.structs.replace(plain, text="")
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()
