"""Escapes from the sandbox by named pipes, which a read-only mount lets be written to.

A pipe lies outside with a reader of ours; a command tries to open it for writing in every way there
is.  With Landlock taken out of the keeper, each one works.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.sandbox_cell import (
    NEEDS_LANDLOCK,
    WITHOUT_LANDLOCK,
    SandboxCell,
    keeper_without,
    sandbox_cell,
)
from tests.support.sandboxed_project import sandboxed_project
from weft.workspace.sandbox import keeper as sandbox_keeper

pytestmark = pytest.mark.anyio

WHO = pytest.mark.parametrize("who", ["root", "nobody", "me"])

ATTACKS = """
import os, sys
path = sys.argv[1]
folder, name = os.path.split(path)
now = os.O_NONBLOCK

def again(fd, flags):
    return os.open(f"/proc/self/fd/{fd}", flags | now)

def linked():
    os.symlink(path, "link")
    return os.open("link", os.O_WRONLY | now)

def climbing():
    os.chdir(folder)
    return os.open(f"/proc/self/cwd/{name}", os.O_WRONLY | now)

ways = {
    "write": lambda: os.open(path, os.O_WRONLY | now),
    "truncate": lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | now),
    "append": lambda: os.open(path, os.O_WRONLY | os.O_APPEND | now),
    "both": lambda: os.open(path, os.O_RDWR),
    "by folder": lambda: os.open(name, os.O_WRONLY | now, dir_fd=os.open(folder, os.O_PATH)),
    "path again": lambda: again(os.open(path, os.O_PATH), os.O_WRONLY),
    "reader again": lambda: again(os.open(path, os.O_RDONLY | now), os.O_WRONLY),
    "root": lambda: os.open("/proc/self/root" + path, os.O_WRONLY | now),
    "link": linked,
    "climbing": climbing,
}
for way, opened in ways.items():
    try:
        os.write(opened(), way.encode() + b"\\n")
    except OSError as error:
        print(f"{way}: {error.strerror}")
