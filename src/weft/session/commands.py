"""Everything a client can ask of a session, as values.

The mailbox, a socket, HTTP and `weft.sync` carry the same ones.  A command with an `input_id` is
carried out once: its digest and its answer are kept with the facts it caused.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args

import msgspec

from weft.errors import SessionError, UsageError
from weft.events import (
    AsideAnswered,
    FileTouched,
    FinishReason,
    PermissionAction,
    PermissionRequest,
    PermissionResolved,
    Purpose,
    QuestionAnswered,
    QuestionAsked,
    WaitSubject,
)
from weft.ids import (
    EntryId,
    GoalId,
    InputId,
    NodeId,
    RequestId,
    ScheduleId,
    SessionId,
    TurnId,
    WaitId,
)
from weft.messages import Part, Usage, clean_value
from weft.permissions import PermissionRule
from weft.session.answers import AbortReceipt, Accepted, QueuedMessages, RewindPlan
from weft.sha256 import sha256
from weft.state import QueueEntry
from weft.thinking_levels import ThinkingLevel
from weft.tree import Branch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
CommandT = TypeVar("CommandT", bound="Command[Any]")


UNNAMED_CLIENT: Final = "person"
"""Who answered, in the log, when no attached client is named.  A stored word: it stays as it is."""


class Command(
    msgspec.Struct,
    Generic[T_co],
    frozen=True,
    kw_only=True,
    tag_field="command",
    omit_defaults=True,
):
    """One request to a session.  `T_co` is the type of its answer, wherever the session lives."""

    input_id: InputId | None = None
    client: str = ""
    """The attached client that sends it; empty for a program that did not attach."""


def answer_of(command: Command[T], plain: Any) -> T:
    """The answer of a command as a value of its type, from the plain data that a carrier has.

    A value that has the type already comes back as it is.

    Raises:
        SessionError: it is no answer of such a command; another version of Weft gave it.
    """
    # Read off the class and not listed in a table: a new command cannot be forgotten here.
    kinds = [get_args(base) for base in vars(type(command))["__orig_bases__"]]
    [[kind]] = [args for args in kinds if args]
    if isinstance(command, DequeueSteering) and not isinstance(plain, list | tuple):
        # Earlier versions took one message back, or none; their answers are still in logs.
        plain = () if plain is None else (plain,)
    try:
        answer: T = msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        name = type(command).__name__
        raise SessionError(f"the answer to {name} cannot be read: {error}") from error
    return answer


class SendPrompt(Command[Accepted], frozen=True, tag="say"):
    """Start a turn with this, or queue it while one runs."""

    parts: tuple[Part, ...]
    when_busy: Literal["steering", "follow_up", "refuse"] = "steering"
    options: dict[str, Any] = {}
    waits: bool = False
    """The sender waits for the turn's end, so a queued message is sent whatever way the present
    turn ends.
    """
    context: tuple[Part, ...] = ()
    """What hooks add, on the way; no part of what the sender asks for, and so not of its digest."""
    resume: bool = False
    """A repeat, by a sender that still waits after the owner was lost: what it was told that it
    would get goes on, if no process works on it.  No part of the digest either.
    """


class ContinueTurn(Command[Accepted], frozen=True, tag="continue_turn"):
    """Go on from exactly what is stored."""

    options: dict[str, Any] = {}
    resume: bool = False
    """As in `SendPrompt`."""
    by_itself: bool = False
    """A process does so because the user has chosen it for crashes, and not a user now."""


class AbortTurn(Command[AbortReceipt], frozen=True, tag="abort"):
    """Stop the turn that runs."""

    reason: str = ""
    turn_id: TurnId | None = None
    """The turn that ran when it was asked for; no other one is stopped.  No part of the digest: a
    repeat is sent when another one may run.
    """


class StopAfterStep(Command[bool], frozen=True, tag="stop_after_step"):
    """Let the turn that runs end after its present step; True when there is one that can."""

    is_wanted: bool = True


class EditQueued(Command[None], frozen=True, tag="edit_queued"):
    """Change what a queued message says."""

    entry_id: EntryId
    parts: tuple[Part, ...]


class RemoveQueued(Command[None], frozen=True, tag="remove_queued"):
    """Take one message out of the queue."""

    entry_id: EntryId


class ReorderQueue(Command[None], frozen=True, tag="reorder_queue"):
    """Give the queue another order."""

    entries: tuple[EntryId, ...]


class RecallQueues(Command[QueuedMessages], frozen=True, tag="recall_queues"):
    """Hand both queues back and empty them."""


class DequeueSteering(Command[tuple[QueueEntry, ...]], frozen=True, tag="dequeue_steering"):
    """Hand all steering messages back."""


class RespondToPermission(Command[None], frozen=True, tag="respond_to_permission"):
    """Answer a request for permission."""

    action: PermissionAction
    request_id: RequestId | None = None
    reason: str = ""
    save: bool = False
    instead: dict[str, Any] | None = None
    """With `deny`, so that a reader that does not know of it runs nothing: the input to run in the
    place of the one that was shown.
    """
    rules: tuple[PermissionRule, ...] = ()
    """What is allowed, asked or denied in the session from now on."""
    interrupt: bool = False
    """With `deny`: the turn is to end as well."""


class AnswerQuestion(Command[None], frozen=True, tag="answer_question"):
    """Answer what the model asked."""

    request_id: RequestId
    answer: str


class AddNote(Command[None], frozen=True, tag="add_note"):
    """Say something as the system."""

    text: str
    level: Literal["info", "warning", "error"] = "info"
    to_model: bool = False


class ChangeSetting(Command[None], frozen=True, tag="change_setting"):
    """Give a setting another value; None removes it."""

    name: str
    value: Any = None


class MarkNode(Command[None], frozen=True, tag="mark_node"):
    """Pin, bookmark, label or rate a node; None takes the mark away."""

    node: NodeId
    mark: str
    value: Any = True


# Not a mark like others: an older program would set the mark and go on sending the message.
class ExcludeNode(Command[None], frozen=True, tag="exclude_node"):
    """Send a message to no model any more, with the results of its calls; or send it again."""

    node: NodeId
    is_excluded: bool = True


class EditNode(Command[None], frozen=True, tag="edit_node"):
    """Give a node a new revision; the earlier ones are kept."""

    node: NodeId
    parts: tuple[Part, ...]


class BranchAt(Command[Branch], frozen=True, tag="branch_at"):
    """Let the line end at a node and go on from there; the line that is left keeps its name."""

    node: NodeId | None
    name: str = ""


class SwitchBranch(Command[Branch], frozen=True, tag="switch_branch"):
    """Switch to another branch."""

    name: str


class RenameBranch(Command[None], frozen=True, tag="rename_branch"):
    """Give a branch another name."""

    name: str
    new_name: str


class DeleteBranch(Command[None], frozen=True, tag="delete_branch"):
    """Forget a branch's name; its messages stay."""

    name: str


