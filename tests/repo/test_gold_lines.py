"""The measure of changed lines: where in an older tree a later commit changed something."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bench.gold_lines import GoldLines, innermost

from tests.support.git_history import git
from weft.repo.definitions import Definition


@pytest.mark.process
def test_lines_are_followed_back_to_the_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    file = tmp_path / "a.txt"

    def commit(lines: list[str]) -> str:
        file.write_text("".join(f"{line}\n" for line in lines))
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "x")
        return git(tmp_path, "rev-parse", "HEAD").strip()

    tree = [f"line {number}" for number in range(1, 41)]
    snapshot = commit(tree)
    later = ["new", *tree[:4], *tree[9:20], "other", "more", *tree[21:]]
    parent = commit(later)
    chosen = random.Random(7).sample(range(len(later)), 9)
    changed = commit([f"{line}!" if at in chosen else line for at, line in enumerate(later)])
    gold = GoldLines(tmp_path / ".git", snapshot)
    found = gold.of({"parent": parent, "commit": changed, "files": ["a.txt"]})
    expected = [
        tree.index(line) + 1 for at, line in enumerate(later) if at in chosen and line in tree
    ]
    assert found == [("a.txt", line) for line in expected]
    assert expected


def test_a_line_belongs_to_the_smallest_definition_around_it() -> None:
    outer = Definition("Cart", "class", 1, 9, "class Cart")
    inner = Definition("total", "function", 3, 5, "def total(self)")
    assert [innermost([outer, inner], line) for line in (2, 4, 10)] == ["Cart", "total", None]
