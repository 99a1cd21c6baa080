"""Folders that are made for sessions from elsewhere hold what the log names, and nothing beside."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from tests.support.hostile_git import commit_all, make_repository
from weft.errors import UsageError
from weft.events import IncludedFile, LeftOutFile
from weft.ids import BlobId, SessionId
from weft.runtime.checkouts.folder_maker import FolderMaker, _put_included
from weft.runtime.snapshots.node_files import FileAt, NodeFiles, write_files
from weft.state import SessionState
from weft.store import MemoryStore
from weft.workspace import LocalRunner, find_repository
from weft.workspace.repository_copies.copy_maker import made_repository
from weft.workspace.repository_copies.copy_taker import take_repository

pytestmark = [pytest.mark.anyio, pytest.mark.process]

TEXT = "of the index\n"
CONTENT = BlobId(hashlib.sha256(TEXT.encode()).hexdigest())
LINK = BlobId("l")


@pytest.mark.parametrize("name", ["a/keys", ".hg/hgrc"])
async def test_what_comes_from_the_objects_is_put_nowhere_else(tmp_path: Path, name: str) -> None:
    runner, scratch, outside = LocalRunner(), tmp_path / "scratch", tmp_path / "outside"
    scratch.mkdir()
    outside.mkdir()
    project = make_repository(tmp_path / "project")
    for each in (name, "fine.txt"):
        (project / each).parent.mkdir(exist_ok=True)
        (project / each).write_text(TEXT)
    commit_all(project, "more")
    repository = find_repository(str(project))
    assert repository is not None
    taken = await take_repository(runner, repository, "", scratch, None)
    store = MemoryStore()
    store.data.blobs |= {**taken.blobs, LINK: bytes(outside)}
    gone = FileAt(mode=stat.S_IFREG | 0o644, content=CONTENT)
    files = NodeFiles(
        files={
            "a": FileAt(mode=stat.S_IFLNK | 0o777, content=LINK),
            ".hg": FileAt(mode=stat.S_IFDIR | 0o755),
            name: gone,
            "fine.txt": gone,
        },
        tree=BlobId("t"),
        is_exact=False,
        left_out=tuple(
            LeftOutFile(path=path, why="quota", content=CONTENT) for path in (name, "fine.txt")
        ),
    )
    top = tmp_path / "made"
    left = await write_files(files, str(top), store)
    maker = FolderMaker(SessionState(session_id=SessionId("ses_1")), store, runner, tmp_path / "h")
    async with made_repository(runner, str(top), taken.record, store.blob, scratch) as copy:
        left = await maker._from_objects(str(top), files, left, copy)
    assert list(outside.iterdir()) == []
    assert not (top / ".hg").exists()
    assert (top / "fine.txt").read_text() == TEXT
    assert name in {each.path for each in left}


async def test_what_a_process_that_was_killed_left_unfinished_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "ses_1"
    for name in (".new-1-abcd", "1"):
        (home / name / "project").mkdir(parents=True)
        (home / name / "project" / "a.txt").write_text("x")
    state = SessionState(session_id=SessionId("ses_1"))
    with pytest.raises(UsageError, match="nothing of this session's files"):
        await FolderMaker(state, MemoryStore(), LocalRunner(), home).make()
    assert [path.name for path in home.iterdir()] == ["1"]


@pytest.mark.parametrize(
    "path",
    [
        "link/x",
        "../x",
        "a/../../x",
        "a//x",
        "",
        "/x",
        ".",
        "a/.",
        ".git/hooks/x",
        ".GIT/x",
        ".hg/hgrc",
    ],
)
def test_an_included_file_is_put_nowhere_else(tmp_path: Path, path: str) -> None:
    folder, outside = tmp_path / "project", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    wanted = IncludedFile(path=path, mode=stat.S_IFREG | 0o644, content=CONTENT)
    assert _put_included(str(folder), wanted, b"x")
    assert list(outside.iterdir()) == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["outside", "project"]


def test_an_included_file_is_put_where_nothing_else_is(tmp_path: Path) -> None:
    wanted = IncludedFile(path="build/x", mode=stat.S_IFREG | 0o644, content=CONTENT)
    assert _put_included(str(tmp_path), wanted, b"made") == ""
    assert _put_included(str(tmp_path), wanted, b"other") == "something else is there"
    assert (tmp_path / "build" / "x").read_text() == "made"
