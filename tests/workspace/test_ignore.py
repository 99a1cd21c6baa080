"""Ignore rules: git is the judge of ours."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from weft.workspace.ignore import IgnoreFile, ignore_of

NAMES = ("a", "b", "ab", "a.py", "b.py", "build", "x.log", "keep.log", "[", "sp ace", "é")
LINES = (
    *("a", "/a", "a/", "/b/", "*.py", "!a.py", "a/b", "a/*", "a/**", "**/b", "a/**/b", "**", "*"),
    *(
        "!keep.log",
        "*.log",
        "[ab]",
        "[!a]",
        "[a-b].py",
        "[]a]",
        "\\[",
        "sp ace",
        "sp\\ ",
        "#a",
        "\\#a",
    ),
    *(
        "?",
        "??",
        "/*/b",
        "!/b",
        "b/a/",
        "/build",
        "é",
        "a*b",
        "[a",
        "!",
        "/",
        "   ",
        "a/b/",
        "**/a/b",
    ),
    *("[^b]", "*.p?", "!**/a.py", "build/", "!build/a"),
    *("*a*", "*i*l*", "*e*.*g", "**/a/**", "**/a/**/b", "a/**/b/**/a", "**/*b*/**/a*", "*/*/a*.p*"),
)


def listed(folder: Path) -> set[str]:
    """What our rules leave in."""
    found: set[str] = set()
    waiting = [(folder, ignore_of(str(folder)), "")]
    while waiting:
        here, ignore, prefix = waiting.pop()
        for entry in os.scandir(here):
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignore.ignores(entry.name, is_folder=is_folder):
                continue
            if is_folder:
                below = ignore.below(entry.name, entry.path)
                waiting.append((Path(entry.path), below, f"{prefix}{entry.name}/"))
            else:
                found.add(prefix + entry.name)
    return found


def listed_by_git(folder: Path) -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    return {name for name in done.stdout.decode().split("\0") if name}


def make_tree(folder: Path, dice: random.Random, depth: int = 0) -> None:
    for name in dice.sample(NAMES, dice.randint(2, 6)):
        if depth < 3 and dice.random() < 0.4:
            (folder / name).mkdir()
            make_tree(folder / name, dice, depth + 1)
        else:
            (folder / name).write_text(name)
    if depth == 0 or dice.random() < 0.3:
        text = "\n".join(dice.sample(LINES, dice.randint(1, 6))) + "\n"
        (folder / ".gitignore").write_text(text)


@pytest.mark.process
@pytest.mark.parametrize("seed", range(30))
def test_what_is_left_out_is_what_git_leaves_out(seed: int, tmp_path: Path) -> None:
    make_tree(tmp_path, random.Random(seed))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert listed(tmp_path) == listed_by_git(tmp_path)


@pytest.mark.process
@pytest.mark.parametrize(
    "line",
    [
        *(
            "[[:alpha:]]",
            "[[:digit:]x]*",
            "[![:alnum:]]*",
            "[^[:upper:]]",
            "[[:punct:]]",
            "[[:lower:]",
        ),
        *("[[:none:]]", "[[:alpha]", "[[:space:]-z]*", "***/a", "a/***", "***", "a***b", "x***/a"),
    ],
)
def test_named_classes_and_many_stars_mean_what_they_mean_to_git(line: str, tmp_path: Path) -> None:
    for folder in ("", "b", "b/a", "a", "xx"):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in ("p", "1", "x1", "_", "aab", "é", ":", "l", "Q", "-", "[x", " z"):
            (tmp_path / folder / name).touch()
    (tmp_path / ".gitignore").write_text(f"{line}\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert listed(tmp_path) == listed_by_git(tmp_path)


@pytest.mark.process
def test_a_project_inside_a_repository_is_held_to_the_rules_above_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("/inner/secret\n*.o\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in ("secret", "a.o", "a.c"):
        (inner / name).write_text("x")
    assert listed(inner) == {"a.c"}


def test_without_a_repository_the_usual_folders_are_left_out_unless_taken_back(
    tmp_path: Path,
) -> None:
    for name in ("node_modules", "venv", "src"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("x")
    assert listed(tmp_path) == {"src/f"}
    (tmp_path / ".gitignore").write_text("!venv/\n")
    assert listed(tmp_path) == {"src/f", "venv/f", ".gitignore"}


@pytest.mark.process
def test_another_repository_inside_has_rules_of_its_own(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*.o\n")
    inner = tmp_path / "sub"
    subprocess.run(["git", "init", "-q", inner], check=True)
    for folder in (tmp_path, inner):
        (folder / "a.o").write_text("x")
    assert listed(tmp_path) == {".gitignore", "sub/a.o"}


def test_a_pattern_that_is_slow_to_match_is_not_slow(tmp_path: Path) -> None:
    rules = IgnoreFile("**/a*b*c*d*e*f\n")
    assert rules.judge("x/" * 20, "a" * 60, is_folder=False) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("line", "prefix", "name"),
    [
        ("*a" * 60 + "*b", "", "a" * 255),
        ("[ab]*?" * 60 + "*c", "", "a" * 255),
        ("/" + "*a" * 60 + "*/b", "a" * 255 + "/", "a"),
        ("**/a/" * 60 + "b", "a/" * 1000, "a"),
        ("**/*a/" * 60 + "b", "a/" * 1000, "a"),
        ("**/*a*a*/" * 60 + "b", "aaaaaaaa/" * 400, "a"),
        ("*/" * 60 + "**/b", "a/" * 1000, "a"),
    ],
    ids=lambda value: value[:10],
)
def test_no_line_of_a_project_can_keep_us_busy(line: str, prefix: str, name: str) -> None:
    """It fits in very many ways up to its last letter, and all of them would be tried."""
    assert IgnoreFile(line).judge(prefix, name, is_folder=False) is None
    assert IgnoreFile(line).judge(prefix, name[:-1] + line[-1], is_folder=False) is True
