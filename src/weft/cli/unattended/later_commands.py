"""`weft at` and `weft waits`: prompts that are sent later, and what sessions wait for."""

from __future__ import annotations

import os
import time
from typing import Final

import msgspec

from weft.api import Session, SessionWait
from weft.api.unattended.times import shown_duration, time_of_words
from weft.api.unattended.waits import all_waits, find_wait
from weft.app import App
from weft.cli.commands.table import print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.headless.slash_prompt import expanded
from weft.cli.operate.background_run import session_settings
from weft.cli.parse import ParsedArguments
from weft.cli.prompt_input import compose, read_piped
from weft.cli.session_options import find_id, make_app
from weft.cli.stdio import tell, write_line, write_pretty
from weft.cli.unattended.server_notice import NO_SERVER, server_notice
from weft.cli.unattended.wait_text import wait_words
from weft.errors import UsageError, WeftError
from weft.server import running_servers

INSIDE: Final = "WEFT_RUN"
"""Set in commands that a session runs."""


def run(arguments: ParsedArguments) -> int:
    """Carry out the command."""
    match arguments.verb:
        case "at":
            return _at(arguments)
        case "waits cancel":
            return with_app(arguments, lambda app: _cancel(app, arguments))
        case _:
            return with_app(arguments, lambda app: _list(app, arguments))


# -- a prompt for later


def _at(arguments: ParsedArguments) -> int:
    if os.environ.get(INSIDE):
        raise UsageError(
            "this runs inside a session's command: a model does not give itself later turns; "
            "it can wait with wait_for"
        )
    if not arguments.words:
        raise UsageError("`weft at` takes a time and a prompt: weft at 17:00 'run the tests'")
    words = arguments.words[1:]
    due = time_of_words(arguments.words[0], time.time())
    said = compose(words, piped=read_piped(has_prompt=bool(words)))
    if not said:
        raise UsageError("`weft at` needs a prompt behind the time")

    async def scheduled(app: App) -> int:
        session, is_new = await _session(app, arguments)
        try:
            content, options = await expanded(app, session, said, words, tell=tell)
            wait = await session.schedule(
                due,
                content,
                every=arguments.text("every"),
                max_rounds=arguments.whole("max_rounds"),
                until=arguments.text("until"),
                **options,
            )
        except WeftError:
            if is_new:
                # Without its prompt it is empty, and would be listed for ever.
                await app.sessions.delete_session(session.id)
            raise
        _say_scheduled(wait, as_json=arguments.flag("json"))
        return OK

    code = with_app(arguments, scheduled)
    if notice := server_notice(make_app(arguments)):
        tell(notice)
    return code


async def _session(app: App, arguments: ParsedArguments) -> tuple[Session, bool]:
    """The session that is named, or a new one; and whether it is one."""
    given = arguments.text("session")
    if given is not None:
        return await app.sessions.get(await find_id(app, given)), False
    settings = {"title": " ".join(arguments.words[1:])[:60] or None, **session_settings(arguments)}
    return await app.sessions.start_session(**settings), True


def _say_scheduled(wait: SessionWait, *, as_json: bool) -> None:
    if as_json:
        write_pretty(msgspec.to_builtins(wait))
        return
    write_line(wait.id)
    again = f", then every {shown_duration(wait.every)}" if wait.every else ""
    tell(f"it is sent at {when(wait.until or 0.0)}{again}, in {wait.session_id}")


# -- what waits


async def _list(app: App, arguments: ParsedArguments) -> int:
    ids = [await find_id(app, each) for each in arguments.words] or None
    waits = await all_waits(app.host, ids)
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(waits))
        return OK
    if not waits:
        tell("nothing waits")
        return OK
    head = ("id", "session", "for", "until", "what")
    print_table([_row(each) for each in waits], head=head)
    if not running_servers(app.places.servers):
        tell(NO_SERVER)
    return OK


def _row(wait: SessionWait) -> tuple[str, ...]:
    until = when(wait.until) if wait.until is not None else "it comes"
    return wait.id, wait.session_id, wait.kind, until, wait_words(wait)


async def _cancel(app: App, arguments: ParsedArguments) -> int:
    if len(arguments.words) != 1:
        raise UsageError("`weft waits cancel` takes the id of a wait; `weft waits` shows them")
    wait = await find_wait(app.host, arguments.words[0])
    ended = await (await app.sessions.get(wait.session_id)).cancel_wait(wait.id)
    tell("cancelled" if ended else "it had ended already")
    return OK
