"""Agents and background commands of the session on screen: found, and followed while they work."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from weft.api.session import Session
from weft.app import App
from weft.events import TurnFinished
from weft.view import LiveArea, TaskRow, command_row, take_task_event

LOOK_SECONDS = 0.3
"""How long a session that was announced is waited for before it is looked for again."""


async def tasks_of(session: Session) -> dict[str, TaskRow]:
    """What is at work for this session: agents, and commands in the background."""
    agents = {
        str(child.id): TaskRow(
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
        work.id: command_row(work.id, work.title)
        for work in await session.background_commands()
        if work.kind == "shell" and work.status == "running"
    }
    return {**agents, **commands}


async def follow_task(app: App, child: str, live: LiveArea, changed: Callable[[], None]) -> None:
    """Keep the row of an agent up to date until it has ended.

    The agent's session is only read: opening it here would start it a second time.
    """
    # The row is removed by the parent's own events, which is how this loop learns of the end.
    while child in live.tasks:
        session = await app.sessions.find_session(child)
        if session is None:  # announced before it is opened, or at work in another process
            await anyio.sleep(LOOK_SECONDS)
            continue
        # No deltas: they change nothing in the row, and each would redraw the screen.
        async with await session.subscribe(after=0, live="status") as events:
            async for event in events:
                if (row := live.tasks.get(child)) is None:
                    return
                take_task_event(row, event)
                changed()
                # A subscription keeps its session from being unloaded, so it ends with the work.
                if isinstance(event, TurnFinished) and await session.get_status() == "idle":
                    return
        return
