"""The user's own status line: a command of theirs, run at most once a second.

It gets what ours would show as JSON on its standard input, and its first line is shown, cleaned.
"""

from __future__ import annotations

import contextlib
import json
from subprocess import DEVNULL

import anyio

from weft.cli.chat.screens.terminal.status_line import StatusPlace
from weft.cli.sanitize import clean_line
from weft.view import LiveArea

REFRESH_SECONDS = 1.0
DEADLINE_SECONDS = 5.0
_LONGEST = 1000


class StatusCommand:
    """Runs the command, and keeps its last line."""

    def __init__(self, command: str, folder: str) -> None:
        self._command = command
        self._folder = folder
        self._due = anyio.Event()
        self.line = ""
        """Empty until the command has answered, and when it fails: then ours is shown."""

    def changed(self) -> None:
        """Something that it may show has changed."""
        self._due.set()

    async def next_line(self, live: LiveArea, place: StatusPlace) -> None:
        """Run it once."""
        state = {
            "cwd": self._folder,
            "branch": place.branch,
            "model": live.model,
            "effort": live.effort,
            "permission_mode": live.mode,
            "context_used": live.context_used,
            "context_window": live.context_window,
            "cost_usd": live.cost_usd,
            "status": live.status,
            "title": live.title,
        }
        line = ""
        with anyio.move_on_after(DEADLINE_SECONDS), contextlib.suppress(OSError):
            line = await self._first_line(json.dumps(state).encode())
        self.line = clean_line(line)

    async def _first_line(self, state: bytes) -> str:
        """What the command says; nothing, when it fails."""
        # Of the user's own settings and never a project's, so it runs as the user does. A cancel
        # ends the shell; a deadline does, too.
        async with await anyio.open_process(
            ["/bin/sh", "-c", self._command],
            cwd=self._folder,
            start_new_session=True,
            stderr=DEVNULL,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            # A command that shows the time reads nothing, and may be over before this is written.
            with contextlib.suppress(anyio.BrokenResourceError):
                await process.stdin.send(state)
            with contextlib.suppress(anyio.BrokenResourceError, OSError):
                await process.stdin.aclose()
            said = b""
            async for piece in process.stdout:
                said = (said + piece)[:_LONGEST]
            code = await process.wait()
        return said.decode("utf-8", "replace").partition("\n")[0] if code == 0 else ""

    async def wait(self) -> None:
        """Until something has changed, and at least a second after the last time."""
        await self._due.wait()
        await anyio.sleep(REFRESH_SECONDS if self.line else 0)
        self._due = anyio.Event()
