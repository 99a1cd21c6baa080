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
from weft.errors import ToolError, UsageError
from weft.runtime.fan.base_files import BaseFiles, make_base
from weft.runtime.fan.base_watch import BaseWatch
from weft.runtime.fan.candidate_copy import copy_at, copy_diff, make_copy, note_copy
from weft.workspace import LocalRunner

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def runner() -> LocalRunner:
    return LocalRunner(os.environ)


async def copied(runner: LocalRunner, project: Path, place: Path) -> tuple[BaseFiles, Path]:
    """The base of a project, and a copy of it as candidates have them."""
    place.mkdir()
    base = await make_base(
        runner, str(project), str(place), "now", links_ignored=False, isolation="worktree"
    )
    await make_copy(base, str(place / "1"), clones=False)
    await note_copy(str(place / "1"))
    return base, Path(copy_at(str(place / "1")))


async def compared(base: BaseFiles, copy: Path) -> None:
    """All that is done with a base and a copy while a candidate works, and afterwards."""
    watch = BaseWatch(base)
    await watch.start()
    watch.close()
    await copy_diff(base, str(copy.parent))


@pytest.mark.parametrize("name", TRAPS)
async def test_no_program_of_a_repository_runs_while_a_base_is_pinned_copied_and_compared(
    name: str, runner: LocalRunner, tmp_path: Path
) -> None:
    bait = make_bait(tmp_path)
    lay, provoke = TRAPS[name]
    lay(bait)
    bait.marker.unlink(missing_ok=True)
    look_again(bait.repository, at=2)
    with suppress(ToolError, UsageError):
        base, copy = await copied(runner, bait.repository, tmp_path / "place")
        assert not bait.marker.exists(), "while the copy was made"
        look_again(bait.repository, at=3)
        look_again(copy)
        await compared(base, copy)
    assert not bait.marker.exists()
    provoke(bait)
    assert bait.marker.exists(), "the trap does not work"


def look_again(folder: Path, at: int = 1) -> None:
    """Have git look at the content of every file, which goes through filters."""
    for path in folder.rglob("*.txt"):
        os.utime(path, (at, at))


# --- later: a candidate has worked in the copy, and may have been talked into something -----------


def set_for_the_copy(bait: Bait, copy: Path) -> None:
    """Settings of the copy's own repository."""
    git(copy, "config", "core.fsmonitor", str(bait.program))


def nest_repository(bait: Bait, copy: Path) -> None:
    """An untracked folder is a repository with a monitor."""
    inner = make_repository(copy / "untracked")
    git(inner, "config", "core.fsmonitor", str(bait.program))


def arm_the_project(bait: Bait, copy: Path) -> None:
    """The project's own settings change while the candidate works."""
    bait.hook(bait.records / "hooks", *HOOKS)
    bait.config(f"core.fsmonitor={bait.program}", f"filter.x.clean={bait.program}")
    (bait.records / "info").mkdir(exist_ok=True)
    (bait.records / "info/attributes").write_text("* filter=x\n")
    (copy / "sub/.gitattributes").write_text("* filter=x\n")


@pytest.mark.parametrize("later", [set_for_the_copy, nest_repository, arm_the_project])
async def test_no_program_runs_when_a_copy_is_compared_that_was_tampered_with(
    later: Callable[[Bait, Path], None], runner: LocalRunner, tmp_path: Path
) -> None:
    bait = make_bait(tmp_path)
    add_submodule(bait.repository, make_repository(tmp_path / "inner"), "inner")
    commit_all(bait.repository, "submodule")
    base, copy = await copied(runner, bait.repository, tmp_path / "place")
    later(bait, copy)
    for folder in (copy, copy / "untracked", bait.repository):
        if folder.is_dir():
            look_again(folder)
            git(folder, "status", check=False)
    assert bait.marker.exists(), "the trap does not work"
    bait.marker.unlink()
    look_again(copy, at=2)
    look_again(bait.repository, at=2)
    await compared(base, copy)
    assert not bait.marker.exists()


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
        with pytest.raises(ToolError, match=r"another folder|belongs to no worktree"):
            await copied(runner, claimant, tmp_path / f"place-{name}")
        assert not (tmp_path / f"place-{name}/1").exists()


def claim_by_commondir(claimant: Path, secret: Path) -> None:
    (claimant / ".git").mkdir()
    shutil.copy(secret / ".git/HEAD", claimant / ".git/HEAD")
    (claimant / ".git/commondir").write_text(f"{secret}/.git\n")


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
    shutil.copy(bait.program, tmp_path / "git-status")
    runner = LocalRunner(environ)
    base, copy = await copied(runner, bait.repository, tmp_path / "place")
    assert (copy / "a.txt").read_text() == "one\n"
    look_again(bait.repository)
    await compared(base, copy)
    assert not bait.marker.exists()
