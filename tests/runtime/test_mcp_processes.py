"""Nothing that a server has started outlives Weft, however it goes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.support.mcp_servers import entry

pytestmark = pytest.mark.process

PATIENCE_MS = 20_000


def bearing(word: str) -> list[int]:
    """Handles of the processes whose command line has this word."""
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            # Not the one that is told to start it, which has the word inside a longer one.
            if word.encode() in words:
                found.append(os.pidfd_open(int(name)))
        except OSError:
            continue
    return found


def has_ended(handle: int) -> bool:
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    return bool(waiting.poll(PATIENCE_MS))


@contextmanager
def keeper(project: Path, mode: str, written: dict[str, object], path: str) -> Iterator[int]:
    """A Weft that has started a server, which has left a process behind."""
    argv = [sys.executable, "-m", "tests.support.mcp_keeper", str(project), mode]
    started = subprocess.Popen(
        [*argv, msgspec.json.encode(written).decode()],
        stdout=subprocess.PIPE,
        env={**os.environ, "PATH": path},
    )
    assert started.stdout is not None
    try:
        assert b'"result"' in started.stdout.readline()
        yield started.pid
    finally:
        started.kill()
        started.wait()
        started.stdout.close()


@pytest.mark.parametrize("way", ["sandbox", "namespace", "keeper"])
def test_no_process_of_a_server_survives_a_kill_of_weft(way: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    word = f"mark-{way}-{os.getpid()}"
    mode = {"sandbox": "on"}.get(way, "auto")
    written = entry(word, sandbox="on" if way == "sandbox" else "off")
    path = os.environ["PATH"] if way != "keeper" else str(tmp_path)
    with keeper(project, mode, written, path) as pid:
        handles = bearing(word)
        # The server, and what it started in a session of its own without an environment.
        assert len(handles) >= 2
        os.kill(pid, signal.SIGKILL)
        assert all(map(has_ended, handles))
    for handle in handles:
        os.close(handle)
