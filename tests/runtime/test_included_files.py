"""The ignored files that go along to another host, read while others change them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from weft.runtime.snapshots import workspace_saver
from weft.runtime.snapshots.workspace_saver import _included_now, _read_included


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "build").mkdir(parents=True)
    (folder / ".worktreeinclude").write_text("build/\n")
    for name in ("a.txt", "b.txt"):
        (folder / "build" / name).write_text("made\n")
    return folder


def paths(part: workspace_saver._Part) -> dict[str, str]:
    return {each.path: each.why for each in part.left}


def test_a_folder_that_became_a_link_leads_out_of_the_project_for_nobody(project: Path) -> None:
    wanted = _included_now(str(project), ["build"])
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("another's secret\n")
    shutil.rmtree(project / "build")
    (project / "build").symlink_to(outside)
    part = _read_included(str(project), wanted, ())
    assert b"another's secret\n" not in part.blobs.values()
    assert paths(part) == {"build/a.txt": "changed meanwhile", "build/b.txt": "changed meanwhile"}


def test_a_file_that_is_gone_by_now_costs_no_more_than_itself(project: Path) -> None:
    wanted = _included_now(str(project), ["build"])
    (project / "build" / "a.txt").unlink()
    part = _read_included(str(project), wanted, ())
    assert paths(part) == {"build/a.txt": "changed meanwhile"}
    assert b"made\n" in part.blobs.values()


def test_a_file_that_has_grown_since_is_not_read_without_end(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_saver, "MOST_INCLUDED_BYTES", 12)
    wanted = _included_now(str(project), ["build"])
    os.truncate(project / "build" / "a.txt", 1_000)
    part = _read_included(str(project), wanted, ())
    assert paths(part) == {"build/a.txt": "too large"}
    assert b"made\n" in part.blobs.values()
