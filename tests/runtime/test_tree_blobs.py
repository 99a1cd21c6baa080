"""What trees name: each listing is read once, and nothing of a file is believed."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from weft.events import LeftOutFile, SnapshotChange, WorkspaceSnapshot
from weft.ids import BlobId
from weft.runtime.snapshots.tree_blobs import TreeCollector, checked_blobs
from weft.store import MemoryStore
from weft.workspace.history.project_tree import TreeEntry, entries_of, files_of, listing

FILE, LINK, FOLDER = 0o100644, 0o120000, 0o040000
X = BlobId("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")
"""The hash of `x`."""


class Held(dict[BlobId, bytes]):
    """Blobs of a file, and how often each is read."""

    def __init__(self) -> None:
        super().__init__({X: b"x"})
        self.reads = 0

    def __getitem__(self, blob_id: BlobId) -> bytes:
        self.reads += 1
        return super().__getitem__(blob_id)

    def folder(self, *entries: TreeEntry) -> BlobId:
        made = listing(entries)
        self[made.digest] = made.data
        return made.digest


def nested(held: Held, depth: int, names: Iterable[str]) -> BlobId:
    """A listing whose names all lead to one listing, and so on."""
    names = list(names)
    inner = held.folder(TreeEntry("x", FILE, X))
    for _ in range(depth):
        inner = held.folder(*(TreeEntry(name, FOLDER, inner) for name in names))
    return inner


def test_listings_that_share_others_are_counted_and_not_walked() -> None:
    held = Held()
    bomb = nested(held, 60, "ab")
    with pytest.raises(ValueError, match="more than 250000 files"):
        checked_blobs([WorkspaceSnapshot(tree=bomb)], held)
    assert held.reads <= 61


def test_snapshots_of_one_tree_read_its_listings_once() -> None:
    held = Held()
    tree = nested(held, 3, "abc")
    named = checked_blobs([WorkspaceSnapshot(tree=tree)] * 1_000, held)
    assert held.reads == 4
    assert set(named) == set(held)


def test_folders_nested_deeper_than_any_path_are_refused() -> None:
    held = Held()
    tree = nested(held, 30_000, "a")
    with pytest.raises(ValueError, match="path of more than 4096 bytes"):
        checked_blobs([WorkspaceSnapshot(tree=tree)], held)


def snapshot(held: Held, **fields: object) -> WorkspaceSnapshot:
    """A sound one, with something in the place of some of it."""
    inner = held.folder(TreeEntry("x", FILE, X), TreeEntry("large", FILE, "1" * 64))
    tree = held.folder(TreeEntry("d", FOLDER, inner), TreeEntry("pipe", 0o010000))
    sound = WorkspaceSnapshot(
        tree=tree,
        after=BlobId("2" * 64),
        changes=(
            SnapshotChange(path="d", mode=FOLDER),
            SnapshotChange(path="d/x", mode=FILE, content=X),
            SnapshotChange(path="gone"),
        ),
        left_out=(
            LeftOutFile(path="d/large", why="too large", content=BlobId("1" * 64)),
            LeftOutFile(path="pipe", why="not a regular file"),
        ),
    )
    return msgspec.structs.replace(sound, **fields)


LARGE = LeftOutFile(path="d/large", why="too large", content=BlobId("1" * 64))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"tree": None}, "no tree"),
        ({"tree": BlobId("3" * 64)}, "does not hold"),
        ({"tree": X}, "malformed"),
        ({"left_out": ()}, "neither in it nor left out"),
        ({"left_out": (LARGE, LARGE)}, "left out twice"),
        ({"left_out": (LARGE, LeftOutFile(path="a", why="", content=X))}, "does not have it"),
        ({"left_out": (LeftOutFile(path="d/large", why="quota"),)}, "does not have it"),
        ({"left_out": (LARGE, LeftOutFile(path="d", why="quota"))}, "does not have it"),
        ({"left_out": (LeftOutFile(path="d/large", why="\n" * 9, content=LARGE.content),)}, "rea"),
        ({"changes": (SnapshotChange(path="d/x", mode=2**40, content=X),)}, "not what the tree"),
        ({"changes": (SnapshotChange(path="d/x", mode=0o104755, content=X),)}, "not what the tree"),
        ({"changes": (SnapshotChange(path="d/x"),)}, "not what the tree"),
        ({"changes": (SnapshotChange(path="gone", content=X),)}, "not what the tree"),
        ({"changes": (SnapshotChange(path="gone"), SnapshotChange(path="gone"))}, "twice"),
        ({"changes": (SnapshotChange(path="../up"),)}, "no path"),
        ({"changes": (SnapshotChange(path="/etc/passwd"),)}, "no path"),
        ({"changes": (SnapshotChange(path="a/" * 3_000 + "b"),)}, "no path"),
        ({"changes": (SnapshotChange(path="gone", by="x" * 1_000),)}, "no reason"),
        ({"changes": tuple(SnapshotChange(path=f"{n}") for n in range(10_001))}, "more than"),
        ({"after": BlobId("../x")}, "is no tree"),
    ],
)
def test_what_does_not_fit_its_tree_is_refused(fields: dict[str, object], why: str) -> None:
    held = Held()
    given = snapshot(held, **fields)
    if not fields:
        assert set(checked_blobs([given], held)) == set(held)
        return
    with pytest.raises(ValueError, match=why):
        checked_blobs([given], held)


def test_a_listing_with_version_controls_own_folder_is_refused() -> None:
    data = listing([TreeEntry(".git", FOLDER, "ab")]).data
    with pytest.raises(ValueError, match="version control's own"):
        entries_of(data)


@pytest.mark.anyio
async def test_a_stored_tree_that_stands_for_too_many_paths_is_refused() -> None:
    held = Held()
    bomb = nested(held, 40, "ab")

    async def load(digest: BlobId) -> bytes | None:
        return held.get(digest)

    with pytest.raises(ValueError, match="more than 250000"):
        await files_of(bomb, load)


class CountingStore(MemoryStore):
    """A store that counts what is asked of it."""

    reads = 0

    async def blob(self, blob_id: BlobId) -> bytes | None:
        self.reads += 1
        return await super().blob(blob_id)


@pytest.mark.anyio
async def test_an_export_reads_each_listing_and_content_once_and_names_what_is_gone() -> None:
    held, store = Held(), CountingStore()
    inner = held.folder(TreeEntry("gone", FILE, "4" * 64), TreeEntry("secret", FILE, X))
    trees = [
        held.folder(
            TreeEntry("d", FOLDER, inner), TreeEntry("x", FILE, X), TreeEntry(f"{n}", FILE, X)
        )
        for n in range(5)
    ]
    store.data.blobs.update(held)
    collector = TreeCollector(store)
    left_out: dict[tuple[str, BlobId | None], str]
    left_out = {("d/secret", X): "secret", ("elsewhere", X): "quota"}
    for tree in trees:
        assert await collector.add(tree, left_out) == (
            LeftOutFile(path="d/gone", why="quota", content=BlobId("4" * 64)),
            LeftOutFile(path="d/secret", why="secret", content=X),
        )
    assert collector.held == dict(held)
    assert store.reads == len(held) + 1
    assert await collector.add(BlobId("5" * 64), {}) is None
