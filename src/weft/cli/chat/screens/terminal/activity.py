"""The activity of a turn: for how long it runs, what arrives, and for how long nothing has.

Measured here and not in the fold of the session's events, which knows no clock.
"""

from __future__ import annotations

import time

from weft.clock import Clock
from weft.view import AnswerBlock, AnyBlock, LiveArea, ThinkingBlock, WaitNotice

SILENT_SECONDS = 10.0
"""Without data for so long, the activity line says so."""
_CHARACTERS_PER_TOKEN = 4
"""A rough number is enough to see that something comes; the true one is known at the end."""


class TurnActivity:
    """What the activity line needs to know of the turn that runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._last_data = self._retry_seen = clock.monotonic()
        self._is_busy = False
        self.last_seconds = 0
        """How long the last turn took."""
        self._signature: object = None
        self._handed_out = 0
        self._in_flight = 0
        self._thought_since: float | None = None
        self._started: dict[str, float] = {}
        self._retry: object = None

    def look(self, live: LiveArea) -> None:
        """Something may have changed."""
        now = self._clock.monotonic()
        if self._is_busy and not live.is_busy:
            self.last_seconds = int(now - self._began)
        if live.is_busy and not self._is_busy:
            self._began = self._last_data = now
            self._handed_out = self._in_flight = 0
        self._is_busy = live.is_busy
        self._in_flight = len(live.text) + len(live.thinking)
        signature = (self._in_flight, live.preparing, live.status, tuple(live.running))
        if signature != self._signature:
            self._signature, self._last_data = signature, now
        if live.retry is not self._retry:
            self._retry, self._retry_seen = live.retry, now
        for call_uid in live.running:
            self._started.setdefault(call_uid, now)
        for call_uid in self._started.keys() - live.running.keys():
            del self._started[call_uid]

    def handed_out(self, blocks: tuple[AnyBlock, ...]) -> None:
        """These are no longer in flight."""
        for block in blocks:
            if isinstance(block, AnswerBlock | ThinkingBlock):
                self._handed_out += len(block.text)

    @property
    def seconds(self) -> int:
        """Since the turn began."""
        return int(self._clock.monotonic() - self._began)

    @property
    def tokens(self) -> int:
        """What has arrived, by its length."""
        return (self._handed_out + self._in_flight) // _CHARACTERS_PER_TOKEN

    @property
    def silent_seconds(self) -> int:
        """For how long nothing has come; 0 while that is nothing unusual."""
        silent = self._clock.monotonic() - self._last_data
        return int(silent) if silent >= SILENT_SECONDS else 0

    def retry_seconds(self, wait_ms: int) -> int:
        """Until the next try."""
        waited = self._clock.monotonic() - self._retry_seen
        return max(0, round(wait_ms / 1000 - waited))

    def waited_seconds(self, wait: WaitNotice) -> int:
        """Since a wait began, on whichever machine's clock that was."""
        return max(0, int(self._clock.now() - wait.since))

    def clock_time(self, at: float) -> str:
        """A time on the user's clock, with the day where it is not within the next one."""
        is_near = abs(at - self._clock.now()) < 20 * 3600
        return time.strftime("%H:%M" if is_near else "%d %b %H:%M", time.localtime(at))

    def tool_seconds(self, call_uid: str) -> int:
        """Since a tool was started."""
        now = self._clock.monotonic()
        return int(now - self._started.get(call_uid, now))
