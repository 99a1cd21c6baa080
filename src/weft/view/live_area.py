"""The live area: what is in flight in a session, and what its status line says.

Everything here may change with the next event, so a screen redraws it; what is finished is a block.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from weft.events import (
    Delivery,
    PermissionRequest,
    QuestionAsked,
    Status,
    Todo,
    ToolExecuting,
    TurnWaiting,
)
from weft.view.blocks import LookupCard, user_block
from weft.view.goal_line import GoalRow
from weft.view.plan_steps import steps_of
from weft.view.sentences import count_of, describe_call, thousands
from weft.view.snapshot import EditorSnapshot, PlanProgress

KEPT_OUTPUT = 4_000
"""Characters of a running tool's output that are kept to be shown."""

PLAN_REQUEST = "plan"
"""The id under which a plan waits among the requests; there is never more than one."""


class RunningTool(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tool that runs, with the end of its output."""

    name: str
    tool: str = ""
    """The tool by its name; empty when its output arrived first."""
    args: dict[str, Any] = {}
    output: str = ""

    def take(self, chunk: str) -> None:
        """More output."""
        output = self.output + chunk
        # Cut here and not when drawn: a command may print gigabytes while it runs.
        if len(output) > KEPT_OUTPUT:
            output = output[-KEPT_OUTPUT:]
            # From a whole line on: no escape sequence reaches beyond its line, so a screen that
            # cleans what is left never sees the rest of one.
            output = output.partition("\n")[2] or output
        self.output = output


def running_tool(intent: ToolExecuting) -> RunningTool:
    """A tool that has just begun."""
    name, args = intent.tool_name, intent.args
    return RunningTool(name=describe_call(name, args), tool=name, args=args)


class TaskRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An agent or a background command that works for this session."""

    name: str
    purpose: str = "agent"
    """agent, candidate, step or command."""
    background: bool = False
    call_uid: str = ""
    title: str = ""
    doing: str = ""
    calls: int = 0
    tokens: int = 0
    """Those it has sent and received."""
    cost_usd: float | None = 0.0

    @property
    def tally(self) -> str:
        """Its calls and tokens, in a few words."""
        calls = count_of(self.calls, "call") if self.calls else ""
        tokens = f"{thousands(self.tokens)} tokens" if self.tokens else ""
        return " · ".join(part for part in (calls, tokens) if part)

    @property
    def outcome(self) -> str:
        """What it has done and spent, in a few words."""
        cost = f"${self.cost_usd:.4f}" if self.cost_usd else ""
        calls = count_of(self.calls, "call") if self.calls else ""
        return " · ".join(part for part in (self.doing, calls, cost) if part)


def command_row(name: str, command: str) -> TaskRow:
    """A command in the background, as a row."""
    return TaskRow(name=name, purpose="command", background=True, title=" ".join(command.split()))


class QueuedInput(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A message that waits in the queue."""

    entry_id: str
    text: str
    delivery: Delivery = "steering"
    """Before the model's next step, or after the turn."""


class RetryNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model call that failed and will be made again."""

    attempt: int
    wait_ms: int
    reason: str
    tries: int = 0
    """How often it is tried at most; 0 when that is not known."""


class WaitNotice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the turn waits for."""

    name: str = ""
    """The background command or agent, the file, the port; empty where it waits for a time."""
    text: str = ""
    """What the command or the agent is."""
    since: float = 0.0
    """When it began, in seconds of the clock on the wall."""
    until: float | None = None
    """When it ends at the latest; None: not by itself."""


def wait_notice(wait: TurnWaiting) -> WaitNotice:
    """A wait as screens show it."""
    on = wait.on
    name, text = (on.name, on.text) if on.name else (on.text, "")
    return WaitNotice(name=name, text=text, since=wait.at, until=wait.until)


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan_request"):
    """A plan that waits for approval."""

    request_id: str
    plan: dict[str, Any]
    is_shown: bool = False
    """It was handed out as a block, so it is not shown again with the question."""


OpenRequest: TypeAlias = PermissionRequest | QuestionAsked | PlanRequest
"""What waits for the user's answer."""


class LiveArea(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is in flight, and what the status line says."""

    status: Status = "idle"
    text: str = ""
    """The part of the answer that is not finished yet."""
    thinking: str = ""
    preparing: str = ""
    """The tool whose call the model is writing."""
    preparing_target: str = ""
    """The path or command of that call, as soon as it is known."""
    lookups: LookupCard | None = None
    """Reads and searches that ended, until something else begins."""
    todos: tuple[Todo, ...] = ()
    running: dict[str, RunningTool] = {}
    queue: list[QueuedInput] = []
    requests: dict[str, OpenRequest] = {}
    """By id, the oldest first."""
    tasks: dict[str, TaskRow] = {}
    """Agents and background commands at work for this session, by id."""
    plan: dict[str, Any] = {}
    """The plan that is carried out, in architect mode."""
    has_open_plan: bool = False
    """The last turn stopped before its plan was carried out, when the session was opened."""
    phase: str = ""
    """What architect mode is doing: planning, replanning or checking."""
    retry: RetryNotice | None = None
    wait: WaitNotice | None = None
    goal: GoalRow | None = None
    model: str = ""
    mode: str = "default"
    is_architect: bool = False
    effort: str = "default"
    title: str = ""
    context_used: int = 0
    context_window: int = 0
    cost_usd: float | None = 0.0
    """None: a price is not known, so neither is the sum."""

    @property
    def is_busy(self) -> bool:
        """A turn runs, or waits."""
        return self.status in ("thinking", "executing_tool", "awaiting_permission", "waiting")

    @property
    def can_stop(self) -> bool:
        """A turn runs, or a command that the user has started beside it."""
        return self.is_busy or bool(self.running)


def live_of(snapshot: EditorSnapshot) -> LiveArea:
    """What a session is doing right now."""
    waiting: dict[str, OpenRequest] = {each.request_id: each for each in snapshot.requests}
    if snapshot.pending_plan is not None:
        waiting[PLAN_REQUEST] = PlanRequest(request_id=PLAN_REQUEST, plan=snapshot.pending_plan)
    return LiveArea(
        status=snapshot.status,
        model=snapshot.model,
        mode=snapshot.permission_mode,
        effort=snapshot.thinking,
        title=snapshot.title,
        context_used=snapshot.context_used,
        context_window=snapshot.context_window,
        cost_usd=snapshot.cost_usd,
        is_architect=snapshot.mode == "architect",
        requests=waiting,
        running={each.call_uid: running_tool(each) for each in snapshot.running},
        queue=[
            QueuedInput(
                entry_id=entry.entry_id,
                text=user_block(entry.parts).text,
                delivery=entry.delivery,
            )
            for entry in snapshot.queue
        ],
        plan=snapshot.plan.plan if snapshot.plan is not None else {},
        wait=wait_notice(snapshot.wait) if snapshot.wait is not None else None,
        goal=snapshot.goal,
        has_open_plan=_is_open(snapshot.plan) and snapshot.status == "idle",
    )


def _is_open(progress: PlanProgress | None) -> bool:
    """True for a plan that could still be continued: it is undecided, or has steps left."""
    if progress is None or progress.approved is False:
        return False
    ended = sum(status in ("passed", "skipped") for status in progress.steps.values())
    return ended < len(steps_of(progress.plan))
