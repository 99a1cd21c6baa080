"""Doubles and contracts for the tests of programs that use Weft: products, held to the same suites
as the real parts.

A model that plays a script, a clock that stands still, a store in memory; and what a store or a
model of your own must do, as tests (`store_contract`, `model_contract`).  `docs/testing.md` shows
how.  Nothing here is imported by the rest of Weft.
"""

from weft.clock import ManualClock
from weft.providers.replay import RecordingModel, ReplayModel
from weft.providers.script import (
    Break,
    CallRaw,
    CallTogether,
    CallTool,
    EndEarly,
    Fail,
    Finish,
    Garbage,
    Pause,
    SayText,
    Script,
    ScriptedAnswer,
    Spend,
    Stall,
    Think,
    When,
)
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.store import MemoryData, MemoryStore
from weft.testing import asserts, model_contract, store_contract

__all__ = [
    "Break",
    "CallRaw",
    "CallTogether",
    "CallTool",
    "EndEarly",
    "Fail",
    "Finish",
    "Garbage",
    "ManualClock",
    "MemoryData",
    "MemoryStore",
    "Pause",
    "RecordingModel",
    "ReplayModel",
    "SayText",
    "Script",
    "ScriptedAnswer",
    "ScriptedModel",
    "ScriptedProvider",
    "Spend",
    "Stall",
    "Think",
    "When",
    "asserts",
    "model_contract",
    "store_contract",
]
