"""Snapshots that cannot be taken: the fact says where it belongs, and nothing of the machine."""

from __future__ import annotations

import pytest

from weft.errors import WeftError
from weft.events import WorkspaceSnapshot
from weft.ids import NodeId, SessionId, TurnId
from weft.runtime.snapshots.project_snapshots import ProjectSnapshots
from weft.state import SessionState
from weft.store import MemoryStore
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.history import FileHistory

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
