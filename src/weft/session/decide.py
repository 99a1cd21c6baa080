"""What a command means: a pure function from the state to facts and an answer.

Nothing here waits.  What must happen besides (start the turn, wake a waiter) is named in `DecidedCommand.then` and done by the actor, after the
facts are durable.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, assert_never

import msgspec

from weft.errors import NoPendingRequest, SessionBusy, UsageError
from weft.events import (
    BoundaryChanged,
    CompactionUndone,
    Fact,
    InputEdited,
    InputQueued,
    InputRemoved,
    InputsReordered,
    ModeChanged,
    ModelCallStarted,
    NewMessage,
    NodeEdited,
    NodeMarked,
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    PlanEdited,
    QuestionAnswered,
    QuestionAsked,
    QueuesRecalled,
    SettingChanged,
    SkillChanged,
    SystemNote,
    TurnStarted,
    UsageRecorded,
)
from weft.ids import BlobId, EntryId, NodeId, RequestId, TurnId, new_id, new_node_id
from weft.loop import promote, revision_of, tip_after
from weft.messages import File, Image, ModelName, Node, Part, Text, clean_text, parse_model_name
from weft.permissions import MODES
from weft.session import branches as branching
from weft.session.answers import Accepted, QueuedMessages
from weft.session.commands import (
    AbortTurn,
    AddNote,
    AnswerQuestion,
    AttachClient,
    BeginCall,
    BranchAt,
    BringOver,
    ChangeSetting,
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
    MarkNode,
    RecallQueues,
    RecordUsage,
    RemoveQueued,
    RenameBranch,
    ReorderQueue,
    RespondToPermission,
    RewindTo,
    SendPrompt,
    SetBoundary,
    SetCheckpoint,
    SetMode,
    StopBackground,
    StopSession,
    SwitchBranch,
    SwitchSkill,
    ToggleCollapse,
    UndoCompaction,
    UndoRewind,
)
from weft.session.environment import FoundFile
from weft.session.model_cycle import next_model, next_thinking
from weft.state import QueueEntry, Request, SessionState
from weft.thinking import (
    THINKING_LEVELS,
    KnownLevels,
    ThinkingLevel,
    level_note,
    thinking_level,
)

LONGEST_QUEUE = 500
"""Messages that may wait; one more is refused."""
SESSION_MODES = ("normal", "architect")


class DecidedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be appended, answered and done."""

    facts: tuple[Fact, ...] = ()
    answer: Any = None
    blobs: Mapping[BlobId, bytes] = {}
    then: Literal["nothing", "start_turn", "compact"] = "nothing"
    focus: str = ""
    rule: str = ""
    """What the person allows for good; kept before the answer counts."""


class DecisionContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision may know besides the state."""

    now: float
    running: bool
    """A turn of this process is at work."""
    file: FoundFile | None = None
    """The file that the command names."""
    levels: KnownLevels = None
    """Of the model that the session has after a command about its model or its thinking level."""


def decide(command: Command[Any], state: SessionState, moment: DecisionContext) -> DecidedCommand:
    """What `command` does to a session in this state.

    Raises:
        SessionBusy, NoPendingRequest, UsageError: it cannot be done; nothing happens.
    """
    match command:
        case SendPrompt():
            return _say(command, state, moment)
        case ContinueTurn():
            return _continue(command, state, moment)
        case EditQueued(entry_id=entry_id, parts=parts):
            return _edit(entry_id, parts, state)
        case RemoveQueued(entry_id=entry_id):
            state.queue.require(entry_id)
            return DecidedCommand(facts=(InputRemoved(entry_id=entry_id),))
        case ReorderQueue(entries=entries):
            return _reorder(entries, state)
        case RecallQueues():
            return _recall(state)
        case DequeueSteering():
            return _dequeue(state)
        case RespondToPermission():
            return _respond(command, state)
        case AnswerQuestion():
            return _answer_question(command, state)
        case AddNote(text=text, level=level, to_model=to_model):
            return _add_note(text, level, to_model, state)
        case ChangeSetting(name="model", value=str(named)):
            return DecidedCommand(facts=_set_model(parse_model_name(named), state, moment))
        case ChangeSetting(name="thinking", value=word) if wanted := thinking_level(word):
            return DecidedCommand(facts=_set_thinking(wanted, state, moment))
        case ChangeSetting(name=name, value=value):
            return _change_setting(name, value)
        case MarkNode(node=node, mark=mark, value=value):
            state.tree.require(node)
            return DecidedCommand(facts=(NodeMarked(node=node, mark=mark, value=value),))
        case EditNode() | BranchAt() | SwitchBranch():
            return _move(command, state, moment)
        # A running turn knows its place by itself, and not by a name.
        case RenameBranch(name=name, new_name=new_name):
            return DecidedCommand(facts=tuple(branching.rename(state, name, new_name)))
        case DeleteBranch(name=name):
            return DecidedCommand(facts=tuple(branching.delete(state, name)))
        case CompactNow(focus=focus):
            return _compact(focus, state, moment)
        case UndoCompaction():
            return _undo_compaction(state, moment)
        case SetCheckpoint(label=label):
            facts, chosen = branching.checkpoint(state, label)
            return DecidedCommand(facts=tuple(facts), answer=chosen)
        case SetMode(mode=mode):
            return _set_mode(mode)
        case DecidePlan() | EditPlan():
            return _plan(command, state)
        case BeginCall() | RecordUsage():
            return _beside(command, moment)
        case BringOver(node=node, text=text):
            return _bring_over(node, text, state)
        case CycleModel(rotation=rotation):
            return _cycle_model(rotation, state, moment)
        case CycleThinking():
            harder = next_thinking(state.settings, moment.levels)
            return DecidedCommand(facts=_set_thinking(harder, state, moment), answer=harder)
        case StopBackground(child=child):
            if _can_be_ended(child, state):
                return DecidedCommand()  # the same for a command
            if child not in state.children.at_work(background=True):
                raise UsageError(f"nothing runs in the background as {child!r}")
            return DecidedCommand()  # its end is put on record by whoever sees it
        case SwitchSkill(name=name, active=active):
            return DecidedCommand(facts=(SkillChanged(name=name, active=active),))
        case SetBoundary(first=first, last=last):
            return _set_boundary(first, last, moment.file)
        case ClearBoundary():
            return _clear_boundary(moment.file, state)
        case ToggleCollapse(node=node):
            return _toggle(node, state)
        case (
            AbortTurn()
            | AttachClient()
            | DetachClient()
            | StopSession()
            | RewindTo()
            | UndoRewind()
        ):
            return DecidedCommand()  # these are the actor's own
        case _:
            raise UsageError(f"no session knows the command {type(command).__name__}")


def _can_be_ended(name: str, state: SessionState) -> bool:
    """True for a background command that runs, or was found to have died with its program: whoever saw it listed wants it gone."""
    known = state.background.known.get(name)
    return known is not None and (known.end is None or known.end.why == "lost")


# --- talking ---------------------------------------------------------------------------


def _say(command: SendPrompt, state: SessionState, moment: DecisionContext) -> DecidedCommand:
    parts = clean_parts(command.parts)
    if not parts:
        raise UsageError("there is nothing to send: the message is empty")
    parts += clean_parts(command.context)
    if moment.running:
        return _queue(command, parts, state, moment)
    return start_turn(parts, command.options, state, moment)


def _queue(
    command: SendPrompt, parts: tuple[Part, ...], state: SessionState, moment: DecisionContext
) -> DecidedCommand:
    if command.when_busy == "refuse":
        raise SessionBusy(state.session_id, "send the message again")
    if len(state.queue.entries) >= LONGEST_QUEUE:
        raise UsageError(f"{LONGEST_QUEUE} messages are waiting already; let some be delivered")
    entry_id = EntryId(new_id("ent", moment.now))
    queued = InputQueued(
        entry_id=entry_id, delivery=command.when_busy, parts=parts, options=command.options
    )
    turn = state.turn.open
    answer = Accepted(
        command.when_busy,
        entry_id=entry_id,
        seq=state.seq,
        turn_id=turn.turn_id if turn is not None else None,
    )
    return DecidedCommand(facts=(queued,), answer=answer)


def start_turn(
    parts: tuple[Part, ...], options: dict[str, Any], state: SessionState, moment: DecisionContext
) -> DecidedCommand:
    """The facts of a new turn: steering that still waits, then what was said."""
    facts: list[Fact] = promote(state, (), moment.now)
    parent = tip_after(state, facts) if facts else state.tree.head
    node = _user_node(parts, parent, state, moment)
    facts.append(NewMessage(node=node))
    return _with_turn(facts, node.id, options, state, moment)


def start_follow_up(
    state: SessionState, moment: DecisionContext, entry: QueueEntry | None
) -> DecidedCommand:
    """The facts of the turn that a queued follow-up begins (None: that steering alone begins); each has a turn of its own."""
    facts = promote(state, (), moment.now, follow_up=entry)
    options = entry.options if entry is not None else {}
    return _with_turn(facts, tip_after(state, facts), options, state, moment)


def _with_turn(
    facts: Sequence[Fact],
    tip: NodeId | None,
    options: dict[str, Any],
    state: SessionState,
    moment: DecisionContext,
) -> DecidedCommand:
    turn_id = TurnId(new_id("trn", moment.now))
    started = TurnStarted(turn_id=turn_id, node=tip, options=_with_mode(options, state))
    return DecidedCommand(
        facts=(*facts, started),
        answer=Accepted("started", turn_id=turn_id, seq=state.seq),
        then="start_turn",
    )


def _user_node(
    parts: tuple[Part, ...], parent: NodeId | None, state: SessionState, moment: DecisionContext
) -> Node:
    return Node(
        id=new_node_id(moment.now),
        role="user",
        parts=parts,
        parent=parent,
        parent_revision=revision_of(state, parent),
    )


def _continue(
    command: ContinueTurn, state: SessionState, moment: DecisionContext
) -> DecidedCommand:
    if moment.running:
        raise SessionBusy(state.session_id, "continue")
    turn = state.turn.open
    if turn is not None:
        answer = Accepted("started", turn_id=turn.turn_id, seq=state.seq)
        return DecidedCommand(answer=answer, then="start_turn")
    if state.tree.head is None:
        raise UsageError("there is nothing to continue: the session is empty")
    turn_id = TurnId(new_id("trn", moment.now))
    started = TurnStarted(
        turn_id=turn_id,
        node=state.tree.head,
        options=_with_mode(command.options, state),
        continued=True,
    )
    facts: list[Fact] = [started, *promote(state, (), moment.now)]
    return DecidedCommand(
        facts=tuple(facts),
        answer=Accepted("started", turn_id=turn_id, seq=state.seq),
        then="start_turn",
    )


def _with_mode(options: dict[str, Any], state: SessionState) -> dict[str, Any]:
    """A turn keeps the mode that it started in, whatever is set meanwhile."""
    if state.settings.mode == "normal" or "mode" in options:
        return options
    return {**options, "mode": state.settings.mode}


# --- the queue -------------------------------------------------------------------------


def _edit(entry_id: EntryId, parts: tuple[Part, ...], state: SessionState) -> DecidedCommand:
    state.queue.require(entry_id)
    cleaned = clean_parts(parts)
    if not cleaned:
        raise UsageError("the message would be empty; remove_queued takes it away")
    return DecidedCommand(facts=(InputEdited(entry_id=entry_id, parts=cleaned),))


def _reorder(entries: tuple[EntryId, ...], state: SessionState) -> DecidedCommand:
    for entry_id in entries:
        state.queue.require(entry_id)
    return DecidedCommand(facts=(InputsReordered(entries=entries),))


def _recall(state: SessionState) -> DecidedCommand:
    answer = QueuedMessages(
        steering=state.queue.waiting("steering"), follow_up=state.queue.waiting("follow_up")
    )
    if not state.queue.entries:
        return DecidedCommand(answer=answer)
    return DecidedCommand(
        facts=(QueuesRecalled(entries=tuple(state.queue.entries)),), answer=answer
    )


def _dequeue(state: SessionState) -> DecidedCommand:
    waiting = state.queue.waiting("steering")
    if not waiting:
        return DecidedCommand()
    return DecidedCommand(facts=(InputRemoved(entry_id=waiting[0].entry_id),), answer=waiting[0])


# --- answering -------------------------------------------------------------------------


def _respond(command: RespondToPermission, state: SessionState) -> DecidedCommand:
    request = _open_request(command.request_id, PermissionRequest, state)
    _check_answer(command, request)
    # What is granted to a child is remembered there: grants are no inheritance, in neither direction.
    grants = command.action in ("allow_turn", "allow_always") and request.child is None
    resolved = PermissionResolved(
        request_id=request.request_id,
        action=command.action,
        by=command.client or "person",
        reason=clean_text(command.reason),
        pattern=request.always_pattern if grants else "",
        saved=command.save,
        instead=command.instead,
        rules=command.rules,
    )
    return DecidedCommand(facts=(resolved,), rule=request.always_pattern if command.save else "")


def _check_answer(command: RespondToPermission, request: PermissionRequest) -> None:
    """Refuse an answer that contradicts itself: it would be read as more than was meant."""
    if command.save and (command.action != "allow_always" or not request.always_pattern):
        raise UsageError("only what is allowed always can be kept as a rule")
    if command.instead is not None and (command.action != "deny" or command.interrupt):
        raise UsageError("another input takes the place of the one that was shown, once")
    if command.interrupt and command.action != "deny":
        raise UsageError("only a denial can end the turn")


def _answer_question(command: AnswerQuestion, state: SessionState) -> DecidedCommand:
    request = _open_request(command.request_id, QuestionAsked, state)
    answered = QuestionAnswered(
        request_id=request.request_id,
        answer=clean_text(command.answer),
        by=command.client or "person",
    )
    return DecidedCommand(facts=(answered,))


def _open_request(request_id: RequestId | None, kind: type[Any], state: SessionState) -> Any:
    """The open request that is meant; None means the only one."""
    waiting: list[Request] = [
        request for request in state.turn.requests.values() if isinstance(request, kind)
    ]
    if request_id is not None:
        waiting = [request for request in waiting if request.request_id == request_id]
        if not waiting:
            raise NoPendingRequest(
                f"no open request {request_id!r}: it was answered, withdrawn or never made"
            )
    if not waiting:
        raise NoPendingRequest("nothing waits for an answer")
    if len(waiting) > 1:
        ids = ", ".join(request.request_id for request in waiting)
        raise UsageError(f"several requests are open; say which one is meant: {ids}")
    return waiting[0]


def _set_mode(mode: str) -> DecidedCommand:
    if mode not in SESSION_MODES:
        raise UsageError(f"no mode {mode!r}; there are {', '.join(SESSION_MODES)}")
    return DecidedCommand(facts=(ModeChanged(mode=mode),))


def _plan(command: DecidePlan | EditPlan, state: SessionState) -> DecidedCommand:
    if state.turn.open is None or not state.plan.is_waiting:
        raise NoPendingRequest("no plan waits for approval")
    plan_id = state.plan.plan_id
    if isinstance(command, EditPlan):
        return DecidedCommand(facts=(PlanEdited(plan_id=plan_id, plan=command.plan),))
    decided = PlanDecided(
        plan_id=plan_id,
        approved=command.approved,
        reason=clean_text(command.reason),
        by=command.client or "person",
    )
    return DecidedCommand(facts=(decided,))


# --- beside the turns ------------------------------------------------------------------


def _beside(command: BeginCall | RecordUsage, moment: DecisionContext) -> DecidedCommand:
    """A model call that no turn makes begins, or is over."""
    if isinstance(command, BeginCall):
        started = ModelCallStarted(
            turn_id=TurnId(""),
            node=new_node_id(moment.now),
            model=command.model,
            purpose=command.purpose,
            input_tokens=command.input_tokens,
        )
        return DecidedCommand(facts=(started,), answer=started.node)
    used = UsageRecorded(
        usage=command.usage,
        model=command.model,
        purpose=command.purpose,
        estimated=command.estimated,
        node=command.call,
    )
    return DecidedCommand(facts=(used,))


def _bring_over(node: NodeId, text: str, state: SessionState) -> DecidedCommand:
    state.tree.require(node)
    cleaned = clean_text(text)
    note = f"[What was learned on another branch of this conversation:]\n{cleaned}"
    return DecidedCommand(facts=_add_note(note, "info", True, state).facts, answer=cleaned)


def _cycle_model(
    rotation: Sequence[str], state: SessionState, moment: DecisionContext
) -> DecidedCommand:
    following = next_model(rotation, state.settings)
    return DecidedCommand(facts=_set_model(following, state, moment), answer=following.name)


# --- the tree --------------------------------------------------------------------------


def _move(
    command: EditNode | BranchAt | SwitchBranch, state: SessionState, moment: DecisionContext
) -> DecidedCommand:
    if moment.running:
        raise SessionBusy(state.session_id, "change the line it works on")
    match command:
        case EditNode(node=node, parts=parts):
            revision = state.tree.require(node).revision + 1
            return DecidedCommand(facts=(NodeEdited(node=node, revision=revision, parts=parts),))
        case BranchAt(node=node, name=name):
            facts, branch = branching.branch_at(state, node, name)
            return DecidedCommand(facts=tuple(facts), answer=branch)
        case SwitchBranch(name=name):
            facts, branch = branching.switch(state, name)
            return DecidedCommand(facts=tuple(facts), answer=branch)
        case _:
            assert_never(command)


def _compact(focus: str, state: SessionState, moment: DecisionContext) -> DecidedCommand:
    if moment.running:
        raise SessionBusy(state.session_id, "compact it")
    if state.tree.head is None:
        raise UsageError("there is nothing to compact: the session is empty")
    return DecidedCommand(answer=state.seq, then="compact", focus=focus)


def _undo_compaction(state: SessionState, moment: DecisionContext) -> DecidedCommand:
    if moment.running:
        raise SessionBusy(state.session_id, "undo the compaction")
    compaction = state.tree.compaction_for(state.tree.head)
    if compaction is None:
        raise UsageError("nothing on this line was compacted")
    undone = CompactionUndone(compaction=compaction.at.seq, log=compaction.at.log)
    return DecidedCommand(facts=(undone,))


def _set_boundary(first: int, last: int, file: FoundFile | None) -> DecidedCommand:
    if file is None or file.data is None:
        raise UsageError(f"there is no file {'' if file is None else file.path!r} to bound")
    if not 0 <= first <= last:
        raise UsageError(
            f"no range of lines: {first} to {last}; lines count from 0, the first one first"
        )
    if first >= max(file.lines, 1):
        raise UsageError(
            f"{file.path!r} has only {file.lines} lines; line {first} is beyond its end"
        )
    last = min(last, file.lines - 1)
    base = BlobId(hashlib.sha256(file.data).hexdigest())
    fact = BoundaryChanged(path=file.path, first=first, last=last, base=base)
    return DecidedCommand(facts=(fact,), blobs={base: file.data})


def _clear_boundary(file: FoundFile | None, state: SessionState) -> DecidedCommand:
    """Lift the boundary of the file, or all of them; one that is not there need not be lifted."""
    paths = tuple(state.boundaries.held) if file is None else (file.path,)
    lifted = (path for path in paths if path in state.boundaries.held)
    return DecidedCommand(facts=tuple(BoundaryChanged(path=path) for path in lifted))


def _toggle(node: NodeId | None, state: SessionState) -> DecidedCommand:
    """Tool calls are folded unless unfolded; "all" unfolds everything if anything is folded."""
    if node is not None:
        marks = state.tree.require(node).marks
        unfolded = marks.get("unfolded", state.settings.get("unfolded", False))
        return DecidedCommand(
            facts=(NodeMarked(node=node, mark="unfolded", value=not unfolded),),
            answer=not unfolded,
        )
    marked = [each for each, skeleton in state.tree.nodes.items() if "unfolded" in skeleton.marks]
    folded = not state.settings.get("unfolded", False) or any(
        not state.tree.nodes[each].marks["unfolded"] for each in marked
    )
    cleared = tuple(NodeMarked(node=each, mark="unfolded", value=None) for each in marked)
    setting = SettingChanged(name="unfolded", value=folded or None)
    return DecidedCommand(facts=(setting, *cleared), answer=folded)


# --- the rest --------------------------------------------------------------------------


def _add_note(text: str, level: Any, to_model: bool, state: SessionState) -> DecidedCommand:
    if not text.strip():
        raise UsageError("a note needs some text")
    note = SystemNote(
        text=clean_text(text), level=level, to_model=to_model, node=tip_after(state, ())
    )
    return DecidedCommand(facts=(note,))


def _set_model(model: ModelName, state: SessionState, moment: DecisionContext) -> tuple[Fact, ...]:
    """The model, and how hard it thinks where that is named with it."""
    changed = SettingChanged(name="model", value=model.name)
    if model.effort is None:
        level = state.settings.thinking
        return (changed, *_told_of_level(model.name, level, state, moment))
    named = _set_thinking(model.effort, state, moment, model=model.name)
    return (changed, *named)


def _set_thinking(
    level: ThinkingLevel, state: SessionState, moment: DecisionContext, *, model: str = ""
) -> tuple[Fact, ...]:
    """The level, with a note where `model` (or else the session's own) lacks it.

    The vendor's default is what holds where none is set, so setting it takes the setting away.
    """
    changed = SettingChanged(name="thinking", value=None if level == "default" else level)
    told = _told_of_level(model or state.settings.model, level, state, moment)
    return (changed, *told)


def _told_of_level(
    model: str, level: ThinkingLevel, state: SessionState, moment: DecisionContext
) -> tuple[Fact, ...]:
    """A note where the model lacks the level."""
    said = level_note(model, level, moment.levels)
    return (SystemNote(text=said, node=tip_after(state, ())),) if said else ()


def _change_setting(name: str, value: Any) -> DecidedCommand:
    if name == "permission_mode" and value not in MODES:
        raise UsageError(f"no permission mode {value!r}; there are {', '.join(MODES)}")
    if name == "thinking" and value not in THINKING_LEVELS:
        raise UsageError(f"no thinking level {value!r}; there are {', '.join(THINKING_LEVELS)}")
    return DecidedCommand(facts=(SettingChanged(name=name, value=value),))


def _checked_image(image: Image) -> Image:
    """The image, its content known to be base64 without any space."""
    shown = image.name or "the image"
    if not image.media_type.startswith("image/"):
        raise UsageError(f"{shown} needs a media_type such as image/png, not {image.media_type!r}")
    if image.blob is not None and not image.data:
        return image
    data = "".join(image.data.split())
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise UsageError(f"the content of {shown} is not base64: {error}") from error
    if not content:
        raise UsageError(f"{shown} has no content")
    return msgspec.structs.replace(image, data=data)


def clean_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts as they may be stored: text without lone surrogates, nothing empty."""
    cleaned: list[Part] = []
    for part in parts:
        match part:
            case Text(text=text):
                if text.strip():
                    cleaned.append(msgspec.structs.replace(part, text=clean_text(text)))
            case File(text=text):
                cleaned.append(msgspec.structs.replace(part, text=clean_text(text)))
            case Image():
                cleaned.append(_checked_image(part))
            case _:
                raise UsageError("a message is made of text, images and files")
    return tuple(cleaned)
