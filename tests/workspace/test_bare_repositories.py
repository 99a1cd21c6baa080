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


@pytest.mark.parametrize(
    ("settings", "hook"),
    [
        ("[core]\n\thooksPath = tools/hooks\n", "tools/hooks/pre-commit"),
        ("[core]\n\thooksPath = tools/hooks\n", "tools/hooks/lib/shared.sh"),
        ('[CORE]\nbare = false\n HOOKSPATH="tools/my hooks" # ours\n', "tools/my hooks/x"),
        ("[core] hookspath = tools/hooks/ ; ours\n", "tools/hooks/pre-push"),
        ("[core]\n\thooksPath = old\n[core]\n\thooksPath = ./tools/../new\n", "new/pre-push"),
        ("[core]\n\thooksPath = {top}/tools\n", "tools/pre-push"),
        ("[core]\n\thooksPath = ~/project/tools\n", "tools/pre-push"),
        ("[core]\n\thooksPath = linked\n", "behind/pre-push"),
        ("[core]\n\thooksPath = linked\n", "linked"),
        ("[core]\n\thooksPath = .\n", "pre-commit"),
    ],
)
def test_a_hook_lies_where_the_settings_of_the_repository_have_it(
    tmp_path: Path, settings: str, hook: str
) -> None:
    top = tmp_path / "project"
    _make(top, ".git/HEAD", "behind/x")
    (top / "linked").symlink_to("behind")
    assert not steers_git(str(top / hook))
    (top / ".git/config").write_text(settings.format(top=top))
    assert steers_git(str(top / hook))
    assert not steers_git(str(top / "src/deep/main.py"))
    assert not steers_git(str(top / "main.py"))


@pytest.mark.parametrize(
    "settings",
    [
        "[core]\n\thooksPath =\n",
        "[corehooks]\n\thooksPath = src\n",
        '[remote "core"]\n\thooksPath = src\n',
        "[core]\n\t# hooksPath = src\n",
        "[core]\n\thooksPath = src\n\thooksPath = elsewhere\n",
    ],
)
def test_other_settings_make_no_hook_of_a_file(tmp_path: Path, settings: str) -> None:
    _make(tmp_path, ".git/HEAD")
    (tmp_path / ".git/config").write_text(settings)
    assert not steers_git(str(tmp_path / "src/pre-commit"))
