"""Pre-images that are to be forgotten: removed at once, or by the last process that uses them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from weft.ids import BlobId
from weft.workspace.history.pack import FileEntry, PreimagePack
from weft.workspace.history.shared_histories import forget_preimages


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "files").mkdir()
    return tmp_path / "project"


def pack_of(project: Path) -> PreimagePack:
    name = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()[:32]
    pack = PreimagePack(str(project.parent / "files" / name), 1 << 20)
    entry = FileEntry(mode=0o100644, size=5, hash=BlobId(hashlib.sha256(b"words").hexdigest()))
    pack.put("a.txt", entry, b"words", None)
    return pack


def kept(project: Path) -> list[str]:
    return sorted(os.listdir(project.parent / "files"))


def forget(project: Path, *, is_needed: bool = False) -> None:
    forget_preimages(str(project), str(project.parent / "files"), is_needed=is_needed)


def test_a_file_that_no_process_uses_is_removed_at_once(project: Path) -> None:
    pack_of(project).close()
    assert len(kept(project)) == 1
    forget(project)
    assert kept(project) == []


def test_a_file_in_use_is_removed_by_the_process_that_uses_it(project: Path) -> None:
    used = pack_of(project)
    forget(project)
    assert len(kept(project)) == 2
    assert not used.is_private
    used.close()
    assert kept(project) == []


def test_a_file_that_is_needed_stays_until_it_was_used_once_more(project: Path) -> None:
    pack_of(project).close()
    forget(project, is_needed=True)
    again = pack_of(project)
    assert again.loaded()["a.txt"].size == 5
    again.close()
    assert kept(project) == []


def test_a_project_without_pre_images_has_nothing_to_forget(project: Path) -> None:
    forget(project)
    assert kept(project) == []
    os.rmdir(project.parent / "files")
    forget(project)
    assert not (project.parent / "files").exists()
