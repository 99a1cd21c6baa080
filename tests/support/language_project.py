"""A folder with files in the language of the scripted language server, and the server itself."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from tests.support import scripted_language_server
from weft.actors import Supervisor
from weft.clock import Clock, SystemClock
from weft.lsp import (
    LanguageClient,
    LanguageServer,
    OpenDocument,
    ServerLimits,
    ServerPool,
    ServerSpec,
    least_used,
)
from weft.workspace import LocalWorkspace
from weft.workspace.process.piped import PipedProgram
from weft.workspace.sandbox.read_only import ReadOnlySandbox

SCRIPT = str(scripted_language_server.__file__)
PATIENCE = 20.0
"""Seconds after which a test gives up on a server; none takes as long when it works."""


def scripted_spec(*traps: str, name: str = "scripted", suffix: str = ".scr") -> ServerSpec:
    """The scripted server with some of its traps."""
    unknown = set(traps) - set(scripted_language_server.TRAPS)
    assert not unknown, unknown
    command = (sys.executable, "-I", "-S", SCRIPT, *traps)
    settings = {"scripted": {"key": "value"}}
    return ServerSpec(name=name, command=command, languages={suffix: "script"}, settings=settings)


class LanguageProject:
    """One server on one folder."""

    def __init__(self, root: Path, server: LanguageServer) -> None:
        self.root = root
        self.server = server

    @property
    def client(self) -> LanguageClient:
        client = self.server.use()
        assert client is not None, self.server.why
        return client

    async def ready(self) -> LanguageClient:
        client = self.client
        assert await self.server.ready_within(PATIENCE), self.server.why
        return client

    def edit(self, name: str, text: str) -> OpenDocument:
        """Change a file on disk, and show it to the server."""
        (self.root / name).write_text(text, "utf-8")
        return self.client.sync(str(self.root / name), "script", text)

    async def messages(self, name: str, text: str) -> list[str]:
        """What the server says of this text."""
        document = self.edit(name, text)
        with anyio.fail_after(PATIENCE):
            known = await self.client.diagnostics(document, document.version)
        assert known is not None
        return [item.text for item in known.items]


@asynccontextmanager
async def language_project(
    root: Path,
    *traps: str,
    limits: ServerLimits | None = None,
    clock: Clock | None = None,
    launch: Launch | None = None,
    crowd: Sequence[LanguageServer] = (),
) -> AsyncIterator[LanguageProject]:
    """A server with these traps, in the sandbox; nothing of it is left at the end.

    Those of `crowd` hold more than they may together.
    """
    async with supervised() as supervisor:
        server = LanguageServer(
            scripted_spec(*traps),
            str(root),
            launch or launcher(root),
            supervisor.start,
            limits=limits or ServerLimits(look_seconds=0.02),
            clock=clock or SystemClock(),
            must_leave=lambda server: server is least_used(crowd),
        )
        yield LanguageProject(root, server)


@asynccontextmanager
async def scripted_pool(root: Path, *traps: str, suffix: str = ".scr") -> AsyncIterator[ServerPool]:
    """A project whose only server is the scripted one."""
    async with supervised() as supervisor:
        yield ServerPool(
            LocalWorkspace(str(root)),
            [scripted_spec(*traps, suffix=suffix)],
            lambda program: program,
            launcher(root),
            supervisor.start,
            limits=ServerLimits(),
            clock=SystemClock(),
        )


Launch = Callable[[ServerSpec], Awaitable[tuple[PipedProgram, ServerSpec]]]


def launcher(root: Path) -> Launch:
    """Starts servers in the sandbox."""
    sandbox = ReadOnlySandbox(environ=os.environ)

    async def launch(spec: ServerSpec) -> tuple[PipedProgram, ServerSpec]:
        return await sandbox.start(spec.command, str(root)), spec

    return launch


@asynccontextmanager
async def supervised() -> AsyncIterator[Supervisor]:
    """What runs the tasks of servers, to its end."""
    supervisor = Supervisor()
    await supervisor.open()
    try:
        yield supervisor
    finally:
        await supervisor.aclose()
