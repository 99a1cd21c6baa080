"""Reading through the door."""

from __future__ import annotations

import os
import socket
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.example_count import examples
from tests.support.project_beside_secret import SECRET
from tests.support.rename_exchange import exchange
from weft.errors import FinalToolError, ToolError
from weft.workspace import LocalWorkspace
from weft.workspace.local import MAX_READ

pytestmark = pytest.mark.anyio

TRIES = examples(500)


async def test_a_file_comes_whole_with_its_hash_and_mode(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "run.sh").write_bytes(b"#!/bin/sh\n")
    (project / "run.sh").chmod(0o750)
    state = await workspace.read("run.sh")
    assert (state.path, state.data, state.mode, state.size) == ("run.sh", b"#!/bin/sh\n", 0o750, 10)
    assert state.hash == sha256(b"#!/bin/sh\n").hexdigest()
    assert not state.truncated


async def test_an_absolute_path_inside_is_the_same_file(
    workspace: LocalWorkspace, project: Path
) -> None:
    assert (await workspace.read(str(project / "src/main.py"))).path == "src/main.py"


@pytest.mark.parametrize("size", [0, 100, 64 * 1024, 64 * 1024 + 1, 3_000_000])
async def test_small_and_large_files_read_alike(
    workspace: LocalWorkspace, project: Path, size: int
) -> None:
    data = os.urandom(size)
    (project / "data").write_bytes(data)
    assert (await workspace.read("data")).data == data
    cut = await workspace.read("data", limit=50)
    assert (cut.data, cut.truncated, cut.size) == (data[:50], size > 50, size)


async def test_a_read_without_a_limit_is_bounded_all_the_same(
    workspace: LocalWorkspace, project: Path
) -> None:
    with (project / "huge").open("wb") as file:
        file.truncate(MAX_READ + 1)
    state = await workspace.read("huge")
    assert (len(state.data), state.truncated, state.size) == (MAX_READ, True, MAX_READ + 1)


async def test_a_missing_file_is_none_to_a_peek_and_an_error_to_a_read(
    workspace: LocalWorkspace,
) -> None:
    assert await workspace.peek("none/at/all") is None
    with pytest.raises(FinalToolError, match="there is no file 'none'"):
        await workspace.read("none")


@pytest.mark.parametrize("path", ["src", "src/", ".", "src/main.py/", "src/main.py/x"])
async def test_a_folder_or_a_file_taken_for_one_is_refused(
    workspace: LocalWorkspace, path: str
) -> None:
    with pytest.raises(FinalToolError):
        await workspace.peek(path)


