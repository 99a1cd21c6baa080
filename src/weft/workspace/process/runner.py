"""Running programs on this machine, without a sandbox.

A command is over when its first process has exited, never when its pipes close: a background child
may hold them for ever.  What it printed is then drained for a moment, and what it left behind is
killed (`orphans` says what is promised).

A cancel kills at once, with everything below, and reaps before it goes on; a time-out asks first
(SIGTERM) and kills after a grace.

The process is started on the event loop's own thread: Python holds its lock from the fork until the
program is loaded, so a thread would not keep anyone else going and would only add its own cost.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from functools import cached_property

import anyio
import msgspec

from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.workspace.base import ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process import orphans
from weft.workspace.process.capture import OutputCapture
from weft.workspace.process.disk_guard import DiskGuard, full_sentence
from weft.workspace.process.environment import scrubbed
from weft.workspace.process.search_path import find_program

GRACE_SECONDS = 2.0
"""Between the polite signal of a time-out and the kill."""
QUIET_SECONDS = 0.1
"""How long the output must be quiet, after the exit, before we stop listening to what still holds
it open.
"""
DRAIN_SECONDS = 1.0
"""How long we listen after the exit at most."""
REAP_SECONDS = 2.0
"""How long a cancel waits for a killed process.

One that hangs in the kernel cannot be waited for.
"""
_CHUNK = 64 * 1024

kill_orphans = orphans.kill_orphans
_logger = logging.getLogger(__name__)


class LocalRunner(Runner):
    """Runs programs as they are, each in a session and group of its own, with a scrubbed
    environment.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        passed: Collection[str] = (),
        disk_guard: Callable[[Sequence[str], Callable[[], None]], DiskGuard] = DiskGuard,
    ) -> None:
        """`passed` names variables that commands get although they look like secrets."""
        self._disk_guard = disk_guard
        self._full_environ = environ or {}
        self._passed = passed
        self._outer_mark = self._full_environ.get(orphans.MARK, "")
        self._threads = DiskThreads()
        self._programs: dict[tuple[str, str], str | None] = {}

    @cached_property
    def _environ(self) -> dict[str, str]:
        # Made for the first command: a session that runs none need not know the names of secrets.
        return scrubbed(self._full_environ, self._passed)

    @cached_property
    def _encoded(self) -> dict[bytes, bytes]:
        # As the system takes it: to encode half a hundred variables anew costs every command as
        # much as a small system call.
        return _encoded(self._environ)

    def which(self, program: str, *, not_below: str = "") -> str | None:
        key = (program, not_below)
        if key not in self._programs:
            outside = [not_below] if not_below else []
            self._programs[key] = find_program(program, self._environ["PATH"], outside=outside)
        return self._programs[key]

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        mark = orphans.new_mark()
        outer = f"{self._outer_mark}/" if self._outer_mark else ""
        added = {**command.env, orphans.MARK: outer + mark}
        environ = {**self._encoded, **_encoded(added)}
        output = OutputCapture(on_output, is_endless=command.stop is not None)
        with closing(output), closing(OutputCapture(None)) as errors:
            process = _Process(command, environ, output, errors)
            timed_out = False
            try:
                with self._disk_guard((command.cwd,), process.kill) as guard:
                    if not await process.exits_within(command.timeout_seconds, command.stop):
                        timed_out = True
                        await process.end_politely()
                await process.drain()
            finally:
                await process.end(mark, self._threads)
            result = process.result(timed_out=timed_out)
            if not guard.is_full:
                return result
            return msgspec.structs.replace(result, remarks=(f"({full_sentence()})",))


class OutputPipe:
    """What a program and all it starts print into, and what came through."""

    def __init__(self, capture: OutputCapture) -> None:
        self.capture = capture
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._fd, self.theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._fd, False)

    def listen(self) -> None:
        """Take in what comes, from now on."""
        self._loop.add_reader(self._fd, self.take)

    def take(self) -> bool:
        """Take one chunk in; False when there was none."""
        try:
            # One chunk for each call: a program that floods must not keep the loop from other work.
            chunk = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self.capture.feed(chunk)
        else:
            self._loop.remove_reader(self._fd)
            self.closed.set()
        return True

    def hand_over(self) -> None:
        """The program has its end now; ours would keep the pipe open."""
        os.close(self.theirs)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)


