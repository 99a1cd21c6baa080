"""Files of a message on the disk: nothing is put outside the folder that was asked for."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from weft.errors import UsageError
from weft.events import LeftOutFile
from weft.ids import BlobId
from weft.runtime.snapshots.node_files import FileAt, NodeFiles, write_files
from weft.store import MemoryStore

pytestmark = pytest.mark.anyio

FOLDER = FileAt(mode=stat.S_IFDIR | 0o755)
CONTENT = BlobId("c")


def linked() -> FileAt:
    return FileAt(mode=stat.S_IFLNK | 0o777, content=BlobId("l"))


def file() -> FileAt:
    return FileAt(mode=stat.S_IFREG | 0o644, content=CONTENT)


def store_with(target: Path) -> MemoryStore:
    store = MemoryStore()
    store.data.blobs |= {CONTENT: b"x", BlobId("l"): bytes(target)}
    return store


async def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    files = {
        "link": linked(),
        "link/file": file(),
        "link/other": linked(),
        "../up": file(),
        "d": FOLDER,
        "d/../../up": file(),
        "d/fine": file(),
        "lost/file": file(),
    }
    wanted = NodeFiles(files=files, tree=BlobId("t"), is_exact=True)
    store = store_with(outside)
    left_out = await write_files(wanted, str(tmp_path / "to"), store)
    assert {each.path for each in left_out} == {
        "link/file",
        "link/other",
        "../up",
        "d/../../up",
        "lost/file",
    }
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "up").exists()
    assert (tmp_path / "to" / "d" / "fine").read_bytes() == b"x"


async def test_content_that_is_gone_is_named_and_an_old_folder_is_refused(tmp_path: Path) -> None:
    gone = FileAt(mode=stat.S_IFREG | 0o644, content=BlobId("gone"))
    wanted = NodeFiles(files={"a": gone}, tree=BlobId("t"), is_exact=True)
    store = MemoryStore()
    target = str(tmp_path / "to")
    assert await write_files(wanted, target, store) == [LeftOutFile(path="a", why="quota")]
    with pytest.raises(UsageError, match="cannot be made"):
        await write_files(wanted, target, store)


async def test_what_the_disk_does_not_take_is_named_and_no_repository_is_made(
    tmp_path: Path,
) -> None:
    files = {
        "fine": file(),
        ".GIT": FOLDER,
        ".GIT/config": file(),
        "x" * 300: file(),
        "to": linked(),
    }
    store = MemoryStore()
    store.data.blobs |= {CONTENT: b"x", BlobId("l"): b"t" * 5_000}
    wanted = NodeFiles(files=files, tree=BlobId("t"), is_exact=True)
    left_out = await write_files(wanted, str(tmp_path / "to"), store)
    assert {each.path: each.why for each in left_out} == {
        ".GIT": "version control's own",
        ".GIT/config": "version control's own",
        "x" * 300: "File name too long",
        "to": "File name too long",
    }
    assert [each.name for each in (tmp_path / "to").iterdir()] == ["fine"]
