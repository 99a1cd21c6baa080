"""The chat's view of a session: events in, finished blocks out, and what is in flight beside them.

A fold without I/O.  `live` is what the redrawn part of a screen shows; blocks are handed out once and never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from weft.api.reports import EditorSnapshot, PlanProgress
from weft.api.results import HistoryMessage
from weft.cli.answers import GOOD, describe_call, why_it_stopped
from weft.cli.chat.blocks import (
    AnswerBlock,
    AnyBlock,
    NoteBlock,
    PlanShown,
    ThinkingBlock,
    ToolCard,
    UserSaid,
)
from weft.cli.chat.markdown import settled
from weft.cli.chat.plans import step_title, steps_of
from weft.cli.sanitize import TerminalSanitizer
from weft.events import (
    AnswerRestarted,
    ArchitectPhase,
    ArchitectPlan,
    ArchitectStep,
    ChildFinished,
    ChildStarted,
    Compacted,
    ContextUsage,
    ErrorRaised,
    Event,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputsReordered,
    LlmRetry,
    ModeChanged,
    NewMessage,
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    PlanEdited,
    QuestionAnswered,
    QuestionAsked,
    QueuesRecalled,
    SessionRestarted,
    SessionStatus,
    SettingChanged,
    Status,
    SystemNote,
    TextDelta,
    ThinkingDelta,
    ToolArgsDelta,
    ToolComplete,
    ToolExecuting,
    ToolOutput,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from weft.messages import NOTHING_USED, File, Image, Node, Part, Text, ToolCall, ToolResult

KEPT_OUTPUT = 4_000
"""Characters of a running tool's output that are kept to be shown."""


class RunningTool(msgspec.Struct, kw_only=True):
    """A tool at work."""

    name: str
    output: str = ""
    cleaner: TerminalSanitizer = msgspec.field(default_factory=TerminalSanitizer)

    def take(self, chunk: str) -> None:
        """More output."""
        self.output = (self.output + self.cleaner.feed(chunk))[-KEPT_OUTPUT:]


class WorkerRow(msgspec.Struct, kw_only=True):
    """Who works for this session: another one, or a command in the background."""

    name: str
    purpose: str = "agent"
    background: bool = False
    call_uid: str = ""
    title: str = ""
    doing: str = ""
    calls: int = 0
    cost_usd: float | None = 0.0

    @property
    def progress(self) -> str:
        """What it does and has done, in a few words."""
        cost = "" if not self.cost_usd else f"${self.cost_usd:.4f}"
        calls = f"{self.calls} call{'s' * (self.calls != 1)}" if self.calls else ""
        return " · ".join(part for part in (self.doing, calls, cost) if part)


def command_at_work(name: str, command: str) -> WorkerRow:
    """A command that goes on beside the turns, shown with those who work for the session."""
    return WorkerRow(name=name, purpose="command", background=True, title=" ".join(command.split()))


class PlanAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that waits for the person's word."""

    request_id: str
    plan: dict[str, Any]
    is_shown: bool = False
    """The person has just seen it."""


Asking: TypeAlias = PermissionRequest | QuestionAsked | PlanAsked
PLAN = "plan"
"""The name under which a plan waits among the requests; there is never more than one."""


class LiveArea(msgspec.Struct, kw_only=True):
    """What is in flight, and what the status line says."""

    status: Status = "idle"
    text: str = ""
    """The part of the answer that is not settled yet."""
    thinking: str = ""
    writing: str = ""
    """The tool whose call the model is writing."""
    running: dict[str, RunningTool] = {}
    queued: dict[str, str] = {}
    later: set[str] = set()
    """Those of the queued messages that are said when the turn has ended."""
    requests: dict[str, Asking] = {}
    workers: dict[str, WorkerRow] = {}
    """Sessions and background commands at work for this one, by id."""
    plan: dict[str, Any] = {}
    """The plan that is carried out, in architect mode."""
    has_open_plan: bool = False
    """The last turn left its plan without carrying it out, when the session was opened."""
    phase: str = ""
    """What the architect is at."""
    retry: str = ""
    model: str = ""
    mode: str = "default"
    is_architect: bool = False
    effort: str = "default"
    title: str = ""
    context_used: int = 0
    context_window: int = 0
    cost_usd: float | None = 0.0

    @property
    def is_busy(self) -> bool:
        """A turn runs."""
        return self.status in ("thinking", "executing_tool", "awaiting_permission")


