"""The indexer's process, from the side of the session: started, waited for, let go."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

import anyio
import msgspec

from weft.repo.indexer_order import FINISH, LOCK, LOCK_FD, IndexOrder
from weft.workspace import BACKGROUND_GROUPS

# Isolated, and with no folder of the user's on the path but that of this package: a project could
# otherwise bring a module by the name of one that the indexer loads.
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from weft.repo.indexer import main;"
    " sys.exit(main(sys.argv[2:]))"
)
_FINDER: Final = (
    "import sys; sys.path.append(sys.argv[1]); from weft.repo.reference_finder import main;"
    " sys.exit(main())"
)
_ROOT: Final = str(Path(__file__).parents[2])
_POLL_SECONDS: Final = 0.05


def reference_argv() -> tuple[str, ...]:
    """The command that finds references; it reads its order from standard input."""
    return (sys.executable, "-I", "-c", _FINDER, _ROOT)


class IndexerProcess:
    """An indexer that runs.  May be used by several threads."""

    def __init__(self, order: IndexOrder, lock: int | None = None) -> None:
        """`lock` is the index's lock where the caller has it: it goes over to the indexer."""
        _reap_released()
        self.output: int | None = None
        """Where one that watches says what changes: lines of JSON, not blocking."""
        self._guard = Lock()
        self._status: int | None = None
        self._pipe = -1
        lent: list[int] = [] if lock is None else [lock]
        try:
            reader, self._pipe = os.pipe()
            lent.append(reader)
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            lent.append(null)
            said = null
            if order.watch:
                self.output, said = os.pipe()
                lent.append(said)
                os.set_blocking(self.output, False)
            order = msgspec.structs.replace(order, has_lock=lock is not None)
            ends = _ProcessEnds(reader, said, null, null if lock is None else lock)
            self.pid = _spawn(order, ends)
            BACKGROUND_GROUPS.add(self.pid)
        except BaseException:
            self._close()
            raise
        finally:
            for each in lent:
                os.close(each)

    def has_caught_up(self) -> None:
        """It has read all that there was: what is left to do no command has to fear."""
        BACKGROUND_GROUPS.remove(self.pid)

    def is_running(self) -> bool:
        """False once it has ended."""
        with self._guard:
            return self._reap(os.WNOHANG) is None

    def wait(self) -> bool:
        """Wait until it has ended; False when it could not do its work.  Blocks."""
        with self._guard:
            return self._reap(0) == 0

    async def ended(self) -> bool:
        """Wait until it has ended; False when it could not do its work.

        No thread waits: a program that is interrupted would wait for that one.
        """
        process = _opened(self.pid)
        try:
            while self.is_running():
                if process is None:
                    await anyio.sleep(_POLL_SECONDS)
                else:
                    await anyio.wait_readable(process)
        finally:
            if process is not None:
                os.close(process)
        return self._status == 0

    def release(self) -> None:
        """Let it finish what it has begun, without us."""
        with self._guard:
            if self._reap(os.WNOHANG) is not None:
                return
            BACKGROUND_GROUPS.remove(self.pid)
            with suppress(OSError):
                os.write(self._pipe, FINISH)
            _released.append(self.pid)
            self._ended(0)

    def stop(self) -> None:
        """Have it end before its next batch, and wait for that.  Blocks."""
        with self._guard:
            BACKGROUND_GROUPS.remove(self.pid)
            if self._pipe >= 0:
                os.close(self._pipe)
                self._pipe = -1
        self.wait()

    def _reap(self, how: int) -> int | None:
        """Its exit status; None while it runs."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:
                pid, status = self.pid, 1  # another part of the program has waited for all children
            if pid:
                self._ended(status)
        return self._status

    def _ended(self, status: int) -> None:
        BACKGROUND_GROUPS.remove(self.pid)
        self._status = status
        self._close()

    def _close(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self.output is not None:
            os.close(self.output)
            self.output = None


def _opened(pid: int) -> int | None:
    """A descriptor that can be read when a process has ended; None where there are none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


_released: Final[list[int]] = []
"""Indexers that finish without their owner; a program that lives on has to reap them."""


def _reap_released() -> None:
    for pid in _released.copy():
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        with suppress(ValueError):
            _released.remove(pid)


def take_lock(folder: Path) -> int | None:
    """The lock of an index; None while an indexer has it.

    Raises:
        OSError: it cannot be locked at all, as on some network disks.
    """
    while True:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # the index was removed between the two calls
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except OSError:
            os.close(lock)
            raise
        # The index may have been removed, with the file that we have locked.
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), os.stat(folder / LOCK)):
                return lock
        os.close(lock)


class _ProcessEnds(msgspec.Struct, frozen=True):
    stdin: int
    stdout: int
    stderr: int
    lock: int


def _spawn(order: IndexOrder, ends: _ProcessEnds) -> int:
    argv = [sys.executable, "-I", "-c", _PROGRAM, _ROOT, _encoded(order)]
    return os.posix_spawn(
        sys.executable,
        argv,
        # Not our environment: it holds the user's API keys.
        order.environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, ends.stdin, 0),
            (os.POSIX_SPAWN_DUP2, ends.stdout, 1),
            (os.POSIX_SPAWN_DUP2, ends.stderr, 2),
            # It stays open in the new process, and the lock is given back with its end.
            (os.POSIX_SPAWN_DUP2, ends.lock, LOCK_FD),
        ],
        # A Ctrl-C in the terminal is for the session: it decides when the indexer ends.  A process
        # group, not a session of the system: between two of those priorities count for nothing.
        setpgroup=0,
    )


def _encoded(order: IndexOrder) -> str:
    try:
        return msgspec.json.encode(order).decode()
    except UnicodeEncodeError:
        import json  # a path that is no UTF-8: only this one takes it

        return json.dumps(msgspec.to_builtins(order))
