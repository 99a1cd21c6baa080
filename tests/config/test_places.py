"""What the parts keep in the data folder never meets under one name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.source_code import SRC, files_with, nodes
from weft.config.paths import WeftPaths


def test_no_two_parts_use_the_same_name_in_the_data_folder() -> None:
    names = [
        (str(node.right.value), str(file.relative_to(SRC)))
        for file in files_with("home")
        for node in nodes(file)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.left, ast.Attribute)
        and node.left.attr in ("home", "_home")
        and isinstance(node.right, ast.Constant)
    ]
    used = [name for name, _ in names]
    assert len(used) > 3, "the test looks for a form that is still in use"
    doubled = {name: [file for each, file in names if each == name] for name in used}
    assert {name: files for name, files in doubled.items() if len(set(files)) > 1} == {}


def _places(base: Path) -> WeftPaths:
    return WeftPaths(home=base / "data", user=base, config=base / "config")


@pytest.mark.parametrize("name", ["config", "data/memory", "data/projects"])
def test_what_the_user_said_is_known_where_it_really_lies(tmp_path: Path, name: str) -> None:
    base = tmp_path.resolve()
    there = base / "dotfiles" / "kept"
    there.mkdir(parents=True)
    (base / "data").mkdir()
    paths = _places(base)
    assert paths.are_words_of_user(f"{base / name}/notes")  # nothing is there yet
    assert not paths.are_words_of_user(f"{there}/notes")
    (base / name).symlink_to(there)
    assert paths.are_words_of_user(f"{there}/notes")
    assert paths.are_words_of_user(str(there))
    assert not paths.are_words_of_user(f"{there}s/notes")
    there.rename(base / "moved")
    assert paths.are_words_of_user(f"{there}/notes")  # the link leads to nothing now
    (base / name).unlink()
    (base / name).symlink_to("../moved" if "/" in name else "moved")
    assert paths.are_words_of_user(f"{base}/moved/notes")
    assert not paths.are_words_of_user(f"{there}/notes")


def test_the_memory_of_the_user_is_known_behind_a_link_of_its_own(tmp_path: Path) -> None:
    base = tmp_path.resolve()
    (base / "config").mkdir()
    (base / "MEMORY.md").touch()
    paths = _places(base)
    assert paths.are_words_of_user(f"{base}/config/MEMORY.md")
    assert not paths.are_words_of_user(f"{base}/MEMORY.md")
    paths.user_memory.symlink_to(base / "MEMORY.md")
    assert paths.are_words_of_user(f"{base}/MEMORY.md")
