"""Fan-outs of sessions, as programs hold them."""

from weft.api.fan.handle import (
    CandidateStatus,
    Fan,
    FanCandidate,
    FanEvents,
    FanSummary,
    begin_fan,
    list_fans,
    open_fan,
)
from weft.runtime.fan.kept_candidate import KeepOutcome

__all__ = [
    "CandidateStatus",
    "Fan",
    "FanCandidate",
    "FanEvents",
    "FanSummary",
    "KeepOutcome",
    "begin_fan",
    "list_fans",
    "open_fan",
]
