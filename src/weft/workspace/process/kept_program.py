"""A program below the keeper that is spoken to through its input and output: servers that run
without a namespace of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import anyio

from weft.file_io import write_ready
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
        while item:
            if self._fd < 0:
                raise anyio.ClosedResourceError
            if item := write_ready(self._fd, item):
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
    with ExitStack() as theirs_open, ExitStack() as ours_open:
        kept = None
        try:
            theirs, ours = _pipes(theirs_open, ours_open)
            encoded = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
            kept = KeptProcess(link, encoded_request(argv, cwd, encoded), theirs)
            kept.run(tell_pid=True)
            await kept.started.wait()
            if kept.failure is not None or kept.is_lost:
                raise kept.failure or OSError("the process that keeps it was killed")
        except BaseException:
            if kept is None:
                link.give_back()
            else:
                kept.let_go()
            raise
        ours_open.pop_all()
    return KeptProgram(kept, ours)


def _pipes(theirs_open: ExitStack, ours_open: ExitStack) -> tuple[list[int], list[int]]:
    """The ends of its input, output and errors: its own, and ours; closed with the stacks."""
    theirs: list[int] = []
    ours: list[int] = []
    for number in range(3):
        reads, writes = os.pipe2(os.O_CLOEXEC)
        inner, outer = (reads, writes) if number == 0 else (writes, reads)
        theirs_open.callback(os.close, inner)
        ours_open.callback(os.close, outer)
        theirs.append(inner)
        ours.append(outer)
    return theirs, ours
