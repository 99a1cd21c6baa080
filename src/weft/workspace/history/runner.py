"""A Runner that knows what its commands changed.

It stands around another one and asks the project's `FileHistory` before and after.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import anyio
import msgspec

from weft.workspace.base import ChangedFile, ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import ChangeSet, FileHistory, WatchedRun
from weft.workspace.history.unheld_files import (
    UnheldFile,
    lost_files,
    unheld_files,
    unheld_places,
)

T = TypeVar("T")

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
        result, found = await self.watch(command.label, lambda: self._inner.run(command, on_output))
        return msgspec.structs.replace(
            result, changes=found.changes, left_out=result.left_out + found.left_out
        )

    async def watch(self, label: str, work: Callable[[], Awaitable[T]]) -> tuple[T, ChangeSet]:
        """What `work` gives, and what changed in the projects meanwhile; what is cut short by an
        error or a cancel is told by `unreported_changes`.
        """
        runs = await self._begin(label)
        try:
            unheld = await self._unheld()
            with self._draining():
                result = await work()
        except BaseException:
            # What was cancelled has changed files too, and a rewind needs to know them.
            with anyio.move_on_after(PATIENCE_SECONDS, shield=True):
                self._unreported += await self._end(runs)
            raise
        found = await self._end(runs)
        changes = (*found.changes, *await self._lost(unheld, found))
        return result, msgspec.structs.replace(found, changes=changes)

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

    async def _unheld(self) -> list[tuple[FileHistory, dict[str, UnheldFile]]]:
        """The ignored files of each project, by which those that are lost are known."""
        listed: list[tuple[FileHistory, dict[str, UnheldFile]]] = []
        for history in self._histories:
            if places := unheld_places(history.left_out_here()):
                look = functools.partial(unheld_files, history.root, places)
                listed.append((history, await self._threads.run(look)))
        return listed

    async def _lost(
        self, unheld: Sequence[tuple[FileHistory, dict[str, UnheldFile]]], found: ChangeSet
    ) -> list[ChangedFile]:
        """The ignored files that were removed or rewritten, without those that are known by their
        change.
        """
        changed = [change.path for change in found.changes]
        lost: list[ChangedFile] = []
        for history, files in unheld:
            places = unheld_places(history.left_out_here())
            look = functools.partial(lost_files, history.root, files, places, changed)
            lost += [history.shown(each) for each in await self._threads.run(look)]
        return [each for each in lost if each.path not in changed]

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
