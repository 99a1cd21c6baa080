"""Prompts that are sent later, in sessions that are made for them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from weft.api.manager import SessionManager
from weft.api.unattended.times import given_time
from weft.api.unattended.waits import SessionWait
from weft.errors import WeftError
from weft.messages import Content, as_parts, typed_text

TITLE_CHARACTERS: Final = 60


async def schedule_in(
    sessions: SessionManager,
    at: str | float | datetime,
    prompt: Content,
    session_id: str | None,
    settings: Mapping[str, Any],
    now: float,
) -> SessionWait:
    """Send a prompt at a time, in a new session where none is named."""
    due = given_time(at, now)
    if session_id is not None:
        return await (await sessions.get(session_id)).schedule(due, prompt, **settings)
    title = " ".join(typed_text(as_parts(prompt)).split())[:TITLE_CHARACTERS]
    session = await sessions.start_session(title=title or None)
    try:
        return await session.schedule(due, prompt, **settings)
    except WeftError:
        # Without its prompt it is empty, and would be listed for ever.
        with suppress(WeftError):
            await sessions.delete_session(session.id)
        raise
