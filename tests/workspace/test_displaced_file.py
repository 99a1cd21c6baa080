"""What another program writes in the instant of a write is never overwritten."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from weft import faults
from weft.errors import RetryableToolError
from weft.ids import BlobId
from weft.workspace import LocalWorkspace
from weft.workspace.writes.atomic_write import OURS, sweep
from weft.workspace.writes.displaced_file import DISPLACED, displaced_name, read_name

pytestmark = pytest.mark.anyio

WRITE = ["workspace.write.before_rename", "workspace.displaced.exchanged"]
REMOVE = ["workspace.remove.before_rename", "workspace.displaced.aside"]


def hash_of(data: bytes) -> BlobId:
    return BlobId(sha256(data).hexdigest())


def in_place(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"theirs")
        opened.truncate()


def anew(file: Path) -> None:
    other = file.with_name("theirs.tmp")
    other.write_bytes(b"theirs")
    other.rename(file)


def as_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("theirs")


def as_folder(file: Path) -> None:
    file.unlink()
    (file / "theirs").mkdir(parents=True)


def gone(file: Path) -> None:
    file.unlink()


WAYS = [in_place, anew, as_link, as_folder, gone]


def theirs(file: Path) -> str:
    """What has become of the file, as a word."""
    if file.is_symlink():
        return "as_link"
    if file.is_dir():
        return "as_folder" if (file / "theirs").is_dir() else "another folder"
    if not file.exists():
        return "gone"
    return "theirs" if file.read_bytes() == b"theirs" else file.read_bytes().decode()


def left(project: Path) -> list[str]:
    return [name for name in os.listdir(project) if name.startswith(OURS)]


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    yield
    faults.disarm_all()


def arm(point: str, do: Callable[[Path], None], file: Path) -> None:
    def act(name: str) -> None:
        faults.disarm_all()
        do(file)

    faults.arm(point, action=act)


@pytest.mark.parametrize("way", WAYS)
async def test_a_change_behind_the_last_look_is_kept_and_the_write_is_refused(
    workspace: LocalWorkspace, project: Path, way: Callable[[Path], None]
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    arm("workspace.write.before_rename", way, file)
    with pytest.raises(RetryableToolError, match=r"Read it again|nothing was written"):
        await workspace.write("f", b"ours", expected=hash_of(b"old"))
    assert theirs(file) == ("theirs" if way in (in_place, anew) else way.__name__)
    assert left(project) == []


@pytest.mark.parametrize("way", [in_place, anew, gone])
async def test_a_change_of_the_new_file_stands(
    workspace: LocalWorkspace, project: Path, way: Callable[[Path], None]
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    arm("workspace.displaced.exchanged", way, file)
    # What was displaced is what was expected: the write was whole, and theirs came after it.
    await workspace.write("f", b"ours", expected=hash_of(b"old"))
    assert theirs(file) == ("gone" if way is gone else "theirs")
    assert left(project) == []


async def test_of_two_changes_around_a_write_neither_is_lost(
    workspace: LocalWorkspace, project: Path
) -> None:
    file = project / "f"
    file.write_bytes(b"old")

    def second(name: str) -> None:
        file.write_bytes(b"the second")

    def first(name: str) -> None:
        file.write_bytes(b"the first")
        faults.arm("workspace.displaced.exchanged", action=second)

    faults.arm("workspace.write.before_rename", action=first)
    with pytest.raises(RetryableToolError, match="kept beside it") as refused:
        await workspace.write("f", b"ours", expected=hash_of(b"old"))
    assert file.read_bytes() == b"the second"
    [kept] = left(project)
    assert kept in str(refused.value)
    assert (project / kept).read_bytes() == b"the first"


@pytest.mark.parametrize("is_removed", [False, True])
async def test_a_change_of_the_mode_in_the_instant_is_kept(
    workspace: LocalWorkspace, project: Path, is_removed: bool
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    arm((REMOVE if is_removed else WRITE)[0], lambda place: place.chmod(0o750), file)
    old = hash_of(b"old")
    work = (
        workspace.remove("f", expected=old)
        if is_removed
        else workspace.write("f", b"ours", expected=old)
    )
    with pytest.raises(RetryableToolError, match="changed since it was read"):
        await work
    assert file.stat().st_mode & 0o777 == 0o750
    assert theirs(file) == "old"
    assert left(project) == []


async def test_a_change_of_what_is_removed_is_kept(
    workspace: LocalWorkspace, project: Path
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    arm("workspace.remove.before_rename", anew, file)
    with pytest.raises(RetryableToolError, match="changed since it was read"):
        await workspace.remove("f", expected=hash_of(b"old"))
    assert file.read_bytes() == b"theirs"
    assert left(project) == []


async def test_a_new_file_in_place_of_one_that_is_removed_stays(
    workspace: LocalWorkspace, project: Path
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    arm("workspace.displaced.aside", lambda place: (place.write_bytes(b"theirs"), None)[1], file)
    await workspace.remove("f", expected=hash_of(b"old"))
    assert file.read_bytes() == b"theirs"
    assert left(project) == []


# --- what another process sweeps, and what somebody else has put there


@pytest.mark.parametrize("point", ["workspace.displaced.exchanged", "workspace.displaced.aside"])
async def test_a_sweep_of_another_process_in_the_instant_makes_no_write_look_refused(
    workspace: LocalWorkspace, project: Path, point: str
) -> None:
    file, is_written = project / "f", point.endswith("exchanged")
    file.write_bytes(b"old")

    def sweeping(place: Path) -> None:
        folder = os.open(project, os.O_RDONLY)
        sweep(folder)
        os.close(folder)

    arm(point, sweeping, file)
    if is_written:
        changed = await workspace.write("f", b"ours", expected=hash_of(b"old"))
    else:
        changed = await workspace.remove("f", expected=hash_of(b"old"))
    assert changed.before == hash_of(b"old")
    assert theirs(file) == ("ours" if is_written else "gone")
    assert left(project) == []


@pytest.mark.parametrize("place", [".git", ".envrc", "Makefile"])
@pytest.mark.parametrize("is_link", [False, True])
async def test_a_name_that_a_repository_brings_along_puts_nothing_in_place(
    workspace: LocalWorkspace, project: Path, place: str, is_link: bool
) -> None:
    """Git refuses to track `.git`, and rules may deny `.envrc`; neither knows our names."""
    planted = project / f"{DISPLACED}0011223344556677---{place}"
    if is_link:
        planted.symlink_to("forged")
    else:
        planted.write_text("gitdir: forged")
    await workspace.write("another", b"x", expected=None)  # sweeps
    assert not os.path.lexists(project / place)
    assert os.path.lexists(planted)


async def test_a_file_without_end_under_such_a_name_holds_up_no_write(
    workspace: LocalWorkspace, project: Path
) -> None:
    planted = project / f"{DISPLACED}0011223344556677---f"
    with planted.open("wb") as file:
        file.truncate(1 << 40)
    await workspace.write("another", b"x", expected=None)  # sweeps
    assert planted.stat().st_size == 1 << 40


# --- what a kill leaves

DYING = """
import asyncio, os, sys
from hashlib import sha256
from pathlib import Path
from weft import faults
from weft.workspace import LocalWorkspace
from weft.workspace.writes import atomic_write
point, root, changed = sys.argv[1:]
file = Path(root, "f")
def change(name):
    if changed:
        file.write_bytes(b"theirs")
    faults.arm(point)
    if name == point:
        os._exit(faults.EXIT_CODE)
