"""Running programs on this machine, without a sandbox.

A command is over when its first process has exited, never when its pipes close: a background child
may hold them for ever.  What it printed is then drained for a moment, and what it left behind is
killed: below a keeper (`keeper_program`) nothing of it escapes, and nothing outlives us.  Commands
that only read are our own, and need none; where there is no keeper, `orphans` says what is left of
the promise.

A cancel kills at once, with everything below, and reaps before it goes on; a time-out asks first
(SIGTERM) and kills after a grace.

A child of ours is started on the event loop's own thread: Python holds its lock from the fork until
the program is loaded, so a thread would not keep anyone else going and would only add its own cost.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial

import anyio
import msgspec

from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.workspace.base import ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process import orphans
from weft.workspace.process.capture import OutputCapture
from weft.workspace.process.command_keeper import CommandKeeper, ReaperLink
from weft.workspace.process.command_process import (
    REAP_SECONDS,
    CommandProcess,
    start_child,
    start_kept,
)
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
_CHUNK = 64 * 1024

kill_orphans = orphans.kill_orphans
NO_KEEPER = (
    "Commands outside the sandbox have no keeper here ({}): if Weft is killed, what they left "
    "running is found by its marks at the next start, unless it threw them away. `weft doctor` "
    "says more."
)


class LocalRunner(Runner):
    """Runs programs as they are, each in a session and group of its own, with a scrubbed
    environment.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        passed: Collection[str] = (),
        keeper: CommandKeeper | None = None,
        disk_guard: Callable[[Sequence[str], Callable[[], None]], DiskGuard] = DiskGuard,
    ) -> None:
        """`passed` names variables that commands get although they look like secrets; `keeper` is
        what commands run below that do not only read.
        """
        self._keeper = keeper
        self._has_notified = False
        """The user was shown the notice that there is no keeper."""
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
        link = await self._reaper(command)
        output = OutputCapture(on_output, is_endless=command.stop is not None)
        with closing(output), closing(OutputCapture(None)) as errors:
            start = partial(_start, link, command, environ, mark, self._threads)
            try:
                process = _Process(command, start, output, errors)
            except BaseException:
                # Nothing was asked of it yet.
                if link is not None:
                    link.give_back()
                raise
            timed_out = False
            try:
                with self._disk_guard((command.cwd,), process.kill) as guard:
                    if not await process.exits_within(command.timeout_seconds, command.stop):
                        timed_out = True
                        await process.end_politely()
                await process.drain()
            finally:
                await process.end()
            result = process.result(timed_out=timed_out)
            if guard.is_full:
                result = msgspec.structs.replace(result, remarks=(f"({full_sentence()})",))
            return result if link is not None or command.only_reads else self._noted(result)

    async def _reaper(self, command: ProcessCommand) -> ReaperLink | None:
        if self._keeper is None or command.only_reads:
            return None
        return await self._keeper.take(self._full_environ)

    def _noted(self, result: RunResult) -> RunResult:
        """The result of a command without a keeper; the first one carries the notice."""
        if self._keeper is None or self._has_notified:
            return result
        self._has_notified = True
        notice = NO_KEEPER.format(self._keeper.why_not)
        return msgspec.structs.replace(result, notes=(*result.notes, notice))


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
        start: Callable[[Sequence[int], Callable[[], None]], CommandProcess],
        output: OutputCapture,
        errors: OutputCapture,
    ) -> None:
        self._command = command
        self._started = time.monotonic()
        self._output, self._errors = output, errors
        self._pipes: list[OutputPipe] = []
        stdin = -1
        try:
            for capture in [output, errors] if command.errors_apart else [output]:
                self._pipes.append(OutputPipe(capture))
            stdin = _stdin(command.stdin)
            # With one pipe for both streams the order of the lines is the order in which they were
            # written.
            standard = (stdin, self._pipes[0].theirs, self._pipes[-1].theirs)
            self._process = start(standard, self._on_exit)
        except BaseException as error:
            for pipe in self._pipes:
                pipe.close()
            if isinstance(error, OSError | ValueError):
                raise _explain(error, command) from error
            raise
        finally:
            if stdin >= 0:
                os.close(stdin)
            for pipe in self._pipes:
                pipe.hand_over()
        for pipe in self._pipes:
            pipe.listen()

    # --- waiting -------------------------------------------------------------------------------

    async def exits_within(self, seconds: float, stop: anyio.Event | None = None) -> bool:
        """Wait for the exit; False when it takes longer, or `stop` is set."""
        with anyio.move_on_after(seconds) as scope:
            if stop is None:
                await self._process.wait_exit()
            else:
                await self._wait_exit_or(stop, scope)
        return self._process.is_over

    async def _wait_exit_or(self, stop: anyio.Event, scope: anyio.CancelScope) -> None:
        async def give_up() -> None:
            await stop.wait()
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(give_up)
            await self._process.wait_exit()
            group.cancel_scope.cancel()

    def kill(self) -> None:
        """Kill it at once; its end is waited for elsewhere."""
        self._process.kill()

    async def end_politely(self) -> None:
        """Ask the group to end, then kill it."""
        self._process.ask_to_end()
        if not await self.exits_within(GRACE_SECONDS):
            self._process.kill()
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

    async def end(self) -> None:
        """Kill what is left, reap, and give everything back; shielded and bounded."""
        try:
            with anyio.CancelScope(shield=True):
                await self._process.end()
        finally:
            for pipe in self._pipes:
                pipe.close()
            self._process.let_go()

    # --- the end -------------------------------------------------------------------------------

    def result(self, *, timed_out: bool) -> RunResult:
        """How it ended; after `end`.

        Raises:
            ToolError: it did not start.
        """
        if (failure := self._process.failure) is not None:
            raise _explain(failure, self._command) from failure
        code = self._process.exit_code
        return RunResult(
            exit_code=-signal.SIGKILL if code is None else code,
            output=self._output.text(),
            errors=self._errors.text(),
            truncated=self._output.is_cut,
            full_output=self._output.whole(),
            total_bytes=self._output.total,
            timed_out=timed_out,
            duration_ms=round((time.monotonic() - self._started) * 1000),
            remarks=(self._process.remark,) if self._process.remark else (),
        )

    def _on_exit(self) -> None:
        # What it printed last is in the pipe already; taking it now saves a round of the loop.
        for pipe in self._pipes:
            for _ in range(4):
                if pipe.closed.is_set() or not pipe.take():
                    break


def _start(
    link: ReaperLink | None,
    command: ProcessCommand,
    environ: Mapping[bytes, bytes],
    mark: str,
    threads: DiskThreads,
    standard: Sequence[int],
    on_exit: Callable[[], None],
) -> CommandProcess:
    if link is None:
        return start_child(command, environ, standard, mark=mark, threads=threads, exited=on_exit)
    return start_kept(link, command, environ, standard, mark=mark, threads=threads, exited=on_exit)


def _stdin(data: bytes) -> int:
    fd = stdin_file(data)
    # `DEVNULL` is a negative marker of Popen's; a keeper needs a real descriptor.
    return fd if fd >= 0 else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


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
    places = (command.cwd, "chdir")
    if isinstance(error, FileNotFoundError | NotADirectoryError) and error.filename in places:
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
