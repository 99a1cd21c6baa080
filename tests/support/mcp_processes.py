"""A Weft that has started an MCP server and can be killed, and what is left of it then."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

PATIENCE_MS = 20_000
MOST_LOOKS = 3_000


def bearing(word: str) -> list[int]:
    """Handles of the processes whose command line has this word.

    A program such as npm writes its command line anew, as one text with spaces between the words.
    """
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = re.split(rb"[\0 ]", Path(f"/proc/{name}/cmdline").read_bytes())
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
def keeper(
    project: Path, mode: str, written: dict[str, object], path: str, request: str = ""
) -> Iterator[int]:
    """A Weft that has started a server, which has answered a request: to leave a process behind
    where none is given."""
    argv = [sys.executable, "-m", "tests.support.mcp_keeper", str(project), mode]
    started = subprocess.Popen(
        [*argv, msgspec.json.encode(written).decode(), request],
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


def are_gone(word: str) -> bool:
    """Whether nothing bears this word any more; what hops is another process each time."""
    for _ in range(MOST_LOOKS):
        handles = bearing(word)
        ended = all(map(has_ended, handles))
        for handle in handles:
            os.close(handle)
        if not handles or not ended:
            return ended
    return False
