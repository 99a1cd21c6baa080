"""The listing of a project: with git and without, ignore files honoured."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_history import git
from weft.repo.file_paths import FileListing, is_left_out
from weft.repo.project_files import _without_own_ignored, list_project, walk_project
from weft.workspace import IgnoreFile, LocalRunner

TREE = {
    ".gitignore": "*.log\n/out/\n!keep.log\n",
    "a.py": "",
    "keep.log": "",
    "noise.log": "",
    "out/made.py": "",
    "src/.gitignore": "gen_*\n!gen_kept.py\n",
    "src/gen_kept.py": "",
    "src/gen_other.py": "",
    "src/out/real.py": "",
    "src/ünï code.py": "",
}
LISTED = {
    ".gitignore",
    "a.py",
    "keep.log",
    "src/.gitignore",
    "src/gen_kept.py",
    "src/out/real.py",
    "src/ünï code.py",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def listed(project: Path, scratch: Path) -> set[str]:
    scratch.mkdir(exist_ok=True)
    found = anyio.run(list_project, LocalRunner(dict(os.environ)), str(project), scratch)
    paths = found.paths()
    assert len(paths) == len(set(paths)) == len(found)
    return set(paths)


@pytest.mark.process
def test_git_and_a_walk_list_the_same_files(tmp_path: Path) -> None:
    project = tmp_path / "p"
    write(project, TREE)
    assert set(walk_project(str(project))) == LISTED
    git(project, "init", "-q")
    assert listed(project, tmp_path / "s") == LISTED
    git(project, "add", "a.py")
    assert listed(project, tmp_path / "s") == LISTED


@pytest.mark.process
def test_a_folder_of_a_repository_lists_its_own_files_with_the_rules_above_it(
    tmp_path: Path,
) -> None:
    write(tmp_path / "p", TREE)
    git(tmp_path / "p", "init", "-q")
    assert listed(tmp_path / "p" / "src", tmp_path / "s") == {
        path.removeprefix("src/") for path in LISTED if path.startswith("src/")
    }


@pytest.mark.process
def test_another_repository_inside_is_not_listed(tmp_path: Path) -> None:
    project = tmp_path / "p"
    write(project, {"a.py": "", "inner/b.py": ""})
    git(project / "inner", "init", "-q")
    assert set(walk_project(str(project))) == {"a.py"}
    git(project, "init", "-q")
    assert listed(project, tmp_path / "s") == {"a.py"}


@pytest.mark.process
def test_weftignore_leaves_out_tracked_files_and_takes_lines_back(tmp_path: Path) -> None:
    project = tmp_path / "p"
    files = {
        ".weftignore": "vendor/\n*.gen.py\n",
        "vendor/b.py": "",
        "a.gen.py": "",
        "src/.weftignore": "!kept.gen.py\n",
        "src/kept.gen.py": "",
        "src/a.gen.py": "",
        "src/vendor/deep/c.py": "",
        "a.py": "",
    }
    write(project, files)
    expected = {".weftignore", "src/.weftignore", "src/kept.gen.py", "a.py"}
    assert listed(project, tmp_path / "s") == expected
    git(project, "init", "-q")
    git(project, "add", "-A")
    assert listed(project, tmp_path / "s") == expected


@pytest.mark.process
def test_a_repository_that_names_programs_runs_none_of_them(tmp_path: Path) -> None:
    project = tmp_path / "p"
    write(project, {"a.py": ""})
    git(project, "init", "-q")
    git(project, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    assert listed(project, tmp_path / "s") == {"a.py"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.process
def test_names_that_are_no_text_are_listed(tmp_path: Path) -> None:
    project = tmp_path / "p"
    write(project, {"a.py": "", 'quoted "\\ \n\t.py': "", "ü/\ufffd.py": ""})
    odd = os.fsdecode(b"o\xff'\xc3.py")
    write(project, {odd: "", f"deep {odd}/{odd}": ""})
    expected = set(walk_project(str(project)))
    assert odd in expected
    git(project, "init", "-q")
    assert listed(project, tmp_path / "s") == expected
    git(project, "add", "-A")
    assert listed(project, tmp_path / "s") == expected


@pytest.mark.process
def test_pipes_are_not_listed(tmp_path: Path) -> None:
    write(tmp_path / "p", {"a.py": ""})
    os.mkfifo(tmp_path / "p" / "pipe.py")
    assert set(walk_project(str(tmp_path / "p"))) == {"a.py"}


@pytest.mark.process
def test_rules_are_applied_at_any_depth(tmp_path: Path) -> None:
    deep = "d/" * 1_100
    own = {"": IgnoreFile("*.log\n")}
    listing = FileListing.of([f"{deep}x.py", f"{deep}x.log"])
    (tmp_path / ".weftignore").write_text("*.log\n")
    assert _without_own_ignored(str(tmp_path), listing).paths() == [f"{deep}x.py"]
    assert is_left_out(f"{deep}x.log", own, is_folder=False)


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1)))
def test_a_listing_gives_back_its_paths(paths: list[str]) -> None:
    assert FileListing.of(paths).paths() == paths


@pytest.mark.process
def test_git_that_hangs_is_ended_and_the_folders_are_walked(tmp_path: Path) -> None:
    project, scratch = tmp_path / "p", tmp_path / "s"
    write(project, {"a.py": "", "src/b.py": ""})
    git(project, "init", "-q")
    os.mkfifo(project / ".gitignore")
    scratch.mkdir()

    async def listing() -> FileListing:
        runner = LocalRunner(dict(os.environ))
        with anyio.fail_after(30):
            return await list_project(runner, str(project), scratch, git_seconds=0.2)

    assert set(anyio.run(listing)) == {"a.py", "src/b.py"}
    assert not _processes_in(project)


@pytest.mark.process
def test_git_that_hangs_is_ended_once_its_answer_is_not_wanted(tmp_path: Path) -> None:
    project, scratch = tmp_path / "p", tmp_path / "s"
    write(project, {"a.py": ""})
    git(project, "init", "-q")
    os.mkfifo(project / ".gitignore")
    scratch.mkdir()

    seen: list[str] = []

    def is_wanted() -> bool:
        seen.extend(_processes_in(project))
        return not seen  # until git is there

    async def listing() -> FileListing:
        runner = LocalRunner(dict(os.environ))
        with anyio.fail_after(30):
            return await list_project(runner, str(project), scratch, is_wanted)

    assert anyio.run(listing).paths() == []
    assert not _processes_in(project)


def _processes_in(folder: Path) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(place) == str(folder):
                found.append(place.parent.name)
    return found
