"""Which repository a folder lies in, and what of its settings git gets to see."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.hostile_git import git, make_repository
from weft.errors import FinalToolError
from weft.workspace import LocalRunner, find_repository, open_safe_git

pytestmark = pytest.mark.anyio


def test_the_nearest_folder_with_a_git_directory_counts(tmp_path: Path) -> None:
    outer = make_repository(tmp_path / "outer")
    inner = make_repository(outer / "sub/inner")
    (outer / "empty/.git").mkdir(parents=True)
    for folder, top in ((outer / "sub", outer), (inner / "sub", inner), (outer / "empty", outer)):
        found = find_repository(str(folder))
        assert found is not None
        assert (found.top, found.records) == (str(top), f"{top}/.git")


@pytest.mark.parametrize("kind", ["nothing", "pipe", "text", "bare"])
def test_what_is_no_repository_is_none(kind: str, tmp_path: Path) -> None:
    match kind:
        case "pipe":
            os.mkfifo(tmp_path / ".git")
        case "text":
            (tmp_path / ".git").write_text("hello\n")
        case "bare":
            git(tmp_path, "init", "-q", "--bare", ".")
    assert find_repository(str(tmp_path)) is None


def test_a_pointer_to_nowhere_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(FinalToolError, match=r"nowhere', which is not a git directory"):
        find_repository(str(tmp_path))


@pytest.mark.process
@pytest.mark.parametrize("name", ["commondir", "gitdir"])
def test_a_pointer_that_can_be_no_path_is_reported(tmp_path: Path, name: str) -> None:
    project = make_repository(tmp_path / "project")
    (project / ".git" / "commondir").write_text("../other\n")
    (project / ".git" / name).write_bytes(b"a\0b\xff\n" * 9)
    with pytest.raises(FinalToolError, match="belongs to no worktree"):
        find_repository(str(project))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_repository_that_another_user_put_above_a_folder_is_not_its_own(tmp_path: Path) -> None:
    above = make_repository(tmp_path / "shared")
    os.chown(above / "sub", 12345, -1)
    assert find_repository(str(above / "sub")) is not None
    for path in (above / ".git", *(above / ".git").rglob("*")):
        os.chown(path, 54321, -1)
    with pytest.raises(FinalToolError, match="belongs neither to you nor to the owner"):
        find_repository(str(above / "sub"))


async def test_git_sees_only_settings_that_describe_data(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with (project / ".git/config").open("a") as config:
        config.write(
            '[core]\n\tautocrlf = Input\n\tsymlinks\n\teol = lf ; "x"\n'
            '\tfilemode = "false\\n[core]\\n\\tfsmonitor = touch x"\n'
            '[extensions]\n\tobjectFormat = sha1\n[filter "x"]\n\tsmudge = touch x\n'
        )
    repository = find_repository(str(project))
    assert repository is not None
    async with open_safe_git(LocalRunner(os.environ), repository, scratch) as safe:
        listed = await safe.output("config", "--list", "--show-scope")
        assert listed is not None
        seen = {line.removeprefix("local\t") for line in listed.splitlines() if "local" in line}
        assert seen == {
            "core.repositoryformatversion=1",
            "core.bare=false",
            "core.autocrlf=input",
            "core.symlinks=true",
            "core.eol=lf",
            "extensions.objectformat=sha1",
        }
        assert {line.split("\t")[0] for line in listed.splitlines()} == {"local", "command"}
    assert list(scratch.iterdir()) == []


async def test_a_setting_that_decides_how_data_is_read_and_is_unknown_is_refused(
    tmp_path: Path,
) -> None:
    project = make_repository(tmp_path / "project")
    (project / ".git/config").write_text(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = cloud\n"
    )
    repository = find_repository(str(project))
    assert repository is not None
    with pytest.raises(FinalToolError, match=r"extensions.refstorage is 'cloud', which is not sup"):
        async with open_safe_git(LocalRunner(os.environ), repository, tmp_path):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["project"]


async def test_without_git_that_is_said(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    repository = find_repository(str(project))
    assert repository is not None
    own = project / "bin"
    own.mkdir()
    found = shutil.which("git")
    assert found is not None
    (own / "git").symlink_to(found)
    runner = LocalRunner({"PATH": str(own)})  # one from the project does not count
    with pytest.raises(FinalToolError, match="no git on this machine"):
        async with open_safe_git(runner, repository, tmp_path):
            pass


async def test_the_stand_in_of_a_dead_process_is_swept_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    project = make_repository(tmp_path / "project")
    repository = find_repository(str(project))
    assert repository is not None
    scratch = tmp_path / "scratch"
    runner = LocalRunner(os.environ)
    left = scratch / ".git-left" / "repository"
    left.mkdir(parents=True)
    (left / "objects").symlink_to(project / ".git" / "objects")
    (scratch / "copy").mkdir()
    async with open_safe_git(runner, repository, scratch) as first:
        assert not left.parent.exists()
        async with open_safe_git(runner, repository, scratch):
            assert await first.output("rev-parse", "HEAD") == git(project, "rev-parse", "HEAD")
    assert os.listdir(scratch) == ["copy"]
    assert git(project, "fsck", "--strict") == ""
