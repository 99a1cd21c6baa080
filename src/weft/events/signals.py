"""Signals: live events that are shown at once and never stored."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from weft.events.base import SignalBase
from weft.events.facts.requests import PermissionRequest, QuestionAsked
from weft.ids import CallUid, NodeId, SessionId

Status: TypeAlias = Literal[
    "idle",
    "thinking",
    "executing_tool",
    "awaiting_permission",
    "waiting",
    "interrupted",
    "error",
]


class SessionStatus(SignalBase, frozen=True, tag="session_status"):
    """What the session is doing; computed, never stored."""

    status: Status


class TextDelta(SignalBase, frozen=True, tag="text_delta"):
    """More text of the answer in flight, from `offset` (in characters) on."""

    node_id: NodeId
    # In characters as Python counts them. 0 begins the text anew: a second attempt at an answer
    # keeps the node.
    offset: int
    text: str


class ThinkingDelta(SignalBase, frozen=True, tag="thinking_delta"):
    """More reasoning of the answer in flight."""

    node_id: NodeId
    offset: int
    text: str


class ToolArgsDelta(SignalBase, frozen=True, tag="tool_args_delta"):
    """More of a tool call's arguments, as the model writes them."""

    node_id: NodeId
    # By place in the answer: a call gets its uid only when the answer is whole.
    index: int
    tool_name: str
    text: str
    offset: int = 0


class ToolOutput(SignalBase, frozen=True, tag="tool_output"):
    """Output of a running tool."""

    call_uid: CallUid
    chunk: str


class CommandPrinted(SignalBase, frozen=True, tag="background_output"):
    """More output of a background command."""

    id: str
    """Which command, as `bg_1`."""
    offset: int
    """How many characters it had printed before."""
    chunk: str


class LlmRetry(SignalBase, frozen=True, tag="llm_retry"):
    """A model call failed and will be made again."""

    attempt: int
    wait_ms: int
    reason: str
    tries: int = 0
    """How often it is tried at most, the first time included; 0 when that is not known."""


class AnswerRestarted(SignalBase, frozen=True, tag="answer_restarted"):
    """The text in flight is void: the answer begins again."""

    node_id: NodeId


class ArchitectPhase(SignalBase, frozen=True, tag="architect_phase"):
    """Planning, waiting for the user, or doing step n."""

    phase: str
    step: int | None = None


class ContextUsage(SignalBase, frozen=True, tag="context_usage"):
    """How full the model's window is, in tokens."""

    used: int
    window: int


class ClientAttached(SignalBase, frozen=True, tag="client_attached"):
    """A client came (or, with `left`, went)."""

    client: str
    role: Literal["viewer", "driver"] = "viewer"
    left: bool = False


class DriverChanged(SignalBase, frozen=True, tag="driver_changed"):
    """Another client drives the session now."""

    client: str = ""


class RequestOffered(SignalBase, frozen=True, tag="request_offered"):
    """A request that waits for an answer, told again to a reader that comes back behind it."""

    request: PermissionRequest | QuestionAsked


class TokenReceived(SignalBase, frozen=True, tag="token_received"):
    """One more piece of a branch that is being generated."""

    branch_idx: int
    """Counts all branches of this generation, in the order of the plan."""
    token: str
    model: str = ""
    model_idx: int = 0
    """The place of the model in the plan."""
    node_id: NodeId = NodeId("")
    """The id that the node of this branch will have."""


class Replaced(SignalBase, frozen=True, tag="replaced"):
    """This handle ended; another session stands in its place."""

    by: SessionId


AT_WORK: Final[tuple[Status, ...]] = ("thinking", "executing_tool")
"""What a turn that goes on says of itself, twice in every round."""
STATUS_SIGNALS: Final = (SessionStatus, LlmRetry)
"""How the session is doing.

They reach every subscriber that waits for more than the log's end; there are few of them, while an
answer has hundreds of the others.
"""

Signal: TypeAlias = (
    SessionStatus
    | TextDelta
    | ThinkingDelta
    | ToolArgsDelta
    | ToolOutput
    | CommandPrinted
    | LlmRetry
    | AnswerRestarted
    | ArchitectPhase
    | ContextUsage
    | ClientAttached
    | DriverChanged
    | RequestOffered
    | TokenReceived
    | Replaced
)
