"""Ids of messages as programs of the Agent SDK have them, found among those of a session."""

from __future__ import annotations

from weft.api.session import Session
from weft.errors import UsageError
from weft.protocol.stream_json import wire_uuid


async def message_id(session: Session, given: str) -> str:
    """Our id of a message, by our own or by the one that its line had.

    Raises:
        UsageError: the session has none such.
    """
    ids = [each for each, _ in await session.messages_with_ids()]
    found = next((each for each in ids if given in (each, wire_uuid(each))), None)
    if found is None:
        raise UsageError(f"there is no message {given!r} in this session")
    return found
