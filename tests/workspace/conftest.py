"""A project on disk with something worth protecting beside it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from weft.workspace import LocalWorkspace
from weft.workspace import safe_open as beneath

SECRET = "what lies outside"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project; `tmp_path / "outside"` holds a secret."""
    root = tmp_path / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print('hello')\n")
    (root / "src" / "deep" / "leaf.txt").write_text("leaf\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    return root


@pytest.fixture(params=["openat2", "walk"])
def workspace(
    request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> LocalWorkspace:
    """The door to that project, with each way of opening."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "_opener", lambda: beneath.walk)
    return LocalWorkspace(str(project))


def exchange(one: Path, other: Path) -> None:
    """Let two names change places in one step."""
    here, flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    if rename(here, os.fsencode(one), here, os.fsencode(other), flag) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")
