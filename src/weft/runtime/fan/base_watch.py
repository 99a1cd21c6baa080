"""Keeps the base of a fan-out still: what the user changes in the project meanwhile reaches no
candidate.

The kernel names the files that change.  Each candidate that has not touched such a file gets the
old content written into its overlay, through the descriptor of its root; a file that the base does
not have is removed there.  What happened while no process watched is found by comparing the project
with the base.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import shutil
import stat
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread

from weft.errors import ToolError
from weft.file_io import write_all
from weft.repo.file_paths import IgnoredPaths
from weft.repo.project_watch import ProjectWatch
from weft.runtime.fan.base_files import BaseFile, BaseFiles
from weft.workspace.safe_open import make_folders, open_beneath
from weft.workspace.views.held_view import HeldView
from weft.workspace.writes.atomic_write import TEMPORARY

LOOK_SECONDS: Final = 2.0
"""How often the project is compared with the base where the kernel tells of nothing."""

logger = logging.getLogger(__name__)


class BaseWatch:
    """Watches a project while candidates work."""

    def __init__(self, base: BaseFiles) -> None:
        self._base = base
        self._views: list[HeldView] = []
        self._known: set[str] = set()
        self._folders: set[str] = set()
        self._changed: set[str] = set()
        """What is other than the base by now, for candidates that come later."""
        self._watch: ProjectWatch | None = None
        self._pinning = anyio.Lock()
        self._reading = anyio.Lock()

    @property
    def changed(self) -> Set[str]:
        """The paths that are other than the base by now."""
        return self._changed

    async def start(self) -> None:
        """Begin to watch.  Call it before the first candidate is opened."""
        self._known = await self._base.paths()
        folders = {os.path.dirname(path) for path in self._known}
        self._folders = folders | {each for folder in folders for each in _above(folder)} | {""}
        self._watch = ProjectWatch(self._base.root)
        await anyio.to_thread.run_sync(self._watch.follow, self._folders)
        # What changed between the making of the base and the first watch.
        self._changed |= await self._compared()

    async def add(self, view: HeldView) -> None:
        """A candidate's view is open: what has changed so far is pinned in it."""
        if self._watch is not None and self._watch.is_whole:
            # The kernel has told of it already, and the one who waits may not have had its turn.
            await self._read(self._watch)
        async with self._pinning:
            self._views.append(view)
            await self._pin([view], self._changed)

    def remove(self, view: HeldView) -> None:
        """It is about to be closed."""
        with suppress(ValueError):
            self._views.remove(view)

    async def run(self) -> None:
        """Go on until cancelled."""
        watch = self._watch
        assert watch is not None
        while watch.is_whole:
            fd = watch.fd
            assert fd is not None
            await anyio.wait_readable(fd)
            await self._read(watch)
        logger.warning("the project is not watched; it is looked at instead")
        while True:
            await self.look()
            await anyio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Compare the project with the base, and pin what differs."""
        async with self._pinning:
            found = await self._compared()
            self._changed |= found
            await self._pin(self._views, found)

    async def _read(self, watch: ProjectWatch) -> None:
        """Take in what the kernel has told so far."""
        async with self._reading:
            if watch.fd is not None and _is_readable(0, watch.fd):
                await anyio.to_thread.run_sync(watch.collect, self._known, _is_readable)
                await self._take(watch)

    async def _take(self, watch: ProjectWatch) -> None:
        is_unsure = watch.is_unsure
        changed = watch.take()
        if is_unsure:
            await self.look()
        async with self._pinning:
            self._changed |= changed
            await self._pin(self._views, changed)

    async def _pin(self, views: Iterable[HeldView], paths: Iterable[str]) -> None:
        base = self._base
        # The pin layer lies above the project: what it has cannot change.
        wanted = list(paths)
        open_paths = await anyio.to_thread.run_sync(
            lambda: [path for path in wanted if not base.is_pinned(path)]
        )
        if not open_paths:
            return
        try:
            old = await base.read(open_paths)
        except ToolError:
            logger.exception("the base of a fan-out cannot be read")
            return
        for view in list(views):
            await anyio.to_thread.run_sync(pin_old, view, open_paths, old)

    async def _compared(self) -> set[str]:
        """The paths at which the project differs from the base."""
        base = self._base
        ignored = IgnoredPaths(base.root)
        there = await anyio.to_thread.run_sync(_present, base.root, ignored, self._folders)
        found = {path for path in there if path not in self._known}
        if base.record.commit:
            found |= await self._changed_since_commit()
        return found

    async def _changed_since_commit(self) -> set[str]:
        try:
            return await self._base.changed_since_commit()
        except ToolError:
            return set(self._known)  # the repository is gone: all of it may be

    def close(self) -> None:
        """Watch nothing any more."""
        if self._watch is not None:
            self._watch.close()


def _is_readable(seconds: float, fd: int) -> bool:
    return bool(select.select([fd], [], [], seconds)[0])


def _above(folder: str) -> list[str]:
    parts = folder.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _present(root: str, ignored: IgnoredPaths, known: Set[str]) -> set[str]:
    """The files of the project that are not ignored; a folder that is not known stands for all in
    it.
    """
    found: set[str] = set()
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with suppress(OSError), os.scandir(f"{root}/{below}") as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name == ".git" or ignored.holds(path, is_folder=is_folder):
                    continue
                if is_folder and path in known:
                    waiting.append(path)
                else:
                    found.add(path)
    return found


def pin_old(view: HeldView, paths: Iterable[str], old: dict[str, BaseFile]) -> None:
    """Let a view show these paths as the base has them, where its candidate left them alone.

    Blocks.
    """
    for path in paths:
        if view.has_own(path):
            continue
        try:
            _put(view, path, old.get(path))
        except (OSError, ToolError):
            logger.exception("an old content could not be pinned", extra={"path": path})


def _put(view: HeldView, path: str, file: BaseFile | None) -> None:
    root, (folder, _, name) = view.root_fd, path.rpartition("/")
    if file is None:
        try:
            parent = open_beneath(root, folder or ".", os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return
    else:
        parent = (
            make_folders(root, folder)
            if folder
            else open_beneath(root, ".", os.O_RDONLY | os.O_DIRECTORY)
        )
    try:
        _replace(parent, name, file, lambda: view.has_own(path))
    finally:
        os.close(parent)


def _replace(parent: int, name: str, file: BaseFile | None, is_own: Callable[[], bool]) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=parent)
            if file is None:
                return
    if file is None:
        _hide(parent, name)
        return
    # Beside it and renamed, so that a command never reads half of it, and the new content is not
    # copied up first.
    beside = f"{TEMPORARY}{secrets.token_hex(8)}"
    if stat.S_ISLNK(file.mode):
        os.symlink(os.fsdecode(file.data), beside, dir_fd=parent)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(beside, flags, 0o600, dir_fd=parent)
        try:
            write_all(fd, file.data)
            os.fchmod(fd, stat.S_IMODE(file.mode))
        finally:
            os.close(fd)
    # Looked at once more: what the candidate wrote meanwhile is its own.
    if is_own():
        os.unlink(beside, dir_fd=parent)
    else:
        os.rename(beside, name, src_dir_fd=parent, dst_dir_fd=parent)


def _hide(parent: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        # The overlay remembers that nothing was there, and lists it all the same.  Only to remove a
        # file of its own makes it look below, and leave a mark.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(name, flags, 0o600, dir_fd=parent))
        os.unlink(name, dir_fd=parent)