class SetCheckpoint(Command[str], frozen=True, tag="set_checkpoint"):
    """Name the place where the conversation stands."""

    label: str = ""


class RewindTo(Command[RewindPlan], frozen=True, tag="rewind"):
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
    """Paths that go back although they were changed outside the session since."""


class UndoRewind(Command[RewindPlan], frozen=True, tag="undo_rewind"):
    """Take the last rewind back."""

    preview: bool = False
    overwrite: tuple[str, ...] = ()


class CompactNow(Command[int], frozen=True, tag="compact"):
    """Tell the model the older part of the line as a summary from now on."""

    focus: str = ""


class UndoCompaction(Command[None], frozen=True, tag="undo_compaction"):
    """Let the newest compaction of the line no longer count."""


class SwitchSkill(Command[None], frozen=True, tag="switch_skill"):
    """Switch a skill on or off."""

    name: str
    active: bool = True


class SetMode(Command[None], frozen=True, tag="set_mode"):
    """Work as `normal` or as `architect` from the next turn on."""

    mode: str


class DecidePlan(Command[None], frozen=True, tag="decide_plan"):
    """Approve the plan that waits, or turn it down."""

    approved: bool
    reason: str = ""


class EditPlan(Command[None], frozen=True, tag="edit_plan"):
    """Put another plan in the place of the one that waits."""

    plan: dict[str, Any]


class WakeTurn(Command[bool], frozen=True, tag="wake_turn"):
    """Do what is due: go on with a turn that waits and that no process has at work, or begin the
    scheduled round whose time has come; answers whether there was one.

    A wait that is not over goes on.
    """


