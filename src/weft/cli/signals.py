"""Signals: the first one settles everything and leaves; the second leaves at once.

SIGINT, SIGTERM and SIGHUP abort the turn, so that every call is settled and the log is whole, and
end the program within five seconds even if something hangs.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from types import FrameType

import anyio

DEADLINE_SECONDS = 4.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


class StopSignal:
    """A signal that ends the program, and the orderly way out."""

    def __init__(self) -> None:
        self.signal: int = 0
        self.deadline_seconds = DEADLINE_SECONDS
        """How long the orderly way out may take."""
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
        """Wait for a signal and have `first` settle everything.  With `interrupt`, SIGINT calls
        that and ends nothing.

        It goes on until it is cancelled: to leave would give the signals back to the system, which
        ends us without tidying up.
        """
        came = anyio.Event()
        loop = asyncio.get_running_loop()

        def receive(number: int, frame: FrameType | None) -> None:
            # Runs between two instructions of the main thread, so that a second signal counts while
            # the loop is stuck. A second signal: the user does not want to wait any longer.
            if self.signal:
                self._end(number, frame)
            elif number == signal.SIGINT and interrupt is not None:
                loop.call_soon_threadsafe(interrupt)
            else:
                self.signal = number
                # The kernel's alarm works even when the event loop is stuck; a timeout of the loop
                # would be stuck with it.
                signal.setitimer(signal.ITIMER_REAL, self.deadline_seconds)
                loop.call_soon_threadsafe(came.set)

        # Not loop.add_signal_handler: its callbacks run only when the loop is free, which is the
        # case that needs no help.
        signal.signal(signal.SIGALRM, self._end)
        before = {number: signal.signal(number, receive) for number in SIGNALS}
        try:
            task_status.started()
            await came.wait()
            await first()
            await anyio.sleep_forever()
        finally:
            # Once one has come, nothing may hold up the rest of the way out.
            if not self.signal:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        for call in self._before_the_end:
            call()
        # No `sys.exit`: it would run `finally` blocks and wait for threads, one of which may be
        # what hangs.
        os._exit(self.code or 128 + number)
