"""Uncommitted changes, told by the index; what git itself says is the oracle."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.workspace import find_repository
from weft.workspace.git_changes import MOST_HASHED, GitChanges, uncommitted_changes

pytestmark = pytest.mark.process


class Project:
    """A repository that git itself works on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        who = ("-c", "user.name=A", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", *who, *args], cwd=self.path, env=environ, check=True, capture_output=True
        )
        return done.stdout.decode()

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, **files: str) -> None:
        for name, text in files.items():
            self.write(name.replace("__", "/"), text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def changes(self) -> GitChanges | None:
        repository = find_repository(str(self.path))
        assert repository is not None
        return uncommitted_changes(repository)

    def changed(self) -> tuple[str, ...]:
        found = self.changes()
        assert found is not None
        return found.files


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.commit(a="one\n", b__c="two\n", d="three\n")
    return made


def test_after_a_commit_nothing_is_changed_or_staged(project: Project) -> None:
    assert project.changes() == GitChanges()


def test_changed_and_deleted_files_are_named_by_their_path(project: Project) -> None:
    project.write("b/c", "TWO\n")
    (project.path / "d").unlink()
    assert project.changes() == GitChanges(files=("b/c", "d"))


def test_a_file_of_the_same_size_is_judged_by_its_content(project: Project) -> None:
    project.write("a", "eno\n")
    os.utime(project.path / "d", (1, 1))
    assert project.changed() == ("a",)


def test_what_is_added_is_staged_until_it_is_committed(project: Project) -> None:
    project.write("a", "ONE\n")
    project.git("add", "a")
    assert project.changes() == GitChanges(is_staged=True)
    project.git("commit", "-q", "-m", "y")
    assert project.changes() == GitChanges()


def test_a_file_that_may_now_be_run_is_changed(project: Project) -> None:
    (project.path / "a").chmod(0o755)
    assert project.changed() == ("a",)


def test_a_file_that_became_a_link_is_changed(project: Project) -> None:
    (project.path / "a").unlink()
    (project.path / "a").symlink_to("d")
    assert project.changed() == ("a",)


def test_a_committed_link_is_unchanged_until_it_leads_elsewhere(project: Project) -> None:
    (project.path / "link").symlink_to("aa")
    project.commit()
    assert project.changes() == GitChanges()
    (project.path / "link").unlink()
    (project.path / "link").symlink_to("dd")
    assert project.changed() == ("link",)


def test_both_sides_of_a_conflict_are_one_file(project: Project) -> None:
    project.git("checkout", "-q", "-b", "other")
    project.commit(a="other\n")
    project.git("checkout", "-q", "main")
    project.commit(a="main!\n")
    with pytest.raises(subprocess.CalledProcessError):
        project.git("merge", "-q", "other")
    found = project.changes()
    assert found is not None
    assert found.files == ("a",)
    assert found.is_staged


def test_a_repository_without_an_index_has_nothing_to_tell(tmp_path: Path) -> None:
    assert Project(tmp_path / "new").changes() is None


def test_what_git_does_not_track_is_not_looked_for(project: Project) -> None:
    project.write("new", "text\n")
    assert project.changes() == GitChanges()


def test_a_linked_work_tree_has_an_index_of_its_own(project: Project, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked" / "a").write_text("linked\n")
    assert project.changed() == ()
    repository = find_repository(str(tmp_path / "linked"))
    assert repository is not None
    assert uncommitted_changes(repository) == GitChanges(files=("a",))


def test_submodules_and_what_is_not_checked_out_are_left_to_git(project: Project) -> None:
    project.git("update-index", "--skip-worktree", "a")
    project.git("update-index", "--assume-unchanged", "d")
    (project.path / "a").unlink()
    project.write("d", "other\n")
    assert project.changed() == ()


@pytest.mark.parametrize("version", ["4"])
def test_an_index_of_another_kind_tells_nothing(project: Project, version: str) -> None:
    project.git("update-index", "--index-version", version)
    assert project.changes() is None


def test_a_split_index_tells_nothing(project: Project) -> None:
    project.git("update-index", "--split-index")
    assert project.changes() is None


@pytest.mark.parametrize("cut", [0, 5, 12, 60, 100, -30])
def test_a_damaged_index_tells_nothing_or_names_files(project: Project, cut: int) -> None:
    index = project.path / ".git" / "index"
    index.write_bytes(index.read_bytes()[:cut])
    found = project.changes()
    assert found is None or isinstance(found.files, tuple)


def test_a_copied_repository_with_many_files_tells_nothing(
    project: Project, tmp_path: Path
) -> None:
    project.commit(**{f"f{number}": "x\n" for number in range(MOST_HASHED + 1)})
    shutil.copytree(project.path, tmp_path / "copy", copy_function=shutil.copyfile)
    repository = find_repository(str(tmp_path / "copy"))
    assert repository is not None
    assert uncommitted_changes(repository) is None
