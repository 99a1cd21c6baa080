"""The session view: a fold of one session's events into view blocks and a live area.

No I/O and no clock.  Blocks are handed out once and never change; what may still change is `live`.
The web page has the same fold in TypeScript, and `tests/golden/view/` holds both to the same
blocks: a change here is a change there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from weft.events import (
    AnswerRestarted,
    ArchitectPhase,
    ArchitectPlan,
    ArchitectStep,
    AsideAnswered,
    ChildFinished,
    ChildStarted,
    Compacted,
    ContextUsage,
    ErrorRaised,
    Event,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
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
    RequestOffered,
    ResultsCleared,
    SessionHosted,
    SessionRestarted,
    SessionStatus,
    SettingChanged,
    SystemNote,
    TextDelta,
    ThinkingDelta,
    TodoChanged,
    ToolArgsDelta,
    ToolComplete,
    ToolExecuting,
    ToolOutput,
    TurnFinished,
    TurnParked,
    TurnStarted,
    TurnWaiting,
    TurnWoken,
    UsageRecorded,
)
from weft.ids import CallUid
from weft.messages import NOTHING_USED, Node, ToolCall, ToolResult, Usage
from weft.state import GONE_ON_BY_USER
from weft.view.blocks import (
    AgentEnd,
    AnswerBlock,
    AnyBlock,
    NoteBlock,
    PlanBlock,
    QuestionBlock,
    ThinkingBlock,
    TodoBlock,
    ToolCard,
    user_block,
)
from weft.view.card_groups import LOOKUPS, AgentGroup, LookupGroup
from weft.view.goal_line import row_after
from weft.view.goal_text import goal_note
from weft.view.history import CUT_OFF
from weft.view.live_area import (
    PLAN_REQUEST,
    LiveArea,
    OpenRequest,
    PlanRequest,
    QueuedInput,
    RetryNotice,
    RunningTool,
    TaskRow,
    command_row,
    running_tool,
    wait_notice,
)
from weft.view.markdown import finished_length
from weft.view.plan_steps import step_note
from weft.view.sentences import SUCCESSFUL, call_in_progress, finish_sentence
from weft.view.session_words import aside_text
from weft.view.turn_counts import TurnCounts, finish_note

_TARGET = re.compile(r'"(?:path|command|pattern|description)"\s*:\s*"((?:[^"\\]|\\.)+)"')
_LONGEST_ARGUMENTS = 4_000
"""Characters of a call in the making in which its path is looked for."""


class SessionView:
    """Folds the events of one session."""

    def __init__(
        self,
        live: LiveArea | None = None,
        open_calls: Mapping[str, tuple[str, dict[str, Any]]] | None = None,
    ) -> None:
        """`open_calls` are the calls without a result when this reader joined, by id: without them
        their cards would have no name.
        """
        self.live = live or LiveArea()
        self._node = ""
        """The answer in flight."""
        self._taken = 0
        """Characters of the answer in flight that were handed out as blocks."""
        self._calls: dict[str, ToolCall] = {
            call_uid: ToolCall(call_uid=CallUid(call_uid), name=name, args=args)
            for call_uid, (name, args) in (open_calls or {}).items()
        }
        # After those of the messages: what runs may have another input than the model gave.
        for call_uid, tool in self.live.running.items():
            self._calls[call_uid] = ToolCall(
                call_uid=CallUid(call_uid), name=tool.tool, args=tool.args
            )
        self._shown: set[str] = set()
        """Calls that the user was asked about."""
        self._questions: dict[str, str] = {}
        """The model's questions, by request: a chat takes one that it has put out of `live`."""
        self._allowed_for: dict[str, Literal["", "turn", "session"]] = {}
        self._began_at: dict[str, float] = {}
        """When each running call began, in wall-clock seconds."""
        self._rules: set[str] = set()
        """Rules that were named on a card already."""
        self._lookups = LookupGroup()
        self._agents = AgentGroup()
        self._tally = TurnCounts()
        self._arguments = ""
        """What came of the call in the making."""
        self._thought_since = 0.0
        self._todos_changed = False
        self._was_cut_off = False

    def args_of(self, request: PermissionRequest | QuestionAsked) -> dict[str, Any] | None:
        """The input of the call that a request is about; None when it is not known here."""
        if isinstance(request, PermissionRequest) and request.args is not None:
            return request.args
        # A child's calls are its own session's; its uid could name one of ours.
        call = self._calls.get(request.call_uid) if request.child is None else None
        return call.args if call is not None else None

    def calls_behind(self, request: PermissionRequest) -> int:
        """How many calls of the same tool wait behind the one that a request is about: they are
        asked about one after the other.
        """
        calls = list(self._calls)
        if request.child is not None or request.call_uid not in calls:
            return 0
        name = self._calls[request.call_uid].name
        behind = calls[calls.index(request.call_uid) + 1 :]
        return sum(
            self._calls[each].name == name and each not in self.live.running for each in behind
        )

    def take(self, event: Event) -> list[AnyBlock]:
        """Take one more event in; returns what can now be shown for good."""
        self._tally.take(event)
        blocks = self._lookups.pass_on(self._taken_in(event))
        if self._is_something_else(event):
            blocks = [*self._lookups.flush(), *blocks]
        self.live.lookups = self._lookups.card
        return blocks

    def _is_something_else(self, event: Event) -> bool:
        """True for what ends a row of reads and searches before it gives a block of its own."""
        match event:
            case TextDelta():
                return bool(self.live.text.strip())
            case ToolExecuting(tool_name=name):
                return name not in LOOKUPS
            case PermissionRequest() | QuestionAsked() | TurnFinished():
                return True
            case _:
                return False

    def _taken_in(self, event: Event) -> list[AnyBlock]:
        match event:
            case TextDelta() | ThinkingDelta() | ToolArgsDelta() | AnswerRestarted():
                return self._in_flight(event)
            case NewMessage(node=node, at=at):
                return self._message(node, at)
            case ToolExecuting() | ToolOutput() | ToolComplete():
                return self._tool(event)
            case TurnStarted() | TurnFinished():
                return self._turn(event)
            case ChildStarted() | ChildFinished():
                return self._task(event)
            case ArchitectPlan() | PlanEdited() | PlanDecided() | ArchitectStep():
                return self._architect(event)
            case PermissionRequest() | QuestionAsked() | PermissionResolved() | QuestionAnswered():
                return self._request(event)
            case RequestOffered(request=request):
                return self._request(request)
            case (
                InputQueued()
                | InputEdited()
                | InputsReordered()
                | InputPromoted()
                | QueuesRecalled()
                | InputRemoved()
            ):
                self._queue(event)
                return []
            case TodoChanged():
                return self._todo(event)
            case (
                SystemNote()
                | ErrorRaised()
                | SessionRestarted()
                | TurnParked()
                | AsideAnswered()
                | Compacted()
                | ResultsCleared()
            ):
                return self._note(event)
            case GoalSet() | GoalPaused() | GoalChecked() | GoalEnded():
                self._goal(event)
                return [goal_note(event)]
            case SessionHosted(moved=True, host=host):
                return [NoteBlock(text=f"the session goes on at {host}", level="quiet")]
            case _:
                self._status(event)
                return []

    # -- the answer in flight

    def _in_flight(
        self, event: TextDelta | ThinkingDelta | ToolArgsDelta | AnswerRestarted
    ) -> list[AnyBlock]:
        live = self.live
        live.retry = None
        if isinstance(event, AnswerRestarted):
            # Text that was handed out stays on the screen, so the user has to be shown that it is
            # void.
            void = bool(self._taken or live.text)
            self._begin(event.node_id)
            return [NoteBlock(text="the answer starts over", level="quiet")] if void else []
        if event.node_id != self._node:
            self._begin(event.node_id)
        if isinstance(event, ThinkingDelta):
            if not live.thinking:
                self._thought_since = event.at
            live.thinking += event.text
            return []
        blocks = self._end_thinking(event.at)
        if isinstance(event, ToolArgsDelta):
            self._prepare(event)
            return blocks
        live.text += event.text
        # Only a line's end can finish a block: looking at every piece would be quadratic.
        if "\n" in event.text:
            blocks += self._hand_out(finished_length(live.text))
        return blocks

    def _prepare(self, event: ToolArgsDelta) -> None:
        live = self.live
        if event.tool_name and event.tool_name != live.preparing:
            live.preparing, live.preparing_target, self._arguments = event.tool_name, "", ""
        # Looked for only at the beginning: a file's whole content may follow.
        if not live.preparing_target and len(self._arguments) < _LONGEST_ARGUMENTS:
            self._arguments += event.text
            if found := _TARGET.search(self._arguments):
                live.preparing_target = found[1]

    def _begin(self, node_id: str) -> None:
        live = self.live
        self._node, self._taken = node_id, 0
        live.text = live.thinking = live.preparing = live.preparing_target = ""
        self._arguments = ""

    def _hand_out(self, length: int) -> list[AnyBlock]:
        """This much of the text in flight, as a block."""
        live = self.live
        piece, live.text = live.text[:length], live.text[length:]
        self._taken += length
        return [AnswerBlock(text=piece, node_id=self._node)] if piece.strip() else []

    def _end_thinking(self, at: float) -> list[AnyBlock]:
        thought, self.live.thinking = self.live.thinking, ""
        if not thought.strip():
            return []
        # A clock may be set back meanwhile.
        seconds = max(0.0, at - self._thought_since) if self._thought_since else 0.0
        block = ThinkingBlock(text=thought, node_id=self._node)
        return [msgspec.structs.replace(block, seconds=round(seconds, 1)) if seconds else block]

    # -- what is durable

    def _message(self, node: Node, at: float) -> list[AnyBlock]:
        if node.role == "user":
            return [user_block(node.parts, node.id)]
        if node.role != "assistant":
            return []
        blocks = self._end_thinking(at)
        if node.id != self._node:
            self._begin(node.id)
        # What the log has counts, whatever was seen of it in flight: a reader that joined late or
        # lost a piece shows the same text as all others.
        self.live.text = node.text[self._taken :]
        blocks += self._hand_out(len(self.live.text))
        self._begin("")
        self._calls.update({call.call_uid: call for call in node.calls})
        # Said when the turn's end is known: after a stop it would say nothing new.
        self._was_cut_off = node.is_partial
        return blocks

    def _tool(self, event: ToolExecuting | ToolOutput | ToolComplete) -> list[AnyBlock]:
        live = self.live
        match event:
            case ToolExecuting(call_uid=call_uid, tool_name=name, args=args, at=at):
                self._began_at[call_uid] = at
                live.running[call_uid] = running_tool(event)
                # What runs, and not what the model asked for: the user or a hook may have changed
                # the input.
                self._calls[call_uid] = ToolCall(call_uid=call_uid, name=name, args=args)
                return []
            case ToolOutput(call_uid=call_uid, chunk=chunk):
                # A signal may overtake the fact that announces its tool.
                live.running.setdefault(call_uid, RunningTool(name="")).take(chunk)
                return []
            case ToolComplete(call_uid=call_uid, result=result, duration_ms=duration_ms, at=at):
                began = self._began_at.pop(call_uid, 0.0)
                # A call that was stopped did not come to measure itself.
                if not duration_ms and began:
                    duration_ms = max(0, round((at - began) * 1000))
                if isinstance(started := result.data.get("background"), dict):
                    name = str(started.get("id", ""))
                    live.tasks[name] = command_row(name, str(started.get("command", "")))
                return self._tool_ended(call_uid, result, duration_ms)

    def _tool_ended(self, call_uid: str, result: ToolResult, duration_ms: int) -> list[AnyBlock]:
        running = self.live.running.pop(call_uid, None)
        call = self._calls.pop(call_uid, None)
        if call is None:
            # A result whose call is not known says nothing that a user could place.
            return []
        was_shown = call_uid in self._shown
        self._shown.discard(call_uid)
        if _has_own_block(call, result, is_architect=self.live.is_architect):
            return []
        if result.status == "aborted" and running is None:
            return []  # it never began: that the turn was stopped says all
        if self._agents.is_open(call_uid) and "child" in result.data:
            return []  # its row comes with the end of the agent
        allowed_for = self._allowed_for.pop(call_uid, "")
        was_stopped = result.status in ("aborted", "interrupted")
        card = ToolCard(
            name=call.name,
            args=call.args,
            result=result,
            duration_ms=duration_ms,
            was_shown=was_shown,
            allowed_for=allowed_for,
            output=running.output if running is not None and was_stopped else "",
            allowed_by=self._allowed_by(result),
        )
        return [card]

    def _allowed_by(self, result: ToolResult) -> str:
        """The rule that allowed a call, the first time that it does."""
        rule = result.data.get("allowed_by")
        if not isinstance(rule, str) or rule in self._rules:
            return ""
        self._rules.add(rule)
        return rule

    def _turn(self, event: TurnStarted | TurnFinished) -> list[AnyBlock]:
        self._goal(event)
        live = self.live
        # Cleared at both ends: after a crash the end of the last turn was never an event, and its
        # tools would seem to run for ever.
        live.running.clear()
        # Signals have no end event; a turn boundary is the last chance to drop what they left.
        live.retry, live.preparing, live.preparing_target = None, "", ""
        live.wait = None
        if isinstance(event, TurnStarted):
            self._todos_changed = False
            return []
        blocks: list[AnyBlock] = [*self._agents.flush(), *self._todos_at_end()]
        if self._was_cut_off and event.reason != "aborted":
            blocks.insert(0, CUT_OFF)
        self._was_cut_off = False
        # A background agent goes on after the turn, and so does what it asks; all else ends here.
        live.requests = {
            request_id: request
            for request_id, request in live.requests.items()
            if not isinstance(request, PlanRequest) and request.outlives_turn
        }
        live.phase = ""
        live.tasks = {task: row for task, row in live.tasks.items() if row.background}
        if event.finish_reason in SUCCESSFUL:
            return [*blocks, *self._tally.end(event.at)]
        if event.reason == "aborted":
            return [*blocks, self._tally.stopped(event.at)]
        return [*blocks, finish_note(event.finish_reason, event.detail)]

    def _todos_at_end(self) -> list[AnyBlock]:
        changed, self._todos_changed = self._todos_changed, False
        return [TodoBlock(items=self.live.todos)] if changed and self.live.todos else []

    def _todo(self, event: TodoChanged) -> list[AnyBlock]:
        """The list is shown once: when it is complete, else at the end of the turn."""
        self.live.todos = event.items
        self._todos_changed = True
        is_open = any(item.status in ("pending", "in_progress") for item in event.items)
        return [] if is_open else self._todos_at_end()

    def _goal(self, event: Event) -> None:
        self.live.goal = row_after(self.live.goal, event, self.live.cost_usd)

    def _note(
        self,
        event: SystemNote
        | ErrorRaised
        | SessionRestarted
        | TurnParked
        | AsideAnswered
        | Compacted
        | ResultsCleared,
    ) -> list[AnyBlock]:
        match event:
            case SystemNote(to_model=True):
                return []  # the user hears of it by what the model does
            case SystemNote(text=text, level=level, background=end):
                if end is not None:
                    self.live.tasks.pop(end.id, None)
                return [NoteBlock(text=text, level=level)]
            case ErrorRaised(message=message):
                return [NoteBlock(text=message, level="error")]
            case AsideAnswered():
                return [NoteBlock(text=aside_text(event))]
            case TurnParked(detail=detail):
                return [NoteBlock(text=detail, level="warning")]
            case SessionRestarted(reason=reason) if reason == GONE_ON_BY_USER:
                return []  # the user knows
            case SessionRestarted():
                return [NoteBlock(text="the session was restarted from its log", level="warning")]
            case Compacted():
                return [NoteBlock(text="older messages are now summarized for the model")]
            case ResultsCleared():
                return [NoteBlock(text="older results of tools were cleared for the model")]

    # -- agents and plans

    def _task(self, event: ChildStarted | ChildFinished) -> list[AnyBlock]:
        tasks = self.live.tasks
        if isinstance(event, ChildStarted):
            call = self._calls.get(event.call_uid or "")
            tasks[event.child] = TaskRow(
                name=event.name or event.purpose,
                purpose=event.purpose,
                background=event.background,
                call_uid=event.call_uid or "",
                title=str(call.args.get("description") or "") if call is not None else "",
            )
            if event.call_uid and event.purpose == "agent" and not event.background:
                self._agents.began(event.call_uid)
            return []
        # Unknown when it was started before we joined.
        row = tasks.pop(event.child, None) or TaskRow(name="agent")
        if row.purpose == "step":
            return []  # the plan says how a step ended
        if event.usage is not None:
            row.cost_usd = event.usage.cost_usd
        if self._agents.is_open(row.call_uid):
            return self._agents.ended(row.call_uid, self._agent_end(row, event))
        row.doing = (
            "done"
            if event.finish_reason in SUCCESSFUL
            else finish_sentence(event.finish_reason, "")
        )
        title = f": {row.title}" if row.title else ""
        return [NoteBlock(text=f"⤷ {row.name}{title} · {row.outcome}", level="quiet")]

    def _agent_end(self, row: TaskRow, event: ChildFinished) -> AgentEnd:
        return AgentEnd(
            name=row.name,
            title=row.title,
            reason=event.finish_reason,
            calls=row.calls,
            text=event.text,
            cost_usd=row.cost_usd,
            duration_ms=self._tally.milliseconds_since(row.call_uid, event.at),
        )

    def _architect(
        self, event: ArchitectPlan | PlanEdited | PlanDecided | ArchitectStep
    ) -> list[AnyBlock]:
        live = self.live
        match event:
            case ArchitectPlan(plan=plan) | PlanEdited(plan=plan):
                live.plan = plan
                live.requests[PLAN_REQUEST] = PlanRequest(
                    request_id=PLAN_REQUEST, plan=plan, is_shown=True
                )
                return [PlanBlock(plan=plan)]
            case PlanDecided(approved=True):
                live.requests.pop(PLAN_REQUEST, None)
                return [NoteBlock(text="plan approved", level="quiet")]
            case PlanDecided(reason=reason):
                live.requests.pop(PLAN_REQUEST, None)
                why = f": {reason}" if reason else ""
                return [NoteBlock(text=f"plan rejected{why}", level="warning")]
            case ArchitectStep():
                return [step_note(live.plan, event)]

    # -- requests and the queue

    def _request(
        self, event: PermissionRequest | QuestionAsked | PermissionResolved | QuestionAnswered
    ) -> list[AnyBlock]:
        requests = self.live.requests
        match event:
            case PermissionRequest(request_id=request_id) | QuestionAsked(request_id=request_id):
                requests[request_id] = event
                self._shown.add(event.call_uid)
                if isinstance(event, QuestionAsked):
                    self._questions[request_id] = event.question
                return []
            case PermissionResolved(request_id=request_id):
                # A request that we never saw was made before we joined; the grant is on record, but
                # what it was about is not known here.
                request = requests.pop(request_id, None)
                return self._resolved(event, request) if request is not None else []
            case QuestionAnswered(request_id=request_id, answer=answer):
                asked = requests.pop(request_id, None)
                said = asked.question if isinstance(asked, QuestionAsked) else ""
                question = self._questions.pop(request_id, said)
                return [QuestionBlock(text=question, answer=answer)] if question else []

    def _resolved(self, event: PermissionResolved, request: OpenRequest) -> list[AnyBlock]:
        """An answer that reaches further is put on record: on the card of its call, or as a note
        where that card is another session's.
        """
        if event.action not in ("allow_turn", "allow_always"):
            return []
        scope: Literal["turn", "session"] = "turn" if event.action == "allow_turn" else "session"
        if isinstance(request, PermissionRequest) and request.child is None:
            self._allowed_for[request.call_uid] = scope
            return []
        # What an agent was allowed is on the agent's record; its request here says what that is.
        shown = request.always_pattern if isinstance(request, PermissionRequest) else ""
        where = "for the rest of this turn" if scope == "turn" else "for this session"
        return [NoteBlock(text=f"allowed {where}: {event.pattern or shown}", level="quiet")]

    def _queue(
        self,
        event: InputQueued
        | InputEdited
        | InputsReordered
        | InputPromoted
        | QueuesRecalled
        | InputRemoved,
    ) -> None:
        live = self.live
        match event:
            case InputQueued(entry_id=entry_id, parts=parts, delivery=delivery):
                text = user_block(parts).text
                live.queue.append(QueuedInput(entry_id=entry_id, text=text, delivery=delivery))
            case InputEdited(entry_id=entry_id, parts=parts):
                for each in live.queue:
                    if each.entry_id == entry_id:
                        each.text = user_block(parts).text
            case InputsReordered(entries=entries):
                places = {str(entry_id): place for place, entry_id in enumerate(entries)}
                live.queue.sort(key=lambda each: places.get(each.entry_id, len(places)))
            case InputPromoted(entries=entries) | QueuesRecalled(entries=entries):
                live.queue = [each for each in live.queue if each.entry_id not in entries]
            case InputRemoved(entry_id=removed):
                live.queue = [each for each in live.queue if each.entry_id != removed]

    # -- the status line

    def _status(self, event: Event) -> None:
        live = self.live
        match event:
            case SessionStatus(status=status):
                live.status = status
            case ContextUsage(used=used, window=window):
                live.context_used, live.context_window = used, window
            case LlmRetry(attempt=attempt, wait_ms=wait_ms, reason=reason, tries=tries):
                live.retry = RetryNotice(
                    attempt=attempt, wait_ms=wait_ms, reason=reason, tries=tries
                )
            case UsageRecorded(usage=usage):
                live.cost_usd = total_cost(live.cost_usd, usage)
                live.retry = None
            case ModeChanged(mode=mode):
                live.is_architect = mode == "architect"
            case ArchitectPhase(phase=phase):
                live.phase = phase
            case TurnWaiting():
                live.wait = wait_notice(event)
            case TurnWoken():
                live.wait = None
            case SettingChanged():
                self._setting(event)
            case _:
                pass  # of no interest to a screen, or from a newer program

    def _setting(self, event: SettingChanged) -> None:
        live = self.live
        match event.name:
            case "model":
                live.model = str(event.value)
                # The window of another model is known with its first answer.
                live.context_window = 0
            case "permission_mode":
                live.mode = str(event.value)
            case "thinking":
                live.effort = str(event.value or "default")
            case "title":
                live.title = str(event.value)
            case _:
                pass


