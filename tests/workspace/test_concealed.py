"""Concealed files: what patterns mean in a project, found again as it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.workspace.concealed import MOST_HIDDEN, ConcealedFiles, TooManyFiles


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


def found(root: Path, files: ConcealedFiles, *patterns: str) -> list[str]:
    return sorted(path.removeprefix(f"{root}/") for path in files.find(patterns))


def test_files_and_whole_folders_are_found_at_any_depth(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, "plan.txt", "a/plan.txt", "a/b/plan.txt", "a/other.txt", "keys/x/y", "a/[id]/p")
    (root / "link.txt").symlink_to("plan.txt")
    files = ConcealedFiles(str(root))
    assert found(root, files, "plan.txt", "*/plan.txt") == [
        "a/b/plan.txt",
        "a/plan.txt",
        "plan.txt",
    ]
    assert found(root, files, "keys", "keys/*") == ["keys"]
    assert found(root, files, "a/[id]/p") == ["a/[id]/p"]
    assert found(root, files, f"{root}/a/*.txt") == ["a/b/plan.txt", "a/other.txt", "a/plan.txt"]
    assert found(root, files, "*link*") == []


@pytest.mark.parametrize("pattern", ["keys/**", "keys/*", "**/keys/**", "*/keys/**/*"])
def test_a_folder_is_hidden_as_a_whole_however_much_is_in_it(tmp_path: Path, pattern: str) -> None:
    top = "a/keys" if pattern.startswith("*") else "keys"
    make(tmp_path, *(f"{top}/{number}" for number in range(MOST_HIDDEN + 1)))
    assert found(tmp_path, ConcealedFiles(str(tmp_path)), pattern) == [top]


def test_what_comes_later_is_found_too(tmp_path: Path) -> None:
    make(tmp_path, "a/one.key")
    files = ConcealedFiles(str(tmp_path))
    assert found(tmp_path, files, "*.key") == ["a/one.key"]
    make(tmp_path, "a/two.key", "b/c/three.key")
    (tmp_path / "a/one.key").unlink()
    assert found(tmp_path, files, "*.key") == ["a/two.key", "b/c/three.key"]


def test_what_lies_outside_is_found_where_its_pattern_begins(tmp_path: Path) -> None:
    make(tmp_path, "project/x", "beside/deep/one.key", "beside/two.txt")
    files = ConcealedFiles(str(tmp_path / "project"))
    assert found(tmp_path, files, f"{tmp_path}/beside/*.key") == ["beside/deep/one.key"]
    assert found(tmp_path, files, f"{tmp_path}/beside") == ["beside"]
    assert found(tmp_path, files, f"{tmp_path}/nothing/*") == []


def test_added_folders_are_looked_through_like_the_project(tmp_path: Path) -> None:
    make(tmp_path, "project/x", "added/deep/plan.txt", "beside/plan.txt")
    files = ConcealedFiles(str(tmp_path / "project"), [str(tmp_path / "added")])
    assert found(tmp_path, files, "plan.txt", "*/plan.txt") == ["added/deep/plan.txt"]


def test_more_than_can_be_hidden_is_said(tmp_path: Path) -> None:
    make(tmp_path, *(f"{number}.key" for number in range(MOST_HIDDEN + 1)))
    with pytest.raises(TooManyFiles):
        ConcealedFiles(str(tmp_path)).find(["*.key"])
