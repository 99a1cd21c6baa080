"""A command line of our own: the real program, in a folder and a home that nobody else has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.weft_program import WeftProgram
from weft.app import App, open_app


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    """The program, in a world of its own."""
    program = WeftProgram(tmp_path)
    yield program
    program.close()


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    """An application on an empty project, in a world of its own."""
    (tmp_path / "project").mkdir()
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with open_app(tmp_path / "project", tmp_path / "weft.db", environ=environ) as opened:
        yield opened