async def test_pipes_sockets_and_devices_are_refused_at_once(
    workspace: LocalWorkspace, project: Path
) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(FinalToolError, match="named pipe"):
        await workspace.read("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(project / "socket"))
        with pytest.raises(FinalToolError, match="pipe or device"):
            await workspace.read("socket")
    with pytest.raises(FinalToolError, match="device"):
        await workspace.read("/dev/zero")


# --- links -----------------------------------------------------------------------------------


async def test_links_inside_the_project_are_followed_and_named_by_what_they_lead_to(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "file").symlink_to("src/main.py")
    (project / "folder").symlink_to("src/deep")
    (project / "absolute").symlink_to(project / "src")
    for path, real in [
        ("file", "src/main.py"),
        ("folder/leaf.txt", "src/deep/leaf.txt"),
        ("absolute/main.py", "src/main.py"),
        ("src/main.py", "src/main.py"),
        ("folder/new.txt", "src/deep/new.txt"),
        ("nothing/here", "nothing/here"),
    ]:
        assert await workspace.resolve(path) == real
    assert (await workspace.read("file")).path == "src/main.py"
    assert (await workspace.read("absolute/deep/leaf.txt")).data == b"leaf\n"


ESCAPES = [
    ("out", "../outside", "out/secret.txt"),
    ("out", "../outside/secret.txt", "out"),
    ("src/out", "../../outside", "src/out/secret.txt"),
    ("first", "second", "first/secret.txt"),
    ("proc", "/proc/self/root", "proc/etc/hostname"),
    ("cwd", "/proc/self/cwd", "cwd/x"),
    ("etc", "/etc", "etc/hostname"),
    ("dangling", "../outside/none", "dangling"),
    ("evil", "../project_evil", "evil/secret.txt"),
]


@pytest.mark.parametrize(("link", "target", "path"), ESCAPES)
async def test_a_link_that_leads_out_is_refused_for_reading_listing_and_writing(
    workspace: LocalWorkspace, project: Path, link: str, target: str, path: str
) -> None:
    (project / "second").symlink_to("../outside")
    evil = project.parent / "project_evil"
    evil.mkdir()
    (evil / "secret.txt").write_text(SECRET)
    (project / link).symlink_to(target)
    for attempt in (
        workspace.resolve(path),
        workspace.read(path),
        workspace.list(path),
        workspace.write(path, b"x", expected=None),
    ):
        with pytest.raises(FinalToolError, match="leads out of the project"):
            await attempt
    assert sorted(name.name for name in (project.parent / "outside").iterdir()) == ["secret.txt"]


async def test_a_loop_of_links_is_refused(workspace: LocalWorkspace, project: Path) -> None:
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    with pytest.raises(FinalToolError, match="link"):
        await workspace.read("a")
    with pytest.raises(FinalToolError, match="link"):
        await workspace.write("a", b"x", expected=None)


async def test_a_path_outside_as_written_is_told_as_such_and_opened(
    workspace: LocalWorkspace, project: Path
) -> None:
    path = str(project.parent / "outside" / "secret.txt")
    assert workspace.is_outside(path)
    assert workspace.is_outside("../outside/secret.txt")
    assert (await workspace.read(path)).path == path
    assert not workspace.is_outside("src/none")


async def test_an_added_folder_is_open_too(project: Path) -> None:
    added = project.parent / "outside"
    workspace = LocalWorkspace(str(project), added=[str(added)])
    (project / "into").symlink_to("../outside")
    assert not workspace.is_outside(str(added / "secret.txt"))
    assert (await workspace.read(str(added / "secret.txt"))).data == SECRET.encode()
    assert await workspace.resolve("into/secret.txt") == str(added / "secret.txt")


async def test_swapping_a_folder_for_a_link_never_leaks_what_lies_outside(
    workspace: LocalWorkspace, project: Path
) -> None:
    """Both sides of the swap are met often before we stop."""
    (project / "real").mkdir()
    (project / "real" / "secret.txt").write_text("inside")
    (project / "trap").symlink_to("../outside")
    going = threading.Event()
    going.set()

    def swap() -> None:
        while going.is_set():
            exchange(project / "real", project / "trap")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: list[bytes] = []
    refused = 0
    try:
        while len(seen) < TRIES or refused < TRIES:
            try:
                state = await workspace.peek("real/secret.txt")
            except ToolError:
                refused += 1
                continue
            if state is not None:
                seen.append(state.data)
    finally:
        going.clear()
        swapper.join()
    assert set(seen) == {b"inside"}


async def test_a_folder_is_listed_sorted_with_kinds(
    workspace: LocalWorkspace, project: Path
) -> None:
    (project / "link").symlink_to("src")
    os.mkfifo(project / "pipe")
    (project / "a.txt").write_text("")
    (project / os.fsdecode(b"bad\xff")).write_text("")
    assert await workspace.list(".") == [
        ("a.txt", "file"),
        ("bad\ufffd", "file"),
        ("link", "link"),
        ("pipe", "other"),
        ("src", "dir"),
    ]
    for path in ("none", "a.txt"):
        with pytest.raises(FinalToolError, match="folder"):
            await workspace.list(path)


async def test_reading_leaves_no_descriptor_open(workspace: LocalWorkspace, project: Path) -> None:
    (project / "big").write_bytes(b"x" * 200_000)
    os.mkfifo(project / "pipe")
    await workspace.read("big")
    before = len(os.listdir("/proc/self/fd"))
    for path in ["src/main.py", "big", "src", "none", "pipe"] * 20:
        try:
            await workspace.peek(path)
            await workspace.list(path)
        except ToolError:
            pass
    assert len(os.listdir("/proc/self/fd")) == before
