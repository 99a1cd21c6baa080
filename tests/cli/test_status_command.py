"""The user's own status line: a command, what it is given and what is shown of its output."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli.chat.screens.terminal.status_command import StatusCommand
from weft.cli.chat.screens.terminal.status_line import StatusPlace
from weft.view import LiveArea

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def shown(command: str, folder: Path, title: str = "fix the test") -> str:
    status = StatusCommand(command, str(folder))
    await status.next_line(LiveArea(model="m", title=title), StatusPlace("calc", "main"))
    return status.line


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("cat", '{"cwd": "'),
        (r"printf '\033[31mred\033[0m\nsecond\n'", "red"),
        ("echo said; exit 1", ""),
        ("no-such-command", ""),
        (r"printf '\377'", "\ufffd"),
    ],
)
async def test_its_first_line_is_shown_cleaned(tmp_path: Path, command: str, line: str) -> None:
    said = await shown(command, tmp_path)
    assert said.startswith(line) if line else not said


async def test_a_command_need_not_read_its_input(tmp_path: Path) -> None:
    """More than a pipe holds, so that the command has certainly closed its end before."""
    assert await shown("exec <&-; echo 10:47", tmp_path, title="x" * 1_000_000) == "10:47"


async def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert await shown("echo said", tmp_path / "gone") == ""
