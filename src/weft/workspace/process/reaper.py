"""The reaper: a small program around another one, that ends everything which that one started.

Where there is no process namespace, a program's children outlive it, and a kill of ours reaches
only the first of them.  The reaper is made the parent of all that lose theirs (a child subreaper),
and when its own parent dies the kernel tells it; then it kills them all.  Started as a script: what
becomes a subreaper stays one, which is not a library's to do to its process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
WAITED = {signal.SIGTERM, signal.SIGCHLD}
PAUSE = 0.005


def children_of(pid: int) -> list[int]:
    """All that a process started, and what those started."""
    found = [pid]
    for each in found:
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{task}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        except OSError:
            continue
    return found[1:]


def kill_all() -> None:
    """Kill every process below this one, also those that are started meanwhile."""
    while True:
        # What is listed is no proof: a process that becomes ours in this moment is in neither list.
        for pid in children_of(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(PAUSE)
        except ChildProcessError:
            return  # and that is one: whoever loses a parent becomes our child


def main(parent: int, argv: list[str]) -> int:
    """Run the program; its exit code is ours."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Blocked and waited for: a signal that comes while nothing waits is not lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # It may have died before that was set, and then no signal comes.
    if os.getppid() != parent:
        return 143
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAITED)
        try:
            os.execvp(argv[0], argv)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
            os._exit(127)
    # Its pipes are the program's alone: who waits for their end waits for the program.
    for stream in (0, 1, 2):
        os.close(stream)
    return lived(child)


def lived(child: int) -> int:
    """Wait for the end of the program, or of our parent, which is the end of all below us."""
    while True:
        if signal.sigwait(WAITED) == signal.SIGTERM:
            kill_all()
            return 143
        pid = -1
        while pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                kill_all()
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(int(sys.argv[1]), sys.argv[2:]))
