"""Orphans: the processes that a command left behind, found by their marks and killed.

Commands run below a keeper (`keeper_program`), which loses none of their processes.  This is for
commands that have none: those that only read, those of a machine without process handles, and those
whose keeper was killed.

Killing a process group misses a child that made a session of its own (`setsid`, daemons).  Every
command therefore carries a mark in its environment, which its descendants inherit, and after a
command the processes that bear its mark are killed, together with their children.  Only the
processes younger than the command are looked at, so that it costs microseconds when there are none.

What is promised: everything in the command's group dies, and everything that left the group dies
unless it *also* threw its environment away and lost its parent, or runs as another user.

The mark is `namespace.pid.start-of-owner.number`, one after the other where one Weft runs inside
another, so that after a crash of the owner its orphans can be distinguished from the commands of
living ones.
"""

from __future__ import annotations

import itertools
import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache

MARK = "WEFT_RUN"
"""Name of the environment variable that holds the mark."""
KEEPER = "WEFT_KEEPER"
"""Name of the variable by which the keeper of an owner is known; commands do not have it."""
_KEEPER_SECONDS = 5.0
"""How long the keeper of a dead owner is given to kill what is below it."""
_PASSES = 10
_WAIT_MS = 500
_EXEC_SECONDS = 0.1
"""How long a process may be in the middle of an exec before we stop waiting for its environment."""
_EXEC_PAUSE_SECONDS = 0.0005
_MOST_DIGITS = 20
"""Of a number in a mark."""
_PARENT, _GROUP, _FLAGS, _STARTED, _START_CODE, _ENV_START, _ENV_END = 1, 2, 6, 19, 23, 47, 48
"""Places in what `_stat` returns."""
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of `stat`: such a thread never has an environment."""
_numbers = itertools.count(1)
_LONG_SECONDS = 1.0
"""A command that ran longer may have used up every process number once.

Then all processes are looked at.
"""


@cache
def owner() -> str:
    """What our own marks begin with."""
    pid = os.getpid()
    return f"{_namespace('self')}.{pid}.{_started(pid)}"


def new_mark() -> str:
    """A mark for one more program of ours."""
    return f"{owner()}.{next(_numbers)}"


def is_owner_alive(mark: str) -> bool:
    """True when the process whose marks begin like this still runs, in our own pid namespace."""
    space, _, rest = mark.partition(".")
    pid, _, started = rest.partition(".")
    return space == _namespace("self") and pid.isdigit() and _started(int(pid)) == started


def forget_owner() -> None:
    """After a fork the child is another owner."""
    owner.cache_clear()


os.register_at_fork(after_in_child=forget_owner)


def may_have_left(leader: int, ran_seconds: float) -> bool:
    """False when the command whose first process is `leader` started no other; takes microseconds,
    and reads no disk.
    """
    # The kernel hands numbers out in order: if the last one given is still the leader's, no process
    # was started since.
    return ran_seconds >= _LONG_SECONDS or _last_pid() != leader


def left_any(leader: int, ran_seconds: float) -> list[int]:
    """Processes that may have been started by the command whose first process is `leader`.

    It lists all processes of the machine, and blocks as long as that takes.
    """
    last = _last_pid()
    mine = os.getpid()
    pids = [pid for pid in _pids() if pid not in (leader, mine)]
    if last is None or ran_seconds >= _LONG_SECONDS:
        return pids
    if last > leader:
        return [pid for pid in pids if leader < pid <= last]
    return [pid for pid in pids if pid > leader or pid <= last]  # the numbers started anew


def kill_left(mark: str, leader: int, ran_seconds: float, *, group: int = 0) -> int:
    """Kill what the command left behind whose mark and first process these are; blocks."""
    suspects = left_any(leader, ran_seconds)
    return kill_marked(mark, suspects, group=group) if suspects else 0


def kill_marked(mark: str, suspects: Iterable[int] | None = None, *, group: int = 0) -> int:
    """Kill every process that bears `mark`, and their children, until none is found; returns how
    many.

    `group` is the command's own process group, as long as its first process is not reaped.  It was
    killed already; its members are waited for here, since a dying process has no environment.
    """
    killed = 0
    # Repeated, since a process can fork between the search and the kill; bounded, since one that
    # forks faster than we search would never end.
    for _ in range(_PASSES):
        found = _family(mark, _pids() if suspects is None else suspects, group)
        if not found:
            break
        _kill_all(found)
        killed += len(found)
        suspects = None  # what they started meanwhile may be anywhere
    return killed


def kill_orphans() -> int:
    """Kill what commands of crashed Weft processes left running; returns how many died.

    For the start of a process that goes on with interrupted work: a command that is still running
    must not finish unseen.  It reads all of `/proc` and blocks; call it in a thread.  The keepers
    of those processes are waited for: what threw its mark away is theirs to kill.
    """
    keepers = list(_handles(_keepers_of_the_dead()))
    try:
        for handle in keepers:
            # One that stands still would be waited for in vain.
            with suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGCONT)
        _wait_gone(keepers, _KEEPER_SECONDS)
    finally:
        for handle in keepers:
            os.close(handle)
    dead = set()
    for marks in _marks_of(_pids()).values():
        for mark in marks:
            space, owner_pid, started, _ = mark.split(".")
            # Only owners of our own pid namespace can be judged: in another one the number means
            # another process.  The start time tells a number that was given out again.
            if space == _namespace("self") and _started(int(owner_pid)) != started:
                dead.add(mark)
    return sum(kill_marked(mark) for mark in dead)


# --- looking -----------------------------------------------------------------------------------


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _last_pid() -> int | None:
    try:
        with open("/proc/sys/kernel/ns_last_pid", "rb", buffering=0) as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _marks_of(pids: Iterable[int]) -> dict[int, list[str]]:
    """The marks of each process, outermost first.

    While the kernel puts a new program in the place of the old one, the environment reads empty.
    To believe that at once would spare a process that does nothing but execute itself, so one that
    is in the middle of an exec is read again, for a bounded time.  Otherwise nothing is waited for.
    """
    found = {pid: _marks(pid) for pid in pids}
    deadline = time.monotonic() + _EXEC_SECONDS
    while unclear := [pid for pid in found if found[pid] is None and _may_be_in_exec(pid)]:
        if time.monotonic() > deadline:
            break
        time.sleep(_EXEC_PAUSE_SECONDS)
        found |= {pid: _marks(pid) for pid in unclear}
    return {pid: marks or [] for pid, marks in found.items()}


def _marks(pid: int) -> list[str] | None:
    """The marks in a process's environment; None when that reads empty."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            environ = file.read(2 * 1024 * 1024)
    except OSError:
        return []  # gone, or of another user
    if not environ:
        return None
    for entry in environ.split(b"\0"):
        if entry.startswith(MARK.encode() + b"="):
            marks = entry.partition(b"=")[2].decode("ascii", "replace").split("/")
            return [mark for mark in marks if _is_mark(mark)]
    return []


