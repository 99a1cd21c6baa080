"""A program below the keeper that is spoken to through its input and output: servers that run
without a namespace of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio

from weft.workspace.process.command_keeper import KeptProcess, ReaperLink, encoded_request


class PipeReader:
    """The end of a pipe that we read."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_blocking(fd, False)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """What comes next.

        Raises:
            anyio.EndOfStream: nothing will.
            anyio.ClosedResourceError: it was closed here.
        """
        while self._fd >= 0:
            try:
                if data := os.read(self._fd, max_bytes):
                    return data
                raise anyio.EndOfStream
            except BlockingIOError:
                await anyio.wait_readable(self._fd)
        raise anyio.ClosedResourceError

    def close(self) -> None:
        """Read no more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            # A task that waits for it is woken.
            anyio.notify_closing(fd)
            os.close(fd)


class PipeWriter:
    """The end of a pipe that we write to."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_blocking(fd, False)

    async def send(self, item: bytes) -> None:
        """Write all of it.

        Raises:
            OSError: nobody reads it.
            anyio.ClosedResourceError: it was closed here.
        """
        view = memoryview(item)
        while view:
            if self._fd < 0:
                raise anyio.ClosedResourceError
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)

    async def aclose(self) -> None:
        """Write no more."""
        self.close()

    def close(self) -> None:
        """Write no more."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            anyio.notify_closing(fd)
            os.close(fd)


class KeptProgram:
    """A running one, as `PipedProgram` uses it."""

    def __init__(self, kept: KeptProcess, pipes: Sequence[int]) -> None:
        """`pipes` are our ends of its input, output and errors."""
        self._kept = kept
        self.stdin = PipeWriter(pipes[0])
        self.stdout = PipeReader(pipes[1])
        self.stderr = PipeReader(pipes[2])

    @property
    def pid(self) -> int:
        """The number of its first process."""
        return self._kept.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._kept.exit_code

    async def wait(self) -> int:
        """Wait for its exit."""
        await self._kept.exited.wait()
        return -9 if self._kept.exit_code is None else self._kept.exit_code

    def kill_group(self) -> None:
        """Have all that it started killed."""
        if not self._kept.is_cleared:
            self._kept.kill()

    async def aclose(self) -> None:
        """Wait until nothing of it runs, and give everything back."""
        try:
            self.kill_group()
            await self._kept.cleared()
        finally:
            for pipe in (self.stdin, self.stdout, self.stderr):
                pipe.close()
            self._kept.let_go()


async def start_below(
    link: ReaperLink, argv: Sequence[str], cwd: str, environ: Mapping[str, str]
) -> KeptProgram:
    """Start a program below a reaper, which is given back with its end.

    Raises:
        OSError, ValueError: it does not start.
    """
    theirs_in, ours_in = os.pipe2(os.O_CLOEXEC)
    ours_out, theirs_out = os.pipe2(os.O_CLOEXEC)
    ours_errors, theirs_errors = os.pipe2(os.O_CLOEXEC)
    theirs = (theirs_in, theirs_out, theirs_errors)
    pipes = (ours_in, ours_out, ours_errors)
    try:
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        kept = KeptProcess(link, encoded_request(argv, cwd, encoded), theirs)
        kept.run(tell_pid=True)
        await kept.started.wait()
        if kept.failure is not None or kept.is_lost:
            kept.let_go()
            raise kept.failure or OSError("the process that keeps it was killed")
    except BaseException:
        for fd in pipes:
            with suppress(OSError):
                os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    return KeptProgram(kept, pipes)
