"""The keeper: a small program beside ours, below which commands run so that they end with us.

Where there is no process namespace, what a command starts outlives it, and a kill of ours reaches
only the first process of it.  The keeper is started once, with the first such command, in a session
of its own (a Ctrl-C in the terminal must not reach it).  It makes *reapers*: a reaper is a process
that is made the parent of all below it that lose theirs (a child subreaper), and runs one command
after the other.  So whatever a command starts stays below its reaper, with `setsid`, after a double
fork, and without an environment.  When a command is over, the rest of it is killed.

We are dead when the socket ends, or when the handle of our process says so (a copy of the socket
may be left in a child that a program of the user's made by `fork`).  The signal that a process can
have at the death of its parent does not serve: it follows the thread that started it.  Then each
reaper kills all that is below it by process handles, until nothing is left, and the keeper kills
what is below a reaper that was killed itself.

There is no process namespace: without root one needs a user namespace, in which `sudo`, groups and
debuggers of a command that the user has allowed do not work.  What runs as another user cannot be
killed from here, and is left.

This file runs as a script and imports nothing of ours and as little as possible.  The keeper takes
packets from one socket:

    reaper       make a reaper; with the descriptor of a socket of its own

Over that socket a reaper takes, with fields parted by NUL,

    run          run a command; with the descriptors of a `ReaperRequest`, stdin, stdout and stderr
    start        the same, and say `started PID`
    term         ask the command to end: its whole process group
    end          kill everything that is left of it

and says

    failed ERRNO STAGE    the command did not start
    ended STATUS LEFT     its first process has ended: negative for a signal; LEFT is 1 where others
                          still run, which `end` kills, and 0 where there are none
    clear                 none of them runs any more

and `ready` when it is there.
"""

from __future__ import annotations

import _socket
import ctypes
import os
import select
import struct
import sys
import time

# `signal` would load `enum`, and each of these processes would be half a megabyte larger.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

PR_SET_CHILD_SUBREAPER = 36
WHAT_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)
MESSAGE_BYTES = 1 << 20
DESCRIPTORS = 4
"""Those of a command; where we may open no more, the kernel drops some on the way."""
EMFILE = 24
END_SECONDS = 1.5
"""How long the rest of a command is killed before its end is reported all the same; the killing
goes on with the next one, and when we are dead, without a bound."""
PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0

_libc = ctypes.CDLL(None)


class ReaperRequest:
    """A command, as it is handed over: folder, number of arguments, arguments, environment."""

    def __init__(self, message: int) -> None:
        data = b""
        # `pread`: the descriptor shares its position with the sender, who left it at the end.
        while chunk := os.pread(message, MESSAGE_BYTES, len(data)):
            data += chunk
        self.cwd, count, *rest = data.split(b"\0")
        self.argv = rest[: int(count)]
        entries = rest[int(count) :]
        # A variable without a name may be inherited, but is refused at a start.
        named = (entry for entry in entries if not entry.startswith(b"="))
        self.environ = dict(entry.split(b"=", 1) for entry in named)


class WakePipe:
    """Wakes a poll when a child has ended."""

    def __init__(self) -> None:
        self.fd, self._theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        # Without a handler of Python's the wake-up is never written.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._theirs, warn_on_full_buffer=False)

    def clear(self) -> None:
        """Forget what has woken us."""
        try:  # noqa: SIM105 - loading contextlib would take longer than the rest of a start
            os.read(self.fd, 4096)
        except BlockingIOError:
            pass

    def wait(self, seconds: float) -> None:
        """Wait until a child has ended, or so long."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        poll.poll(seconds * 1000)
        self.clear()


# --- what runs below -----------------------------------------------------------------------------


def children_of(pid: int) -> list[int]:
    """What a process has started, and has not been reaped."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        return found
    return found


