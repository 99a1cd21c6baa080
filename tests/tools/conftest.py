"""A project, and the tools at work in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tool_bench import ToolBench
from weft.workspace import LocalRunner


@pytest.fixture
def bench(tmp_path: Path) -> ToolBench:
    """An empty project."""
    root = tmp_path / "project"
    root.mkdir()
    return ToolBench(root, LocalRunner(os.environ))


@pytest.fixture
def bench_with(tmp_path: Path) -> Callable[[dict[str, str]], ToolBench]:
    """An empty project with another environment."""

    def make(environ: dict[str, str]) -> ToolBench:
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        return ToolBench(root, LocalRunner(environ))

    return make
