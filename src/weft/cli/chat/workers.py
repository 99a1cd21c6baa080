"""What the sessions do that work for the one that is talked in, for the lines that are redrawn."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import msgspec

from weft.api.session import Session
from weft.app import App
from weft.cli.answers import describe_call
from weft.cli.chat.story import LiveArea, WorkerRow, command_at_work
from weft.events import (
    Event,
    NewMessage,
    PermissionRequest,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
    UsageRecorded,
)
from weft.messages import NOTHING_USED

LOOK_SECONDS = 0.3
"""How long a session that was announced is waited for before it is looked for again."""


async def workers_of(session: Session) -> dict[str, WorkerRow]:
    """What is at work for this session: agents, and commands in the background."""
    agents: dict[str, WorkerRow] = {
        child.id: WorkerRow(
            name=child.name,
            purpose=child.purpose,
            background=child.background,
            call_uid=child.call_uid or "",
            title=child.title,
        )
        for child in await session.children()
        if child.reason is None
    }
    commands = {
        work.id: command_at_work(work.id, work.title)
        for work in await session.background_commands()
        if work.kind == "shell" and work.status == "running"
    }
    return {**agents, **commands}


async def follow_worker(app: App, child: str, live: LiveArea, changed: Callable[[], None]) -> None:
    """Keep what is shown of a worker up to date, until it has ended.  It is only looked at; nothing is started for that."""
    while child in live.workers:
        session = await app.sessions.find_session(child)
        if session is None:  # announced before it is opened, or at work in another process
            await anyio.sleep(LOOK_SECONDS)
            continue
        async with await session.subscribe(after=0, live=False) as events:
            async for event in events:
                if (worker := live.workers.get(child)) is None:
                    return
                take(worker, event)
                changed()
                # Whoever goes on looking keeps the session from being closed.
                if isinstance(event, TurnFinished) and await session.get_status() == "idle":
                    return
        return


def take(worker: WorkerRow, event: Event) -> None:
    """Take one more event of the worker's session in."""
    match event:
        case ToolExecuting(tool_name=name, args=args):
            worker.doing = describe_call(name, args)
        case ToolComplete():
            worker.calls += 1
        case PermissionRequest():
            worker.doing = "waiting for you"
        case NewMessage(node=node) if node.role == "assistant" and node.text.strip():
            worker.doing = " ".join(node.text.split())[:120]
        case UsageRecorded(usage=usage):
            total = msgspec.structs.replace(NOTHING_USED, cost_usd=worker.cost_usd) + usage
            worker.cost_usd = total.cost_usd
        case _:
            pass
