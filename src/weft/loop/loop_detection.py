"""Loop detection: a turn that makes the same calls with the same results.  Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from weft.ids import CallUid
from weft.messages import ToolCall, ToolResult


class ProgressWatch:
    """Notices the same calls with the same results, again and again."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._last = b""
        self._times = 0
        self._nudged = False
        self.is_stuck = False

    def should_nudge(
        self, calls: Sequence[ToolCall], results: Mapping[CallUid, ToolResult]
    ) -> bool:
        """Take one more round in; True when it is time to warn the model."""
        # Results count as much as calls: asking for the state of a build again and again is
        # progress as long as the answer changes.
        seen = _fingerprint(calls, results)
        if seen != self._last:
            self._last, self._times, self._nudged = seen, 0, False
        self._times += 1
        if self._times < self._repeats:
            return False
        # Counted from zero after the nudge, so that the model has as many rounds again to do
        # something else.
        self._times = 0
        self.is_stuck, self._nudged = self._nudged, True
        return not self.is_stuck


def _fingerprint(calls: Sequence[ToolCall], results: Mapping[CallUid, ToolResult]) -> bytes:
    # Without ids and durations, which differ in every round.
    round_ = [
        (call.name, call.args, results[call.call_uid].text)
        for call in calls
        if call.call_uid in results
    ]
    return hashlib.sha256(msgspec.json.encode(round_)).digest()
