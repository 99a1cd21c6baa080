"""Commits that were made are read from the repository's own record."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from weft.workspace import commits_since, head_record

pytestmark = pytest.mark.process


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(
        ["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    (folder / "a.txt").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", text)
    return git(folder, "rev-parse", "HEAD")


def test_commits_are_named_and_checkouts_and_resets_make_none(tmp_path: Path) -> None:
    assert head_record(str(tmp_path)) is None
    git(tmp_path, "init", "-q", "-b", "main")
    before = head_record(str(tmp_path))
    assert before is not None
    first = commit(tmp_path, "one")
    assert commits_since(before) == [first]
    before = head_record(str(tmp_path))
    assert before is not None
    git(tmp_path, "checkout", "-qb", "other")
    second, third = commit(tmp_path, "two"), commit(tmp_path, "three")
    git(tmp_path, "checkout", "-q", "main")
    git(tmp_path, "reset", "-q", "--hard", first)
    assert commits_since(before) == [second, third]
    git(tmp_path, "cherry-pick", second)
    picked = git(tmp_path, "rev-parse", "HEAD")
    assert commits_since(before) == [second, third, picked] or picked == second
