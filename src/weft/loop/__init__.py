"""One turn: ask the model, get leave, run tools, again.

Split by step: `asking` asks (`request` is one call with its retries), `batch` gets leave and runs, `spending` counts and limits,
`handing_in` takes a structured result, `turn` joins them, `recovery` settles what a dead process left open.  Writes only through the `Journal` it is handed; knows no store and no actor.
"""

from weft.context import Entry, as_message, pin_block, pinned
from weft.loop.answer import Answer, AnswerBuilder
from weft.loop.base import (
    Build,
    Commit,
    ContextLine,
    Gate,
    Journal,
    Limits,
    Purse,
    TurnEnvironment,
    Work,
)
from weft.loop.budget import refusal
from weft.loop.compaction import Compaction
from weft.loop.hooks import Hooks, Ruling, Trigger
from weft.loop.model_request import wait_before_retry
from weft.loop.recovery import (
    Evidence,
    Leftover,
    Remains,
    child_finished,
    children_wanted,
    command_ends,
    count_lost,
    end_interrupted,
    hashes_wanted,
    judge,
    settle_interrupted,
)
from weft.loop.tool_results import touched_facts
from weft.loop.turn import Turn
from weft.loop.turn_facts import call_started, promote, revision_of, settle_open_calls, tip_after

__all__ = [
    "Answer",
    "AnswerBuilder",
    "Build",
    "Commit",
    "Compaction",
    "ContextLine",
    "Entry",
    "Evidence",
    "Gate",
    "Hooks",
    "Journal",
    "Leftover",
    "Limits",
    "Purse",
    "Remains",
    "Ruling",
    "Trigger",
    "Turn",
    "TurnEnvironment",
    "Work",
    "as_message",
    "call_started",
    "child_finished",
    "children_wanted",
    "command_ends",
    "count_lost",
    "end_interrupted",
    "hashes_wanted",
    "judge",
    "pin_block",
    "pinned",
    "promote",
    "refusal",
    "revision_of",
    "settle_interrupted",
    "settle_open_calls",
    "tip_after",
    "touched_facts",
    "wait_before_retry",
]
