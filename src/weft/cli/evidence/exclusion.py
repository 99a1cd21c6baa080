"""`weft session exclude` and `include`: what a model is sent of a session, message by message."""

from __future__ import annotations

import msgspec

from weft.api.session import Session
from weft.app import App
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import find_id
from weft.cli.stdio import tell, write_pretty
from weft.errors import UsageError
from weft.view import HistoryMessage


async def exclude(app: App, arguments: ParsedArguments) -> int:
    """Send a message no more."""
    session, message = await _named(app, arguments)
    found = await session.exclude(message)
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
        return OK
    tell(found.said)
    return OK


async def include(app: App, arguments: ParsedArguments) -> int:
    """Send it again."""
    session, message = await _named(app, arguments)
    await session.include(message)
    tell("it is sent again, from the next call on")
    return OK


async def _named(app: App, arguments: ParsedArguments) -> tuple[Session, str]:
    """The session, and the message by its number in the history (from 0) or by its id."""
    if len(arguments.words) != 2:
        raise UsageError(f"`weft {arguments.verb}` takes ID MESSAGE")
    named, message = arguments.words
    session = await app.sessions.get(await find_id(app, named))
    if not message.lstrip("-").isdecimal() or len(message) > 9:
        return session, message
    number, history = int(message), await session.messages_with_ids()
    if not -len(history) <= number < len(history):
        raise UsageError(f"there is no message {number}; the history has {len(history)}")
    return session, _of_model(history, number % len(history))


def _of_model(history: list[tuple[str, HistoryMessage]], number: int) -> str:
    """The id of a message that is taken out by itself.

    Raises:
        UsageError: it is a result, which goes with the message that called.
    """
    named, message = history[number]
    if message.role == "tool":
        caller = next(
            at
            for at, (_, earlier) in reversed(list(enumerate(history[:number])))
            if earlier.role == "assistant"
        )
        raise UsageError(
            f"message {number} is the result of a tool; it goes with the message that called it: "
            f"{caller}"
        )
    return named
