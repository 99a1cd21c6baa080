"""What the journeys share: a project folder and a store that outlive any application, and a way to
lose the application.

A journey opens an application on a `World`, uses nothing but its public API, and may end it in two
ways: in good order (`async with`), or by `crash`, after which nothing more is written and its
leases are a dead process's.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

import weft
from weft.api.session import Session
from weft.app import App
from weft.clock import ManualClock
from weft.events import Event
from weft.messages import Text
from weft.providers import CallResults, ChatMessage
from weft.providers.base import ModelRequest
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.store import MemoryData, MemoryStore, Store

E = TypeVar("E")

PATIENCE = 30
"""Seconds a journey waits for what must happen; only a broken one gets there.

A machine under load needs several seconds for what takes a tenth of one alone.
"""
MODEL = "scripted:script"
POSTGRES = "WEFT_TEST_POSTGRES"
"""The address of a server on which the tests of a world are run too (`tests.support.postgres_run`).
"""
POSTGRES_ADDRESS = os.environ.get(POSTGRES, "")
"""Read at once: tests see an environment without our variables."""


class World:
    """A project and a store; `kind` is the store's."""

    def __init__(self, kind: str, base: Path) -> None:
        self.kind = kind
        self.base = base
        self.project = base / "project"
        self.project.mkdir()
        self.clock = ManualClock()
        self.waits: list[float] = []
        """The back-offs that were waited for, in seconds."""
        self._memory = MemoryData()

    def store(self) -> Store | Path | str:
        """The store, as a new process would open it."""
        if self.kind == "memory":
            return MemoryStore(data=self._memory)
        if self.kind == "postgres":
            return f"{POSTGRES_ADDRESS}&tenant={self.base}"
        return self.base / "weft.db"

    def open(
        self,
        *models: ScriptedModel,
        config: dict[str, Any] | None = None,
        store: Store | Path | str | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
        folder: str | None = None,
        **parts: Any,
    ) -> App:
        """The application as a new process would open it, with these models at hand (the first is
        the default); `folder` is another project.
        """
        named = {model.info.name: model for model in models}
        return weft.open(
            folder or self.project,
            store or self.store(),
            # Journeys through the sandbox or with language servers say so: the others go the way
            # that there is on every machine.
            {
                "model.default": MODEL,
                "sandbox.mode": "off",
                "lsp.enabled": False,
                **(config or {}),
            },
            environ=self.environ,
            sleep=sleep or self._wait,
            **{"providers": {"scripted": ScriptedProvider(named)}, **parts},
        )

    @property
    def environ(self) -> dict[str, str]:
        """An environment in which nothing of the machine's own settings is seen, and no indexer is
        started unless a journey says so.
        """
        home = str(self.base)
        return {
            "HOME": home,
            "WEFT_HOME": home,
            "PATH": os.environ["PATH"],
            "WEFT_REPO_INDEX": "off",
        }

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        await anyio.lowlevel.checkpoint()

    def write(self, name: str, text: str) -> Path:
        """Put a file into the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name: str) -> str:
        """The text of a file of the project."""
        return (self.project / name).read_text()


async def crash(app: App) -> None:
    """Take the process away: no session is stopped and nothing more is written; its leases are a
    dead process's.

    This is the one place where a journey looks behind the API, because no call asks for a crash.
    """
    await app._supervisor.aclose()
    if app._socket is not None:
        await app._socket.aclose()
    await app.store.aclose()


@asynccontextmanager
async def running(*steps: Callable[[], Any]) -> AsyncGenerator[None]:
    """Run these while the body runs, and wait for them; all within `PATIENCE`."""
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for step in steps:
                group.start_soon(step)
            yield


async def until(session: Session, *kinds: type[E], after: int = 0) -> E:
    """The first event of these kinds after the cursor; waits for it."""
    with anyio.fail_after(PATIENCE):
        async with await session.subscribe(after=after) as events:
            async for event in events:
                if isinstance(event, kinds):
                    return event
    raise AssertionError(f"the session ended without any of {kinds}")


async def until_holds(session: Session, holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is true of the session; looks again with each of its events."""
    with anyio.fail_after(PATIENCE):
        async with await session.subscribe() as events:
            while not await holds():
                await anext(events)


async def until_idle(session: Session) -> None:
    """Wait until no turn runs."""
    await until_status(session, "idle")


async def until_status(session: Session, wanted: str) -> None:
    """Wait until the session has this status."""

    async def has_it() -> bool:
        return await session.get_status() == wanted

    await until_holds(session, has_it)


async def until_queued(session: Session, count: int = 1) -> None:
    """Wait until so many messages are queued."""

    async def are_queued() -> bool:
        return sum(map(len, await session.get_queued_messages())) >= count

    await until_holds(session, are_queued)


async def facts(session: Session, *kinds: type[E]) -> list[E]:
    """The facts of these kinds that the session has stored so far, without the notes on the
    environment, which almost every session has.
    """
    found: list[E] = []
    end = (await session.editor_snapshot()).seq
    async with await session.subscribe(after=0, live=False) as events:
        while events.cursor < end:
            event: Event = await anext(events)
            if isinstance(event, kinds) and not getattr(event, "environment", None):
                found.append(event)
    return found


def request_lines(request: ModelRequest) -> list[str]:
    """The messages of a request, a line each: `user: …`, `assistant: …`, `result: …`.

    Without the notes on the environment, which `tests/journeys/test_prompt.py` is about.
    """
    lines: list[str] = []
    for message in request.messages:
        match message:
            case ChatMessage(role=role, parts=parts):
                text = "".join(part.text for part in parts if isinstance(part, Text))
                if not text.startswith("<environment>"):
                    lines.append(f"{role}: {text}")
            case CallResults(results=results):
                lines += [f"result: {result.text}" for result in results]
    return lines


async def message_lines(session: Session) -> list[str]:
    """The history of a session, a line a message: `role: content`."""
    return [f"{message.role}: {message.content}" for message in await session.messages()]
