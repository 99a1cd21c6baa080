"""Folders that git would take for a repository, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.workspace.bare_repositories import steers_git


def _make(folder: Path, *names: str) -> None:
    for name in names:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")


@pytest.mark.parametrize(
    ("there", "written"),
    [
        (("HEAD", "objects/x", "refs/x"), "config"),
        (("HEAD", "objects/x", "refs/x"), "config.worktree"),
        (("HEAD", "objects/x", "refs/x"), "hooks/pre-commit"),
        (("HEAD", "objects/x", "refs/x"), "commondir"),
        (("config", "objects/x", "refs/x"), "HEAD"),
        (("config", "HEAD", "objects/x"), "refs/heads/y"),
        (("config", "HEAD", "refs/x"), "objects/y"),
        (("HEAD",), "commondir"),
        (("commondir",), "HEAD"),
    ],
)
def test_the_part_that_steers_git_is_known(
    tmp_path: Path, there: tuple[str, ...], written: str
) -> None:
    _make(tmp_path / "b", *there)
    assert steers_git(str(tmp_path / "b" / written))
    assert not steers_git(str(tmp_path / "other" / written))


def test_ordinary_files_are_none(tmp_path: Path) -> None:
    _make(tmp_path, "app/config", "app/hooks/use.ts", "app/HEAD", "app/refs/x")
    for name in ("app/config", "app/hooks/use.ts", "app/HEAD", "app/refs/y", "config", "HEAD"):
        assert not steers_git(str(tmp_path / name))


def test_what_is_written_together_counts_together(tmp_path: Path) -> None:
    places = [str(tmp_path / "b" / name) for name in ("HEAD", "objects/x", "refs/x", "config")]
    assert all(steers_git(place, places) for place in places)
    assert not any(steers_git(place) for place in places)


def test_records_of_a_repository_that_is_there_are_no_settings(tmp_path: Path) -> None:
    _make(tmp_path / "b", "HEAD", "objects/x", "refs/x")
    assert not steers_git(str(tmp_path / "b" / "refs/heads/new"))
