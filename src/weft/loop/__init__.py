"""One turn: ask the model, get permission, run tools, again.

Split into parts that a driver of another kind can use alone: `turn_line` is what has been said,
`model_call` asks (`model_retry` is one call with its retries), `usage` counts and limits,
`tool_calls` gets permission and runs (`tool_rounds` watches over it), `structured_output` judges a
result that is handed in, and `turn_end` ends the turn.  `turn` joins them; `recovery` settles what
a dead process left open.  Each part is handed only what it needs (`ModelEnvironment`,
`ToolCallEnvironment`), writes only through a journal, and knows no store and no actor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.context import LineEntry, RenderedLine
from weft.loop.answer import AnswerBuilder, ModelAnswer
from weft.loop.approval import (
    UNANSWERED,
    PermissionAnswer,
    PermissionApprover,
    ReadyCall,
    within,
)
from weft.loop.base import (
    Build,
    CallJournal,
    Commit,
    ContextLine,
    EditReporter,
    ModelEnvironment,
    ModelFallback,
    PermissionGate,
    ProjectFacts,
    SessionWork,
    SharedBudget,
    SnapshotTaker,
    ToolCallEnvironment,
    TreeBlobs,
    TurnEnvironment,
    TurnJournal,
    TurnLimits,
)
from weft.loop.hooks import HookRuling, Trigger, TurnHooks
from weft.loop.model_retry import wait_before_retry, with_retry_time
from weft.loop.pending_facts import More, PendingFacts
from weft.loop.tool_calls import DriverCall, ToolCallEnd, run_one, stopped
from weft.loop.tool_results import touched_facts
from weft.loop.turn import Turn
from weft.loop.turn_facts import (
    call_started,
    promote,
    revision_of,
    settle_open_calls,
    tip_after,
)
from weft.loop.turn_line import digests_at_opening, messages_of
from weft.loop.waits.wake import with_wake, woken_fact

if TYPE_CHECKING:  # loaded when they are first used
    from weft.context import (
        cleared_entry,
        compacted_message,
        pinned,
        without_excluded,
        without_words,
    )
    from weft.loop.budget import refusal
    from weft.loop.compaction.summary import CompactionWork
    from weft.loop.lost_branches import branch_ends
    from weft.loop.model_retry import BrokenAnswer, ModelCallAttempts
    from weft.loop.recovery import (
        PartialDraft,
        RecoveredCall,
        RecoveryEvidence,
        child_finished,
        command_ends,
        count_lost,
        end_interrupted,
        hashes_needed,
        judge,
        settle_interrupted,
        unsettled_children,
    )
    from weft.loop.waits.call_wait import (
        bad_wait_time,
        end_of_wait,
        wait_has_ended,
        wait_subject,
        why_no_wait,
    )

__all__ = [
    "UNANSWERED",
    "AnswerBuilder",
    "BrokenAnswer",
    "Build",
    "CallJournal",
    "Commit",
    "CompactionWork",
    "ContextLine",
    "DriverCall",
    "EditReporter",
    "HookRuling",
    "LineEntry",
    "ModelAnswer",
    "ModelCallAttempts",
    "ModelEnvironment",
    "ModelFallback",
    "More",
    "PartialDraft",
    "PendingFacts",
    "PermissionAnswer",
    "PermissionApprover",
    "PermissionGate",
    "ProjectFacts",
    "ReadyCall",
    "RecoveredCall",
    "RecoveryEvidence",
    "RenderedLine",
    "SessionWork",
    "SharedBudget",
    "SnapshotTaker",
    "ToolCallEnd",
    "ToolCallEnvironment",
    "TreeBlobs",
    "Trigger",
    "Turn",
    "TurnEnvironment",
    "TurnHooks",
    "TurnJournal",
    "TurnLimits",
    "bad_wait_time",
    "branch_ends",
    "call_started",
    "child_finished",
    "cleared_entry",
    "command_ends",
    "compacted_message",
    "count_lost",
    "digests_at_opening",
    "end_interrupted",
    "end_of_wait",
    "hashes_needed",
    "judge",
    "messages_of",
    "pinned",
    "promote",
    "refusal",
    "revision_of",
    "run_one",
    "settle_interrupted",
    "settle_open_calls",
    "stopped",
    "tip_after",
    "touched_facts",
    "unsettled_children",
    "wait_before_retry",
    "wait_has_ended",
    "wait_subject",
    "why_no_wait",
    "with_retry_time",
    "with_wake",
    "within",
    "without_excluded",
    "without_words",
    "woken_fact",
]

_HOMES = {
    "BrokenAnswer": "weft.loop.model_retry",
    "ModelCallAttempts": "weft.loop.model_retry",
    "bad_wait_time": "weft.loop.waits.call_wait",
    "end_of_wait": "weft.loop.waits.call_wait",
    "wait_has_ended": "weft.loop.waits.call_wait",
    "wait_subject": "weft.loop.waits.call_wait",
    "why_no_wait": "weft.loop.waits.call_wait",
    "CompactionWork": "weft.loop.compaction.summary",
    "PartialDraft": "weft.loop.recovery",
    "RecoveredCall": "weft.loop.recovery",
    "RecoveryEvidence": "weft.loop.recovery",
    "branch_ends": "weft.loop.lost_branches",
    "child_finished": "weft.loop.recovery",
    "cleared_entry": "weft.context",
    "command_ends": "weft.loop.recovery",
    "compacted_message": "weft.context",
    "count_lost": "weft.loop.recovery",
    "end_interrupted": "weft.loop.recovery",
    "hashes_needed": "weft.loop.recovery",
    "judge": "weft.loop.recovery",
    "pinned": "weft.context",
    "refusal": "weft.loop.budget",
    "without_excluded": "weft.context",
    "without_words": "weft.context",
    "settle_interrupted": "weft.loop.recovery",
    "unsettled_children": "weft.loop.recovery",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
