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

__all__ = [
    "CandidateStatus",
    "Fan",
    "FanCandidate",
    "FanEvents",
    "FanSummary",
    "begin_fan",
    "list_fans",
    "open_fan",
]
