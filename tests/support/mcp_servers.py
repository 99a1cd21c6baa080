"""MCP servers for tests: the scripted one as a supervised server, without a session."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from weft.actors import Supervisor
from weft.clock import SystemClock
from weft.mcp import CallTerms, McpServer, ServerLink, ServerRecord, StdioConnection, outcome_of
from weft.mcp.elicitation import AskUser
from weft.mcp.server import Handlers, StartTask
from weft.tools import ToolOutcome
from weft.workspace.process.piped import start_piped

SCRIPT = str(Path(__file__).with_name("hostile_mcp_server.py"))
PATIENCE = 30.0


def command(*traps: str) -> list[str]:
    """The command line of the scripted server."""
    return [sys.executable, "-I", "-S", SCRIPT, *traps]


def entry(*traps: str, **more: Any) -> dict[str, Any]:
    """Its entry in a file."""
    program, *args = command(*traps)
    return {"command": program, "args": args, **more}


@asynccontextmanager
async def served(
    *traps: str, record: ServerRecord | None = None, give_up_seconds: float = PATIENCE
) -> AsyncGenerator[McpServer]:
    """The scripted server, supervised, in no sandbox."""
    supervisor = Supervisor()
    await supervisor.open()

    async def open_link(handlers: Handlers, start_task: StartTask) -> ServerLink:
        program = await start_piped(command(*traps), cwd="/", environ=dict(os.environ))
        return ServerLink(StdioConnection(program, handlers, start_task), program)

    try:
        with anyio.fail_after(2 * PATIENCE):
            yield McpServer(
                "scripted",
                "/project",
                record or ServerRecord(),
                open_link,
                supervisor.start,
                clock=SystemClock(),
                give_up_seconds=give_up_seconds,
            )
    finally:
        await supervisor.aclose()


def terms(
    *,
    idle: float = PATIENCE,
    total: float = PATIENCE,
    ask: AskUser | None = None,
    said: list[str] | None = None,
) -> CallTerms:
    """How a call is made."""
    return CallTerms(
        idle_seconds=idle,
        total_seconds=total,
        ask=ask,
        progress=(lambda line: None) if said is None else said.append,
    )


async def called(server: McpServer, tool: str = "echo", **args: Any) -> ToolOutcome:
    """What a call comes to."""
    raw = await server.call(tool, args, terms(), start_seconds=PATIENCE)
    return await outcome_of(raw, server.name)


process = pytest.mark.process
