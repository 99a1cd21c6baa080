"""What the C library's heap keeps of memory that was freed."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.support.world import World
from weft.app import app as app_module
from weft.providers.scripted import ScriptedModel
from weft.runtime import heap
from weft.runtime.heap import MOST_ARENAS

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024
THREADS = 4
BLOCKS, BLOCK_BYTES = 4_000, 3_000


def own_bytes() -> int:
    """Memory of this process that is in no file."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def leave_holes() -> list[bytes]:
    """Free nearly all of what several threads held at once; what is left keeps the C library from
    returning it by itself.
    """
    left: list[bytes] = []
    together = threading.Barrier(THREADS)

    def work() -> None:
        made = [bytes(BLOCK_BYTES) for _ in range(BLOCKS)]
        together.wait()
        left.extend(made[::500])
        left.append(made[-1])

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return left


async def test_memory_that_was_freed_goes_back_to_the_system(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "TRIM_EVERY_SECONDS", 0.001)
    heap.trim()  # what other tests freed would be used before new memory is
    before = own_bytes()
    left = leave_holes()
    assert own_bytes() - before > THREADS * BLOCKS * BLOCK_BYTES / 2
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        with anyio.fail_after(10):
            while own_bytes() - before > 10 * MEGABYTE:
                await anyio.lowlevel.checkpoint()
    assert left


ARENAS = """
import asyncio, ctypes, os, sys, threading
import weft

async def main():
    async with weft.open(sys.argv[1], "memory"):
        for _ in range(100):  # tasks of the application begin
            await asyncio.sleep(0)
        await asyncio.to_thread(work_in_threads)

def work_in_threads():
    together = threading.Barrier(12)
    def work():
        made = [bytes(3000) for _ in range(100)]
        together.wait()
    threads = [threading.Thread(target=work) for _ in range(12)]
    [each.start() for each in threads]
    [each.join() for each in threads]

asyncio.run(main())
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fdopen(os.dup(1), b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


@pytest.mark.process
@pytest.mark.parametrize(("chosen", "is_limited"), [({}, True), ({"MALLOC_ARENA_MAX": "9"}, False)])
def test_threads_share_arenas_unless_the_user_has_set_their_number(
    tmp_path: Path, chosen: dict[str, str], is_limited: bool
) -> None:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **chosen}
    done = subprocess.run(
        [sys.executable, "-c", ARENAS, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    # Threads of the application itself may be there before it is open.
    assert (done.stdout.count("<heap nr=") <= MOST_ARENAS + 5) is is_limited


LARGE_BLOCKS = """
import asyncio, ctypes, sys
import weft

class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Figures

async def main():
    async with weft.open(sys.argv[1], "memory"):
        for _ in range(100):  # tasks of the application begin
            await asyncio.sleep(0)
        large = bytearray(8 << 20)
        del large
        before = mallinfo().hblkhd
        block = bytearray(1 << 20)
        print(mallinfo().hblkhd - before >= 1 << 20)

asyncio.run(main())
"""
"""Whether a block of a megabyte is mapped by itself, after a larger one was freed."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("chosen", "is_mapped"), [({}, True), ({"MALLOC_MMAP_THRESHOLD_": "4000000"}, False)]
)
def test_large_blocks_go_back_at_once_unless_the_user_has_set_their_size(
    tmp_path: Path, chosen: dict[str, str], is_mapped: bool
) -> None:
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("this C library does not say which blocks are mapped")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **chosen}
    done = subprocess.run(
        [sys.executable, "-c", LARGE_BLOCKS, str(tmp_path)],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{is_mapped}\n"
