"""Facts of turns: the queue of messages that wait for one, model calls, tool calls, the end."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, TypedDict, get_args

import msgspec

from weft.events.base import FactBase
from weft.ids import BlobId, CallUid, EntryId, NodeId, RequestId, TurnId
from weft.messages import Part, ToolResult, Usage

Delivery: TypeAlias = Literal["steering", "follow_up"]
Effect: TypeAlias = Literal["pure", "checkable", "unknown"]
"""`pure` may run again; `checkable` can be found out from file hashes; `unknown` is never repeated
silently."""
# Stored words, here and in every other Literal of a fact: none may be renamed. An older program
# takes a fact with a word that it does not know for damage, so a new one is a change that old
# readers misread, and needs a new tag.
StoredReason: TypeAlias = Literal[
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
ExactReason: TypeAlias = Literal[
    "refusal",
    "content_filter",
    "safety",
    "length",
    "paused",
    "malformed_call",
    "max_time",
    "max_tool_calls",
]
"""Ends that have no word among the stored ones: the field `exact` has it."""
FinishReason: TypeAlias = Literal[StoredReason, ExactReason]
_EXACT: Final[tuple[ExactReason, ...]] = get_args(ExactReason)
Purpose: TypeAlias = Literal[
    "turn", "title", "compaction", "summary", "repair", "branch", "plan", "judge"
]


# --- the queue -------------------------------------------------------------------------


# A queued message is durable before the caller hears that it was accepted, as a prompt is.
class InputQueued(FactBase, frozen=True, tag="input_queued"):
    """A message that came while a turn ran; it waits for its delivery."""

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
    """Both queues were handed back to a client and emptied."""

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


# Durable before the request leaves: a crash after it may have cost money, and recovery books an
# estimate where no usage follows.
class ModelCallStarted(FactBase, frozen=True, tag="model_call_started"):
    """A request is about to be sent."""

    turn_id: TurnId
    """Empty for a call that belongs to no turn."""
    node: NodeId
    """The node that the answer will become; drafts carry its id.  Where the purpose is not a turn,
    it only names the call."""
    model: str
    prefix: BlobId | None = None
    purpose: Purpose = "turn"
    attempt: int = 1
    input_tokens: int = 0
    """Estimated length of the prompt; 0 where the ledger has it."""
    digest: str = ""
    """SHA-256 of the request in its neutral form; empty in logs of before this was recorded."""
    exact: str = ""
    """The purpose where `purpose` has no word for it; open, so that later words do no damage."""


class UsageRecorded(FactBase, frozen=True, tag="usage_recorded"):
    """What a model call used; `estimated` when the vendor did not report it."""

    usage: Usage
    model: str
    purpose: Purpose = "turn"
    estimated: bool = False
    turn_id: TurnId | None = None
    node: NodeId | None = None
    exact: str = ""
    """As in `ModelCallStarted`."""
    request_estimate: int = 0
    """Tokens that the request was estimated at before the vendor counted it; 0 where that is not on
    record.
    """
    body: str = ""
    """SHA-256 of the bytes that went out last; empty where none did, and in logs of before this was
    recorded."""
    form: dict[str, Any] = {}
    """What the adapter had decided for itself about them."""


class CallPermission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who or what allowed a call."""

    # An open word: an older program reads a later one as text, and not as damage.
    by: str
    """`user`, `grant` (the user, before), `rule`, `mode`, `hook`, `plan` (one that was approved),
    `goal` (its check) or `auto_approve` (a session that asks no one)."""
    text: str = ""
    """The rule or grant itself; else why, in one sentence."""
    request: RequestId | None = None
    """The request that the user answered."""


# Durable before the tool runs. Recovery relies on it: a call without this fact has had no effect
# and may run, one with it and without a result is never repeated silently.
class ToolExecuting(FactBase, frozen=True, tag="tool_executing"):
    """The intent record: this call is about to take effect."""

    call_uid: CallUid
    node: NodeId
    tool_name: str
    target: str = ""
    """What it works on, for display: a path, a command."""
    args: dict[str, Any] = {}
    effect: Effect = "unknown"
    attempt: int = 1
    # If the files have the hashes from before, nothing happened; if they have those from after, all
    # of it did; anything else stays unknown.
    pre_hashes: dict[str, str] = {}
    """Hash of each file before, "" where there was none; lets recovery find out what happened."""
    post_hashes: dict[str, str] = {}
    """Hash that each file will have after; with `pre_hashes` it settles the doubt."""
    pre_modes: dict[str, int] = {}
    """Mode of each file that it deletes: when it is gone, nothing else tells it."""
    permission: CallPermission | None = None
    """Who or what allowed it; None in logs of before this was recorded."""


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
    """Why the content before was not stored; empty when it was."""
    is_certain: bool = True
    """False when the change may be another program's: a second command ran at the same time, or
    Weft was interrupted.
    """


class TurnParked(FactBase, frozen=True, tag="turn_parked"):
    """The turn does not go on by itself any more: its process ended too often."""

    turn_id: TurnId
    restarts: int
    """How often it went on within the hour."""
    detail: str = ""
    """One sentence for the user."""


class FinishWords(TypedDict):
    """A finish reason as facts hold it."""

    reason: StoredReason
    exact: str


def finish_words(reason: FinishReason) -> FinishWords:
    """The stored words of a finish reason.

    What came later than the closed set goes into a field that older programs ignore; they read an
    end of the nearest kind.
    """
    match reason:
        case "malformed_call":
            return {"reason": "mistakes", "exact": reason}
        case "refusal" | "content_filter" | "safety" | "length" | "paused":
            return {"reason": "provider_error", "exact": reason}
        case "max_time" | "max_tool_calls":
            return {"reason": "max_turns", "exact": reason}
        case _:
            return {"reason": reason, "exact": ""}


def exact_reason(reason: StoredReason, exact: str) -> FinishReason:
    """The finish reason of two stored words; an exact one that is not known yet does not count."""
    return next((known for known in _EXACT if known == exact), reason)


class TurnFinished(FactBase, frozen=True, tag="turn_finished"):
    """The turn is over, and why."""

    turn_id: TurnId
    reason: StoredReason
    retries: int = 0
    iterations: int = 0
    detail: str = ""
    """One sentence for the user where the reason alone says too little."""
    deliverable: Any = None
    exact: str = ""
    """The reason where `reason` has no word for it; open, so that later words do no damage."""

    @property
    def finish_reason(self) -> FinishReason:
        """Why it ended, in the most exact word."""
        return exact_reason(self.reason, self.exact)
