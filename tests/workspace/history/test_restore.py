"""Putting one path back: exactly that, durably, and only if it still is what was looked at."""

from __future__ import annotations

import itertools
import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.example_count import cases
from tests.support.file_tree import TreeEntry, tree
from weft import faults
from weft.errors import FinalToolError, RetryableToolError
from weft.ids import BlobId
from weft.workspace import FileImage
from weft.workspace.history.restore import PathRestorer
from weft.workspace.writes.atomic_write import OURS, TEMPORARY
from weft.workspace.writes.displaced_file import displaced_name

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "d").mkdir(parents=True)
    (root / "f").write_bytes(b"one\r\n")
    (root / "d" / "x").write_text("x")
    (root / "l").symlink_to("f")
    return root


@pytest.fixture
def restorer(root: Path) -> PathRestorer:
    return PathRestorer(str(root), max_file=1_000)


async def image(restorer: PathRestorer, path: str) -> FileImage:
    found = await restorer.look(path)
    assert found is not None
    return found


async def test_what_is_there_is_seen_with_its_content_and_mode(
    root: Path, restorer: PathRestorer
) -> None:
    (root / "f").chmod(0o640)
    (root / "big").write_bytes(b"x" * 1_001)
    file, link, folder = [await image(restorer, name) for name in ("f", "l", "d")]
    assert (file.data, stat.S_IMODE(file.mode)) == (b"one\r\n", 0o640)
    assert (link.data, stat.S_ISLNK(link.mode)) == (b"f", True)
    assert (folder.names, stat.S_ISDIR(folder.mode)) == (("x",), True)
    assert (await image(restorer, "big")).hash is None
    for nothing in ("none", "none/x", "f/x", "l/x"):
        assert await restorer.look(nothing) is None


KINDS: dict[str, TreeEntry | None] = {
    "nothing": None,
    "file": TreeEntry(stat.S_IFREG | 0o644, b"1"),
    "private file": TreeEntry(stat.S_IFREG | 0o600, b"2\r\n\0\xff"),
    "program": TreeEntry(stat.S_IFREG | 0o755, b"1"),
    "link": TreeEntry(stat.S_IFLNK | 0o777, b"f"),
    "dangling link": TreeEntry(stat.S_IFLNK | 0o777, b"no/where"),
    "folder": TreeEntry(stat.S_IFDIR | 0o755, None),
    "private folder": TreeEntry(stat.S_IFDIR | 0o700, None),
}


def put(path: Path, thing: TreeEntry | None) -> None:
    if thing is None:
        return
    if thing.content is None:
        path.mkdir()
    elif stat.S_ISLNK(thing.mode):
        os.symlink(thing.content, os.fsencode(path))
        return
    else:
        path.write_bytes(thing.content)
    path.chmod(stat.S_IMODE(thing.mode))


@pytest.mark.parametrize(("now", "wanted"), cases(itertools.product(KINDS, KINDS)))
async def test_anything_can_become_anything_again(
    now: str, wanted: str, root: Path, restorer: PathRestorer
) -> None:
    put(root / "d" / "p", KINDS[wanted])
    goal, target = tree(root), await restorer.look("d/p")
    path = root / "d" / "p"
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        path.rmdir()
    put(path, KINDS[now])
    await restorer.put_back("d/p", target, expected=await restorer.look("d/p"))
    assert tree(root) == goal


async def test_what_was_changed_since_it_was_looked_at_is_left_alone(
    root: Path, restorer: PathRestorer
) -> None:
    seen = await image(restorer, "f")
    wanted = FileImage(mode=seen.mode, hash=seen.hash, data=b"wanted")
    (root / "f").write_text("by hand")
    before = tree(root)
    for expected in (seen, None):
        for image_ in (wanted, None):
            with pytest.raises(RetryableToolError, match="changed meanwhile"):
                await restorer.put_back("f", image_, expected=expected)
    with pytest.raises(RetryableToolError):
        await restorer.put_back("new/x", wanted, expected=seen)
    assert tree(root) == before


@pytest.mark.parametrize("path", ["f", "l"])
@pytest.mark.parametrize("is_removed", [False, True])
async def test_what_is_changed_behind_the_last_look_is_left_alone(
    root: Path, restorer: PathRestorer, path: str, is_removed: bool
) -> None:
    seen = await restorer.look(path)
    wanted = FileImage(mode=stat.S_IFREG | 0o644, hash=BlobId("0" * 64), data=b"wanted")

    def change(name: str) -> None:
        (root / path).unlink()
        (root / path).write_text("by hand")

    faults.arm("workspace.restore.before_rename", action=change)
    try:
        with pytest.raises(RetryableToolError, match="changed meanwhile"):
            await restorer.put_back(path, None if is_removed else wanted, expected=seen)
    finally:
        faults.disarm_all()
    assert (root / path).read_text() == "by hand"
    assert [name for name in os.listdir(root) if name.startswith(OURS)] == []


async def test_a_link_that_a_killed_process_displaced_is_swept_if_it_is_known(
    root: Path, restorer: PathRestorer
) -> None:
    old = sha256(b"f").hexdigest()
    known, other = displaced_name(old, None, "l"), displaced_name(None, old, "gone")
    (root / known).symlink_to("f")
    (root / other).symlink_to("elsewhere")
    await restorer.put_back("f", None, expected=await restorer.look("f"))
    # The other one is kept, and takes no place: anybody could have given it its name.
    assert sorted(tree(root)) == [other, "d", "d/x", "l"]
    assert os.readlink(root / other) == "elsewhere"


async def test_a_folder_that_holds_anything_is_not_removed(
    root: Path, restorer: PathRestorer
) -> None:
    before = tree(root)
    with pytest.raises(FinalToolError, match="not empty"):
        await restorer.put_back("d", None, expected=await restorer.look("d"))
    assert tree(root) == before


async def test_nothing_is_put_through_a_link(
    root: Path, restorer: PathRestorer, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "way").symlink_to(outside)
    wanted = FileImage(mode=stat.S_IFREG | 0o644, data=b"x")
    with pytest.raises(FinalToolError):
        await restorer.put_back("way/x", wanted, expected=None)
    assert list(outside.iterdir()) == []


async def test_a_private_file_is_never_readable_by_others_on_the_way(
    root: Path, restorer: PathRestorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    write = os.write

    def watching(fd: int, data: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return write(fd, data)

    monkeypatch.setattr("weft.workspace.writes.atomic_write.os.write", watching)
    wanted = FileImage(mode=stat.S_IFREG | 0o600, data=b"secret")
    await restorer.put_back("new/secret", wanted, expected=None)
    assert modes == [0o600]
    assert stat.S_IMODE((root / "new" / "secret").stat().st_mode) == 0o600


async def test_what_a_killed_process_left_half_done_is_swept(
    root: Path, restorer: PathRestorer
) -> None:
    (root / f"{TEMPORARY}0").write_text("half")
    (root / f"{TEMPORARY}1").symlink_to("half")
    await restorer.put_back("f", None, expected=await restorer.look("f"))
    assert sorted(tree(root)) == ["d", "d/x", "l"]


async def test_bits_that_lend_an_owners_rights_are_not_given_to_a_new_file(
    root: Path, restorer: PathRestorer
) -> None:
    wanted = FileImage(mode=stat.S_IFREG | 0o4755, data=b"x")
    await restorer.put_back("su", wanted, expected=None)
    assert stat.S_IMODE((root / "su").stat().st_mode) == 0o755
