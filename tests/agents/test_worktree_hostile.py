"""Our own git calls over repositories, and copies, that want to run a program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.hostile_git import (
    HOOKS,
    TRAPS,
    Bait,
    add_submodule,
    commit_all,
    git,
    make_bait,
    make_repository,
)
from weft.agents.worktree import AgentWorktree, add_worktree, remove_if_unchanged
from weft.errors import FinalToolError
from weft.workspace import LocalRunner

pytestmark = pytest.mark.anyio


@pytest.fixture
def runner() -> LocalRunner:
    return LocalRunner(os.environ)


@pytest.mark.parametrize("name", TRAPS)
async def test_no_program_of_a_repository_runs_while_a_copy_is_made_and_removed(
    name: str, runner: LocalRunner, tmp_path: Path
) -> None:
    bait = make_bait(tmp_path)
    lay, provoke = TRAPS[name]
    lay(bait)
    bait.marker.unlink(missing_ok=True)
    with suppress(FinalToolError):
        place = await add_worktree(runner, str(bait.repository), tmp_path / "copies" / "one")
        assert not bait.marker.exists(), "while the copy was made"
        look_again(place)
        await remove_if_unchanged(runner, place)
    assert not bait.marker.exists()
    provoke(bait)
    assert bait.marker.exists(), "the trap does not work"


def look_again(place: AgentWorktree, at: int = 1) -> None:
    """Have git look at the content of every file, which goes through filters."""
    for path in Path(place.top).rglob("*.txt"):
        os.utime(path, (at, at))


# --- later: an agent has worked in the copy, and may have been talked into something --------------


def forge_pointer(bait: Bait, place: AgentWorktree) -> None:
    """The copy names other records."""
    forged = Path(place.top, ".git").with_name("forged")
    shutil.copytree(bait.records, forged)
    git(forged, "--git-dir", ".", "config", "core.fsmonitor", str(bait.program))
    Path(place.top, ".git").write_text(f"gitdir: {forged}\n")


def forge_folder(bait: Bait, place: AgentWorktree) -> None:
    """The copy becomes a repository of its own."""
    Path(place.top, ".git").unlink()
    shutil.copytree(bait.records, Path(place.top, ".git"))
    git(Path(place.top), "config", "core.fsmonitor", str(bait.program))


def fill_submodule(bait: Bait, place: AgentWorktree) -> None:
    """A submodule's folder gets its repository, at the right commit, with a filter."""
    git(Path(place.top), "clone", "-q", str(bait.marker.parent / "inner"), "inner")
    inner = Path(place.top, "inner")
    git(inner, "config", "filter.x.clean", str(bait.program))
    (inner / ".git/info").mkdir(exist_ok=True)
    (inner / ".git/info/attributes").write_text("* filter=x\n")


def nest_repository(bait: Bait, place: AgentWorktree) -> None:
    """An untracked folder is a repository with a monitor."""
    inner = make_repository(Path(place.top, "untracked"))
    git(inner, "config", "core.fsmonitor", str(bait.program))


def set_for_the_copy(bait: Bait, place: AgentWorktree) -> None:
    """Settings that hold for the copy alone, among its records."""
    bait.config("core.repositoryformatversion=1", "extensions.worktreeConfig=true")
    bait.config_text(
        f"[core]\n\tfsmonitor = {bait.program}\n",
        f"worktrees/{Path(place.top).name}/config.worktree",
    )


def forge_commondir(bait: Bait, place: AgentWorktree) -> None:
    """The copy's records name another shared folder."""
    forged = bait.marker.parent / "forged"
    shutil.copytree(bait.records, forged)
    git(forged, "--git-dir", ".", "config", "core.fsmonitor", str(bait.program))
    (bait.records / "worktrees" / Path(place.top).name / "commondir").write_text(f"{forged}\n")


def arm_the_project(bait: Bait, place: AgentWorktree) -> None:
    """The project's own settings change while the agent works."""
    bait.hook(bait.records / "hooks", *HOOKS)
    bait.config(f"core.fsmonitor={bait.program}", f"filter.x.clean={bait.program}")
    Path(place.top, "sub/.gitattributes").write_text("* filter=x\n")
    (bait.records / "info").mkdir(exist_ok=True)
    (bait.records / "info/attributes").write_text("* filter=x\n")
    (bait.records / "info/exclude").write_text(".gitattributes\n")