"""
WAYS = [
    *("write", "truncate", "append", "both", "by folder", "path again", "reader again", "root"),
    *("link", "climbing"),
]


@contextmanager
def pipe(path: Path) -> Iterator[int]:
    """A named pipe that everybody may write to, and the descriptor of its reader."""
    os.mkfifo(path)
    path.chmod(0o666)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reader
    finally:
        os.close(reader)
        path.unlink()


def arrived(reader: int) -> list[str]:
    """What came through a pipe."""
    try:
        return os.read(reader, 10_000).decode().splitlines()
    except BlockingIOError:
        return []


def places(box: SandboxCell) -> list[Path]:
    """Where a pipe can be seen from within."""
    found = [box.outside / "pipe", box.outside.parent / "pipe"]
    if os.access("/run", os.W_OK):
        found.append(Path(f"/run/weft-test-pipe-{os.getpid()}"))
    return found


@WHO
@NEEDS_LANDLOCK
async def test_no_pipe_outside_can_be_written_to(who: str) -> None:
    async with sandbox_cell(who) as box:
        for path in places(box):
            with pipe(path) as reader:
                await box.python(ATTACKS, str(path))
                assert arrived(reader) == []
                assert box.output == "".join(f"{way}: Permission denied\n" for way in WAYS)
                assert await box.shell(f"echo out > {path}") != 0
                assert arrived(reader) == []


async def test_without_landlock_every_way_leads_into_it() -> None:
    async with sandbox_cell(without=WITHOUT_LANDLOCK) as box:
        for path in places(box):
            with pipe(path) as reader:
                await box.python(ATTACKS, str(path))
                assert arrived(reader) == WAYS
                assert await box.shell(f"echo out > {path}") == 0
                assert arrived(reader) == ["out"]


async def test_a_pipe_of_the_project_is_another_one_in_the_overlay() -> None:
    """Landlock is not needed there: what is written in the overlay stays in the overlay."""
    async with sandbox_cell(without=WITHOUT_LANDLOCK) as box:
        with pipe(box.project / "pipe") as reader:
            await box.python(ATTACKS, str(box.project / "pipe"))
            assert arrived(reader) == []
            assert "write: No such device or address" in box.output  # nobody reads it there


@NEEDS_LANDLOCK
async def test_a_pipe_cannot_be_brought_into_the_project() -> None:
    async with sandbox_cell() as box:
        with pipe(box.outside / "pipe") as reader:
            outside = box.outside / "pipe"
            assert await box.shell(f"ln {outside} hard && echo out > hard") != 0
            assert await box.shell(f"mv {outside} moved") != 0
            assert await box.shell(f"cp -a {outside} copied && echo out 1<> copied") == 0
            assert arrived(reader) == []


# --- what must go on


@WHO
async def test_pipes_of_its_own_work_wherever_a_command_can_write(who: str) -> None:
    async with sandbox_cell(who) as box:
        shared = box.scratch / "shared"
        shared.mkdir(mode=0o777)
        for folder in (".", "/dev/shm", "/mnt"):
            script = (
                f"mkfifo {folder}/own && (echo through > {folder}/own & cat {folder}/own)"
                f" && exec 7<>{folder}/own && echo both >&7 && read line <&7 && echo $line"
            )
            assert await box.shell(script, temporary=((str(shared), "/mnt"),)) == 0
            assert box.output == "through\nboth\n"


async def test_descriptors_can_be_written_to_by_their_name(tmp_path: Path) -> None:
    script = (
        "echo 1 > /dev/stdout; echo 2 > /dev/stderr; echo 3 > /dev/fd/1; echo 0 > /dev/null;"
        " cat <(echo 4); tee >(cat) > /dev/null <<< 5; wait $!; echo 6 > file;"
        " echo 7 | tee -a /proc/self/fd/2 >> file; cat file"
    )
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell(script)
        assert result.exit_code == 0
        assert sorted(result.output.split()) == ["1", "2", "3", "4", "5", "6", "7", "7"]


MOVES = "mkdir a b; echo 1 > a/f; mv a/f b/g && ln b/g a/h && mv -T b a/b && cat a/b/g a/h"


@WHO
async def test_files_move_from_folder_to_folder(who: str) -> None:
    async with sandbox_cell(who) as box:
        assert await box.run("/usr/bin/python3", "-I", "-S", "-c", RENAMES) == 0, box.output
        assert await box.shell(MOVES) == 0
        assert box.output == "1\n1\n"


RENAMES = (
    "import os\n"
    "os.makedirs('x'); os.makedirs('y'); open('x/f', 'w').write('1')\n"
    "os.rename('x/f', 'y/g'); os.link('y/g', 'x/h'); os.rename('file', 'y/file')\n"
    "fd = os.open('x', os.O_TMPFILE | os.O_WRONLY, 0o600); os.write(fd, b'2')\n"
    "os.link(f'/proc/self/fd/{fd}', 'y/named', src_dir_fd=os.open('/', 0))\n"
    "assert open('y/named').read() == '2'\n"
)


@NEEDS_LANDLOCK
async def test_moving_is_a_right_that_has_to_be_given() -> None:
    async with sandbox_cell(without=keeper_without('allow(rules, "/", MOVE)')) as box:
        assert await box.python(RENAMES) != 0
        assert "Invalid cross-device link" in box.output


@WHO
async def test_the_thread_that_starts_a_command_outlives_it(who: str) -> None:
    """A process may ask to be killed when its parent ends, and that is the thread, not the cell."""
    async with sandbox_cell(who) as box:
        assert await box.shell("ls /proc/1/task | wc -l") == 0
        assert box.output == "2\n"


# --- what the user is told


async def test_the_report_says_whether_pipes_are_refused(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        report = await there.sandbox.probe((str(there.project),))
        [layer] = [layer for layer in report.layers if layer.name == "landlock"]
        assert layer.works == sandbox_keeper.has_landlock()
        assert "named pipes" in layer.detail
        there.sandbox.keeper.has_landlock = False
        report = await there.sandbox.probe((str(there.project),))
        assert report.is_available
        [layer] = [layer for layer in report.layers if layer.name == "landlock"]
        assert not layer.works
        assert "can be written to" in layer.detail


async def test_a_kernel_without_landlock_has_the_other_walls() -> None:
    def without(source: str) -> str:
        asked = "return version >= LANDLOCK_VERSION"
        assert asked in source
        return source.replace(asked, "return False")

    async with sandbox_cell(without=without) as box:
        assert not box.keeper.has_landlock
        assert await box.shell("echo new > file && cat file") == 0
        assert await box.shell(f"echo harm > {box.outside}/canary") != 0