class _Process:
    """One running program: its first process, and the pipe that all of them print into (or two,
    with errors apart).
    """

    def __init__(
        self,
        command: ProcessCommand,
        environ: Mapping[bytes, bytes],
        output: OutputCapture,
        errors: OutputCapture,
    ) -> None:
        _reap_late()
        self._loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        self._output, self._errors = output, errors
        self._exited = asyncio.Event()
        self._pipes: list[OutputPipe] = []
        try:
            for capture in [output, errors] if command.errors_apart else [output]:
                self._pipes.append(OutputPipe(capture))
            # With one pipe for both streams the order of the lines is the order in which they were
            # written.
            self._popen = _spawn(command, environ, self._pipes[0].theirs, self._pipes[-1].theirs)
        except BaseException:
            for pipe in self._pipes:
                pipe.close()
            raise
        finally:
            for pipe in self._pipes:
                pipe.hand_over()
        for pipe in self._pipes:
            pipe.listen()
        self._handle = self._watch_exit()

    # --- waiting -------------------------------------------------------------------------------

    async def exits_within(self, seconds: float, stop: anyio.Event | None = None) -> bool:
        """Wait for the exit; False when it takes longer, or `stop` is set."""
        with anyio.move_on_after(seconds) as scope:
            if stop is None:
                await self._wait_exit()
            else:
                await self._wait_exit_or(stop, scope)
        return self._exited.is_set()

    async def _wait_exit_or(self, stop: anyio.Event, scope: anyio.CancelScope) -> None:
        async def give_up() -> None:
            await stop.wait()
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(give_up)
            await self._wait_exit()
            group.cancel_scope.cancel()

    def kill(self) -> None:
        """Kill the group at once; its end is waited for elsewhere."""
        self._signal(signal.SIGKILL)

    async def end_politely(self) -> None:
        """Ask the group to end, then kill it."""
        # The whole group: a shell does not pass a signal on to the program that it waits for.
        self._signal(signal.SIGTERM)
        if not await self.exits_within(GRACE_SECONDS):
            self._signal(signal.SIGKILL)
            await self.exits_within(REAP_SECONDS)

    async def drain(self) -> None:
        """Take in what is still in the pipes, until they close, fall quiet, or long enough."""
        deadline = time.monotonic() + DRAIN_SECONDS
        for pipe in self._pipes:
            while not pipe.closed.is_set() and time.monotonic() < deadline:
                seen = pipe.capture.total
                with anyio.move_on_after(QUIET_SECONDS):
                    await pipe.closed.wait()
                # Quiet for a moment: a background child holds the pipe open and prints nothing.
                if pipe.capture.total == seen:
                    break

    async def end(self, mark: str, threads: DiskThreads) -> None:
        """Kill what is left, reap, and give everything back; shielded and bounded."""
        try:
            # The exited process is not reaped yet, so its number still names this group and no
            # other.
            self._signal(signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                if not self._exited.is_set():
                    await self.exits_within(REAP_SECONDS)
                leader = self._popen.pid
                # Once reaped (where there are no process handles), the number may be another
                # group's.
                group = leader if self._popen.returncode is None else 0
                seconds = self._seconds()
                if orphans.may_have_left(leader, seconds):
                    await threads.run(lambda: orphans.kill_left(mark, leader, seconds, group=group))
        finally:
            self._let_go()

    # --- the end -------------------------------------------------------------------------------

    def result(self, *, timed_out: bool) -> RunResult:
        """How it ended; after `end`."""
        code = self._popen.returncode
        return RunResult(
            exit_code=-signal.SIGKILL if code is None else code,
            output=self._output.text(),
            errors=self._errors.text(),
            truncated=self._output.is_cut,
            full_output=self._output.whole(),
            total_bytes=self._output.total,
            timed_out=timed_out,
            duration_ms=round(self._seconds() * 1000),
        )

    def _let_go(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
        # With a handle it is reaped only here, at the very end: until then its number cannot be
        # given to another process, so no signal and no search for orphans can hit a stranger.
        if self._popen.poll() is None:
            _logger.warning("a killed process hangs in the kernel; pid %d", self._popen.pid)
            _late.append(self._popen)

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    # --- what happens to it ----------------------------------------------------------------------

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

    async def _wait_exit(self) -> None:
        if self._handle is not None:
            await self._exited.wait()
            return
        pause = 0.001
        while self._popen.poll() is None:
            await anyio.sleep(pause)
            pause = min(pause * 2, 0.05)
        self._exited.set()

    def _on_exit(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        # What it printed last is in the pipe already; taking it now saves a round of the loop.
        for pipe in self._pipes:
            for _ in range(4):
                if pipe.closed.is_set() or not pipe.take():
                    break
        self._exited.set()


_late: list[subprocess.Popen[bytes]] = []
"""Killed processes that had not died when we stopped waiting."""


def _reap_late() -> None:
    _late[:] = [popen for popen in _late if popen.poll() is None]


def _spawn(
    command: ProcessCommand, environ: Mapping[bytes, bytes], output: int, errors: int
) -> subprocess.Popen[bytes]:
    stdin = stdin_file(command.stdin)
    try:
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=environ,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _explain(error, command) from error
    finally:
        if stdin != subprocess.DEVNULL:
            os.close(stdin)


def _encoded(environ: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}


def stdin_file(data: bytes) -> int:
    """Input as a file: its reader finds the end, and no task has to feed a pipe."""
    if not data:
        return subprocess.DEVNULL
    # A pipe would need a writer task, and a program that never reads would block it.
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    with open(fd, "wb", buffering=0, closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _explain(error: OSError | ValueError, command: ProcessCommand) -> ToolError:
    program = command.argv[0]
    if isinstance(error, ValueError):
        return FinalToolError("the command holds a NUL character")
    if isinstance(error, FileNotFoundError | NotADirectoryError) and error.filename == command.cwd:
        return FinalToolError(f"there is no folder {command.cwd!r} to run the command in")
    if isinstance(error, FileNotFoundError):
        return FinalToolError(f"there is no program {program!r} on this machine")
    if error.errno == errno.E2BIG:
        return FinalToolError("the command is too long for this system; put the data into a file")
    if isinstance(error, PermissionError) or error.errno == errno.ENOEXEC:
        return FinalToolError(
            f"the system does not run {program!r} in {command.cwd!r}: {error.strerror}"
        )
    return RetryableToolError(f"could not start {program!r}: {error.strerror}")