class SessionView:
    """Folds the events of one session."""

    def __init__(self, live: LiveArea | None = None) -> None:
        self.live = live or LiveArea()
        self._node = ""
        self._taken = 0
        """Characters of the answer in flight that were handed out as blocks."""
        self._calls: dict[str, ToolCall] = {}
        self._shown: set[str] = set()
        """Calls that the person was asked about."""

    def take(self, event: Event) -> list[AnyBlock]:
        """Take one more event in; what can now be shown for good."""
        live = self.live
        match event:
            case TextDelta() | ThinkingDelta() | ToolArgsDelta() | AnswerRestarted():
                return self._in_flight(event)
            case NewMessage(node=node):
                return self._message(node)
            case ToolExecuting(call_uid=call_uid, tool_name=name, args=args):
                live.running[call_uid] = RunningTool(name=describe_call(name, args))
            case ToolOutput(call_uid=call_uid, chunk=chunk):
                live.running.setdefault(call_uid, RunningTool(name="")).take(chunk)
            case ToolComplete(call_uid=call_uid, result=result, duration_ms=duration_ms):
                if isinstance(started := result.data.get("background"), dict):
                    name = str(started.get("id", ""))
                    live.workers[name] = command_at_work(name, str(started.get("command", "")))
                return self._tool_ended(call_uid, result, duration_ms)
            case SessionStatus(status=status):
                live.status = status
            case ContextUsage(used=used, window=window):
                live.context_used, live.context_window = used, window
            case LlmRetry(reason=reason, wait_ms=wait_ms):
                live.retry = f"{reason}; trying again in {wait_ms / 1000:.0f} s"
            case UsageRecorded(usage=usage):
                total = msgspec.structs.replace(NOTHING_USED, cost_usd=live.cost_usd) + usage
                live.cost_usd = total.cost_usd
                live.retry = ""
            case TurnStarted() | TurnFinished():
                return self._turn(event)
            case ChildStarted() | ChildFinished():
                return self._worker(event)
            case ArchitectPlan() | PlanEdited() | PlanDecided() | ArchitectStep():
                return self._architect(event)
            case _:
                return self._rest(event)
        return []

    # -- those who work for it

    def _worker(self, event: ChildStarted | ChildFinished) -> list[AnyBlock]:
        workers = self.live.workers
        if isinstance(event, ChildStarted):
            call = self._calls.get(event.call_uid or "")
            workers[event.child] = WorkerRow(
                name=event.name or event.purpose,
                purpose=event.purpose,
                background=event.background,
                call_uid=event.call_uid or "",
                title=str(call.args.get("description") or "") if call is not None else "",
            )
            return []
        worker = workers.pop(event.child, None) or WorkerRow(name="agent")
        if worker.purpose == "step":
            return []  # how a step ended is told by the plan
        if event.usage is not None:
            worker.cost_usd = event.usage.cost_usd
        worker.doing = "done" if event.reason in GOOD else why_it_stopped(event.reason, "")
        title = f": {worker.title}" if worker.title else ""
        return [NoteBlock(text=f"⤷ {worker.name}{title} · {worker.progress}", level="quiet")]

    def _architect(
        self, event: ArchitectPlan | PlanEdited | PlanDecided | ArchitectStep
    ) -> list[AnyBlock]:
        live = self.live
        match event:
            case ArchitectPlan(plan=plan) | PlanEdited(plan=plan):
                live.plan = plan
                live.requests[PLAN] = PlanAsked(request_id=PLAN, plan=plan, is_shown=True)
                return [PlanShown(plan=plan)]
            case PlanDecided(approved=approved, reason=reason):
                live.requests.pop(PLAN, None)
                if approved:
                    return [NoteBlock(text="the plan is approved", level="quiet")]
                why = f": {reason}" if reason else ""
                return [NoteBlock(text=f"the plan was turned down{why}", level="warning")]
            case ArchitectStep():
                return self._step(event)

    def _step(self, event: ArchitectStep) -> list[AnyBlock]:
        steps = steps_of(self.live.plan)
        of = f" of {len(steps)}" if steps else ""
        title = f" ({step_title(steps[event.index])})" if event.index < len(steps) else ""
        step = f"step {event.index + 1}{of}"
        why = f": {event.detail}" if event.detail else ""
        match event.status:
            case "started":
                return [NoteBlock(text=f"{step}{title}")]
            case "passed":
                return [NoteBlock(text=f"{step} is done{why}", level="quiet")]
            case "skipped":
                return [NoteBlock(text=f"{step} is left out{why}", level="quiet")]
            case "failed":
                return [NoteBlock(text=f"{step} failed{why}", level="error")]
            case "replanned":
                text = f"{step} failed{why}; the rest is planned anew"
                return [NoteBlock(text=text, level="warning")]

    # -- the answer in flight

    def _in_flight(
        self, event: TextDelta | ThinkingDelta | ToolArgsDelta | AnswerRestarted
    ) -> list[AnyBlock]:
        live = self.live
        live.retry = ""
        if isinstance(event, AnswerRestarted):
            void = bool(self._taken or live.text)
            self._begin(event.node_id)
            return [NoteBlock(text="the answer begins again", level="quiet")] if void else []
        if event.node_id != self._node:
            self._begin(event.node_id)
        if isinstance(event, ThinkingDelta):
            live.thinking += event.text
            return []
        blocks = self._end_thought()
        if isinstance(event, ToolArgsDelta):
            live.writing = event.tool_name
            return blocks
        live.text += event.text
        if "\n" in event.text:
            blocks += self._cut(settled(live.text))
        return blocks

    def _begin(self, node_id: str) -> None:
        self._node, self._taken = node_id, 0
        self.live.text = self.live.thinking = self.live.writing = ""

    def _cut(self, length: int) -> list[AnyBlock]:
        """Hand out this much of the text in flight."""
        live = self.live
        piece, live.text = live.text[:length], live.text[length:]
        self._taken += length
        return [AnswerBlock(text=piece)] if piece.strip() else []

    def _end_thought(self) -> list[AnyBlock]:
        thought, self.live.thinking = self.live.thinking, ""
        return [ThinkingBlock(text=thought)] if thought.strip() else []

    # -- what is durable

    def _message(self, node: Node) -> list[AnyBlock]:
        if node.role == "user":
            return [said(node.parts)]
        if node.role != "assistant":
            return []
        blocks = self._end_thought()
        if node.id != self._node:
            self._begin(node.id)
        # What the log has counts, whatever was seen of it in flight.
        self.live.text = node.text[self._taken :]
        blocks += self._cut(len(self.live.text))
        self._begin("")
        self._calls.update({call.call_uid: call for call in node.calls})
        if node.is_partial:
            blocks.append(NoteBlock(text="the answer was cut off here", level="quiet"))
        return blocks

    def _tool_ended(self, call_uid: str, result: ToolResult, duration_ms: int) -> list[AnyBlock]:
        running = self.live.running.pop(call_uid, None)
        call = self._calls.pop(call_uid, None)
        if call is None:
            name = running.name if running is not None else "tool"
            return [ToolCard(name=name, args={}, result=result, duration_ms=duration_ms)]
        if call.name == "ask" and not result.is_error:
            return []  # the question and the answer are there already
        if call.name == "submit" and self.live.is_architect and not result.is_error:
            return []  # the plan is shown as such
        was_shown = call_uid in self._shown
        self._shown.discard(call_uid)
        return [
            ToolCard(
                name=call.name,
                args=call.args,
                result=result,
                duration_ms=duration_ms,
                was_shown=was_shown,
            )
        ]

    def _turn(self, event: TurnStarted | TurnFinished) -> list[AnyBlock]:
        live = self.live
        live.running.clear()
        live.retry = live.writing = ""
        if isinstance(event, TurnStarted):
            return []
        live.requests.clear()
        live.phase = ""
        live.workers = {child: each for child, each in live.workers.items() if each.background}
        if event.reason in GOOD:
            return []
        if event.reason == "aborted":
            return [NoteBlock(text="stopped", level="warning")]
        return [NoteBlock(text=why_it_stopped(event.reason, event.detail), level="error")]

    def _rest(self, event: Event) -> list[AnyBlock]:
        live = self.live
        match event:
            case PermissionRequest(request_id=request_id) | QuestionAsked(request_id=request_id):
                live.requests[request_id] = event
                self._shown.add(event.call_uid)
            case PermissionResolved(request_id=request_id):
                request = live.requests.pop(request_id, None)
                return _resolved(event, request) if request is not None else []
            case QuestionAnswered(request_id=request_id, answer=answer):
                live.requests.pop(request_id, None)
                return [UserSaid(text=answer)]
            case InputQueued(entry_id=entry_id, parts=parts, delivery=delivery):
                live.queued[entry_id] = said(parts).text
                if delivery == "follow_up":
                    live.later.add(entry_id)
            case InputEdited(entry_id=entry_id, parts=parts):
                live.queued[entry_id] = said(parts).text
            case InputsReordered(entries=entries):
                first = [entry_id for entry_id in entries if entry_id in live.queued]
                rest = [entry_id for entry_id in live.queued if entry_id not in first]
                live.queued = {entry_id: live.queued[entry_id] for entry_id in (*first, *rest)}
            case ModeChanged(mode=mode):
                live.is_architect = mode == "architect"
            case ArchitectPhase(phase=phase):
                live.phase = phase
            case InputPromoted(entries=entries) | QueuesRecalled(entries=entries):
                for entry_id in entries:
                    live.queued.pop(entry_id, None)
            case InputRemoved(entry_id=entry_id):
                live.queued.pop(entry_id, None)
            case SettingChanged():
                self._setting(event)
            case SystemNote(text=text, level=level, to_model=False, background=end):
                if end is not None:
                    live.workers.pop(end.id, None)
                return [NoteBlock(text=text, level=level)]
            case ErrorRaised(message=message):
                return [NoteBlock(text=message, level="error")]
            case SessionRestarted():
                return [NoteBlock(text="the session was restarted from its log", level="warning")]
            case Compacted():
                return [NoteBlock(text="earlier turns are now told to the model as a summary")]
            case _:
                pass
        return []

    def _setting(self, event: SettingChanged) -> None:
        live = self.live
        match event.name:
            case "model":
                live.model = str(event.value)
                live.context_window = 0
            case "permission_mode":
                live.mode = str(event.value)
            case "thinking":
                live.effort = str(event.value or "default")
            case "title":
                live.title = str(event.value)
            case _:
                pass


