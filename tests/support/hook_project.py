"""A project with hooks, calls of tools, and what the hooks and the model received."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio

import weft
from weft.api.session import Session
from weft.app import App
from weft.events import Event
from weft.providers import CallResults, ModelRequest, ScriptedModel
from weft.providers.script import CallTool, Step


class HookProject:
    """A project, a home folder, and hooks from the user's settings."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self.project.mkdir()
        self.home.mkdir()
        self.hooks: dict[str, list[dict[str, Any]]] = {}

    @property
    def config(self) -> Path:
        """The user's own folder of settings."""
        return self.home / ".config" / "weft"

    def on(self, event: str, command: str, **more: Any) -> None:
        """Have a command run at a moment."""
        self.hooks.setdefault(event, []).append({"command": command, **more})

    def open(self, config: dict[str, Any] | None = None, **parts: Any) -> App:
        """The application, with these hooks."""
        environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "WEFT_REPO_INDEX": "off",
        }
        given = {"hooks": self.hooks, **(config or {})} if self.hooks else config
        return weft.open(
            self.project, parts.pop("store", "memory"), given, environ=environ, **parts
        )

    def heard(self, name: str = "heard") -> list[dict[str, Any]]:
        """What hooks received that record it with `KEEP`."""
        file = self.project / name
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    async def until(self, name: str) -> None:
        """Wait until a hook has made this file: it runs in a process of its own, and this is how it
        says so.
        """
        while not (self.project / name).exists():  # noqa: ASYNC110  # another process makes it
            await anyio.sleep(0.01)

    def write(self, name: str, text: str, *, mode: int = 0o644) -> Path:
        """Put a file into the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


KEEP = 'cat >> "$WEFT_PROJECT_DIR/heard"; echo >> "$WEFT_PROJECT_DIR/heard"'
"""A hook that records its input."""


def says(output: dict[str, Any]) -> str:
    """A hook that answers this."""
    return f"cat > /dev/null; echo '{json.dumps(output)}'"


def decides(decision: str, reason: str = "", **more: Any) -> str:
    """A hook that decides about a call."""
    specific = {"permissionDecision": decision, "permissionDecisionReason": reason, **more}
    return says({"hookSpecificOutput": specific})


def shell(command: str) -> list[Step]:
    return [CallTool(name="shell", args={"command": command})]


def write(path: str, content: str = "x") -> list[Step]:
    return [CallTool(name="write", args={"path": path, "content": content})]


def results(model: ScriptedModel) -> list[str]:
    """The tool results of the model's last request."""
    return results_in(model.last_request)


def results_in(request: ModelRequest) -> list[str]:
    return [
        result.text
        for message in request.messages
        if isinstance(message, CallResults)
        for result in message.results
    ]


async def facts(session: Session, *kinds: type[Any]) -> list[Any]:
    """The facts of these kinds that the session has stored so far, without the notes on the
    environment, which almost every session has.
    """
    found: list[Any] = []
    end = (await session.editor_snapshot()).seq
    async with await session.subscribe(after=0, live=False) as events:
        while events.cursor < end:
            event: Event = await anext(events)
            if isinstance(event, kinds) and not getattr(event, "environment", None):
                found.append(event)
    return found
