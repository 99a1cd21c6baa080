"""One turn: ask the model, get leave, run tools, again.

Split by step: `request` asks, `batch` gets leave and runs, `turn` joins them and ends, `recovery` settles what a dead process left
open.  Writes only through the `Journal` it is handed; knows no store and no actor.
"""

from weft.context import Entry
from weft.loop.base import Build, Commit, Gate, Journal, Limits, TurnEnvironment
from weft.loop.recovery import (
    Leftover,
    end_interrupted,
    hashes_wanted,
    judge,
    settle_interrupted,
)
from weft.loop.steps import call_started, promote, revision_of, settle_open_calls, tip_after
from weft.loop.turn import Turn

__all__ = [
    "Build",
    "Commit",
    "Entry",
    "Gate",
    "Journal",
    "Leftover",
    "Limits",
    "Turn",
    "TurnEnvironment",
    "call_started",
    "end_interrupted",
    "hashes_wanted",
    "judge",
    "promote",
    "revision_of",
    "settle_interrupted",
    "settle_open_calls",
    "tip_after",
]
