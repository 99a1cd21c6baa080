"""Copies of honest repositories: the everyday life of a worktree."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import anyio
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
from weft.agents.worktree import AgentWorktree, add_worktree, remove_if_unchanged
from weft.errors import FinalToolError
from weft.workspace import LocalRunner

pytestmark = pytest.mark.anyio


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


async def copy_of(
    runner: LocalRunner, project: Path, name: str = "one"
) -> tuple[AgentWorktree, Path]:
    """A copy of a project, which plain git takes for a worktree in which nothing was changed."""
    place = await add_worktree(runner, str(project), project.parent / "copies" / name)
    copy = Path(place.top)
    assert git(copy, "status", "--porcelain") == ""
    assert git(copy, "rev-parse", "HEAD") == git(project, "rev-parse", "HEAD") == place.commit
    assert f"worktree {copy}\n" in git(project, "worktree", "list", "--porcelain") + "\n"
    assert git(project, "worktree", "prune", "--dry-run", "--verbose") == ""
    assert [path.name for path in copy.parent.iterdir()] == [name], "nothing else is left there"
    return place, copy


async def removed(runner: LocalRunner, project: Path, place: AgentWorktree) -> None:
    """Remove a copy; nothing is left of it anywhere."""
    assert await remove_if_unchanged(runner, place)
    assert list(Path(place.top).parent.iterdir()) == []
    assert place.top not in git(project, "worktree", "list")
    git(project, "fsck", "--strict")


async def test_a_copy_is_a_worktree_like_any_other(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    place, copy = await copy_of(runner, project)
    assert held(copy) == SMALL
    await removed(runner, project, place)


async def test_an_agent_can_commit_in_its_copy_and_the_commit_is_in_the_repository(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    place, copy = await copy_of(runner, project)
    (copy / "a.txt").write_text("changed\n")
    assert not await remove_if_unchanged(runner, place)
    commit = commit_all(copy, "work")
    assert git(project, "cat-file", "-t", commit) == "commit"
    assert not await remove_if_unchanged(runner, place), "no branch has the commit"
    git(copy, "checkout", "-qb", "work")
    assert not await remove_if_unchanged(runner, place), "its own branch is where the work is"
    git(copy, "checkout", "-q", "--detach")
    await removed(runner, project, place)
    assert git(project, "rev-parse", "work") == commit


@pytest.mark.parametrize(
    "work",
    [
        lambda copy: (copy / "new.txt").write_text("x"),
        lambda copy: (copy / "a.txt").write_text("x"),
        lambda copy: (copy / "a.txt").unlink(),
        lambda copy: (copy / "a.txt").chmod(0o755),
        lambda copy: git(copy, "rm", "-q", "--cached", "a.txt"),
        lambda copy: git(copy, "worktree", "lock", "."),
        lambda copy: (copy / ".git").unlink(),
        lambda copy: make_repository(copy / "nested"),
    ],
    ids=["new", "changed", "deleted", "mode", "index", "locked", "pointer", "repository"],
)
async def test_a_copy_in_which_something_was_changed_is_kept(
    work: object, runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    place, copy = await copy_of(runner, project)
    assert callable(work)
    work(copy)
    assert not await remove_if_unchanged(runner, place)
    assert (copy / "sub/b.txt").exists()


async def test_what_is_ignored_is_no_change(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project", {**SMALL, ".gitignore": "*.log\n"})
    (project / ".git/info").mkdir(exist_ok=True)
    (project / ".git/info/exclude").write_text("*.tmp\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my ignores\n")
    (home / "my ignores").write_text("*.swp\n")
    place, copy = await copy_of(runner, project)
    for name in ("a.log", "b.tmp", "c.swp"):
        (copy / name).write_text("x")
    await removed(runner, project, place)


async def test_files_that_a_filter_would_change_are_as_they_are_stored(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(
        tmp_path / "project", {**SMALL, ".gitattributes": "*.txt filter=lfs\n"}
    )
    git(project, "config", "filter.lfs.clean", "sed s/large/pointer/")
    git(project, "config", "filter.lfs.smudge", "sed s/pointer/large/")
    git(project, "config", "filter.lfs.required", "true")
    (project / "c.txt").write_text("large\n")
    commit_all(project, "large")
    place, copy = await copy_of(runner, project)
    assert (copy / "c.txt").read_text() == "pointer\n"
    await removed(runner, project, place)


async def test_a_project_in_a_sub_folder_is_in_the_same_folder_of_the_copy(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    (tmp_path / "link").symlink_to(project / "sub")
    for folder in (project / "sub", tmp_path / "link"):
        place = await add_worktree(runner, str(folder), tmp_path / "copies" / folder.name)
        assert place.project == f"{place.top}/sub"
        assert (Path(place.project) / "b.txt").exists()
        await removed(runner, project, place)


async def test_a_project_with_submodules_has_their_folders_empty(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    add_submodule(project, make_repository(tmp_path / "inner"), "inner")
    commit_all(project, "submodule")
    place, copy = await copy_of(runner, project)
    assert list((copy / "inner").iterdir()) == []
    await removed(runner, project, place)


async def test_a_submodule_can_be_the_project(runner: LocalRunner, tmp_path: Path) -> None:
    outer = make_repository(tmp_path / "outer")
    add_submodule(outer, make_repository(tmp_path / "inner"), "inner")
    commit_all(outer, "submodule")
    place = await add_worktree(runner, str(outer / "inner"), tmp_path / "copies" / "one")
    assert held(Path(place.top)) == SMALL
    assert git(Path(place.top), "status", "--porcelain") == ""
    await removed(runner, outer / "inner", place)


async def test_a_worktree_can_be_the_project_and_a_copy_too(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    git(project, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side/c.txt").write_text("side\n")
    commit_all(tmp_path / "side", "side")
    place, copy = await copy_of(runner, tmp_path / "side")
    assert (copy / "c.txt").exists()
    nested = await add_worktree(runner, place.project, tmp_path / "copies" / "two")
    assert (Path(nested.top) / "c.txt").exists()
    assert await remove_if_unchanged(runner, nested)
    await removed(runner, project, place)


async def test_a_partial_clone_with_all_objects_has_copies(
    runner: LocalRunner, tmp_path: Path
) -> None:
    origin = make_repository(tmp_path / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{origin}", "project")
    project = tmp_path / "project"
    place, copy = await copy_of(runner, project)
    assert held(copy) == SMALL
    await removed(runner, project, place)


async def test_a_partial_clone_that_lacks_objects_says_so_and_nothing_is_fetched(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    drop_object(project, "HEAD:sub/b.txt")
    with pytest.raises(FinalToolError, match="lacks objects, and Weft fetches none"):
        await add_worktree(runner, str(project), tmp_path / "copies" / "one")
    assert list((tmp_path / "copies").iterdir()) == []
    assert not (project / ".git/worktrees").exists()


async def test_a_sparse_checkout_stays_sparse(runner: LocalRunner, tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {**SMALL, "other/c.txt": "three\n"})
    git(origin, "config", "uploadpack.allowFilter", "true")
    options = ("--filter=blob:none", "--sparse")
    git(tmp_path, "clone", "-q", *options, f"file://{origin}", "project")
    project = tmp_path / "project"
    git(project, "sparse-checkout", "set", "sub")
    place, copy = await copy_of(runner, project)
    assert held(copy) == SMALL
    assert git(copy, "sparse-checkout", "list") == "sub"
    await removed(runner, project, place)


async def test_a_shallow_clone_has_copies_and_its_branches_are_looked_through(
    runner: LocalRunner, tmp_path: Path
) -> None:
    origin = make_repository(tmp_path / "origin")
    (origin / "a.txt").write_text("two\n")
    commit_all(origin, "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "project")
    project = tmp_path / "project"
    place, copy = await copy_of(runner, project)
    commit_all_empty(copy)
    assert not await remove_if_unchanged(runner, place)
    git(project, "branch", "kept", git(copy, "rev-parse", "HEAD"))
    await removed(runner, project, place)


def commit_all_empty(folder: Path) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", "more")


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
    place, copy = await copy_of(runner, project)
    assert (copy / "a.txt").read_bytes() == (project / "a.txt").read_bytes()
    (copy / "new.txt").write_text("x\n")
    assert not await remove_if_unchanged(runner, place)
    commit = commit_all(copy, "more")
    git(project, "branch", "kept", commit)
    await removed(runner, project, place)


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
            (project / "a.txt").unlink()
            git(project, "checkout", "--", "a.txt")
            assert (project / "a.txt").read_bytes() == b"one\r\n"
    return project


async def test_a_copy_that_is_there_is_taken_as_it_is(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    place, copy = await copy_of(runner, project)
    (copy / "new.txt").write_text("work\n")
    assert await add_worktree(runner, str(project), copy) == place
    assert (copy / "new.txt").exists()


@pytest.mark.parametrize("instant", ["checked out", "registered"])
async def test_a_copy_that_a_crash_left_unfinished_is_made_anew(
    instant: str, runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    copy = tmp_path / "copies" / "one"
    await add_worktree(runner, str(project), copy)
    (copy / "a.txt").unlink()
    (copy / ".git").write_text(f"gitdir: {copy.parent}/.git-abc/repository/worktrees/one\n")
    if instant == "checked out":
        git(project, "worktree", "prune", "--expire=now")
        (project / ".git/worktrees").mkdir(exist_ok=True)
    _, again = await copy_of(runner, project)
    assert held(again) == SMALL


async def test_without_a_commit_or_a_repository_the_reason_is_said(
    runner: LocalRunner, tmp_path: Path
) -> None:
    with pytest.raises(FinalToolError, match="needs a git repository, and the project is in none"):
        await add_worktree(runner, str(tmp_path), tmp_path / "copies" / "one")
    git(tmp_path, "init", "-q")
    with pytest.raises(FinalToolError, match="needs a commit to start from"):
        await add_worktree(runner, str(tmp_path), tmp_path / "copies" / "one")
    (tmp_path / ".git/config").write_text("[core\n")
    with pytest.raises(FinalToolError, match="git cannot read"):
        await add_worktree(runner, str(tmp_path), tmp_path / "copies" / "one")


ADDING = """
import os, sys
from pathlib import Path
import anyio
from weft.agents.worktree import add_worktree
from weft.workspace import LocalRunner
anyio.run(add_worktree, LocalRunner(os.environ), sys.argv[1], Path(sys.argv[2]))
"""


async def test_what_a_kill_amid_the_making_leaves_is_swept_by_the_next_one(
    runner: LocalRunner, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(
        '#!/bin/sh\ncase "$*" in *" worktree add "*) kill -9 $PPID; exit 1;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    environ = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    killed = await anyio.run_process(
        [sys.executable, "-c", ADDING, str(project), str(tmp_path / "copies" / "one")],
        env=environ,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert [path.name[:5] for path in (tmp_path / "copies").iterdir()] == [".git-"]
    (tmp_path / "copies" / ".two.removed").mkdir()  # a removal that a kill came into
    await copy_of(runner, project)
