"""A disk that is full when a store is opened, and one that can only be read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.faulty_disk import faulty_disk
from tests.support.weft_program import WeftProgram
from weft.errors import StoreUnavailable
from weft.store.sqlite import open_sqlite

pytestmark = pytest.mark.anyio

READ_ONLY = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run")


async def test_the_ballast_is_given_up_for_opening(tmp_path: Path) -> None:
    path, ballast = tmp_path / "weft.db", tmp_path / "weft.db.ballast"
    with faulty_disk("full-at-opening") as faults:
        ballast.write_bytes(b"room")
        faults.full_while = ballast
        async with await open_sqlite(path, vfs="full-at-opening") as store:
            assert await store.rows() == []
        assert not ballast.exists()


async def test_a_disk_without_room_and_ballast_is_called_full(tmp_path: Path) -> None:
    with faulty_disk("full-for-good") as faults:
        faults.full = {"write"}
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await open_sqlite(tmp_path / "weft.db", vfs="full-for-good")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[WeftProgram]:
    if shutil.which("bwrap") is None:
        pytest.skip("a read-only disk is made with bubblewrap")
    program = WeftProgram(tmp_path)
    yield program
    program.close()


def on_a_read_only_disk(program: WeftProgram, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*READ_ONLY, *program.argv(*arguments)],
        cwd=program.project,
        env={**program.environment, "TMPDIR": "/run"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.process
def test_a_store_on_a_read_only_disk_can_be_read_and_says_so_when_written(
    program: WeftProgram,
) -> None:
    model = program.script("Hello there.", "Never.")
    assert program.run("-p", "-m", model, "hi").returncode == 0
    (session,) = program.sessions()
    listed = on_a_read_only_disk(program, "session", "list", "--json")
    assert [each["id"] for each in json.loads(listed.stdout)] == [session["id"]], listed.stderr
    shown = on_a_read_only_disk(program, "session", "show", session["id"])
    assert "Hello there." in shown.stdout
    examined = on_a_read_only_disk(program, "doctor")
    assert re.search(r"store .* is intact", examined.stdout), examined.stdout
    refused = on_a_read_only_disk(program, "-p", "-m", model, "again")
    assert refused.returncode == 1
    assert "is read-only: it can be read, and nothing was written" in refused.stderr
    assert len(program.sessions()) == 1


FILLED = """
cp "$1" "$2/weft.db" || exit 9
# As much as there is room for, to the last byte.
dd if=/dev/zero of="$2/fill" bs=64k status=none 2>/dev/null
dd if=/dev/zero of="$2/fill2" bs=1 count=70000 status=none 2>/dev/null
shift 2
exec "$@"
"""


def on_a_full_disk(program: WeftProgram, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it with its data on a small disk that has no room left."""
    stored = program.home / "stored.db"
    if not stored.exists():
        shutil.move(program.data / "weft.db", stored)
        shutil.rmtree(program.data)
        program.data.mkdir()
    disk = ("--bind", "/", "/", "--dev", "/dev", "--size", "2000000", "--tmpfs", str(program.data))
    filled = ("sh", "-c", FILLED, "sh", str(stored), str(program.data))
    return subprocess.run(
        ["bwrap", *disk, *filled, *program.argv(*arguments)],
        cwd=program.project,
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.process
def test_a_store_on_a_full_disk_can_be_read_and_says_so_when_written(program: WeftProgram) -> None:
    model = program.script("Hello there.", "Never.")
    assert program.run("-p", "-m", model, "hi").returncode == 0
    (session,) = program.sessions()
    listed = on_a_full_disk(program, "session", "list", "--json")
    assert [each["id"] for each in json.loads(listed.stdout)] == [session["id"]], listed.stderr
    shown = on_a_full_disk(program, "session", "show", session["id"])
    assert "Hello there." in shown.stdout, shown.stderr
    refused = on_a_full_disk(program, "-p", "-m", model, "again")
    assert refused.returncode == 1
    assert "the disk is full, nothing was written to" in refused.stderr


@pytest.mark.process
def test_a_new_store_on_a_read_only_disk_is_refused_with_what_to_do(program: WeftProgram) -> None:
    refused = on_a_read_only_disk(program, "-p", "-m", program.script("x"), "hi")
    assert refused.returncode == 1
    assert "the disk is read-only; set WEFT_HOME" in refused.stderr
