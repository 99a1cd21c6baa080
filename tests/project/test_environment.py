"""What a quick look at a project finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.git_history import git
from weft.project.environment import SOURCE_SUFFIXES, holds_source
from weft.repo.languages import PROSE, SUFFIXES


def test_the_suffixes_of_code_are_those_of_the_index() -> None:
    """Two tables: the one of the index is not loaded where there is none."""
    assert {each for each, language in SUFFIXES.items() if language not in PROSE} == SOURCE_SUFFIXES


def test_a_folder_without_git_is_looked_into(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.py").write_text("")
    assert not holds_source(str(tmp_path))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.RS").write_text("")
    assert holds_source(str(tmp_path))
    assert not holds_source(str(tmp_path / "nowhere"))


@pytest.mark.process
def test_a_repository_is_known_by_what_is_tracked(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.txt").write_text("")
    git(tmp_path, "add", "-A")
    assert not holds_source(str(tmp_path))
    (tmp_path / "b.go").write_text("")
    git(tmp_path, "add", "-A")
    assert holds_source(str(tmp_path))


@pytest.mark.process
def test_an_index_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "b.go").write_text("")
    os.mkfifo(tmp_path / ".git" / "index")
    assert holds_source(str(tmp_path))
