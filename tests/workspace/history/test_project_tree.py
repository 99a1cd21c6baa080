"""The tree of listings: equal files give one hash, and what differs is found by it."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from tests.crash.rewinds import Ground, some_line
from tests.support.file_tree import run_script
from weft.ids import BlobId
from weft.workspace.history.history import FileHistory, HistoryLimits, WatchedRun
from weft.workspace.history.project_tree import (
    ProjectTree,
    TreeEntry,
    changed_since,
    entries_along,
    entries_of,
    files_of,
    listing,
)

pytestmark = pytest.mark.anyio


def test_a_listing_is_stored_in_this_form_for_ever() -> None:
    made = listing(
        [
            TreeEntry("cart.py", 33188, "ab"),
            TreeEntry("pipe", 4096),
            TreeEntry("Z", 16384, "cd"),
        ]
    )
    stored = b'[["Z",16384,"cd"],["cart.py",33188,"ab"],["pipe",4096,""]]'
    assert made.data == stored
    assert made.digest == hashlib.sha256(stored).hexdigest()
    assert list(entries_of(stored)) == ["Z", "cart.py", "pipe"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "nul\\u0000"])
def test_a_name_that_is_no_name_in_a_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name in a folder"):
        entries_of(f'[["{name}",33188,"ab"]]'.encode())


@pytest.mark.parametrize("mode", [0o104755, 0o100600, 0o040700, -1, 2**40])
def test_a_mode_that_no_listing_of_ours_has_is_refused(mode: int) -> None:
    with pytest.raises(ValueError, match="no mode of a file"):
        entries_of(f'[["run",{mode},"ab"]]'.encode())


def test_a_name_that_stands_in_a_folder_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        entries_of(b'[["a",33188,"ab"],["a",33188,"cd"]]')


async def test_one_path_of_a_stored_tree_costs_a_listing_for_each_folder_above_it() -> None:
    blobs: dict[BlobId, bytes] = {}
    asked: list[BlobId] = []

    def folder(*entries: TreeEntry) -> str:
        made = listing(entries)
        blobs[made.digest] = made.data
        return made.digest

    async def load(digest: BlobId) -> bytes | None:
        asked.append(digest)
        return blobs.get(digest)

    inner = folder(TreeEntry("c.py", 33188, "ab"))
    others = [TreeEntry(f"d{n}", 16384, folder(TreeEntry(f"{n}", 33188, "x"))) for n in range(20)]
    top = BlobId(folder(TreeEntry("src", 16384, inner), TreeEntry("to", 40960, "cd"), *others))
    assert list(await entries_along(top, "src/c.py", load)) == ["src", "src/c.py"]
    assert asked == [top, inner]
    assert list(await entries_along(top, "src/none/deep.py", load)) == ["src"]
    assert list(await entries_along(top, "to/c.py", load)) == ["to"]
    del blobs[BlobId(inner)]
    with pytest.raises(LookupError):
        await entries_along(top, "src/c.py", load)


class Blobs:
    """The listings of trees, as a store has them."""

    def __init__(self) -> None:
        self.data: dict[BlobId, bytes] = {}
        self.read: list[BlobId] = []

    def keep(self, tree: ProjectTree) -> None:
        self.data |= {each.digest: each.data for each in tree.folders.values()}

    async def load(self, digest: BlobId) -> bytes | None:
        self.read.append(digest)
        return self.data.get(digest)


@pytest.mark.process
@pytest.mark.parametrize("seed", range(6))
async def test_a_tree_that_followed_every_change_is_that_of_a_first_look(
    tmp_path: Path, seed: int
) -> None:
    ground = Ground(tmp_path, seed, "", "off")
    ground.make()
    dice = random.Random(seed)
    history, blobs = FileHistory(str(ground.project)), Blobs()
    blobs.keep(before := history.tree(WatchedRun()))
    for _ in range(8):
        run_script(ground.project, "\n".join(some_line(dice) for _ in range(3)))
        now = history.tree(WatchedRun())
        fresh = FileHistory(str(ground.project)).tree(WatchedRun())
        assert now == fresh
        blobs.keep(now)
        changes, listings = await changed_since(before.digest, now, blobs.load)
        was, is_now = await known(before, blobs), await known(now, blobs)
        differing = {
            path for path in was.keys() | is_now.keys() if was.get(path) != is_now.get(path)
        }
        assert {change.path for change in changes} == differing
        assert {each.digest for each in now.folders.values()} == {
            *(each.digest for each in listings),
            *(each.digest for each in before.folders.values() if each in now.folders.values()),
        }
        before = now
    history.close()


async def known(tree: ProjectTree, blobs: Blobs) -> dict[str, tuple[int, str]]:
    """What there is, without what the hash of a folder says of its files."""
    files = await files_of(tree.digest, blobs.load)
    return {path: (each.mode, "" if each.is_folder else each.hash) for path, each in files.items()}


async def test_only_folders_that_differ_are_looked_at(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"d{number}" / "deep").mkdir(parents=True)
        (tmp_path / f"d{number}" / "deep" / "f").write_text(str(number))
    history, blobs = FileHistory(str(tmp_path)), Blobs()
    blobs.keep(before := history.tree(WatchedRun()))
    (tmp_path / "d7" / "deep" / "f").write_text("changed")
    now = history.tree(WatchedRun())
    changes, listings = await changed_since(before.digest, now, blobs.load)
    assert [change.path for change in changes] == ["d7/deep/f"]
    assert len(listings) == len(blobs.read) == 3
    history.close()


def test_nothing_is_done_again_where_nothing_changed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    history = FileHistory(str(tmp_path))
    assert history.tree_quickly() is None
    first = history.tree(WatchedRun())
    assert history.tree_quickly() is first
    (tmp_path / "a").write_text("2")
    assert history.tree_quickly() is None
    os.utime(tmp_path / "a")
    second = history.tree(WatchedRun())
    assert second.digest != first.digest
    assert history.tree_quickly() is second
    history.close()


def test_a_mode_that_was_changed_by_another_name_of_a_file_is_seen_under_all(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_text("1")
    os.link(tmp_path / "a", tmp_path / "b")
    history = FileHistory(str(tmp_path))
    history.tree(WatchedRun())
    (tmp_path / "a").chmod(0o700)
    now = history.tree(WatchedRun())
    assert {each.mode & 0o777 for each in entries_of(now.folders[""].data).values()} == {0o755}
    history.close()


def digest_of(root: Path, max_file: int = 100) -> BlobId:
    """The tree hash, by a first look."""
    history = FileHistory(str(root), limits=HistoryLimits(max_file=max_file))
    found = history.tree(WatchedRun()).digest
    history.close()
    return found


def test_the_tree_hash_is_of_the_files_and_not_of_their_times_or_our_limits(
    tmp_path: Path,
) -> None:
    (tmp_path / "large").write_bytes(b"1" * 5_000)
    (tmp_path / "small").write_text("1")
    history = FileHistory(str(tmp_path), limits=HistoryLimits(max_file=100))
    first = history.tree(WatchedRun()).digest
    os.utime(tmp_path / "large", ns=(1, 1))
    assert history.tree(WatchedRun()).digest == first
    assert digest_of(tmp_path) == digest_of(tmp_path, 10_000) == first
    # Its size and time are the same, and it is another file.
    (tmp_path / "large").write_bytes(b"2" * 5_000)
    os.utime(tmp_path / "large", ns=(1, 1))
    assert history.tree(WatchedRun()).digest != first
    history.close()


def test_modes_are_those_of_git(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o700)
    (tmp_path / "plain").write_text("1")
    (tmp_path / "program").write_text("1")
    (tmp_path / "link").symlink_to("plain")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "program").chmod(0o700)
    history = FileHistory(str(tmp_path))
    first = history.tree(WatchedRun())
    modes = {name: each.mode for name, each in entries_of(first.folders[""].data).items()}
    assert modes == {
        "d": 0o040000,
        "plain": 0o100644,
        "program": 0o100755,
        "link": 0o120000,
        "pipe": 0o010000,
    }
    (tmp_path / "d").chmod(0o755)
    (tmp_path / "plain").chmod(0o600)
    (tmp_path / "program").chmod(0o755)
    assert history.tree(WatchedRun()).digest == first.digest
    history.close()
