"""What a screen starts from: a session's snapshot, its messages, its agents.

Values only.  The API makes them of a session's state; a screen that has one is brought on by the
events after it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.events import PermissionRequest, Status, ToolExecuting, TurnWaiting
from weft.ids import NodeId, SessionId
from weft.messages import Part, Usage
from weft.state import QueueEntry, Request
from weft.view.goal_line import GoalRow


class PlanProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of architect mode, and how far it has come."""

    plan: dict[str, Any]
    approved: bool | None
    """None: it waits for approval."""
    steps: dict[int, str] = {}
    """The status of each step that was begun: started, passed, failed, skipped or replanned."""


class CallInFlight(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that the model is writing."""

    index: int
    """Its place in the answer; it has no id before the answer is whole."""
    tool: str
    arguments: str
    """As far as they have come: rarely whole JSON."""


class ContextZone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a request, and how much of the context it takes."""

    name: str
    """system, tools, instructions, memory, skills, agents, conversation; a report has the last one
    in parts: summary, messages, files, notes, outputs."""
    tokens: int
    budget: int = 0
    """What it may take at most; 0 where nothing limits it."""
    is_cut: bool = False
    """There is more of it than the budget allows."""


class EditorSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that a screen needs to draw itself; events after `seq` bring it on from there."""

    seq: int
    status: Status
    model: str
    mode: str
    permission_mode: str
    thinking: str
    draft_node: NodeId | None
    draft: str
    draft_thinking: str = ""
    """Reasoning in flight."""
    draft_calls: tuple[CallInFlight, ...] = ()
    """Tool calls in flight."""
    running: tuple[ToolExecuting, ...] = ()
    """The tools that run; empty while no turn does."""
    queue: tuple[QueueEntry, ...]
    steering_length: int
    follow_up_length: int
    requests: tuple[Request, ...]
    pending_approval: PermissionRequest | None
    pending_plan: dict[str, Any] | None
    """The plan that waits for approval, in architect mode."""
    plan: PlanProgress | None = None
    """The newest plan of the present task and how far it has come, in architect mode."""
    error: str
    wait: TurnWaiting | None = None
    """What the turn waits for, and until when."""
    goal: GoalRow | None = None
    """What it works for turn after turn, and how far it has come."""
    context_used: int
    context_window: int = 0
    """How much the model can take; 0 where that is not known."""
    context_zones: tuple[ContextZone, ...] = ()
    """Who uses what of it; nothing before the first answer."""
    cost_usd: float | None
    title: str


class ChildInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session that works for another, at a glance."""

    id: SessionId
    name: str
    """The kind of agent, or which step."""
    purpose: str
    """agent, candidate or step."""
    background: bool = False
    reason: str | None = None
    """How it ended; None while it is at work."""
    call_uid: str | None = None
    """The call that it works for."""
    node: NodeId | None = None
    """The message that called it."""
    title: str = ""
    model: str = ""
    cost_usd: float | None = 0.0
    status: Status = "idle"


class HistoryMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the conversation, as programs like to read it."""

    role: str
    """user, assistant, tool or system."""
    content: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    """Each with `id`, `name` and `args`."""
    tool_call_id: str | None = None
    """Of a tool message: the call that it answers."""
    is_error: bool = False
    is_partial: bool = False
    is_excluded: bool = False
    """No model is sent it any more; of a tool message, with the answer that made the call."""
    diff: str = ""
    """Of a tool message: what the call changed in a file."""
    output: str = ""
    """Of a tool message: the end of what a call had printed that was stopped."""
    typed: str = ""
    """Of the user's message: what they typed, where `content` is something else."""
    attached: tuple[str, ...] = ()
    """Of the user's message: the names of what was attached, and is not shown in its text."""
    thinking: str = ""
    """Of an answer: the model's reasoning."""
    duration_ms: int = 0
    """Of a tool message on a page of the line: how long the call took."""
    allowed: Literal["", "call", "turn", "session"] = ""
    """Of a tool message on a page of the line: for how long the user allowed the call when asked;
    empty when they were not asked."""
    parts: tuple[Part, ...] = ()
    """All that it holds, in order: text, reasoning, calls, pictures and files; of a tool message
    the result's text and pictures."""
    model: str = ""
    """Of an answer: the `provider:model` that gave it."""
    usage: Usage | None = None
    """Of an answer: what its model call used."""
    at: float = 0.0
    """When it was said, in seconds since the epoch."""