def _may_be_in_exec(pid: int) -> bool:
    """False for a process whose environment is empty for good: it was started with none."""
    fields = _stat(pid)
    if not _is_alive(fields):
        return False
    # The kernel sets the bounds of the environment before the address of the code, so an empty
    # range is final only once that address is there.  A range that is not empty means that the exec
    # ended between the two reads: the environment can be read now.
    is_loaded = fields[_START_CODE] != "0"
    return not is_loaded or fields[_ENV_START] != fields[_ENV_END]


def _keepers_of_the_dead() -> dict[int, str]:
    """Keepers whose process has died, each with its start."""
    found: dict[int, str] = {}
    for pid in _pids():
        owner_of = _variable(pid, KEEPER)
        # Those of another pid namespace cannot be judged.
        is_ours = _is_mark(f"{owner_of}.0") and owner_of.partition(".")[0] == _namespace("self")
        if is_ours and not is_owner_alive(owner_of):
            found[pid] = _started(pid)
    return found


def _variable(pid: int, name: str) -> str:
    """A variable of a process's environment; empty where it is not set, or cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            entries = file.read(2 * 1024 * 1024).split(b"\0")
    except OSError:
        return ""
    start = name.encode() + b"="
    found = next((each[len(start) :] for each in entries if each.startswith(start)), b"")
    # Any process may say anything in its environment.
    return found.decode("ascii", "replace")


def _is_mark(text: str) -> bool:
    parts = text.split(".")
    # Bounded, as `int` refuses thousands of digits: any process may say anything.
    return len(parts) == 4 and all(part.isdigit() and len(part) <= _MOST_DIGITS for part in parts)


def _stat(pid: int) -> list[str]:
    """Fields of a process's `stat`, from its state on; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            # The second field is the program's name in brackets, which may hold blanks and brackets
            # itself: only the last bracket is a safe place to split.
            return file.read().rpartition(b")")[2].decode().split()
    except OSError:
        return []


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot.

    Empty when it is gone or only waits to be reaped.
    """
    fields = _stat(pid)
    return fields[_STARTED] if _is_alive(fields) else ""


def _is_alive(fields: list[str]) -> bool:
    """True for a program that runs: not gone, not waiting to be reaped, and no thread of the
    kernel's.
    """
    if not fields or fields[0] in "ZX":
        return False
    return not int(fields[_FLAGS]) & _KERNEL_THREAD


def _namespace(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid").strip("pid:[]")
    except OSError:
        return "0"


def _family(mark: str, suspects: Iterable[int], group: int) -> dict[int, str]:
    """The living suspects that bear the mark or are in the group, and their descendants.

    Each with its start.
    """
    alive = {pid: fields for pid in suspects if _is_alive(fields := _stat(pid))}
    family = {pid for pid, fields in alive.items() if group and int(fields[_GROUP]) == group}
    family |= {pid for pid, marks in _marks_of(alive.keys() - family).items() if mark in marks}
    # Children too: one that threw its environment away still has its parent while that one lives.
    while more := {pid for pid, fields in alive.items() if int(fields[_PARENT]) in family} - family:
        family |= more
    return {pid: alive[pid][_STARTED] for pid in family - {os.getpid()}}


# --- killing -----------------------------------------------------------------------------------


def _kill_all(family: Mapping[int, str]) -> None:
    """Kill, and wait a moment until they are gone."""
    handles = list(_handles(family))
    try:
        for handle in handles:
            with suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        _wait_gone(handles, _WAIT_MS / 1000)
    finally:
        for handle in handles:
            os.close(handle)


def _handles(family: Mapping[int, str]) -> Iterator[int]:
    """Process handles: a number can come to mean another process, a handle cannot."""
    for pid, started in family.items():
        try:
            # Opened before the start time is compared: after that the handle is known to mean this
            # process.
            handle = os.pidfd_open(pid)
        except (OSError, AttributeError):
            if _started(pid) == started:  # an old kernel: the number has to do
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            continue
        if _started(pid) == started:
            yield handle
        else:
            os.close(handle)


def _wait_gone(handles: Iterable[int], seconds: float) -> None:
    poll = select.poll()
    waiting = set(handles)
    for handle in waiting:
        poll.register(handle, select.POLLIN)
    deadline = time.monotonic() + seconds
    while waiting and (left := deadline - time.monotonic()) > 0:
        for handle, _ in poll.poll(left * 1000):
            poll.unregister(handle)
            waiting.discard(handle)