class ScheduleInput(Command[ScheduleId], frozen=True, tag="schedule_input"):
    """Send a prompt at a time, once or again and again; answers the schedule's id."""

    parts: tuple[Part, ...]
    due: float
    every: float | None = None
    max_rounds: int | None = None
    ends: float | None = None
    options: dict[str, Any] = {}


class BeginWait(Command[WaitId], frozen=True, tag="begin_wait"):
    """Begin a turn that is asleep until something has come; answers the wait's id."""

    on: WaitSubject
    until: float | None = None


class CancelWait(Command[bool], frozen=True, tag="cancel_wait"):
    """End the wait of the turn, or a schedule, by its id; answers whether it had not ended."""

    wait_id: str


class SetGoal(Command[GoalId], frozen=True, tag="set_goal"):
    """Work turn after turn until a check, or a judge, says that a goal is reached."""

    text: str
    check: str = ""
    judge: str = ""
    max_budget_usd: float | None = None
    max_seconds: float | None = None
    max_rounds: int | None = None
    outside_sandbox: bool = False
    """The check may run where there is no sandbox."""


class EditGoal(Command[GoalId], frozen=True, tag="edit_goal"):
    """Change the goal; what is None stays."""

    text: str | None = None
    check: str | None = None
    judge: str | None = None
    max_budget_usd: float | None = None
    max_seconds: float | None = None
    max_rounds: int | None = None
    outside_sandbox: bool = False


class PauseGoal(Command[bool], frozen=True, tag="pause_goal"):
    """Begin nothing more for the goal; answers whether that was news."""


class ResumeGoal(Command[bool], frozen=True, tag="resume_goal"):
    """Go on with the goal, with what the session may do now; answers whether that was news."""

    outside_sandbox: bool = False


class ClearGoal(Command[bool], frozen=True, tag="clear_goal"):
    """End the goal; answers whether there was one."""


class BeginCall(Command[NodeId], frozen=True, tag="begin_call"):
    """A model is about to be asked outside of a turn; answers the call's name."""

    model: str
    purpose: Purpose
    input_tokens: int = 0
    """About how much it is sent."""
    digest: str = ""
    """Of the request that is about to be sent."""
    exact: str = ""
    """The purpose where `purpose` has no word for it."""


class RecordUsage(Command[str | None], frozen=True, tag="record_usage"):
    """Enter what a model call beside the session used into its ledger; answers what a side question
    was answered.
    """

    usage: Usage
    model: str
    purpose: Purpose = "summary"
    call: NodeId | None = None
    """The call's name, where it was begun."""
    estimated: bool = False
    exact: str = ""
    """As in `BeginCall`."""
    aside: AsideAnswered | None = None
    """The side question that it answered."""


# --- what a session that works for another sends to it ---------------------------------
#
# Values, so that they travel to wherever the other session lives.  A carrier lets them pass only
# from the process that has `child`, and the session only from one that works for it.


class ReportChild(Command[bool], frozen=True, tag="report_child"):
    """A child has ended; answers whether that was news."""

    child: SessionId
    reason: FinishReason
    used: dict[str, Usage] = {}
    """In all, by model."""
    text: str = ""
    """Its last words."""
    descendants: int = 0
    files: tuple[FileTouched, ...] = ()
    """What it changed."""
    message: tuple[Part, ...] = ()
    """What the model is to read of it, where no call waits for the end."""
    wake: bool = False
    """The message starts a turn, if none runs and the last one ended well."""
    is_late: bool = False
    """It has worked on after its end, for the user: what it used is counted, and no more."""


class ForwardRequest(Command[None], frozen=True, tag="forward_request"):
    """A child needs an answer of the user's, or has one by now."""

    child: SessionId
    request: PermissionRequest | QuestionAsked | None = None
    """As the record of the session is to show it, under the id that it has at the child."""
    answer: PermissionResolved | QuestionAnswered | None = None
    """How it was settled at the child."""


class Reserve(Command[str], frozen=True, tag="reserve"):
    """Set aside what a model call of a child will use of the budget that both share; answers why it
    may not be made, or nothing.
    """

    child: SessionId
    turn_id: TurnId
    total: Usage
    """What the child has on record."""
    pending: Usage
    """What its turn used beyond that."""
    share: Usage | None = None
    """What is set aside, `pending` included; None to ask only."""
    is_priced: bool = True
    session: SessionId | None = None
    """Whose turn it is, if not the child's own: one that works for the child."""


