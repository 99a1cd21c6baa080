"""A Runner that knows what its commands changed.

It stands around another one and asks the project's `FileHistory` before and after.  All sessions of
a process share a project's history, so that two commands at once are noticed and each file is known
once.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import anyio
import msgspec

from weft.workspace.base import ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import ChangeSet, FileHistory, HistoryLimits, WatchedRun
from weft.workspace.history.pack import mark_for_removal, remove_unused
from weft.workspace.history.watchers import WATCHED

_SHARING = threading.Lock()
PATIENCE_SECONDS = 2.0
"""How long a cancelled command is still asked what it changed."""


def histories_of(
    root: str,
    added: Iterable[str] = (),
    *,
    folder: str | None,
    limits: HistoryLimits,
    skip: Iterable[str] = (),
) -> list[FileHistory]:
    """The histories of a project and of the folders added to it, shared by all who hold them.

    `folder`: where what they know may outlive the process.
    """
    project, *others = (os.path.realpath(each) for each in (root, *added))
    roots = [project]
    for other in sorted(set(others)):
        if not any(_is_within(other, each) for each in roots):
            roots.append(other)
    return [
        _shared(
            each,
            folder,
            limits,
            # A folder that holds the project leaves it to the project's own.
            (*skip, *(other for other in roots if other != each and _is_within(other, each))),
            shown="" if each == project else f"{each}/",
        )
        for each in roots
    ]


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _shared(
    root: str, folder: str | None, limits: HistoryLimits, skip: Iterable[str], *, shown: str
) -> FileHistory:
    # Sessions begin to look in threads of their own; two histories of one project would each take
    # what the other's commands do for the user's.
    with _SHARING:
        found = WATCHED.get(root)
        if not isinstance(found, FileHistory):
            pack = None if folder is None else _pack_path(folder, root)
            found = FileHistory(root, pack=pack, limits=limits, skip=skip, shown=shown)
            WATCHED[root] = found
        return found


def _pack_path(folder: str, root: str) -> str:
    """Where the pre-images of a project lie: a file that only its owner can read, in a folder that
    only the owner can enter.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, hashlib.sha256(os.fsencode(root)).hexdigest()[:32])


def forget_preimages(root: str, folder: str, *, is_needed: bool) -> None:
    """Remove what is kept of a project's files below `folder`; blocks for a moment.

    While it is in use, here or by another process, or still needed, it is only marked: the last
    process to let go of it in good order removes it.
    """
    if not os.path.isdir(folder):
        return
    root = os.path.realpath(root)
    path = _pack_path(folder, root)
    mark_for_removal(path)
    if is_needed:
        return
    watching = WATCHED.get(root)
    if isinstance(watching, FileHistory):
        watching.close_if_idle()
    remove_unused(path)


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

    @property
    def project(self) -> FileHistory:
        """The history of the project itself, without the folders added to it."""
        return self._histories[0]

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
