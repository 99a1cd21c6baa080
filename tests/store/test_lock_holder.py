"""Who holds a store's write lock, by the kernel's own list."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from weft.errors import StoreOutage
from weft.store.liveness import is_suspended
from weft.store.sqlite import open_sqlite
from weft.store.sqlite.lock_holder import lock_holder

pytestmark = [
    pytest.mark.process,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel has no list of locks"),
]

WRITER = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("begin immediate")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the write lock."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        try:
            yield other
        finally:
            other.send_signal(signal.SIGCONT)
            other.kill()


def suspend(other: subprocess.Popen[bytes]) -> None:
    other.send_signal(signal.SIGSTOP)
    os.waitpid(other.pid, os.WUNTRACED)


async def test_the_holder_of_the_lock_is_known_and_whether_it_is_suspended(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await open_sqlite(path):
        assert lock_holder(path) is None
        with locked(path) as other:
            assert lock_holder(path) == other.pid
            assert not is_suspended(other.pid)
            suspend(other)
            assert is_suspended(other.pid)
        assert lock_holder(path) is None


async def test_looking_for_the_holder_drops_no_lock_of_our_own(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await open_sqlite(path):
        ours = apsw.Connection(str(path))
        ours.execute("begin immediate")
        assert lock_holder(path) == os.getpid()
        with pytest.raises(apsw.BusyError):
            apsw.Connection(str(path)).execute("begin immediate")
        ours.close()


async def test_a_busy_holder_is_named_when_the_patience_ends(tmp_path: Path) -> None:
    path = tmp_path / "weft.db"
    async with await open_sqlite(path, busy_seconds=0.05) as store:
        with (
            locked(path) as other,
            pytest.raises(StoreOutage, match=f"locked by process {other.pid}, nothing"),
        ):
            await store.take_lease("ses_a")