class Settle(Command[None], frozen=True, tag="settle"):
    """The turn of a child is over: nothing is set aside for it any more."""

    child: SessionId
    turn_id: TurnId


ChildCommand: TypeAlias = ReportChild | ForwardRequest | Reserve | Settle


class BringOver(Command[str], frozen=True, tag="bring_over"):
    """Tell the present line what was learned on another one; answers the text."""

    node: NodeId
    """Where the other line ends."""
    text: str = ""
    """What a model made of it; no part of what is asked for, and so not of its digest."""


class CycleModel(Command[str], frozen=True, tag="cycle_model"):
    """Go on with the next model of a rotation; answers its name."""

    rotation: tuple[str, ...]
    """Each `provider:model[:effort]`."""


class CycleThinking(Command[ThinkingLevel], frozen=True, tag="cycle_thinking"):
    """Think one level harder, and after the hardest not at all; answers the level."""


class StopBackground(Command[None], frozen=True, tag="stop_background"):
    """Stop a background agent or command; answers nothing."""

    child: str
    """The session of an agent, or the name of a command."""


class SetBoundary(Command[None], frozen=True, tag="set_boundary"):
    """Hold edits of a file to a range of lines, from 0, both included."""

    path: str
    first: int
    last: int


class ClearBoundary(Command[None], frozen=True, tag="clear_boundary"):
    """Lift the boundary of a file; None: all of them."""

    path: str | None = None


class ToggleCollapse(Command[bool], frozen=True, tag="toggle_collapse"):
    """Fold or unfold the tool calls of a message; None: of all."""

    node: NodeId | None = None


class AttachClient(Command[str | None], frozen=True, tag="attach"):
    """A client comes to watch or to drive."""

    role: Literal["viewer", "driver"] = "viewer"


class DetachClient(Command[None], frozen=True, tag="detach"):
    """A client goes."""


class StopSession(Command[bool], frozen=True, tag="stop"):
    """End the session's life in this process; its record stays.  Answers whether it ended."""

    reason: str = "stopped"
    if_unused: bool = False
    """Only when no turn runs, no subscriber reads and no other command waits."""
    suspends: bool = False
    """A turn that runs is not aborted: it stays open, to go on in the next process."""


AnyCommand: TypeAlias = (
    SendPrompt
    | ContinueTurn
    | AbortTurn
    | StopAfterStep
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
    | ExcludeNode
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
    | ReportChild
    | ForwardRequest
    | Reserve
    | Settle
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
    | WakeTurn
    | ScheduleInput
    | BeginWait
    | CancelWait
    | SetGoal
    | EditGoal
    | PauseGoal
    | ResumeGoal
    | ClearGoal
)
"""Every command there is, for carriers that decode one without knowing which."""


def checked(command: CommandT) -> CommandT:
    """The command as any carrier hands it on: plain data of the right types, with text that can be
    stored.

    Raises:
        UsageError: something in it is not; nothing has happened.
    """
    try:
        try:
            raw = msgspec.json.encode(command)
        except UnicodeEncodeError:
            raw = msgspec.json.encode(clean_value(msgspec.to_builtins(command)))
        # One kind at a time: a decoder for all of them takes milliseconds to make.
        again: CommandT = msgspec.json.decode(raw, type=type(command))
    except (TypeError, msgspec.MsgspecError) as error:
        raise UsageError(f"this cannot be asked of a session: {error}") from error
    return again


def digest(command: Command[Any]) -> str:
    """Hash of what a command asks for, without who asks."""
    plain = msgspec.structs.replace(command, input_id=None, client="")
    if isinstance(plain, SendPrompt):
        plain = msgspec.structs.replace(plain, context=(), resume=False)
    if isinstance(plain, ContinueTurn):
        plain = msgspec.structs.replace(plain, resume=False)
    if isinstance(plain, AbortTurn):
        plain = msgspec.structs.replace(plain, turn_id=None)
    if isinstance(plain, BringOver):
        plain = msgspec.structs.replace(plain, text="")
    if isinstance(plain, RecordUsage) and plain.aside is not None:
        asked = AsideAnswered(call=NodeId(""), question=plain.aside.question)
        plain = RecordUsage(usage=Usage(), model="", aside=asked)
    return sha256(msgspec.json.encode(plain)).hexdigest()
