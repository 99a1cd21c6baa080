"""Ignored files: listed, and missed when they are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.workspace.history import unheld_files as module
from weft.workspace.history.unheld_files import removed_files, unheld_files, unheld_places


def test_what_tools_make_again_is_not_listed(tmp_path: Path) -> None:
    for name in ("a.db", "data/b", "data/deep/c.o", "data/node_modules/d", "data/deep/e"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    left_out = {
        **dict.fromkeys(["a.db", "data/", "node_modules/", ".git/", "f.pyc"], "ignored"),
        "big": "too large",
    }
    places = unheld_places(left_out)
    assert places == ["a.db", "data/"]
    assert sorted(unheld_files(str(tmp_path), places)) == ["a.db", "data/b", "data/deep/e"]


def test_a_file_that_was_moved_is_not_gone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in "abcd":
        (tmp_path / "data" / name).write_text(name)
    known = unheld_files(str(tmp_path), ["data/"])
    (tmp_path / "data/a").rename(tmp_path / "data/moved")
    (tmp_path / "data/b").rename(tmp_path / "elsewhere")
    (tmp_path / "data/c").unlink()
    gone = removed_files(str(tmp_path), known, ["data/"], ["elsewhere", "nowhere"])
    assert [(each.path, each.action, each.missing) for each in gone] == [
        ("data/c", "deleted", "ignored")
    ]
    assert removed_files(str(tmp_path), {}, ["data/"], []) == []


def test_of_a_large_folder_the_first_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    for number in range(9):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "x").write_text("x")
    assert len(unheld_files(str(tmp_path), [f"{number}/" for number in range(9)])) == 3
