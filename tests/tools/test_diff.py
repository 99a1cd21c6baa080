"""Unified diffs, as `diff -u` writes them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from weft.tools.diff import unified

CASES = [
    ("", "a\nb\n"),
    ("a\nb\n", ""),
    ("a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n"),
    ("a\n", "a\nb\n"),
    ("a\nb\n", "b\n"),
    ("".join(f"{n}\n" for n in range(40)), "".join(f"{n}\n" for n in range(40) if n != 20)),
]


@pytest.mark.process
@pytest.mark.parametrize(("old", "new"), CASES)
def test_hunks_are_those_of_diff(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "old").write_text(old)
    (tmp_path / "new").write_text(new)
    made = subprocess.run(
        ["diff", "-u", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    ).stdout
    # `diff` leaves out a count of one.
    theirs = made.splitlines()[2:]
    ours = [
        line.replace(",1 ", " ") if line.startswith("@@") else line
        for line in unified(old, new, "f").splitlines()[2:]
    ]
    assert ours == theirs


@pytest.mark.process
def test_git_makes_the_new_text_of_the_old_one(tmp_path: Path) -> None:
    # Few different lines, so that what is put in often equals what stands around it.
    draw = random.Random(11)
    wanted: dict[str, str] = {}
    diffs = []
    for number in range(300):
        old = draw.choices("abcd", k=draw.randrange(12))
        start, length = draw.randrange(len(old) + 1), draw.randrange(4)
        new = old[:start] + draw.choices("abx}", k=draw.randrange(4)) + old[start + length :]
        before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
        if before != after and before and after:  # files that are made or removed have other heads
            (tmp_path / f"f{number}").write_text(before)
            wanted[f"f{number}"] = after
            diffs.append(unified(before, after, f"f{number}"))
    subprocess.run(
        ["git", "apply", "-p0"],
        cwd=tmp_path,
        input="\n".join(diffs) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(wanted) > 200
    assert {name: (tmp_path / name).read_text() for name in wanted} == wanted


def test_a_new_file_has_had_no_line() -> None:
    assert unified("", "a\n", "f").splitlines()[2:] == ["@@ -0,0 +1,1 @@", "+a"]


def test_a_file_that_is_not_there_has_no_line_however_the_other_ends() -> None:
    """A new file without a newline at its end was said to have lost one line."""
    assert unified("", "x", "a").split("\n")[2:] == ["@@ -0,0 +1,1 @@", "+x"]
    assert unified("x", "", "a").split("\n")[2:] == ["@@ -1,1 +0,0 @@", "-x"]
    assert unified("", "x\ny", "a").split("\n")[2:] == ["@@ -0,0 +1,2 @@", "+x", "+y"]


def test_what_is_equal_has_no_diff() -> None:
    assert unified("a\n", "a\n", "f") == ""
    assert unified("", "", "f") == ""