def parent_of(pid: int) -> int:
    """The parent of a process; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may hold blanks and brackets itself.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def kill_trees(roots: list[int]) -> bool:
    """Kill these children of ours and all below them; False where none could be killed."""
    waiting = [(pid, os.getpid()) for pid in roots]
    is_killed = False
    # It grows while it is gone through; not by calls, for a chain of processes may be long.
    for pid, parent in waiting:
        below, was_killed = kill_one(pid, parent)
        waiting += [(each, pid) for each in below]
        is_killed |= was_killed
    return is_killed


def kill_one(pid: int, parent: int) -> tuple[list[int], bool]:
    """Kill a process; returns its children, and whether it could be killed."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return [], True
    try:
        # Looked at with the handle open: only now is it known that the number still means a
        # process of the tree, and not a stranger that was given it since.
        if parent_of(pid) not in (parent, os.getpid()):
            return [], True
        below = children_of(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except PermissionError:
            return below, False
        except ProcessLookupError:
            return below, True
        return below, True
    finally:
        os.close(handle)


def reap() -> dict[int, int]:
    """How each child ended that has, by its number."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return ended
            ended[pid] = os.waitstatus_to_exitcode(status)
    except ChildProcessError:
        return ended


def has_children() -> bool:
    """Whether this process has any, listed or not."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill_below(wake: WakePipe, seconds: float, spared: set[int]) -> dict[int, int]:
    """Kill everything below this process but the trees of `spared`, until none is left; returns
    how its children ended.

    What appears meanwhile is a child of ours when its parent has died, and is found by the next
    look.  What cannot be killed, because it runs as another user, is left.
    """
    ended: dict[int, int] = {}
    until = time.monotonic() + seconds
    pause = PAUSE_SECONDS
    while True:
        ended.update(reap())
        left = [pid for pid in children_of(os.getpid()) if pid not in spared]
        # One that becomes ours in this moment is in no list yet.
        is_unlisted = not left and not spared and has_children()
        if not (kill_trees(left) or is_unlisted) or time.monotonic() > until:
            return ended
        wake.wait(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


# --- a reaper ------------------------------------------------------------------------------------


class CommandReaper:
    """A process below which one command runs after the other."""

    def __init__(self, control: _socket.socket, owner: int) -> None:
        self._control = control
        self._owner = owner
        self._wake = WakePipe()
        self._leader = 0
        """The first process of the command; 0 between two."""
        self._status: int | None = None
        """How it ended."""

    def live(self) -> None:
        """Do what is asked until we are dead; then kill everything."""
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._say(b"ready")
        poll = select.poll()
        for fd in (self._control.fileno(), self._owner, self._wake.fd):
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._owner in ready:
                break
            if self._wake.fd in ready:
                self._wake.clear()
                self._note(reap())
            if self._control.fileno() in ready and not self._obey():
                break
        kill_below(self._wake, float("inf"), set())

    def _obey(self) -> bool:
        """Do one thing; False when the socket has ended."""
        try:
            verb, descriptors = receive(self._control)
        except OSError:
            return False
        if verb in (b"run", b"start"):
            self._run(verb, descriptors)
        elif verb == b"term" and self._leader and self._status is None:
            # Once it is reaped, its number may be another group's.
            self._ask_to_end()
        elif verb == b"end" and self._leader:
            self._end()
        return bool(verb)

    def _run(self, verb: bytes, descriptors: list[int]) -> None:
        try:
            if len(descriptors) != DESCRIPTORS:
                raise OSError(EMFILE, "", "exec")
            self._leader = start(ReaperRequest(descriptors[0]), descriptors[1:])
        except OSError as error:
            self._say(b"failed\0%d\0%s" % (error.errno or 0, os.fsencode(error.filename or "")))
        else:
            self._status = None
            if verb == b"start":
                self._say(b"started\0%d" % self._leader)
        finally:
            # A folder that we stand in cannot be unmounted, and the pipes are the command's alone.
            os.chdir("/")
            for fd in descriptors:
                os.close(fd)

    def _ask_to_end(self) -> None:
        try:  # noqa: SIM105 - as above
            os.killpg(self._leader, signal.SIGTERM)
        except OSError:
            pass

    def _note(self, ended: dict[int, int]) -> None:
        if self._leader and self._status is None and self._leader in ended:
            self._status = ended[self._leader]
            is_left = has_children()
            self._say(b"ended\0%d\0%d" % (self._status, is_left))
            if not is_left:
                self._leader = 0

    def _end(self) -> None:
        ended = kill_below(self._wake, END_SECONDS, set())
        if self._status is None:
            self._say(b"ended\0%d\0000" % ended.get(self._leader, -signal.SIGKILL))
        else:
            self._say(b"clear")
        self._leader = 0

    def _say(self, packet: bytes) -> None:
        try:  # noqa: SIM105 - as above; where nobody listens the end of the socket comes next
            self._control.send(packet)
        except OSError:
            pass


def start(request: ReaperRequest, descriptors: list[int]) -> int:
    """Start a command in a session of its own; returns its number.

    Raises:
        OSError: it does not start; `filename` is the stage, `chdir` or `exec`.
    """
    try:
        os.chdir(request.cwd)
    except OSError as error:
        raise OSError(error.errno, error.strerror, "chdir") from error
    last = OSError(2, "", "exec")
    for program in programs(request):
        try:
            return os.posix_spawn(
                program,
                request.argv,
                request.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(descriptors)],
                setsid=True,
                setsigdef=WHAT_PYTHON_IGNORES,
            )
        except OSError as error:
            # As a shell does: one that may not be run is passed over, and named if it was the last.
            last = OSError(error.errno, error.strerror, "exec")
    raise last


def programs(request: ReaperRequest) -> list[bytes]:
    """The files that a name of a program may mean, by the command's own search path."""
    name = request.argv[0]
    if b"/" in name:
        return [name]
    folders = request.environ.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    found = [folder + b"/" + name for folder in folders if folder]
    return [path for path in found if os.path.exists(path)]


# --- the keeper ----------------------------------------------------------------------------------


def serve(control: _socket.socket, owner: int) -> None:
    """Make reapers until we are dead; then kill everything that is left."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake = WakePipe()
    reapers: set[int] = set()
    poll = select.poll()
    for fd in (control.fileno(), owner, wake.fd):
        poll.register(fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if owner in ready:
            break
        if wake.fd in ready:
            wake.clear()
            ended = reap()
            reapers.difference_update(ended)
            # A reaper that was killed has left its command to us.
            if any(ended.values()):
                kill_below(wake, END_SECONDS, reapers)
        if control.fileno() in ready:
            verb, descriptors = receive(control)
            if not verb:
                break
            reapers.add(make_reaper(control, owner, descriptors))
    kill_below(wake, float("inf"), set())


def make_reaper(control: _socket.socket, owner: int, descriptors: list[int]) -> int:
    """A new reaper on a socket of its own."""
    pid = os.fork()
    if not pid:
        try:
            control.close()
            CommandReaper(_socket.socket(fileno=descriptors[0]), owner).live()
            os._exit(0)
        finally:
            # Never return into the keeper's loop: this is a copy of it.
            os._exit(1)
    for fd in descriptors:
        os.close(fd)
    return pid


def receive(control: _socket.socket) -> tuple[bytes, list[int]]:
    """One packet and the descriptors that came with it, which no command inherits by accident."""
    size = struct.calcsize("i")
    packet, extra, _, _ = control.recvmsg(
        1024, _socket.CMSG_SPACE(4 * size), _socket.MSG_CMSG_CLOEXEC
    )
    descriptors: list[int] = []
    for level, kind, data in extra:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            descriptors += struct.unpack_from(f"{len(data) // size}i", data)
    return packet, descriptors


def main(control: int, owner: int) -> None:
    """Serve on the socket with this number; `owner` is a handle of our process."""
    # What a program of the user's left open for its own children is not for ours.
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in (control, owner):
            try:  # noqa: SIM105 - as above; the one by which they were listed is closed already
                os.close(fd)
            except OSError:
                pass
    for fd in (control, owner):
        os.set_inheritable(fd, False)
    # A program of the user's may have it blocked, and then no end of a command would be heard of.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
    os.chdir("/")
    # Where the kernel does not tell what runs below, there can be no keeper.
    os.stat(f"/proc/self/task/{os.getpid()}/children")
    serve(_socket.socket(fileno=control), owner)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
