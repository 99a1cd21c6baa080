"""A program that runs beside us and is spoken to through its input and output: language servers,
and formatters.

It lives in a session and group of its own with a scrubbed environment and bears a mark, so that
everything it starts can be found and killed with it.  What it says in errors is kept as a short
tail, for the sentence that explains why it ended.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
import anyio.abc
import msgspec

from weft.errors import FinalToolError
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process import orphans
from weft.workspace.process.command_keeper import CommandKeeper
from weft.workspace.process.kept_program import KeptProgram, start_below

_CHUNK: Final = 64 * 1024
_TAIL: Final = 4096
_REAP_SECONDS: Final = 2.0
_DRAIN_SECONDS: Final = 0.5
"""How long the pipes of a filter that has ended are read on; what it left running may hold them."""
_FIRST_TO_GO: Final = 500
"""Where memory runs out the kernel ends such programs before the user's."""


class PipedProgram:
    """One such program."""

    def __init__(
        self, process: anyio.abc.Process | KeptProgram, mark: str, *, shares_pids: bool
    ) -> None:
        self._process = process
        self._mark = mark
        self.shares_pids = shares_pids
        """It sees our processes by the same numbers as we do."""
        self._tail = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error."""
        return self._tail.decode(errors="replace").strip()

    async def receive(self) -> bytes:
        """What it says next; empty at the end."""
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.receive(_CHUNK)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return b""

    async def send(self, data: bytes) -> None:
        """Say something.

        Raises:
            OSError, anyio.BrokenResourceError, anyio.ClosedResourceError: it does not listen.
        """
        assert self._process.stdin is not None
        await self._process.stdin.send(data)

    async def end_input(self) -> None:
        """Say nothing more."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()

    async def keep_errors(self) -> None:
        """Read its errors, for ever: a program whose pipe is full stands still."""
        assert self._process.stderr is not None
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                self._tail = (self._tail + await self._process.stderr.receive(_CHUNK))[-_TAIL:]

    async def wait(self) -> None:
        """Wait for its exit."""
        await self._process.wait()

    async def ends_within(self, seconds: float) -> bool:
        """Wait for its exit; False when it takes longer."""
        with anyio.move_on_after(seconds):
            await self._process.wait()
        return self._process.returncode is not None

    def memory(self) -> int:
        """Bytes that it and all it started hold in memory, by the kernel's books."""
        return memory_of(self._process.pid)

    def end_first(self) -> None:
        """Have the kernel end it, and what it has started by now, before the user's own programs
        where memory runs out; what they start inherits that."""
        for pid in family_of(self._process.pid):
            with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
                file.write(str(_FIRST_TO_GO))

    def ask_to_end(self) -> None:
        """Ask it, and all it started, to end (SIGTERM).

        What holds it in a namespace of its own is not asked: its end is the death of all in it.
        """
        if self._process.returncode is not None:
            return
        family = family_of(self._process.pid)
        for handle in _handles_of(family if self.shares_pids else family[1:]):
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
            os.close(handle)

    async def kill(self) -> None:
        """End it at once with all that it started, and give everything back; shielded."""
        with anyio.CancelScope(shield=True):
            family: list[int] = []
            if self._process.returncode is None:
                # Those in a namespace of their own die when the kernel gets to it, and bear no mark
                # any more while they do.
                family = _handles_of(family_of(self._process.pid))
                self._kill_group()
            await DiskThreads().run(lambda: self._end_all(family))
            # Bounded: a process that hangs in the kernel cannot be waited for, and the pipes of one
            # that was adopted may stay open.
            await self.ends_within(_REAP_SECONDS)
            with anyio.move_on_after(_REAP_SECONDS):
                await self._process.aclose()

    def _kill_group(self) -> None:
        if isinstance(self._process, KeptProgram):
            self._process.kill_group()
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _end_all(self, handles: Sequence[int]) -> None:
        orphans.kill_marked(self._mark)
        until = time.monotonic() + _REAP_SECONDS
        for handle in handles:
            # Not `select`, which knows no numbers beyond 1,023.
            waiting = select.poll()
            waiting.register(handle, select.POLLIN)
            waiting.poll(max(0.0, until - time.monotonic()) * 1000)
            os.close(handle)


