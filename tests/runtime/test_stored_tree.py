"""A session's first snapshot, compared with the last tree that another session brought: it says
what a look at every file would, and asks only about those that changed.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.support.example_count import examples
from weft.events import WorkspaceSnapshot
from weft.ids import BlobId, NodeId, SessionId, TurnId
from weft.loop import Commit
from weft.runtime.snapshots import project_snapshots, stored_tree
from weft.runtime.snapshots.project_snapshots import ProjectSnapshots
from weft.state import SessionState
from weft.store import Append, Blob, MemoryStore, SessionRow
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import FileHistory, HistoryLimits

pytestmark = pytest.mark.anyio

LIMITS = HistoryLimits(max_file=64)


class CountingStore(MemoryStore):
    """A store that counts the files it is asked about."""

    asked = 0

    async def missing_blobs(
        self, blob_ids: Collection[BlobId], *, project_path: str | None = None
    ) -> set[BlobId]:
        self.asked += len(blob_ids)
        return await super().missing_blobs(blob_ids, project_path=project_path)


class SharedFiles:
    """A project on the disk, known once for all its sessions."""

    unknown = ""
    quota = 1024 * 1024

    def __init__(self, root: Path) -> None:
        self._history = FileHistory(str(root), limits=LIMITS)

    def history(self) -> FileHistory:
        return self._history


def _secrets(paths: Collection[str]) -> set[str]:
    return {path for path in paths if path.endswith(".env")}


class Sessions:
    """Sessions that each take one snapshot of a project, and store it."""

    def __init__(self, root: Path) -> None:
        self.store = CountingStore()
        self.files = SharedFiles(root)
        self._root = root
        self._threads = DiskThreads()
        self._count = 0

    async def snapshot(self, *, is_alone: bool = False, has_rules: bool = False) -> Commit:
        """What a new session would commit; alone, it knows of no other."""
        files = SharedFiles(self._root) if is_alone else self.files
        taker = ProjectSnapshots(
            files, self._threads, self.store, _secrets, has_rules=lambda: has_rules
        )
        state = SessionState(session_id=SessionId("ses_x"))
        state.about.project_path = "/p"
        state.files.had_effect = True
        return await taker.at_end(state, (), TurnId("trn_1"), NodeId("nod_1"))

    async def keep(self, commit: Commit) -> str:
        self._count += 1
        name = f"ses_{self._count}"
        await self.store.append(
            Append(
                stream=name,
                expected_seq=0,
                records=(),
                fence=(await self.store.take_lease(name)).fence,
                row=SessionRow(id=SessionId(name), project_path="/p"),
                blobs=tuple(Blob(blob_id, data) for blob_id, data in commit.blobs.items()),
                trees=tuple(commit.trees.trees),
                tree_listings=tuple(commit.trees.listings),
                tree_contents=tuple(commit.trees.contents),
            )
        )
        return name


def _project(root: Path, count: int = 30) -> Path:
    for number in range(count):
        path = root / f"d{number % 3}" / f"f{number}.txt"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"{number}\n")
    (root / "d0" / "large.bin").write_text("x" * 100)
    (root / "d1" / "keys.env").write_text("KEY=1\n")
    return root


def _fact(commit: Commit) -> WorkspaceSnapshot:
    (fact,) = commit.facts
    assert isinstance(fact, WorkspaceSnapshot)
    return fact


async def test_a_second_session_asks_only_about_what_changed(tmp_path: Path) -> None:
    sessions = Sessions(_project(tmp_path))
    await sessions.keep(await sessions.snapshot())
    (tmp_path / "d2" / "f2.txt").write_text("new\n")
    sessions.store.asked = 0
    second = await sessions.snapshot()
    assert sessions.store.asked == 2  # the tree of before, and the file
    assert [data for blob_id, data in second.blobs.items() if blob_id in second.trees.contents] == [
        b"new\n"
    ]
    assert {each.path for each in _fact(second).left_out} == {"d0/large.bin", "d1/keys.env"}


async def test_a_tree_whose_last_session_is_deleted_is_looked_at_whole(tmp_path: Path) -> None:
    sessions = Sessions(_project(tmp_path))
    first = await sessions.keep(await sessions.snapshot())
    await sessions.store.delete(SessionId(first))
    again = await sessions.snapshot()
    assert len(again.trees.contents) == 30


async def test_a_snapshot_that_was_never_stored_counts_for_nothing(tmp_path: Path) -> None:
    sessions = Sessions(_project(tmp_path))
    await sessions.snapshot()
    assert len((await sessions.snapshot()).trees.contents) == 30


async def test_a_session_with_rules_of_its_own_is_looked_at_whole(tmp_path: Path) -> None:
    sessions = Sessions(_project(tmp_path))
    await sessions.keep(await sessions.snapshot(has_rules=True))
    sessions.store.asked = 0
    await sessions.snapshot()
    assert sessions.store.asked > 30
    await sessions.keep(await sessions.snapshot())
    sessions.store.asked = 0
    await sessions.snapshot(has_rules=True)
    assert sessions.store.asked > 30


async def test_what_was_too_much_for_one_snapshot_comes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_snapshots, "MOST_FILES", 20)
    sessions = Sessions(_project(tmp_path))
    first = await sessions.snapshot()
    assert len(first.trees.contents) <= 20
    await sessions.keep(first)
    second = await sessions.snapshot()
    assert len(first.trees.contents | second.trees.contents) == 30
    assert {each.why for each in _fact(second).left_out} == {"too large", "secret"}


async def test_a_tree_that_lacks_much_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_tree, "MOST_LACKING", 1)
    sessions = Sessions(_project(tmp_path))
    await sessions.keep(await sessions.snapshot())
    sessions.store.asked = 0
    await sessions.snapshot()
    assert sessions.store.asked > 30


def _change(root: Path, dice: random.Random) -> None:
    """Something that users and commands do to files."""
    folders = [each for each in root.rglob("*") if each.is_dir()]
    files = [each for each in root.rglob("*") if each.is_file()]
    folder = dice.choice([root, *folders])
    name = dice.choice(["a.txt", "b.env", "c", "d0"])
    place = folder / name
    match dice.randrange(5):
        case 0 if not place.exists():
            place.write_text("y" * dice.choice([1, 70]))
        case 1 if files:
            dice.choice(files).write_text(str(dice.random()))
        case 2 if files:
            dice.choice(files).unlink()
        case 3 if not place.exists():
            (place / "deep").mkdir(parents=True)
            (place / "deep" / "e.txt").write_text("e")
        case _ if files:
            file = dice.choice(files)
            file.chmod(0o755 if dice.random() < 0.5 else 0o644)


@pytest.mark.parametrize("seed", range(examples(20)))
async def test_it_says_what_a_look_at_every_file_says(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    sessions = Sessions(_project(tmp_path, dice.randrange(2, 12)))
    for _ in range(6):
        for _ in range(dice.randrange(4)):
            _change(tmp_path, dice)
        whole = await sessions.snapshot(is_alone=True)
        quick = await sessions.snapshot()
        assert quick.facts == whole.facts
        assert quick.trees == whole.trees
        assert quick.blobs == whole.blobs
        await sessions.keep(quick)
