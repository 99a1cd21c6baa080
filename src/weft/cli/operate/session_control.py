"""`weft logs`, `weft queue` and `weft stop`: a session from outside, whichever process has it."""

from __future__ import annotations

from weft.api import Session
from weft.app import App
from weft.cli.chat.paint.plain_words import plain_lines
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.headless.answers import whole
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import find_id
from weft.cli.stdio import tell, write_line
from weft.errors import UsageError
from weft.events import Event, FactBase, encode
from weft.view import LiveArea, SessionView

BUSY = ("thinking", "executing_tool", "awaiting_permission", "waiting")


def run(arguments: ParsedArguments) -> int:
    """Carry out the command."""
    work = {"logs": _logs, "queue": _queue, "stop": _stop}[arguments.verb]
    return with_app(arguments, lambda app: work(app, arguments))


async def _named(app: App, arguments: ParsedArguments) -> Session:
    if not arguments.words:
        raise UsageError(f"weft {arguments.verb} needs a session; `weft ps` shows them")
    return await app.sessions.get(await find_id(app, arguments.words[0]))


# -- its log


async def _logs(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    follows = arguments.flag("follow")
    writer = LogWriter(app.project_path, as_json=arguments.flag("json"))
    async with await session.subscribe(after=0, live="status" if follows else False) as events:
        async for event in events:
            writer.write(await whole(event, app))
    return OK


class LogWriter:
    """Prints what happened in a session: as people read it, or each fact as a line of JSON."""

    def __init__(self, folder: str, *, as_json: bool) -> None:
        self._folder = folder
        self._as_json = as_json
        self._view = SessionView(LiveArea())

    def write(self, event: Event) -> None:
        """Print one event, if there is something to say of it."""
        if self._as_json:
            if isinstance(event, FactBase):
                write_line(encode(event).decode())
            return
        for block in self._view.take(event):
            for line in plain_lines(block, self._folder):
                write_line(line)


# -- its queue


async def _queue(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    text = " ".join(arguments.words[1:])
    if text:
        accepted = await session.queue_follow_up(text)
        tell("queued" if accepted.status != "started" else "started: nothing was at work")
        return OK
    steering, follow_up = await session.get_queued_messages()
    for name, entries in (("steering", steering), ("follow-up", follow_up)):
        for entry in entries:
            said = session.combine_queue_entries_to_text([entry])
            write_line(f"{entry.entry_id}  {name}  {' '.join(said.split())}")
    if not steering and not follow_up:
        tell("nothing is queued")
    return OK


# -- its end


async def _stop(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    if await session.get_status() not in BUSY:
        tell("nothing is at work in this session")
        return OK
    receipt = await session.abort("stopped from the command line")
    waiting = len(receipt.surviving)
    tell("stopped" + (f"; {waiting} queued messages stay" if waiting else ""))
    return OK
