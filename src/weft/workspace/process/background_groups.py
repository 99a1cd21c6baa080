"""Process groups that work for us in the background and stand still while commands run.

A command is a dozen short processes that wait for one another.  The kernel shares time between
sessions of the system first, and each command has one of its own, so that no priority of a
background process puts it off: each of those dozen would wait for the next tick.  Stopping the
group does.  Where their parent dies meanwhile, the kernel hangs up on a stopped group that no one
is left to continue, and lets it go on: it ends by the signal or, where that is ignored (`nohup`),
when it sees that its parent is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final

LONGEST_SECONDS: Final = 1.0
"""How long they stand still at a time: what takes longer shares the machine with them."""
REST_SECONDS: Final = 0.25
"""How long they then go on at least."""
PAUSE_SECONDS: Final = 0.02
"""The next command of a turn mostly comes sooner than this: they wait for it."""


class BackgroundGroups:
    """The groups of one program."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._groups: set[int] = set()
        self._standing: set[int] = set()
        """Those that are stopped."""
        self._commands = 0
        """How many run."""
        self._stopped_at = 0.0
        self._go_on_at = 0.0
        """Before this, nothing is stopped again."""

    def add(self, leader: int) -> None:
        """Have a process group stand still while commands run, from the next one on."""
        with self._guard:
            self._groups.add(leader)

    def remove(self, leader: int) -> None:
        """Let it run, and stop it no more."""
        with self._guard:
            self._groups.discard(leader)
            self._continue(leader)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop all of them for the command that the block runs, unless it takes long."""
        # Nearly always there is none: an index is made once.
        if not self._groups:
            yield
            return
        loop = asyncio.get_running_loop()
        self._begin()
        timer = loop.call_later(LONGEST_SECONDS, self._look)
        try:
            yield
        finally:
            timer.cancel()
            with self._guard:
                self._commands -= 1
            loop.call_later(PAUSE_SECONDS, self._look)

    def _begin(self) -> None:
        with self._guard:
            self._commands += 1
            now = time.monotonic()
            if self._standing or now < self._go_on_at:
                return
            self._stopped_at = now
            for leader in self._groups:
                with suppress(OSError):
                    # Not SIGSTOP: where we die before it has been taken, it would stop for ever a
                    # group that has no parent any more. This one is dropped by the kernel then.
                    os.killpg(leader, signal.SIGTSTP)
                    self._standing.add(leader)

    def _look(self) -> None:
        """Let them go on when no command runs any more, or when they have stood long enough."""
        with self._guard:
            now = time.monotonic()
            is_long = now - self._stopped_at >= LONGEST_SECONDS
            if not self._standing or (self._commands and not is_long):
                return
            if is_long:
                self._go_on_at = now + REST_SECONDS
            for leader in tuple(self._standing):
                self._continue(leader)

    def _continue(self, leader: int) -> None:
        if leader in self._standing:
            self._standing.discard(leader)
            with suppress(OSError):
                os.killpg(leader, signal.SIGCONT)


BACKGROUND_GROUPS: Final = BackgroundGroups()
"""One for the process: whose command it is does not matter to the machine."""
