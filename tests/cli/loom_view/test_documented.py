"""The page of the view names every action and its key."""

from __future__ import annotations

import re

import pytest

from tests.support.source_code import ROOT
from weft.cli.loom_view.key_map import ACTIONS, ViewAction, shown_key

PAGE = (ROOT / "docs" / "loom-view.md").read_text("utf-8")


LISTED = [each for each in ACTIONS if not re.fullmatch(r"(generate|short)_[2-8]", each.name)]
"""Of a row of digits the page shows the first and the last."""


@pytest.mark.parametrize("action", LISTED, ids=lambda action: action.name)
def test_every_action_and_its_first_key_are_on_the_page(action: ViewAction) -> None:
    name = action.name
    [row] = [line for line in PAGE.splitlines() if line.startswith("|") and f"`{name}`" in line]
    assert f"`{shown_key(action.keys[0])}`" in row
