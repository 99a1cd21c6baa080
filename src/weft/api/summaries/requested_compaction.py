"""Compaction that the user asks for, and the wait for its end.

Loaded with the first one.
"""

from __future__ import annotations

from typing import TypeVar

from weft.api.handle import SessionBase
from weft.api.reports import CompactionReport
from weft.api.turn_waiter import until_free
from weft.errors import SessionBusy, SessionError, SessionStopped
from weft.events import Compacted, ErrorRaised, SessionRestarted, SessionStatus
from weft.session import Command, CompactNow, SessionPort

T = TypeVar("T")


class NotCompacted(SessionError):
    """A compaction that was asked for failed, and the session's log says why."""


async def compact_session(
    session: SessionBase, focus: str | None, queue: bool, input_id: str | None
) -> CompactionReport:
    """`Session.compact`."""
    port = await session._port()
    command = CompactNow(focus=focus or "", **session._by(input_id))
    # The command answers with the seq before the compaction, so that the subscription misses
    # nothing of it, however fast it was.
    after = await (_when_idle(port, command) if queue else port.call(command))
    async with port.subscribe(after=after, live="status") as events:
        async for event in events:
            match event:
                case Compacted():
                    return CompactionReport(
                        summary=event.summary,
                        upto=event.upto,
                        tokens_before=event.tokens_before,
                        tokens_after=event.tokens_after,
                    )
                case ErrorRaised(where="compaction", message=message):
                    raise NotCompacted(f"the session was not compacted: {message}")
                case SessionRestarted(reason=reason):
                    raise SessionError(f"the session was not compacted: {reason}")
                case SessionStatus(status="error"):
                    raise SessionError(f"the session was not compacted: {port.error}")
                case _:
                    pass
    raise SessionStopped(session.id, await port.ended())


async def _when_idle(port: SessionPort, command: Command[T]) -> T:
    """Have a command carried out as soon as no turn runs."""
    # Subscribed before the first attempt: an idle status between a refusal and the subscription
    # would be missed, and the wait would not end.
    async with port.subscribe(live="status") as events:
        while True:
            try:
                return await port.call(command)
            except SessionBusy:
                await until_free(events)
