"""`weft logs`, `weft queue` and `weft stop`: a session from outside, whichever process has it."""

from __future__ import annotations

from weft.api import Accepted, Session
from weft.app import App
from weft.cli.chat.paint.plain_words import plain_lines
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.headless.answers import whole
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean_line
from weft.cli.session_options import find_id, make_app
from weft.cli.stdio import tell, write_line
from weft.errors import UsageError
from weft.events import Event, FactBase, QuestionAsked, encode
from weft.ids import SessionId
from weft.state import Request
from weft.view import LiveArea, SessionView, count_of

BUSY = ("thinking", "executing_tool", "awaiting_permission", "waiting")


def run(arguments: ParsedArguments) -> int:
    """Carry out the command."""
    if arguments.verb == "queue" and len(arguments.words) > 1:
        return _send(arguments)
    work = {"logs": _logs, "queue": _queue, "stop": _stop}[arguments.verb]
    return with_app(arguments, lambda app: work(app, arguments))


async def _id_of(app: App, arguments: ParsedArguments) -> SessionId:
    if not arguments.words:
        raise UsageError(f"weft {arguments.verb} needs a session; `weft ps` shows them")
    return await find_id(app, arguments.words[0])


async def _named(app: App, arguments: ParsedArguments) -> Session:
    return await app.sessions.get(await _id_of(app, arguments))


# -- its log


async def _logs(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    follows = arguments.flag("follow")
    writer = LogWriter(app.project_path, as_json=arguments.flag("json"))
    async with await session.subscribe(after=0, live="status" if follows else False) as events:
        async for event in events:
            writer.write(await whole(event, app))
    if not follows and not writer.as_json:
        for request in (await session.editor_snapshot()).requests:
            tell(f"it waits for you: {_asked(request)} (`weft attach {session.id}` answers)")
    return OK


def _asked(request: Request) -> str:
    if isinstance(request, QuestionAsked):
        return clean_line(request.question)
    about = request.tool_path or next(iter(request.preview.splitlines()), "")
    return clean_line(f"{request.tool_name} {about}".strip())


class LogWriter:
    """Prints what happened in a session: as people read it, or each fact as a line of JSON."""

    def __init__(self, folder: str, *, as_json: bool) -> None:
        self._folder = folder
        self.as_json = as_json
        self._view = SessionView(LiveArea())

    def write(self, event: Event) -> None:
        """Print one event, if there is something to say of it."""
        if self.as_json:
            if isinstance(event, FactBase):
                write_line(encode(event).decode())
            return
        for block in self._view.take(event):
            for line in plain_lines(block, self._folder):
                write_line(line)


# -- its queue


async def _queue(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    steering, follow_up = await session.get_queued_messages()
    for name, entries in (("steering", steering), ("follow-up", follow_up)):
        for entry in entries:
            said = session.combine_queue_entries_to_text([entry])
            write_line(f"{entry.entry_id}  {name}  {' '.join(said.split())}")
    if not steering and not follow_up:
        tell("nothing is queued")
    return OK


def _send(arguments: ParsedArguments) -> int:
    """Send a message to the process that has the session; to a server where none has it."""
    text = " ".join(arguments.words[1:])
    found: list[SessionId] = []

    async def to_its_process(app: App) -> int:
        session_id = await _id_of(app, arguments)
        session = await app.sessions.get(session_id)
        if app.host.runs_here(session_id):
            found.append(session_id)  # no other has it, and this one is about to end
        else:
            _tell_accepted(session_id, await session.queue_follow_up(text))
        return OK

    ended = with_app(arguments, to_its_process)
    if not found:
        return ended
    from weft.cli.operate.background_run import queue_in_server  # most have a process

    _tell_accepted(found[0], queue_in_server(make_app(arguments), found[0], text))
    return OK


def _tell_accepted(session_id: SessionId, accepted: Accepted) -> None:
    if accepted.status != "started":
        tell("queued")
    else:
        tell(f"started, nothing was at work; `weft logs -f {session_id}` shows it")


# -- its end


async def _stop(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    if await session.get_status() not in BUSY:
        tell("nothing is at work in this session")
        return OK
    receipt = await session.abort("stopped from the command line")
    waiting = len(receipt.surviving)
    stays = "stays" if waiting == 1 else "stay"
    tell("stopped" + (f"; {count_of(waiting, 'queued message')} {stays}" if waiting else ""))
    return OK
