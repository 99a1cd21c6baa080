"""`weft receipts`: what the last answer of a session claims, beside what is on record."""

from __future__ import annotations

import msgspec

from weft.app import App
from weft.cli.commands.table import print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import find_id, newest_id
from weft.cli.stdio import tell, write_pretty
from weft.errors import UsageError
from weft.view import receipt_rows, receipt_summary


def run(arguments: ParsedArguments) -> int:
    """Show the receipts of a turn."""
    return with_app(arguments, lambda app: _show(app, arguments))


async def _show(app: App, arguments: ParsedArguments) -> int:
    if len(arguments.words) > 2:
        raise UsageError("`weft receipts` takes [ID] [MESSAGE]")
    session_id = await (find_id(app, arguments.words[0]) if arguments.words else newest_id(app))
    session = await app.sessions.get(session_id)
    found = await session.receipts(_turn(arguments.words[1:]))
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
        return OK
    print_table(receipt_rows(found))
    tell(receipt_summary(found))
    return OK


def _turn(words: tuple[str, ...]) -> str | int | None:
    """A message by its index in the history, or by its id."""
    if not words:
        return None
    is_index = words[0].lstrip("-").isdecimal() and len(words[0]) < 10
    return int(words[0]) if is_index else words[0]
