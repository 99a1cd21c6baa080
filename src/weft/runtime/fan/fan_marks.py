"""Marks of fan-outs: one for each that has something under way in a process.

It is set before anything is changed that a crash could leave half done, and locked as long as the
process lives.  A mark that nobody holds is what the next start looks at (`stored_fans`); where
there is none, a start costs one look at a folder.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
import anyio.to_thread

from weft.errors import UsageError

_TRIES: Final = 20
_WAITS: Final = 100
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class FanMark:
    """The mark of one fan-out in this process; several parts of it may be under way."""

    def __init__(self, folder: str, fan_id: str) -> None:
        self.fan_id = fan_id
        self._path = f"{folder}/{fan_id}"
        self._lock = -1
        self._count = 0
        self._is_broken = False
        """Something was left half done here; the next start looks at it."""
        self._changing = anyio.Lock()

    @asynccontextmanager
    async def held(self, *, stays: bool = False) -> AsyncIterator[None]:
        """Set while the body runs; with `stays` it stays where that fails, for the next start.

        Raises:
            UsageError: another process holds it, and does not let go.
        """
        async with self._changing:
            if not self._count:
                await anyio.to_thread.run_sync(self.set)
            self._count += 1
        try:
            yield
        except BaseException:
            self._is_broken |= stays
            raise
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changing:
                    self._count -= 1
                    if not self._count:
                        end = self.leave if self._is_broken else self.clear
                        await anyio.to_thread.run_sync(end)

    def set(self) -> None:
        """Write it, and hold it; a start that is settling what was left here is waited for.

        Blocks.

        Raises:
            UsageError: another process holds it, and does not let go.
        """
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        for pause in (0.0, *(0.1,) * _WAITS):
            time.sleep(pause)
            if self._is_held_now():
                os.pwrite(self._lock, b"%-10d" % os.getpid(), 0)
                return
        raise UsageError(f"another process is at work on {self.fan_id}; try again when it is done")

    def _is_held_now(self) -> bool:
        """Make it where it is not, and hold it; False where another process does."""
        while True:
            self._lock = os.open(self._path, _FLAGS, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.leave()
                return False
            except OSError:
                return True  # a disk without locks
            if self._is_there():
                return True
            self.leave()

    def _is_there(self) -> bool:
        """Whether what is held is still there: a start may have been done with it before."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._lock), os.stat(self._path))
        return False

    def take_from_dead(self) -> bool:
        """As `take`, and wait a moment where the process that set it is gone and the lock is still
        held: a child that it was just starting has it until that runs its program.  Blocks.
        """
        for pause in (0.0, *(0.1,) * _TRIES):
            time.sleep(pause)
            if self.take():
                return True
            if not self._is_orphaned():
                return False
        return False

    def _is_orphaned(self) -> bool:
        try:
            with open(self._path, "rb") as file:
                os.kill(int(file.read(32) or b"0") or os.getpid(), 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        except (OSError, ValueError):
            pass
        return False

    def take(self) -> bool:
        """Hold one that is there and that nobody holds; says whether it was so.  Blocks."""
        try:
            self._lock = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._is_there():
                return True
        except OSError:
            pass
        self.leave()
        return False

    def clear(self) -> None:
        """Remove it: nothing is half done.  Blocks."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self.leave()

    def leave(self) -> None:
        """Let go of it; the next start looks at it."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def marked(folder: str) -> list[FanMark]:
    """The marks that are there.  Blocks."""
    try:
        return [FanMark(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []
