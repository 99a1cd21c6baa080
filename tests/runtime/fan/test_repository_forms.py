"""Bases of repositories of many forms: what a copy of one holds is what the project holds, and git
finds nothing changed in it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.hostile_git import (
    SMALL,
    add_submodule,
    commit_all,
    drop_object,
    git,
    git_version,
    make_repository,
)
from weft.errors import FinalToolError
from weft.runtime.fan.base_files import BaseFiles, make_base
from weft.runtime.fan.candidate_copy import copy_at, copy_diff, make_copy, note_copy
from weft.workspace import LocalRunner

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def runner(tmp_path: Path) -> LocalRunner:
    """Programs find a home without settings."""
    return LocalRunner({**os.environ, "HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": ""})


def held(folder: Path) -> dict[str, str]:
    """The files of a copy."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


async def copy_of(runner: LocalRunner, project: Path) -> tuple[BaseFiles, Path]:
    """A copy of a project, in which plain git and we find nothing changed."""
    place = project.parent / "place"
    place.mkdir()
    base = await make_base(
        runner, str(project), str(place), "now", links_ignored=False, isolation="worktree"
    )
    folder = str(place / "1")
    await make_copy(base, folder, clones=False)
    await note_copy(folder)
    copy = Path(copy_at(folder))
    assert (await copy_diff(base, folder)).changes == ()
    if (copy / ".git").exists():
        assert git(copy, "status", "--porcelain") == git(project, "status", "--porcelain")
        assert git(copy, "rev-parse", "HEAD") == git(project, "rev-parse", "HEAD")
    return base, copy


async def changed(base: BaseFiles, copy: Path) -> list[str]:
    """The paths at which a copy differs from its base."""
    return [each.path for each in (await copy_diff(base, str(copy.parent))).changes]


