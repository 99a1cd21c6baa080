"""The process of a command: a child of ours that is found by its mark, or one below the keeper.

Both are over when the first process has exited; `end` then kills what that one left behind, and
`let_go` gives everything back.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

import anyio

from weft.workspace.base import ProcessCommand
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process import orphans
from weft.workspace.process.command_keeper import KeptProcess, ReaperLink, encoded_request

REAP_SECONDS: Final = 2.0
"""How long a cancel waits for a killed process.

One that hangs in the kernel cannot be waited for.
"""
LOST: Final = (
    "(interrupted: the process that kept this command was killed, and so was what it left running; "
    "how it would have ended is not known)"
)
_logger = logging.getLogger(__name__)


class CommandProcess(Protocol):
    """A started command."""

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs, and where that is not known."""
        ...

    @property
    def failure(self) -> OSError | None:
        """Why it did not start."""
        ...

    @property
    def remark(self) -> str:
        """What has to be said of its end."""
        ...

    @property
    def is_over(self) -> bool:
        """True when its first process has exited."""
        ...

    async def wait_exit(self) -> None:
        """Wait until its first process has exited."""
        ...

    def ask_to_end(self) -> None:
        """Signal the whole group: a shell passes no signal on to the program that it waits for."""
        ...

    def kill(self) -> None:
        """Kill the group at once; its end is waited for elsewhere."""
        ...

    async def end(self) -> None:
        """Kill what is left of it; bounded."""
        ...

    def let_go(self) -> None:
        """Give everything back."""
        ...


class ChildProcess:
    """A command that is a child of ours."""

    failure: OSError | None = None
    remark = ""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        mark: str,
        threads: DiskThreads,
        exited: Callable[[], None],
    ) -> None:
        """`exited` is called when its first process has, where the system tells."""
        _reap_late()
        self._popen = popen
        self._mark = mark
        self._threads = threads
        self._told = exited
        self._started = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._handle = self._watch_exit()

    @property
    def exit_code(self) -> int | None:
        return self._popen.returncode

    @property
    def is_over(self) -> bool:
        return self._exited.is_set()

    async def wait_exit(self) -> None:
        if self._handle is not None:
            await self._exited.wait()
            return
        pause = 0.001
        while self._popen.poll() is None:
            await anyio.sleep(pause)
            pause = min(pause * 2, 0.05)
        self._exited.set()

    def ask_to_end(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    async def end(self) -> None:
        # The exited process is not reaped yet, so its number still names this group and no other.
        self.kill()
        if not self.is_over:
            with anyio.move_on_after(REAP_SECONDS):
                await self.wait_exit()
        leader = self._popen.pid
        # Once reaped (where there are no process handles), the number may be another group's.
        group = leader if self._popen.returncode is None else 0
        seconds = time.monotonic() - self._started
        if orphans.may_have_left(leader, seconds):
            mark = self._mark
            await self._threads.run(lambda: orphans.kill_left(mark, leader, seconds, group=group))

    def let_go(self) -> None:
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
        # With a handle it is reaped only here, at the very end: until then its number cannot be
        # given to another process, so no signal and no search for orphans can hit a stranger.
        if self._popen.poll() is None:
            _logger.warning("a killed process hangs in the kernel; pid %d", self._popen.pid)
            _late.append(self._popen)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def _watch_exit(self) -> int | None:
        """Be woken at the exit; None where the system has no process handles."""
        try:
            # A handle and not SIGCHLD: the handler of that signal belongs to the application that
            # uses us. `WNOHANG` in a loop is the fallback, which wakes up for nothing.
            handle = os.pidfd_open(self._popen.pid)
        except (AttributeError, OSError):
            return None
        self._loop.add_reader(handle, self._on_exit, handle)
        return handle

    def _on_exit(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        self._told()
        self._exited.set()


class KeptCommand:
    """A command below the keeper."""

    def __init__(self, kept: KeptProcess, mark: str, threads: DiskThreads) -> None:
        self._kept = kept
        self._mark = mark
        self._threads = threads

    @property
    def exit_code(self) -> int | None:
        return self._kept.exit_code

    @property
    def failure(self) -> OSError | None:
        return self._kept.failure

    @property
    def remark(self) -> str:
        return "" if self._kept.is_end_known else LOST

    @property
    def is_over(self) -> bool:
        return self._kept.exited.is_set()

    async def wait_exit(self) -> None:
        await self._kept.exited.wait()

    def ask_to_end(self) -> None:
        self._kept.ask_to_end()

    def kill(self) -> None:
        self._kept.kill()

    async def end(self) -> None:
        if not self._kept.is_cleared:
            self._kept.kill()
            with anyio.move_on_after(REAP_SECONDS):
                await self._kept.cleared()
        if self._kept.is_lost or not self._kept.is_cleared:
            # Its reaper is dead, or does not answer: the command itself may have stopped it.
            mark = self._mark
            await self._threads.run(lambda: orphans.kill_marked(mark))

    def let_go(self) -> None:
        self._kept.let_go()


_late: list[subprocess.Popen[bytes]] = []
"""Killed processes that had not died when we stopped waiting."""


def _reap_late() -> None:
    _late[:] = [popen for popen in _late if popen.poll() is None]


def start_child(
    command: ProcessCommand,
    environ: Mapping[bytes, bytes],
    standard: Sequence[int],
    *,
    mark: str,
    threads: DiskThreads,
    exited: Callable[[], None],
) -> ChildProcess:
    """Start a command as a child of ours.

    Raises:
        OSError, ValueError: it does not start.
    """
    stdin, output, errors = standard
    popen = subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env=environ,
        stdin=stdin,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )
    return ChildProcess(popen, mark, threads, exited)


def start_kept(
    link: ReaperLink,
    command: ProcessCommand,
    environ: Mapping[bytes, bytes],
    standard: Sequence[int],
    *,
    mark: str,
    threads: DiskThreads,
    exited: Callable[[], None],
) -> KeptCommand:
    """Start a command below the keeper.

    Raises:
        ValueError: it cannot be handed over.
    """
    message = encoded_request(command.argv, command.cwd, environ)
    kept = KeptProcess(link, message, standard, exited)
    kept.run()
    return KeptCommand(kept, mark, threads)
