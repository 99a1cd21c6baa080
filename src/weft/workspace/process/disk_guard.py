"""Disk limit for commands: one that fills the disk is stopped while there is still room.

What is protected is the room that all other programs need, our own log above all; so free space is
watched, not what a command writes: a build may write as much as it likes where there is space.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

FLOOR_BYTES: Final = 256 * 1024 * 1024
"""A command is stopped when less than this is free."""
TAKEN_BYTES: Final = 64 * 1024 * 1024
"""And only if free space has shrunk by this much since it began: on a disk that was full before,
commands go on, for they may be what makes room.
"""
EVERY_SECONDS: Final = 1.0
FULL: Final = (
    "it was stopped: the disk has less than {} MiB left, and the command was filling it; make room "
    "before you run it again"
)


def free_bytes(folder: str) -> int:
    """What is free where a folder is; a great deal where that cannot be found out."""
    try:
        about = os.statvfs(folder)
    except OSError:
        return 1 << 62
    return about.f_bavail * about.f_frsize


class DiskGuard:
    """Calls `on_full` once when the disk that holds one of these folders is nearly full."""

    def __init__(
        self,
        folders: Sequence[str],
        on_full: Callable[[], None],
        *,
        free: Callable[[str], int] = free_bytes,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self.is_full = False
        self._folders = tuple(folders)
        self._on_full = on_full
        self._free = free
        self._every = every_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._before: tuple[int, ...] = ()
        self._is_over = False

    def __enter__(self) -> Self:
        # One system call a folder: most commands end before the first look, and cost no more.
        self._before = self._look()
        self._timer = self._loop.call_later(self._every, self._look_soon)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> tuple[int, ...]:
        return tuple(self._free(folder) for folder in self._folders)

    def _look_soon(self) -> None:
        # In a thread from now on: a full or distant disk answers when it likes.
        self._loop.run_in_executor(None, self._look).add_done_callback(self._judge)

    def _judge(self, looked: asyncio.Future[tuple[int, ...]]) -> None:
        if self._is_over or looked.cancelled():
            return
        pairs = zip(self._before, looked.result(), strict=True)
        self.is_full = any(
            now < FLOOR_BYTES and before - now > TAKEN_BYTES for before, now in pairs
        )
        if self.is_full:
            self._on_full()
        else:
            self._timer = self._loop.call_later(self._every, self._look_soon)


def full_sentence() -> str:
    """What the model reads of a command that was stopped for it."""
    return FULL.format(FLOOR_BYTES >> 20)
