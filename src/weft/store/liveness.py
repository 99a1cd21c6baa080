"""Whether the process that holds a lease still lives, by a lock that the kernel keeps.

Every opened store that takes leases holds a POSIX record lock on `run/<process_id>.lock` beside the
data.  The kernel drops it the moment the process ends, however it ends; a stopped process keeps it;
a process number that is used again does not have it; a forked child does not inherit it.
(`docs/decisions/002-liveness-by-lock.md`.)

Two traps of POSIX locks shape this module.  They do not conflict inside one process, so stores of
this process are known by a registry.  And closing *any* descriptor of a file drops the process's
locks on it, so a lock file of our own is never opened again.  The registry is keyed by the process
number, because a fork copies it and the copy means nothing in the child.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from weft.store.base import Owner

_HERE: set[tuple[int, str]] = set()
"""(process number, process id) of the stores that are open in this process."""
_ON_DEATH: list[Callable[[], None]] = []


def on_death(listener: Callable[[], None]) -> None:
    """Have something called when a store finds that a process is dead which had it open.

    From any thread, and it must not block.
    """
    if listener not in _ON_DEATH:
        _ON_DEATH.append(listener)


def tell_death() -> None:
    """A process is dead that had a store open."""
    for listener in _ON_DEATH:
        listener()


class ProcessLiveness:
    """The sign that one opened store is alive; `show` raises it, `end` takes it down."""

    def __init__(self, directory: Path, process_id: str) -> None:
        self.directory = directory
        self._process_id = process_id
        self._fd: int | None = None

    def show(self) -> bool:
        """Take the lock; False when it was taken before.

        The file gets its name only when it is locked: a named, unlocked one means death.
        """
        if self._fd is not None:
            return False
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        named = lock_path(self.directory, self._process_id)
        unnamed = named.with_suffix(".new")
        fd = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unnamed, named)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        _HERE.add((os.getpid(), self._process_id))
        return True

    def abandon(self) -> None:
        """Leave what a process leaves that was killed: the file, without its lock.  For tests."""
        if self._fd is not None:
            _HERE.discard((os.getpid(), self._process_id))
            os.close(self._fd)
            self._fd = None

    def end(self) -> None:
        """Give the lock back and remove its file."""
        if self._fd is None:
            return
        _HERE.discard((os.getpid(), self._process_id))
        with contextlib.suppress(OSError):
            # Removed before it is unlocked: another process must never find the name without the
            # lock of a living one.
            lock_path(self.directory, self._process_id).unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = None


def lock_path(directory: Path, process_id: str) -> Path:
    """Where a store's lock file lies."""
    return directory / f"{process_id}.lock"


def is_alive(directory: Path, process_id: str) -> bool:
    """True while the process that opened the store as `process_id` exists.

    Asks for a *shared* lock: two processes that ask about the same dead one do not see each other.
    """
    if (os.getpid(), process_id) in _HERE:
        return True
    try:
        fd = os.open(lock_path(directory, process_id), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # `lockf` is a POSIX record lock, `flock` is not: a child made by fork would share a
        # `flock`, and the owner would seem alive for as long as any of its children.
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    finally:
        os.close(fd)
    return False


def is_suspended(pid: int) -> bool:
    """True for a process that was stopped by a signal (Ctrl-Z) or by a debugger."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The name in parentheses may itself hold spaces and parentheses.
    return stat.rpartition(")")[2].split()[0] in ("T", "t")


def tidy(directory: Path) -> None:
    """Remove the files of the dead."""
    with contextlib.suppress(OSError):
        for file in directory.glob("*.lock"):
            if not is_alive(directory, file.stem):
                forget(directory, file.stem)


def forget(directory: Path, process_id: str) -> None:
    """Remove what a dead process left: the lock, and the socket it may have had beside it."""
    tell_death()
    for suffix in (".lock", ".sock"):
        lock_path(directory, process_id).with_suffix(suffix).unlink(missing_ok=True)


def this_process(process_id: str, *, started: float) -> Owner:
    """What other processes may know of this one."""
    return Owner(
        process_id=process_id,
        pid=os.getpid(),
        started=started,
        host=os.uname().nodename,
        boot_id=_boot_id(),
    )


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