async def test_a_commit_in_a_copy_is_its_own(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    base, copy = await copy_of(runner, project)
    assert held(copy) == SMALL
    (copy / "a.txt").write_text("changed\n")
    commit = commit_all(copy, "work")
    assert await changed(base, copy) == ["a.txt"], "committed or not"
    assert git(project, "cat-file", "-t", commit, check=False) == ""
    git(project, "fsck", "--strict")


async def test_what_is_ignored_is_no_change(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project", {**SMALL, ".gitignore": "*.log\n"})
    base, copy = await copy_of(runner, project)
    (copy / "a.log").write_text("x")
    assert await changed(base, copy) == []


async def test_files_of_a_filter_are_as_the_project_has_them_where_they_are_changed(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(
        tmp_path / "project", {**SMALL, ".gitattributes": "*.txt filter=lfs\n"}
    )
    git(project, "config", "filter.lfs.clean", "sed s/large/pointer/")
    git(project, "config", "filter.lfs.smudge", "sed s/pointer/large/")
    (project / "c.txt").write_text("large\n")
    commit_all(project, "large")
    (project / "a.txt").write_text("uncommitted\n")
    place = tmp_path / "place"
    place.mkdir()
    base = await make_base(
        runner, str(project), str(place), "now", links_ignored=False, isolation="worktree"
    )
    await make_copy(base, str(place / "1"), clones=False)
    copy = Path(copy_at(str(place / "1")))
    assert (copy / "a.txt").read_text() == "uncommitted\n"
    assert (copy / "c.txt").read_text() in ("pointer\n", "large\n"), "stored, or as it lies there"


async def test_a_project_in_a_sub_folder_is_the_copy(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    (project / "sub/new.txt").write_text("new\n")
    _, copy = await copy_of(runner, project / "sub")
    assert held(copy) == {"b.txt": "two\n", "new.txt": "new\n"}


async def test_a_project_with_submodules_has_copies(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    add_submodule(project, make_repository(tmp_path / "inner"), "inner")
    commit_all(project, "submodule")
    base, copy = await copy_of(runner, project)
    assert (copy / "a.txt").read_text() == "one\n"
    assert list((copy / "inner").iterdir()) == []
    (copy / "inner/work.txt").write_text("hours\n")
    assert await changed(base, copy) == ["inner/work.txt"]


async def test_a_submodule_can_be_the_project(runner: LocalRunner, tmp_path: Path) -> None:
    outer = make_repository(tmp_path / "outer")
    add_submodule(outer, make_repository(tmp_path / "inner"), "inner")
    commit_all(outer, "submodule")
    _, copy = await copy_of(runner, outer / "inner")
    assert held(copy) == SMALL


async def test_a_worktree_can_be_the_project(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    git(project, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side/c.txt").write_text("side\n")
    commit_all(tmp_path / "side", "side")
    _, copy = await copy_of(runner, tmp_path / "side")
    assert (copy / "c.txt").exists()


async def test_a_partial_clone_that_lacks_objects_says_so_and_nothing_is_fetched(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    drop_object(project, "HEAD:sub/b.txt")
    with pytest.raises(
        FinalToolError, match=r"lacks objects of the commit .* and Weft fetches none"
    ):
        await copy_of(runner, project)


async def test_a_shallow_clone_has_copies(runner: LocalRunner, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    (origin / "a.txt").write_text("two\n")
    commit_all(origin, "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "project")
    base, copy = await copy_of(runner, tmp_path / "project")
    (copy / "new.txt").write_text("x\n")
    assert await changed(base, copy) == ["new.txt"]


async def test_a_sparse_checkout_stays_sparse(runner: LocalRunner, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {**SMALL, "other/c.txt": "three\n"})
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--sparse", f"file://{origin}", "project")
    git(tmp_path / "project", "sparse-checkout", "set", "sub")
    _, copy = await copy_of(runner, tmp_path / "project")
    assert held(copy) == SMALL
    assert git(copy, "sparse-checkout", "list") == "sub"


@pytest.mark.parametrize(
    "form",
    [
        *("packed", "detached", "sha256", "separate", "split", "crlf", "bare", "alternates"),
        *("linked head", "reftable"),
    ],
)
async def test_repositories_of_other_forms_have_copies(
    form: str, runner: LocalRunner, tmp_path: Path
) -> None:
    if form == "reftable" and git_version() < (2, 45):
        pytest.skip("this git has no reftable")
    project = make_in_form(tmp_path, form)
    base, copy = await copy_of(runner, project)
    assert (copy / "a.txt").read_bytes() == (project / "a.txt").read_bytes()
    (copy / "new.txt").write_text("x\n")
    assert await changed(base, copy) == ["new.txt"]


def make_in_form(base: Path, form: str) -> Path:
    project = base / "project"
    match form:
        case "sha256":
            return make_repository(project, SMALL, "--object-format=sha256")
        case "reftable":
            return make_repository(project, SMALL, "--ref-format=reftable")
        case "separate":
            return make_repository(project, SMALL, "--separate-git-dir", str(base / "records"))
        case "bare":
            git(base, "clone", "-q", "--bare", str(make_repository(base / "origin")), "bare.git")
            git(base / "bare.git", "worktree", "add", "-q", str(project))
            return project
    make_repository(project)
    match form:
        case "packed":
            git(project, "gc", "-q")
        case "alternates":
            shutil.move(project / ".git/objects", base / "objects")
            (project / ".git/objects/info").mkdir(parents=True)
            (project / ".git/objects/info/alternates").write_text("../../../objects\n")
        case "linked head":
            (project / ".git/HEAD").unlink()
            (project / ".git/HEAD").symlink_to("refs/heads/main")
        case "detached":
            git(project, "checkout", "-q", "--detach")
        case "split":
            git(project, "config", "core.splitIndex", "true")
            git(project, "update-index", "--split-index")
        case "crlf":
            git(project, "config", "core.autocrlf", "true")
            for name in SMALL:
                (project / name).unlink()
            git(project, "checkout", "--", ".")
            assert (project / "a.txt").read_bytes() == b"one\r\n"
    return project
