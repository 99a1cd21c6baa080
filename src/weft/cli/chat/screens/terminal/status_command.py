"""The user's own status line: a command of theirs, run at most once a second.

It gets what ours would show as JSON on its standard input, and its first line is shown, cleaned.
"""

from __future__ import annotations

import contextlib
import json

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
            # Of the user's own settings and never a project's, so it runs as the user does. A
            # cancel ends the shell; a deadline does, too.
            done = await anyio.run_process(
                ["/bin/sh", "-c", self._command],
                input=json.dumps(state).encode(),
                cwd=self._folder,
                check=False,
                start_new_session=True,
            )
            if done.returncode == 0:
                line = done.stdout[:_LONGEST].decode("utf-8", "replace").partition("\n")[0]
        self.line = clean_line(line)

    async def wait(self) -> None:
        """Until something has changed, and at least a second after the last time."""
        await self._due.wait()
        await anyio.sleep(REFRESH_SECONDS if self.line else 0)
        self._due = anyio.Event()
