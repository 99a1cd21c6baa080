"""A Runner that knows what its commands changed.

It stands around another one and asks the project's `FileHistory` before and after.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import anyio
import msgspec

from weft.workspace.base import ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import ChangeSet, FileHistory, WatchedRun

PATIENCE_SECONDS = 2.0
"""How long a cancelled command is still asked what it changed."""


class WatchedRunner(Runner):
    """Runs commands by another Runner, and reports what each changed in these projects.

    One that was cancelled changed something too: `unreported_changes` hands that out.
    """

    def __init__(self, inner: Runner, histories: Iterable[FileHistory]) -> None:
        self._inner = inner
        self._histories = tuple(histories)
        self._threads = DiskThreads()
        self._unreported = ChangeSet()

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    def unreported_changes(self) -> ChangeSet:
        """What cancelled commands changed, which no result reports; handed out once."""
        found, self._unreported = self._unreported, ChangeSet()
        return found

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        if command.only_reads or self._inner.knows_changes(command):
            return await self._inner.run(command, on_output)
        runs = await self._begin(command.label)
        try:
            with self._draining():
                result = await self._inner.run(command, on_output)
        except BaseException:
            # A cancelled command has changed files too, and a rewind needs to know them.
            with anyio.move_on_after(PATIENCE_SECONDS, shield=True):
                self._unreported += await self._end(runs)
            raise
        found = await self._end(runs)
        return msgspec.structs.replace(
            result, changes=found.changes, left_out=result.left_out + found.left_out
        )

    def left_out(self) -> dict[str, str]:
        """What is not in the history, with the reason, as far as it is known."""
        return {path: why for each in self._histories for path, why in each.left_out().items()}

    async def interrupted(self, labels: Sequence[str]) -> dict[str, ChangeSet]:
        """What commands changed whose end is not on record, by label; each is handed out once."""
        found: dict[str, ChangeSet] = {}
        for history in self._histories:
            waiting = WatchedRun()
            changed = await self._threads.run(
                functools.partial(history.interrupted, waiting, labels), waiting.void
            )
            for label, changes in changed.items():
                found[label] = found.get(label, ChangeSet()) + changes
        return found

    async def _begin(self, label: str) -> list[tuple[FileHistory, WatchedRun]]:
        runs = [(history, WatchedRun(label)) for history in self._histories]
        try:
            for history, run in runs:
                if not history.begin_quickly(run):
                    await self._threads.run(functools.partial(history.begin, run), run.void)
        except BaseException:
            for _, run in runs:
                run.void()
            raise
        return runs

    async def _end(self, runs: list[tuple[FileHistory, WatchedRun]]) -> ChangeSet:
        found = ChangeSet()
        for history, run in runs:
            changed = history.end_quickly(run)
            if changed is None:
                changed = await self._threads.run(functools.partial(history.end, run))
            found += changed
        return found

    @contextmanager
    def _draining(self) -> Iterator[None]:
        """Empty the kernel's queues while a command runs, for they are short.

        Only bytes are moved; what they mean is seen later.
        """
        loop = asyncio.get_running_loop()
        watched: list[int] = []
        try:
            for history in self._histories:
                if (fd := history.watch_fd) is not None:
                    watched.append(
                        os.dup(fd)
                    )  # the loop takes one reader a number, and others may run at the same time
                    loop.add_reader(watched[-1], history.drain)
            yield
        finally:
            for fd in watched:
                loop.remove_reader(fd)
                os.close(fd)