def said(parts: Iterable[Part]) -> UserSaid:
    """What a person said, with the names of what was sent along."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    attached = [part.name for part in parts if isinstance(part, File | Image)]
    return UserSaid(text="".join(texts), attached=tuple(attached))


def _resolved(event: PermissionResolved, request: Asking) -> list[AnyBlock]:
    # What a worker was allowed is on the worker's record; its request here says what that is.
    shown = request.always_pattern if isinstance(request, PermissionRequest) else ""
    pattern = event.pattern or shown
    match event.action:
        case "allow_turn":
            return [NoteBlock(text=f"allowed for this turn: {pattern}", level="quiet")]
        case "allow_always":
            return [NoteBlock(text=f"allowed in this session: {pattern}", level="quiet")]
        case _:
            return []


def live_of(snapshot: EditorSnapshot) -> LiveArea:
    """What a session is doing right now."""
    waiting: dict[str, Asking] = {each.request_id: each for each in snapshot.requests}
    if snapshot.pending_plan is not None:
        waiting[PLAN] = PlanAsked(request_id=PLAN, plan=snapshot.pending_plan)
    return LiveArea(
        status=snapshot.status,
        model=snapshot.model,
        mode=snapshot.permission_mode,
        effort=snapshot.thinking,
        title=snapshot.title,
        context_used=snapshot.context_used,
        cost_usd=snapshot.cost_usd,
        is_architect=snapshot.mode == "architect",
        requests=waiting,
        queued={entry.entry_id: entry.text for entry in snapshot.queue},
        later={entry.entry_id for entry in snapshot.queue if entry.delivery == "follow_up"},
        plan=snapshot.plan.plan if snapshot.plan is not None else {},
        has_open_plan=_is_open(snapshot.plan) and snapshot.status == "idle",
    )


def _is_open(progress: PlanProgress | None) -> bool:
    """True for a plan that could still be gone on with: nobody has decided, or steps are left."""
    if progress is None or progress.approved is False:
        return False
    ended = sum(status in ("passed", "skipped") for status in progress.steps.values())
    return ended < len(steps_of(progress.plan))


def earlier(messages: Iterable[HistoryMessage]) -> list[AnyBlock]:
    """A stored conversation as blocks."""
    blocks: list[AnyBlock] = []
    calls: dict[str, tuple[str, dict[str, object]]] = {}
    for message in messages:
        match message.role:
            case "user":
                blocks.append(UserSaid(text=message.content))
            case "assistant":
                if message.content.strip():
                    blocks.append(AnswerBlock(text=message.content))
                if message.is_partial:
                    blocks.append(NoteBlock(text="the answer was cut off here", level="quiet"))
                calls |= {call["id"]: (call["name"], call["args"]) for call in message.tool_calls}
            case "tool":
                name, args = calls.get(message.tool_call_id or "", ("tool", {}))
                result = ToolResult(
                    call_uid=message.tool_call_id or "",  # type: ignore[arg-type]  # an id of ours, as text
                    text=message.content,
                    is_error=message.is_error,
                )
                blocks.append(ToolCard(name=name, args=args, result=result))
            case _:
                blocks.append(NoteBlock(text=message.content))
    return blocks
