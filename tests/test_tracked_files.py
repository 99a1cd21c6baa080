"""The files of the repository: what a test wrote here by accident does not become a part of it."""

from __future__ import annotations

import re

import pytest

from tests.support.git_history import git
from tests.support.source_code import ROOT


@pytest.mark.process
def test_every_tracked_name_can_be_checked_out_anywhere() -> None:
    names = git(ROOT, "ls-files", "-z").split("\0")
    assert [
        name for name in names if re.search(r'[\\:*?"<>|\x00-\x1f]|(^|/)\s|\s(/|$)', name)
    ] == []
