"""Snapshots that cannot be taken: the fact says where it belongs, and nothing of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.errors import WeftError
from weft.events import WorkspaceSnapshot
from weft.ids import NodeId, SessionId, TurnId
from weft.runtime.snapshots.project_snapshots import ProjectSnapshots
from weft.state import SessionState
from weft.store import Append, Blob, MemoryStore, SessionRow
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import FileHistory
from weft.workspace.history.project_tree import files_of

pytestmark = pytest.mark.anyio


class BrokenFiles:
    """A project that cannot be looked at."""

    unknown = ""
    quota = 1024

    def __init__(self, error: Exception) -> None:
        self._error = error

    def history(self) -> FileHistory:
        raise self._error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (PermissionError(13, "Permission denied", "/home/ann/shop"), "unreadable"),
        (WeftError("/home/ann/shop is broken"), "failed"),
    ],
)
async def test_a_failed_snapshot_names_its_turn_and_no_path_of_the_machine(
    error: Exception, why: str
) -> None:
    taker = ProjectSnapshots(BrokenFiles(error), DiskThreads(), MemoryStore(), lambda paths: set())
    state = SessionState(session_id=SessionId("ses_a"))
    state.files.had_effect = True
    commit = await taker.at_end(state, (), TurnId("trn_1"), NodeId("nod_1"))
    expected = WorkspaceSnapshot(turn_id=TurnId("trn_1"), node=NodeId("nod_1"), why=why)
    assert commit.facts == (expected,)


class RealFiles:
    """A project on the disk."""

    unknown = ""
    quota = 1024 * 1024

    def __init__(self, root: Path) -> None:
        self._history = FileHistory(str(root))

    def history(self) -> FileHistory:
        return self._history


async def test_a_tree_stays_whole_though_the_last_session_that_had_it_is_deleted_meanwhile(
    tmp_path: Path,
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("1\n")
    store = MemoryStore()

    async def snapshot(session: str) -> Append:
        taker = ProjectSnapshots(RealFiles(tmp_path), DiskThreads(), store, lambda paths: set())
        state = SessionState(session_id=SessionId(session))
        state.about.project_path = "/p"
        state.files.had_effect = True
        commit = await taker.at_end(state, (), TurnId("trn_1"), NodeId("nod_1"))
        return Append(
            stream=session,
            expected_seq=0,
            records=(),
            fence=(await store.take_lease(session)).fence,
            row=SessionRow(id=SessionId(session), project_path="/p"),
            blobs=tuple(Blob(blob_id, data) for blob_id, data in commit.blobs.items()),
            trees=tuple(commit.trees.trees),
            tree_listings=tuple(commit.trees.listings),
            tree_contents=tuple(commit.trees.contents),
        )

    await store.append(await snapshot("ses_a"))
    second = await snapshot("ses_b")
    assert second.tree_contents == ()
    await store.delete(SessionId("ses_a"))
    await store.append(second)
    assert list(await files_of(second.trees[0], store.blob)) == ["d", "d/a.txt"]
