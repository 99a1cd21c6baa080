"""Both ways of opening a name below a folder: the system call and the walk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from weft.workspace import safe_open as beneath
from weft.workspace.safe_open import Opener, make_folders, open_beneath, open_folder, walk


@pytest.fixture(params=["openat2", "walk"])
def opener(request: pytest.FixtureRequest) -> Opener:
    """Each way in turn."""
    return walk if request.param == "walk" else beneath._openat2()


@pytest.fixture
def folder(project: Path) -> Iterator[int]:
    """The project, open."""
    fd = open_folder(str(project))
    yield fd
    os.close(fd)


def opened(opener: Opener, folder: int, name: str, flags: int = os.O_RDONLY) -> bytes:
    fd = opener(folder, name, flags | os.O_CLOEXEC, 0)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def test_this_machine_has_the_system_call() -> None:
    """Else the tests of this folder would say nothing about it."""
    assert beneath._opener() is not walk


def test_a_plain_name_is_opened(opener: Opener, folder: int) -> None:
    assert opened(opener, folder, "src/deep/leaf.txt") == b"leaf\n"


@pytest.mark.parametrize(
    ("link", "target", "name"),
    [
        ("link", "src/main.py", "link"),
        ("link", "src", "link/main.py"),
        ("out", "../outside", "out/secret.txt"),
        ("out", "../outside/secret.txt", "out"),
        ("proc", "/proc/self/root", "proc/etc/hostname"),
        ("loop", "loop", "loop/x"),
        ("new", "../outside/new", "new"),
    ],
)
def test_no_link_is_followed_in_any_part(
    opener: Opener, folder: int, project: Path, link: str, target: str, name: str
) -> None:
    (project / link).symlink_to(target)
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_PATH):
        with pytest.raises(OSError, match=r".") as caught:
            opened(opener, folder, name, flags)
        assert caught.value.errno == errno.ELOOP
    assert not (project.parent / "outside" / "new").exists()


def test_a_magic_link_of_the_system_is_not_followed(opener: Opener) -> None:
    fd = open_folder("/proc/self")
    try:
        with pytest.raises(OSError, match=r".") as caught:
            opened(opener, fd, "root/etc/hostname")
    finally:
        os.close(fd)
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../outside/secret.txt", "src/../src/main.py", "src\0x"]
)
def test_a_name_that_is_none_is_refused_before_the_system_sees_it(folder: int, name: str) -> None:
    with pytest.raises(ValueError, match="not a name below a folder"):
        open_beneath(folder, name, os.O_RDONLY)


@pytest.mark.parametrize(
    ("name", "code"),
    [("none", errno.ENOENT), ("src/main.py/x", errno.ENOTDIR), ("none/x", errno.ENOENT)],
)
def test_what_is_missing_is_told_apart(opener: Opener, folder: int, name: str, code: int) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        opened(opener, folder, name)
    assert caught.value.errno == code


def test_missing_folders_are_made_and_a_link_among_them_is_refused(
    folder: int, project: Path
) -> None:
    os.close(make_folders(folder, "a/b/c"))
    assert (project / "a" / "b" / "c").is_dir()
    (project / "out").symlink_to("../outside")
    with pytest.raises(OSError, match=r".") as caught:
        make_folders(folder, "out/made")
    assert caught.value.errno == errno.ELOOP
    assert not (project.parent / "outside" / "made").exists()


def test_no_descriptor_is_left_open(opener: Opener, folder: int, project: Path) -> None:
    (project / "out").symlink_to("../outside")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("src/deep/leaf.txt", "none/x/y", "out/x", "src/main.py/x"):
        with suppress(OSError):
            opened(opener, folder, name)
        with suppress(OSError):
            os.close(make_folders(folder, name))
    assert len(os.listdir("/proc/self/fd")) == before
