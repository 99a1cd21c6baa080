"""Whether a process lives, told by the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from weft.store.liveness import ProcessLiveness, is_alive, lock_path, tidy

pytestmark = pytest.mark.process

_SHOW = """
import sys
from pathlib import Path
from weft.store.liveness import ProcessLiveness
presence = ProcessLiveness(Path(sys.argv[1]), "prc_child")
presence.show()
print("shown", flush=True)
sys.stdin.read()
"""


def _child(directory: Path) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-c", _SHOW, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"shown\n"
    return child


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()


def test_a_stopped_process_lives_and_a_killed_one_is_dead_at_once(tmp_path: Path) -> None:
    child = _child(tmp_path)
    try:
        assert is_alive(tmp_path, "prc_child")
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        assert is_alive(tmp_path, "prc_child")
    finally:
        _end(child)
    assert not is_alive(tmp_path, "prc_child")
    tidy(tmp_path)
    assert not lock_path(tmp_path, "prc_child").exists()


def test_asking_about_ourselves_does_not_drop_our_own_lock(tmp_path: Path) -> None:
    ours = ProcessLiveness(tmp_path, "prc_ours")
    assert ours.show()
    assert not ours.show()
    try:
        assert is_alive(tmp_path, "prc_ours")
        tidy(tmp_path)
        seen = subprocess.run([sys.executable, "-c", _ASK, str(tmp_path), "prc_ours"], check=False)
        assert seen.returncode == 0, "another process must still see the lock"
    finally:
        ours.end()
    assert not is_alive(tmp_path, "prc_ours")
    assert list(tmp_path.iterdir()) == []


def test_the_socket_of_a_dead_process_goes_with_its_lock(tmp_path: Path) -> None:
    child = _child(tmp_path)
    socket = lock_path(tmp_path, "prc_child").with_suffix(".sock")
    socket.touch()
    try:
        tidy(tmp_path)
        assert socket.exists(), "its process lives"
    finally:
        _end(child)
    tidy(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_askers_do_not_take_each_other_for_the_owner(tmp_path: Path) -> None:
    lock_path(tmp_path, "prc_dead").touch()
    asker = subprocess.Popen(
        [sys.executable, "-c", _HOLD_AS_AN_ASKER, str(lock_path(tmp_path, "prc_dead"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert asker.stdout is not None
        asker.stdout.readline()
        assert not is_alive(tmp_path, "prc_dead")
    finally:
        _end(asker)


def test_a_forked_child_has_none_of_its_parents_life(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _FORK, str(tmp_path)], check=False)
    assert done.returncode == 0


_ASK = """
import sys
from pathlib import Path
from weft.store.liveness import is_alive
sys.exit(not is_alive(Path(sys.argv[1]), sys.argv[2]))
"""
_HOLD_AS_AN_ASKER = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.lockf(file, fcntl.LOCK_SH)
print("asking", flush=True)
sys.stdin.read()
"""
# The parent shows itself, forks and dies; the child, which has its descriptors, must see it dead.
_FORK = """
import os, sys
from pathlib import Path
from weft.store.liveness import ProcessLiveness, is_alive
place = Path(sys.argv[1])
reading, writing = os.pipe()
middle = os.fork()
if middle == 0:
    presence = ProcessLiveness(place, "prc_parent")
    presence.show()
    waiting, going = os.pipe()
    if os.fork() == 0:
        os.close(going)
        os.read(waiting, 1)  # ends when the parent is gone
        os.write(writing, b"alive" if is_alive(place, "prc_parent") else b"dead")
        os._exit(0)
    os._exit(0)
os.waitpid(middle, 0)
sys.exit(os.read(reading, 10) != b"dead")
"""
