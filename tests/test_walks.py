"""The page of walks: it names files that are there, and its few returns have their reasons."""

from __future__ import annotations

import re

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
