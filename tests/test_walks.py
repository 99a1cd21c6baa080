"""The page of walks: it names files that are there, and its few returns have their reasons."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import ROOT, SRC

PAGE = (ROOT / "docs" / "walks.md").read_text(encoding="utf-8")
WALKS = PAGE.split("\n## ")[1:]
MOST_RETURNS = 5
"""The way of a call goes down through the folders; before they were sorted, 17 calls came back."""


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.split("\n")[0])
def test_a_walk_goes_through_files_that_exist(walk: str) -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", walk))
    assert named
    assert sorted(file for file in named if not (SRC / file).is_file()) == [], "run `make walks`"


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.split("\n")[0])
def test_each_return_has_its_reason(walk: str) -> None:
    returns = re.findall(r"— back in `(\w+)[\w/]*/`$", walk, re.MULTILINE)
    reasons = re.findall(r"^- Back in `(\w+)/`: \w", walk, re.MULTILINE)
    assert sorted(set(returns)) == reasons


def test_the_ways_of_everyday_calls_lead_down() -> None:
    assert len(WALKS) == 4
    assert len(re.findall(r"— back in `", PAGE)) <= MOST_RETURNS


@pytest.mark.process
def test_the_page_names_the_files_of_the_walks_as_they_are_today(tmp_path: Path) -> None:
    """In a process of its own: what other tests loaded and opened would shorten the ways."""
    fresh = tmp_path / "walks.md"
    subprocess.run([sys.executable, "-m", "scripts.walks", str(fresh)], cwd=ROOT, check=True)
    walked = fresh.read_text(encoding="utf-8").split("\n## ")[1:]
    # Files, not their order: tasks run side by side, and on a busy machine one overtakes another.
    for old, new in zip(WALKS, walked, strict=True):
        missing = _files(new) - _files(old)
        assert not missing, f"run `make walks`: {missing}"


def _files(walk: str) -> set[str]:
    return set(re.findall(r"^\d+\. `([\w/]+\.py)`", walk, re.MULTILINE))
