"""Places of fan-outs on disk: a folder for each, with the base and what each candidate wrote.

They outlive the process.  Which of them a session still knows is in its log; what no log knows is
swept (`sweep`).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from weft.runtime.fan.base_files import BaseFile, put_file, replaced
from weft.runtime.workspaces.sandbox import SandboxFactory
from weft.workspace.sandbox.overlay_changes import mark_gone
from weft.workspace.sandbox.scratch import remove
from weft.workspace.views.held_view import MOST_BYTES, HeldView, ViewPlace

_FANS: Final = "fans"
_PASSING: Final = ("verify-", "tests-", "blobs-", "compared-", ".git-")
"""How what is only needed for a moment is called."""


class FanPlaces:
    """The places of all fan-outs of an application."""

    def __init__(
        self,
        sandbox: Callable[[], SandboxFactory | None],
        folder: str,
        *,
        most_bytes: int = MOST_BYTES,
        kind: str = _FANS,
    ) -> None:
        """`folder` is the sandbox's own; `kind` is the folder in it that the places lie in."""
        self._sandbox = sandbox
        self._base = f"{os.path.realpath(folder)}/{kind}"
        self._most_bytes = most_bytes

    async def why_not(self, root: str) -> str:
        """Why there is no overlay here; empty when there is one."""
        sandbox = self._sandbox()
        if sandbox is None:
            return "the sandbox is switched off"
        return await sandbox.machine.why_not((root,))

    @property
    def has_own_network(self) -> bool:
        """False where the user lets commands use the machine's network."""
        sandbox = self._sandbox()
        return sandbox is not None and not sandbox.machine.options.network

    def folder(self, fan_id: str, name: str = "") -> str:
        """Where a fan-out lies, or one thing of it."""
        return f"{self._base}/{fan_id}/{name}".rstrip("/")

    def claim(self, fan_id: str) -> int:
        """Make the folder of a fan-out, and hold it: while the descriptor is open, in whatever
        process, it is no leftover.  Blocks.

        Raises:
            OSError: it cannot be made.
        """
        os.makedirs(self.folder(fan_id), 0o700, exist_ok=True)
        path = self.folder(fan_id, "lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a disk without locks
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return lock

    def upper(self, fan_id: str, name: str) -> str:
        """What a candidate wrote."""
        return ViewPlace(folder=self.folder(fan_id, name)).upper

    def has(self, fan_id: str, name: str = "") -> bool:
        """Whether it is there.  One `stat`."""
        return os.path.isdir(self.folder(fan_id, name))

    def view(
        self, fan_id: str, name: str, *, root: str, pins: Sequence[str], objects: str
    ) -> HeldView:
        """A view that writes in one of its places."""
        sandbox = self._sandbox()
        assert sandbox is not None
        return HeldView(
            sandbox.machine,
            root=root,
            place=ViewPlace(folder=self.folder(fan_id, name)),
            pins=pins,
            objects=objects,
            most_bytes=self._most_bytes,
        )

    def fresh(self, fan_id: str, name: str) -> str:
        """An empty folder; what was there is removed.  Blocks."""
        folder = self.folder(fan_id, name)
        remove(folder)
        os.makedirs(folder, 0o700)
        return folder

    def put_layer(self, folder: str, paths: Sequence[str], files: Mapping[str, BaseFile]) -> None:
        """Let a layer show these files, and nothing at the other paths.  Blocks."""
        skipped = replaced(paths, files.keys()) - files.keys()
        for path in paths:
            if path in skipped:
                continue
            target = f"{folder}/{path}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if path in files:
                put_file(target, files[path])
            else:
                mark_gone(target)

    def remove(self, fan_id: str, name: str = "") -> bool:
        """Remove a fan-out, or one thing of it; False where something goes on writing there.

        Blocks.
        """
        return _removed(self.folder(fan_id, name))

    def clear_checks(self, fan_id: str) -> bool:
        """Remove what checks and comparisons left behind when their process died; False where
        something goes on writing there.  Blocks.
        """
        try:
            names = os.listdir(self.folder(fan_id))
        except OSError:
            return True
        passing = [name for name in names if name.startswith(_PASSING)]
        cleared = [_removed(self.folder(fan_id, name)) for name in passing]
        return all(cleared)

    def present(self) -> list[str]:
        """The fan-outs that have something on disk.  Blocks."""
        with suppress(OSError):
            return sorted(os.listdir(self._base))
        return []

    def sweep(self, is_known: Callable[[str], bool]) -> list[str]:
        """Remove the fan-outs that no log knows and no process works in; returns their ids.

        Blocks.
        """
        swept: list[str] = []
        for fan_id in self.present():
            if not is_known(fan_id) and not self._is_in_use(fan_id):
                self.remove(fan_id)
                swept.append(fan_id)
        return swept

    def _is_in_use(self, fan_id: str) -> bool:
        folder = self.folder(fan_id)
        for name in ("", *os.listdir(folder)):
            try:
                lock = os.open(f"{folder}/{name}/lock", os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            finally:
                os.close(lock)
        return False


def _removed(path: str) -> bool:
    """Remove a file or a folder.  A program that a dead process had started may live a moment
    longer, and write there.
    """
    for pause in (*(0.02, 0.05, 0.1), *(0.2,) * 10, 0.0):
        with suppress(OSError):
            os.unlink(path)
        remove(path)
        if not os.path.lexists(path):
            return True
        time.sleep(pause)
    return False


def move_into(layer: str, upper: str) -> None:
    """Move what a layer shows into an upper layer in which nothing is.  Blocks."""
    for name in os.listdir(layer):
        os.rename(f"{layer}/{name}", f"{upper}/{name}")
