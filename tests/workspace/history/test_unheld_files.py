"""Ignored files: listed, and missed when they are gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.workspace.history import unheld_files as module
from weft.workspace.history.unheld_files import lost_files, unheld_files, unheld_places


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
    gone = lost_files(str(tmp_path), known, ["data/"], ["elsewhere", "nowhere"])
    assert [(each.path, each.action, each.missing) for each in gone] == [("data/c", "deleted", "")]
    assert lost_files(str(tmp_path), {}, ["data/"], []) == []


def test_of_a_large_folder_the_first_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    for number in range(9):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "x").write_text("x")
    assert len(unheld_files(str(tmp_path), [f"{number}/" for number in range(9)])) == 3


def test_what_was_emptied_or_rewritten_is_lost_and_what_grew_is_not(tmp_path: Path) -> None:
    names = ("emptied", "rewritten", "replaced", "linked", "grown", "touched", "same", "moved")
    for name in names:
        (tmp_path / name).write_text(f"{name} before")
    known = unheld_files(str(tmp_path), names)
    (tmp_path / "emptied").write_text("")
    (tmp_path / "rewritten").write_text("rewritten after, and longer")
    (tmp_path / "new").write_text("replaced")
    (tmp_path / "new").rename(tmp_path / "replaced")
    (tmp_path / "linked").unlink()
    (tmp_path / "linked").symlink_to("/etc/hostname")
    with (tmp_path / "grown").open("a") as file:
        file.write(" and after")
    os.utime(tmp_path / "touched", ns=(1, 1))
    (tmp_path / "copy").write_text("moved before")
    (tmp_path / "copy").rename(tmp_path / "moved")
    lost = lost_files(str(tmp_path), known, names, [])
    assert {each.path: (each.action, each.data_before) for each in lost} == {
        name: ("modified", f"{name} before".encode())
        for name in ("emptied", "linked", "replaced", "rewritten")
    }
    assert all(each.before and not each.missing for each in lost)


def test_what_is_large_or_secret_is_named_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 10)
    names = (".env", "large", "grown", "longer")
    for name in names:
        (tmp_path / name).write_text("PASSWORD=1 and more")
    known = unheld_files(str(tmp_path), names)
    assert all(each.data is None for each in known.values())
    for name in (".env", "large"):
        (tmp_path / name).write_text("PASSWORD=2 and more")
        os.utime(tmp_path / name, ns=(1, 1))
    (tmp_path / "grown").write_text("PASSWORD=1 and more, and more")
    (tmp_path / "longer").write_text("something else, which is longer")
    lost = lost_files(str(tmp_path), known, names, [])
    assert [(each.path, each.missing, each.data_before) for each in lost] == [
        (name, "ignored", None) for name in (".env", "large", "longer")
    ]


def test_nothing_outside_is_read_where_a_folder_became_a_link(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "data/a").write_text("mine")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a").write_text("not mine")
    known = unheld_files(str(project), ["data/"])
    (project / "data").rename(tmp_path / "elsewhere")
    (project / "data").symlink_to("../outside")
    [lost] = lost_files(str(project), known, ["data/"], [])
    assert (lost.path, lost.data_before, lost.after) == ("data/a", b"mine", None)


def test_what_is_held_of_ignored_files_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 25)
    names = [str(number) for number in range(9)]
    for name in names:
        (tmp_path / name).write_text("ten bytes.")
    held = [each for each in unheld_files(str(tmp_path), names).values() if each.data is not None]
    assert len(held) == 2
