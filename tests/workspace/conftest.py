"""A project on disk with a secret beside it, and the workspace that opens it in both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project_beside_secret import make_project
from weft.workspace import LocalWorkspace, safe_open


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project; `tmp_path / "outside"` holds a secret."""
    return make_project(tmp_path)


@pytest.fixture(params=["openat2", "walk"])
def workspace(
    request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> LocalWorkspace:
    """The workspace of that project, with each way of opening a file."""
    if request.param == "walk":
        monkeypatch.setattr(safe_open, "_opener", lambda: safe_open.walk)
    return LocalWorkspace(str(project))