def _handles_of(pids: Iterable[int]) -> list[int]:
    """A handle of each process that is there; it can be read from once the process has ended."""
    found: list[int] = []
    for pid in pids:
        with suppress(OSError):
            found.append(os.pidfd_open(pid))
    return found


async def start_piped(
    argv: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    shares_pids: bool = True,
    keeper: CommandKeeper | None = None,
) -> PipedProgram:
    """Start a program, which gets these open files too; `shares_pids` is false for one in a
    namespace of its own.  `keeper` is for one that has none: it runs below it where it can.

    Raises:
        FinalToolError: it cannot be started.
    """
    mark = orphans.new_mark()
    # Inside another Weft its mark stays in front: by it that one finds what it has to end.
    outer = f"{environ[orphans.MARK]}/" if orphans.MARK in environ else ""
    marked = {**environ, orphans.MARK: outer + mark}
    try:
        # A cancel in here would leave a process that no one knows of.
        with anyio.CancelScope(shield=True):
            if keeper is not None and (link := await keeper.take(environ)) is not None:
                kept = await start_below(link, argv, cwd, marked)
                return _first_to_go(PipedProgram(kept, mark, shares_pids=shares_pids))
            process = await anyio.open_process(
                list(argv),
                cwd=cwd,
                env=marked,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=pass_fds,
            )
    except (OSError, ValueError) as error:
        raise FinalToolError(f"{argv[0]} does not start: {error}") from error
    return _first_to_go(PipedProgram(process, mark, shares_pids=shares_pids))


def _first_to_go(program: PipedProgram) -> PipedProgram:
    program.end_first()
    return program


class FilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a program made of its input."""

    output: bytes
    errors: str
    exit_code: int | None
    """None: it took too long, and was ended."""
    is_too_long: bool = False
    """It printed more than was wanted, and was ended."""


async def run_filter(
    program: PipedProgram, data: bytes, *, seconds: float, most: int
) -> FilterResult:
    """Give a program its whole input and take at most so many bytes until its end; nothing of it
    is left then."""
    pipes = _FilterPipes(program, data, most)
    code: int | None = None
    try:
        with anyio.move_on_after(seconds):
            async with anyio.create_task_group() as group:
                group.start_soon(pipes.feed)
                group.start_soon(pipes.drain, group.cancel_scope)
                # Its exit is its end, and not that of its pipes: some leave a helper running.
                await program.wait()
                code = program.exit_code
                with anyio.move_on_after(_DRAIN_SECONDS):
                    await pipes.closed.wait()
                group.cancel_scope.cancel()
    finally:
        await program.kill()
    return FilterResult(
        output=bytes(pipes.output),
        errors=program.errors,
        exit_code=code,
        is_too_long=len(pipes.output) > most,
    )


class _FilterPipes:
    """What goes into a filter, and what comes out of it."""

    def __init__(self, program: PipedProgram, data: bytes, most: int) -> None:
        self._program = program
        self._data = data
        self._most = most
        self.output = bytearray()
        self.closed = anyio.Event()

    async def feed(self) -> None:
        # One that does not read its input may still print something.
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._program.send(self._data)
            await self._program.end_input()

    async def drain(self, scope: anyio.CancelScope) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._program.keep_errors)
            while chunk := await self._program.receive():
                self.output += chunk
                if len(self.output) > self._most:
                    scope.cancel()
        self.closed.set()


def memory_of(pid: int) -> int:
    """Bytes that a process and all it started hold in memory."""
    return sum(_resident(each) for each in family_of(pid))


def family_of(pid: int) -> list[int]:
    """The numbers of a process and of all that it started, as far as their parents live."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{task}/children", "rb") as file:
                    found += map(int, file.read().split())
    return found


def _resident(pid: int) -> int:
    # Without the pages of files, which would count for each of its processes and can be read again;
    # but with shared memory, which `statm` counts as such pages.
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            found = [line.split() for line in file if line.startswith((b"RssAnon:", b"RssShmem:"))]
    except OSError:
        return 0
    return sum(int(words[1]) * 1024 for words in found)
