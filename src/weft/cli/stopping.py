"""Signals: the first one settles everything and leaves; the second leaves at once.

SIGINT, SIGTERM and SIGHUP abort the turn, so that every call is settled and the log is whole, and end the program within five seconds even
if something hangs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from types import FrameType

import anyio

DEADLINE_SECONDS = 4.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


class Stop:
    """Whether somebody wants us gone, and what is done about it."""

    def __init__(self) -> None:
        self.signal: int = 0
        self._before_the_end: list[Callable[[], None]] = []

    @property
    def code(self) -> int:
        """The exit code that the signal asks for, 0 when there was none."""
        return 128 + self.signal if self.signal else 0

    @property
    def reason(self) -> str:
        """For the log."""
        return _NAMES.get(signal.Signals(self.signal), "") if self.signal else ""

    def at_the_end(self, call: Callable[[], None]) -> None:
        """Also do this when the program is ended at once: put the terminal back."""
        self._before_the_end.append(call)

    async def watch(
        self,
        first: Callable[[], Awaitable[None]],
        *,
        interrupt: Callable[[], None] | None = None,
        task_status: anyio.abc.TaskStatus[None],
    ) -> None:
        """Wait for a signal and have `first` settle everything.  With `interrupt`, SIGINT calls that and ends nothing.

        It goes on until it is cancelled: to leave would give the signals back to the system, which ends us without tidying up.
        """
        with anyio.open_signal_receiver(*SIGNALS) as received:
            task_status.started()
            async for number in received:
                if number != signal.SIGINT or interrupt is None:
                    self.signal = number
                    break
                interrupt()
            self._arm()
            await first()
            await anyio.sleep_forever()

    def _arm(self) -> None:
        """From now on nothing holds us up for long: a second signal, or the deadline, ends the program where it stands."""
        for number in (*SIGNALS, signal.SIGALRM):
            signal.signal(number, self._end)
        signal.setitimer(signal.ITIMER_REAL, DEADLINE_SECONDS)

    def _end(self, number: int, frame: FrameType | None) -> None:
        for call in self._before_the_end:
            call()
        os._exit(self.code or 128 + number)
