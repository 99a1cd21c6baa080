"""Writing through the door: all of it or nothing."""

from __future__ import annotations

import os
import stat
import sys
import threading
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from tests.support.example_count import examples
from tests.support.rename_exchange import exchange
from weft import faults
from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.ids import BlobId
from weft.workspace import LocalWorkspace
from weft.workspace.base import KEPT_BYTES
from weft.workspace.writes.atomic_write import OURS

pytestmark = pytest.mark.anyio


def hash_of(data: bytes) -> BlobId:
    return BlobId(sha256(data).hexdigest())


def temporaries(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(OURS)]


async def test_a_new_file_is_made_with_its_folders_and_the_mode_of_the_umask(
    workspace: LocalWorkspace, project: Path
) -> None:
    old = os.umask(0o027)
    try:
        touched = await workspace.write("new/deep/file.txt", b"hello", expected=None)
    finally:
        os.umask(old)
    made = project / "new/deep/file.txt"
    assert made.read_bytes() == b"hello"
    assert stat.S_IMODE(made.stat().st_mode) == 0o640
    assert (touched.path, touched.action, touched.before) == ("new/deep/file.txt", "created", None)
    assert (touched.after, touched.data_after) == (hash_of(b"hello"), b"hello")


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o640])
async def test_replacing_keeps_the_mode_and_hands_on_both_contents(
    workspace: LocalWorkspace, project: Path, mode: int
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    file.chmod(mode)
    touched = await workspace.write("f", b"new", expected=hash_of(b"old"))
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert (touched.action, touched.data_before, touched.data_after) == ("modified", b"old", b"new")
    assert temporaries(project) == []


async def test_who_reads_while_it_is_replaced_sees_the_old_file_whole(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "f").write_bytes(b"old" * 1000)
    with (project / "f").open("rb", buffering=0) as reader:
        assert reader.read(3) == b"old"
        await workspace.write("f", b"new", expected=hash_of(b"old" * 1000))
        assert reader.read() == b"old" * 999


async def test_extended_attributes_and_owner_are_kept(
    workspace: LocalWorkspace, project: Path
) -> None:
    file = project / "f"
    file.write_bytes(b"old")
    os.setxattr(file, "user.note", b"mine")
    owner = (12345, 54321) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(file, *owner)
    await workspace.write("f", b"new", expected=hash_of(b"old"))
    assert os.getxattr(file, "user.note") == b"mine"
    assert (file.stat().st_uid, file.stat().st_gid) == owner


async def test_a_large_file_is_replaced_without_its_content_being_kept(
    workspace: LocalWorkspace, project: Path
) -> None:
    old = os.urandom(KEPT_BYTES + 1)
    (project / "f").write_bytes(old)
    touched = await workspace.write("f", old[::-1], expected=hash_of(old))
    assert (touched.data_before, touched.data_after) == (None, None)
    assert (project / "f").read_bytes() == old[::-1]


@pytest.mark.parametrize(
    ("there", "expected"),
    [(b"other", hash_of(b"old")), (None, hash_of(b"old")), (b"other", None)],
)
async def test_a_file_that_is_not_as_expected_is_left_alone(
    workspace: LocalWorkspace, project: Path, there: bytes | None, expected: BlobId | None
) -> None:
    file = project / "f"
    if there is not None:
        file.write_bytes(there)
    with pytest.raises(RetryableToolError, match="nothing was written"):
        await workspace.write("f", b"new", expected=expected)
    assert (file.read_bytes() if file.exists() else None) == there
    assert temporaries(project) == []


async def test_a_change_at_the_last_moment_is_seen(
    workspace: LocalWorkspace, project: Path
) -> None:
    """The content is checked again after the temporary file is durable.

    So is the absence of a new one.
    """
    file = project / "f"
    file.write_bytes(b"old")
    passes: list[str] = []

    def at_the_sync(event: str, arguments: tuple[object, ...]) -> None:
        # The temporary file is opened after the first check: this is the moment that only a second
        # check can see.
        if event == "open" and armed and str(arguments[0]).startswith(OURS):
            armed.clear()
            passes.append(event)
            (project / armed_for[0]).write_bytes(b"someone else")

    armed, armed_for = [True], ["f"]
    sys.addaudithook(at_the_sync)
    with pytest.raises(RetryableToolError, match="was changed"):
        await workspace.write("f", b"new", expected=hash_of(b"old"))
    armed.append(True)
    armed_for[0] = "g"
    with pytest.raises(RetryableToolError, match="exists by now"):
        await workspace.write("g", b"new", expected=None)
    assert len(passes) == 2
    assert file.read_bytes() == b"someone else"
    assert (project / "g").read_bytes() == b"someone else"
    assert temporaries(project) == []


async def test_two_who_create_one_file_never_overwrite_each_other(
    workspace: LocalWorkspace, project: Path
) -> None:
    for number in range(20):
        outcomes: list[str] = []

        async def create(name: str, data: bytes, into: list[str]) -> None:
            try:
                await workspace.write(name, data, expected=None)
                into.append(data.decode())
            except RetryableToolError:
                pass

        async with anyio.create_task_group() as group:
            for writer in ("one", "two"):
                group.start_soon(create, f"new{number}", writer.encode(), outcomes)
        assert len(outcomes) == 1
        assert (project / f"new{number}").read_text() == outcomes[0]


# --- what is never written -----------------------------------------------------------------------


async def test_a_file_with_two_names_is_not_written(
    workspace: LocalWorkspace, project: Path
) -> None:
    secret = project.parent / "outside" / "secret.txt"
    os.link(secret, project / "twin")
    before = secret.read_bytes()
    with pytest.raises(FinalToolError, match="hard links"):
        await workspace.write("twin", b"x", expected=hash_of(before))
    assert secret.read_bytes() == before
    assert (await workspace.read("twin")).data == before


async def test_a_link_inside_is_written_to_by_its_real_name_only(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "link").symlink_to("src/main.py")
    real = await workspace.resolve("link")
    state = await workspace.read(real)
    await workspace.write(real, b"new", expected=state.hash)
    assert (project / "link").is_symlink()
    assert (project / "src/main.py").read_bytes() == b"new"


async def test_what_is_no_regular_file_is_not_replaced(
    workspace: LocalWorkspace, project: Path
) -> None:
    os.mkfifo(project / "pipe")
    for path in ("pipe", "src", ".", "src/", "src/main.py/x", "bad\0name", ""):
        with pytest.raises(ToolError):
            await workspace.write(path, b"x", expected=None)
    assert stat.S_ISFIFO((project / "pipe").stat().st_mode)


async def test_a_swapped_folder_is_never_written_through(
    workspace: LocalWorkspace, project: Path
) -> None:
    outside = project.parent / "outside"
    (project / "real").mkdir()
    (project / "trap").symlink_to("../outside")
    going = threading.Event()
    going.set()

    def swap() -> None:
        while going.is_set():
            exchange(project / "real", project / "trap")

    swapper = threading.Thread(target=swap)
    swapper.start()
    written = refused = 0
    tries = examples(50)
    try:
        # Both sides of the swap were met; the suite's time-out bounds it.
        while written < tries or refused < tries:
            try:
                await workspace.write(f"real/f{written}", b"x", expected=None)
                written += 1
            except ToolError:
                refused += 1
    finally:
        going.clear()
        swapper.join()
    assert os.listdir(outside) == ["secret.txt"]


# --- crashes and cancels
# ---------------------------------------------------------------------------

DYING = """
import asyncio, sys
from weft import faults
from weft.workspace import LocalWorkspace
from weft.workspace.writes import atomic_write
from hashlib import sha256
point, root = sys.argv[1:]
faults.arm(point)
old = sha256(b"old").hexdigest()
asyncio.run(LocalWorkspace(root).write("f", b"new", expected=old))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("point", "content"),
    [("workspace.write.before_rename", b"old"), ("workspace.write.after_rename", b"new")],
)
async def test_killed_at_any_point_the_file_is_whole_and_the_leftover_is_swept(
    workspace: LocalWorkspace, project: Path, point: str, content: bytes
) -> None:
    (project / "f").write_bytes(b"old")
    died = await anyio.run_process(
        [sys.executable, "-c", DYING, point, str(project)],
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert died.returncode == faults.EXIT_CODE
    assert (project / "f").read_bytes() == content
    assert len(temporaries(project)) == (content == b"old")
    await workspace.write("another", b"x", expected=None)
    assert temporaries(project) == []


async def test_the_temporary_file_of_a_living_writer_is_not_swept(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "f").write_bytes(b"old")
    seen: list[list[str]] = []
    other = LocalWorkspace(str(project))

    def look(name: str) -> None:
        # In the writer's thread, between its sync and its rename: another writer comes by.
        anyio.run(lambda: other.write("another", b"x", expected=None))
        seen.append(temporaries(project))

    faults.arm("workspace.write.before_rename", action=look)
    try:
        await workspace.write("f", b"new", expected=hash_of(b"old"))
    finally:
        faults.disarm_all()
    assert len(seen[0]) == 1
    assert (project / "f").read_bytes() == b"new"


async def test_a_cancel_before_the_rename_writes_nothing_then_or_later(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "f").write_bytes(b"old")
    reached, go_on = threading.Event(), threading.Event()

    def hold(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).startswith(OURS) and not reached.is_set():
            reached.set()
            go_on.wait(5)

    sys.addaudithook(hold)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: workspace.write("f", b"new", expected=hash_of(b"old")))
            await anyio.to_thread.run_sync(reached.wait)
            group.cancel_scope.cancel()
            go_on.set()
    assert (project / "f").read_bytes() == b"old"
    assert temporaries(project) == []


async def test_writing_leaves_no_descriptor_open(workspace: LocalWorkspace, project: Path) -> None:
    (project / "f").write_bytes(b"old")
    await workspace.write("warm", b"", expected=None)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        await workspace.write(f"d{number}/new", b"x", expected=None)
        with pytest.raises(RetryableToolError):
            await workspace.write("f", b"x", expected=hash_of(b"wrong"))
    assert len(os.listdir("/proc/self/fd")) == before


# --- removing ------------------------------------------------------------------------------


async def test_a_file_is_removed_and_its_content_handed_on(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "d").mkdir()
    (project / "d" / "f").write_bytes(b"old")
    touched = await workspace.remove("d/f", expected=hash_of(b"old"))
    assert os.listdir(project / "d") == []
    assert (touched.path, touched.action, touched.data_before) == ("d/f", "deleted", b"old")
    assert stat.S_ISREG(touched.mode_before)


@pytest.mark.parametrize("name", ["f", "gone", "gone/f"])
async def test_a_file_of_another_content_or_that_is_gone_is_not_removed(
    workspace: LocalWorkspace, project: Path, name: str
) -> None:
    (project / "f").write_bytes(b"other")
    with pytest.raises(RetryableToolError, match=r"since it was read"):
        await workspace.remove(name, expected=hash_of(b"old"))
    assert (project / "f").read_bytes() == b"other"


async def test_neither_a_folder_nor_a_file_with_two_names_is_removed(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "d").mkdir()
    (project / "f").write_bytes(b"old")
    os.link(project / "f", project / "g")
    for name in ("d", "f"):
        with pytest.raises(FinalToolError):
            await workspace.remove(name, expected=hash_of(b"old"))
    assert {"d", "f", "g"} <= set(os.listdir(project))