def _has_own_block(call: ToolCall, result: ToolResult, *, is_architect: bool) -> bool:
    """True for calls that are shown as something else: a question, a plan, a to-do list."""
    if result.is_error:
        return False
    return call.name in ("ask", "todo") or (call.name == "submit" and is_architect)


def take_task_event(row: TaskRow, event: Event) -> None:
    """Take one more event of a task's own session in."""
    match event:
        case ToolExecuting(tool_name=name, args=args):
            row.doing = call_in_progress(name, args)
        case ToolComplete():
            row.calls += 1
        case PermissionRequest():
            row.doing = "waiting for your approval"
        case NewMessage(node=node) if node.role == "assistant" and node.calls:
            # Calls that change nothing leave no fact when they begin.
            row.doing = call_in_progress(node.calls[-1].name, node.calls[-1].args)
        case NewMessage(node=node) if node.role == "assistant" and node.text.strip():
            row.doing = " ".join(node.text.split())[:120]
        case UsageRecorded(usage=usage):
            row.cost_usd = total_cost(row.cost_usd, usage)
            row.tokens += usage.total_tokens
        case _:
            pass


def total_cost(cost_usd: float | None, usage: Usage) -> float | None:
    """The cost with one more call; None as soon as one price is unknown."""
    return (msgspec.structs.replace(NOTHING_USED, cost_usd=cost_usd) + usage).cost_usd