writes = point in ("workspace.write.before_rename", "workspace.displaced.exchanged")
first = "workspace.write.before_rename" if writes else "workspace.remove.before_rename"
faults.arm(first, action=change)
there, old = LocalWorkspace(root), sha256(b"old").hexdigest()
asyncio.run(there.write("f", b"new", expected=old) if writes
            else there.remove("f", expected=old))
"""


@pytest.mark.process
@pytest.mark.parametrize("changed", ["", "changed"])
@pytest.mark.parametrize("point", [*WRITE, *REMOVE])
async def test_after_a_kill_nothing_of_another_program_is_lost(
    workspace: LocalWorkspace, project: Path, point: str, changed: str
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    died = await anyio.run_process(
        [sys.executable, "-c", DYING, point, str(project), changed],
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert died.returncode == faults.EXIT_CODE
    await workspace.write("another", b"x", expected=None)  # sweeps
    there = [name for name in os.listdir(project) if name == "f" or name.startswith(OURS)]
    contents = {name: (project / name).read_bytes() for name in there}
    is_placed = point == "workspace.displaced.exchanged"
    if changed:
        assert b"theirs" in contents.values()
        # What was displaced is kept where it lies, under a name with its own.
        kept = [read_name(name) for name in left(project)]
        is_displaced = point in ("workspace.displaced.exchanged", "workspace.displaced.aside")
        assert [each and each.place for each in kept] == (["f"] if is_displaced else [])
        return
    assert left(project) == []
    is_there = point != "workspace.displaced.aside"
    assert contents == ({"f": b"new" if is_placed else b"old"} if is_there else {})


@pytest.mark.parametrize("place", ["f", "a-b-c.py", "ä" * 60, "x" * 255])
def test_the_name_of_a_displaced_file_says_what_it_is(place: str) -> None:
    name = displaced_name(hash_of(b"old"), hash_of(b"new"), place)
    assert name.startswith(DISPLACED)
    assert len(os.fsencode(name)) <= 255
    about = read_name(name)
    assert about is not None
    assert (about.old, about.new) == (hash_of(b"old")[:16], hash_of(b"new")[:16])
    assert about.place == (place if len(os.fsencode(place)) < 200 else "")