@pytest.mark.parametrize(
    "later",
    [
        forge_pointer,
        forge_folder,
        fill_submodule,
        nest_repository,
        set_for_the_copy,
        forge_commondir,
        arm_the_project,
    ],
)
async def test_no_program_runs_when_a_copy_is_removed_that_was_tampered_with(
    later: Callable[[Bait, AgentWorktree], None], runner: LocalRunner, tmp_path: Path
) -> None:
    bait = make_bait(tmp_path)
    add_submodule(bait.repository, make_repository(tmp_path / "inner"), "inner")
    commit_all(bait.repository, "submodule")
    place = await add_worktree(runner, str(bait.repository), tmp_path / "copies" / "one")
    later(bait, place)
    look_again(place)
    for folder in (".", "inner", "untracked"):
        if Path(place.top, folder).is_dir():
            git(Path(place.top, folder), "status", check=False)
    assert bait.marker.exists(), "the trap does not work"
    bait.marker.unlink()
    look_again(place, at=2)
    await remove_if_unchanged(runner, place)
    assert not bait.marker.exists()


async def test_work_in_the_folder_of_a_submodule_is_kept(
    runner: LocalRunner, tmp_path: Path
) -> None:
    bait = make_bait(tmp_path)
    add_submodule(bait.repository, make_repository(tmp_path / "inner"), "inner")
    commit_all(bait.repository, "submodule")
    place = await add_worktree(runner, str(bait.repository), tmp_path / "copies" / "one")
    (Path(place.top) / "inner/work.txt").write_text("hours\n")
    assert not await remove_if_unchanged(runner, place)
    assert (Path(place.top) / "inner/work.txt").exists()


# --- where a record is written --------------------------------------------------------------------


async def test_a_folder_cannot_claim_the_repository_of_another(
    runner: LocalRunner, tmp_path: Path
) -> None:
    secret = make_repository(tmp_path / "secret", {"key.txt": "hidden\n"})
    claims: dict[str, Callable[[Path], object]] = {
        "file": lambda at: (at / ".git").write_text(f"gitdir: {secret}/.git\n"),
        "link": lambda at: (at / ".git").symlink_to(secret / ".git"),
        "worktree": lambda at: claim_by_commondir(at, secret),
    }
    for name, claim in claims.items():
        claimant = tmp_path / name
        claimant.mkdir()
        claim(claimant)
        with pytest.raises(FinalToolError, match=r"another folder|belongs to no worktree"):
            await add_worktree(runner, str(claimant), tmp_path / "copies" / name)
        assert not (tmp_path / "copies" / name).exists()
    assert not (secret / ".git/worktrees").exists()


def claim_by_commondir(claimant: Path, secret: Path) -> None:
    (claimant / ".git").mkdir()
    shutil.copy(secret / ".git/HEAD", claimant / ".git/HEAD")
    (claimant / ".git/commondir").write_text(f"{secret}/.git\n")


async def test_no_record_is_written_through_a_link(runner: LocalRunner, tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / ".git/worktrees").symlink_to(outside)
    with pytest.raises(FinalToolError, match="record of a worktree cannot be written"):
        await add_worktree(runner, str(project), tmp_path / "copies" / "one")
    assert list(outside.iterdir()) == []
    assert list((tmp_path / "copies").iterdir()) == []


# --- what surrounds us ----------------------------------------------------------------------------


async def test_neither_our_environment_nor_the_users_settings_make_git_run_anything(
    tmp_path: Path,
) -> None:
    bait = make_bait(tmp_path)
    (bait.repository / ".gitattributes").write_text("*.txt filter=lfs\n")
    commit_all(bait.repository, "attributes")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[filter "lfs"]\n\tsmudge = {bait.program}\n\tclean = {bait.program}\n\trequired = true\n'
        f"[core]\n\tfsmonitor = {bait.program}\n\thooksPath = {tmp_path}/hooks\n"
    )
    bait.hook(tmp_path / "hooks", *HOOKS)
    (home / "more").write_text(f"[core]\n\tfsmonitor = {bait.program}\n")
    environ = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / "more"),
        "GIT_CONFIG_SYSTEM": str(home / "more"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(bait.program),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={bait.program}'",
        "GIT_TEMPLATE_DIR": str(tmp_path),
        "GIT_EXTERNAL_DIFF": str(bait.program),
        "GIT_SSH_COMMAND": str(bait.program),
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_DIR": str(tmp_path / "nowhere"),
    }
    shutil.copy(bait.program, tmp_path / "git-worktree")
    runner = LocalRunner(environ)
    place = await add_worktree(runner, str(bait.repository), tmp_path / "copies" / "one")
    assert (Path(place.top) / "a.txt").read_text() == "one\n"
    look_again(place)
    assert await remove_if_unchanged(runner, place)
    assert not bait.marker.exists()
