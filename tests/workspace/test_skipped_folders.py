"""Folders to skip: one table for history, search, completion and the sandbox."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.source_code import SRC, nodes, python_files
from weft.project.file_list import list_files
from weft.workspace.ignore import ignore_of
from weft.workspace.sandbox.hidden import HiddenPaths
from weft.workspace.skipped_folders import SKIPPED_FOLDERS, skipped_for

SURE = skipped_for("version control", "dependencies", "cache")


def in_every_folder(project: Path, file: str) -> None:
    for name in (*SKIPPED_FOLDERS, "src"):
        (project / name).mkdir()
        (project / name / file).write_text("x")


def test_search_and_history_leave_out_all_but_build_output(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    rules = ignore_of(str(tmp_path / "project"))
    assert {name for name in SKIPPED_FOLDERS if rules.ignores(name, is_folder=True)} == set(SURE)


def test_completion_offers_nothing_out_of_a_skipped_folder(tmp_path: Path) -> None:
    in_every_folder(tmp_path, "a.txt")
    assert list(list_files(str(tmp_path))) == ["src/a.txt"]


def test_the_search_for_secrets_enters_no_skipped_folder(tmp_path: Path) -> None:
    in_every_folder(tmp_path, ".env")
    found = HiddenPaths("/nowhere").of_projects([str(tmp_path)])
    assert found == [f"{tmp_path}/src/.env"]


def strings_of(file: Path) -> list[str]:
    """The strings of a file that are not documentation."""
    documentation = {
        id(node.value)
        for node in nodes(file)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in nodes(file)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
    ]


def names_in(strings: list[str]) -> set[str]:
    """The folders of dependencies and caches that strings name, alone or in a text of patterns."""
    words = {word for each in strings for word in re.split(r"[\s/,:|*]+", each)}
    return words & set(skipped_for("dependencies", "cache"))


@pytest.mark.parametrize("text", ["node_modules", "a/\n__pycache__/\n", "**/.venv/**"])
def test_a_second_list_would_be_seen(text: str) -> None:
    assert names_in(["src", text])


def test_there_is_no_second_list() -> None:
    found = {str(file.relative_to(SRC)): names_in(strings_of(file)) for file in python_files()}
    table = found.pop("workspace/skipped_folders.py")
    assert table == set(skipped_for("dependencies", "cache"))
    assert {file: names for file, names in found.items() if names} == {}
