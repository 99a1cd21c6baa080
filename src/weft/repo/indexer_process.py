"""The indexer's process, from the side of the session: started, waited for, let go."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from weft.repo.indexer_order import FINISH, LOCK, LOCK_FD, IndexOrder

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


def reference_argv() -> tuple[str, ...]:
    """The command that finds references; it reads its order from standard input."""
    return (sys.executable, "-I", "-c", _FINDER, _ROOT)


class IndexerProcess:
    """An indexer that runs."""

    def __init__(self, order: IndexOrder, lock: int | None = None) -> None:
        """`lock` is the index's lock where the caller has it: it goes over to the indexer."""
        _reap_released()
        reader, self._pipe = os.pipe()
        self.output: int | None = None
        """Where one that watches says what changes: lines of JSON, not blocking."""
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        said = null
        if order.watch:
            self.output, said = os.pipe()
            os.set_blocking(self.output, False)
        try:
            order = msgspec.structs.replace(order, has_lock=lock is not None)
            ends = _ProcessEnds(reader, said, null, null if lock is None else lock)
            self._pid: int | None = _spawn(order, ends)
        finally:
            for each in {reader, said, null}:
                os.close(each)
            if lock is not None:
                os.close(lock)

    def is_running(self) -> bool:
        """False once it has ended."""
        if self._pid is None:
            return False
        pid, _ = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._ended()
        return not pid

    def wait(self) -> bool:
        """Wait until it has ended; False when it could not do its work.  Blocks."""
        status = 0
        if self._pid is not None:
            with suppress(ChildProcessError):
                _, status = os.waitpid(self._pid, 0)
            self._ended()
        return status == 0

    def release(self) -> None:
        """Let it finish what it has begun, without us."""
        if self._pid is not None and self.is_running():
            with suppress(OSError):
                os.write(self._pipe, FINISH)
            _released.append(self._pid)
            self._ended()

    def stop(self) -> None:
        """Have it end before its next batch, and wait for that.  Blocks."""
        if self._pid is not None:
            os.close(self._pipe)
            self._pipe = -1
            self.wait()

    def _ended(self) -> None:
        self._pid = None
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self.output is not None:
            os.close(self.output)
            self.output = None


_released: Final[list[int]] = []
"""Indexers that finish without their owner; a program that lives on has to reap them."""


def _reap_released() -> None:
    for pid in _released.copy():
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                continue
        _released.remove(pid)


def take_lock(folder: Path) -> int | None:
    """The lock of an index; None while an indexer has it.

    Raises:
        OSError: it cannot be locked at all, as on some network disks.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        raise
    return lock


class _ProcessEnds(NamedTuple):
    stdin: int
    stdout: int
    stderr: int
    lock: int


def _spawn(order: IndexOrder, ends: _ProcessEnds) -> int:
    argv = [sys.executable, "-I", "-c", _PROGRAM, _ROOT, msgspec.json.encode(order).decode()]
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
        # A Ctrl-C in the terminal is for the session: it decides when the indexer ends.
        setsid=True,
    )
