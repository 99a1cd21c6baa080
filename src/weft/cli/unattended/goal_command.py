"""`weft goal`: work turn after turn until a check says that the goal is reached."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import anyio
import msgspec

from weft.api import Goal, Session
from weft.api.unattended.goals import NO_SANDBOX
from weft.app import App
from weft.cli.commands.with_app import run_command, with_app
from weft.cli.exit_codes import OK
from weft.cli.operate.background_run import background_server, session_settings
from weft.cli.parse import ParsedArguments
from weft.cli.prompt_input import compose, read_piped
from weft.cli.session_options import find_id, make_app, named_or_last
from weft.cli.stdio import tell, write_line, write_pretty
from weft.cli.unattended.goal_follower import GoalFollower
from weft.cli.unattended.goal_words import OUTSIDE, check_lines, goal_rows, option_value
from weft.cli.unattended.later_commands import INSIDE
from weft.cli.unattended.server_notice import server_notice
from weft.errors import UsageError, WeftError
from weft.messages import Text
from weft.server import connect

_GIVEN = ("check", "judge", "max_budget_usd", "max_time", "max_rounds")


def run(arguments: ParsedArguments) -> int:
    """Carry out the command."""
    verb = arguments.verb.removeprefix("goal").strip()
    if verb == "show":
        return with_app(arguments, lambda app: _show(app, arguments))
    if os.environ.get(INSIDE):
        raise UsageError(
            "this runs inside a session's command: a model does not give itself a goal"
        )
    match verb:
        case "pause" | "clear":
            return with_app(arguments, lambda app: _stopped(app, arguments, verb))
        case "edit":
            return with_app(arguments, lambda app: _edit(app, arguments))
        case "resume":
            return with_app(arguments, lambda app: _resume(app, arguments))
        case _:
            return _set(arguments)


# -- a goal that begins


def _set(arguments: ParsedArguments) -> int:
    words = compose(arguments.words, piped=read_piped(has_prompt=bool(arguments.words)))
    text = " ".join(part.text for part in words if isinstance(part, Text)).strip()
    given = _options(arguments)
    if not text:
        raise UsageError("a goal needs a text: weft goal 'make the tests pass' --check 'make test'")
    if not given.get("check") and not given.get("judge"):
        raise UsageError("a goal needs --check CMD, whose exit code 0 ends it, or --judge MODEL")
    if arguments.flag("bg"):
        return _set_in_background(arguments, text, given)

    async def worked(app: App) -> int:
        session, is_new = await _session(app, arguments, text)
        after = (await session.editor_snapshot()).seq
        try:
            await _with_sandbox(session.set_goal, {"text": text, **given})
        except WeftError:
            if is_new:
                # Without its goal it is empty, and would be listed for ever.
                await app.sessions.delete_session(session.id)
            raise
        return await _followed(session, arguments, after)

    return with_app(arguments, worked)


def _set_in_background(arguments: ParsedArguments, text: str, given: dict[str, Any]) -> int:
    app = make_app(arguments)
    server, token = background_server(app)

    async def main() -> int:
        async with connect(server.url, token) as remote:
            settings = {"title": text[:60], "project_path": app.project_path}
            session = await remote.sessions.start_session(
                **{**settings, **session_settings(arguments)}
            )
            try:
                await _with_sandbox(session.set_goal, {"text": text, **given})
            except WeftError:
                with suppress(WeftError):
                    await remote.sessions.delete_session(session.id)
                raise
        write_line(session.id)
        tell(f"it works in the background: `weft goal show {session.id}` says how far it is")
        return OK

    return run_command(main)


def _options(arguments: ParsedArguments) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for key in _GIVEN:
        if key not in arguments.values:
            continue
        name = "max_seconds" if key == "max_time" else key
        value = arguments.values[key]
        given[name] = option_value("--max-time", str(value)) if key == "max_time" else value
    if arguments.flag("outside_sandbox"):
        given["outside_sandbox"] = True
    return given


async def _session(app: App, arguments: ParsedArguments, text: str) -> tuple[Session, bool]:
    """The session that is named, or a new one; and whether it is one."""
    given = arguments.text("session")
    if given is not None:
        return await app.sessions.get(await find_id(app, given)), False
    settings = {"title": text[:60], **session_settings(arguments)}
    return await app.sessions.start_session(**settings), True


async def _with_sandbox(call: Any, given: dict[str, Any]) -> Goal:
    """Make the call; where there is no sandbox, a user at a terminal is asked once."""
    try:
        goal: Goal = await call(**given)
    except UsageError as error:
        said = str(error)
        if not said.startswith(NO_SANDBOX) or not _may_ask() or given.get("outside_sandbox"):
            raise
        about = said.partition("; say ")[0]
        tell(f"{about}. Allow it for this goal? [y/N] ")
        answer = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        if answer.strip().lower() not in ("y", "yes"):
            raise UsageError(f"not allowed: nothing was set ({OUTSIDE} allows it)") from None
        goal = await call(**given, outside_sandbox=True)
    return goal


def _may_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


# -- one that there is


async def _named(app: App, arguments: ParsedArguments) -> Session:
    words = arguments.words[:1]
    return await app.sessions.get(await named_or_last(app, tuple(words), "goal"))


async def _show(app: App, arguments: ParsedArguments) -> int:
    goal = await (await _named(app, arguments)).goal()
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(goal))
        return OK
    if goal is None:
        tell("there is no goal in this session")
        return OK
    for name, value in goal_rows(goal):
        write_line(f"{name:8} {value}")
    for line in check_lines(goal):
        write_line(f"  {line}")
    if goal.status in ("active", "checking") and (notice := server_notice(app)):
        tell(notice)
    return OK


async def _stopped(app: App, arguments: ParsedArguments, verb: str) -> int:
    session = await _named(app, arguments)
    if verb == "clear":
        tell("cleared" if await session.clear_goal() else "there was no goal")
        return OK
    await session.pause_goal()
    tell(f"paused; `weft goal resume {session.id}` goes on")
    return OK


async def _edit(app: App, arguments: ParsedArguments) -> int:
    session = await app.sessions.get(await named_or_last(app, arguments.words[:1], "goal"))
    given = {"text": " ".join(arguments.words[1:]) or None, **_options(arguments)}
    goal = await _with_sandbox(session.edit_goal, given)
    tell("changed" if goal.status != "paused" else "changed; it is still paused")
    return OK


async def _resume(app: App, arguments: ParsedArguments) -> int:
    session = await _named(app, arguments)
    given = {"outside_sandbox": True} if arguments.flag("outside_sandbox") else {}
    after, before = (await session.editor_snapshot()).seq, await session.goal()
    await _with_sandbox(session.resume_goal, given)
    if not (await session._port()).lives_here:
        tell("it goes on in the process that has the session")
        return OK
    return await _followed(session, arguments, after, before.round if before is not None else 0)


async def _followed(
    session: Session, arguments: ParsedArguments, after: int, rounds: int = 0
) -> int:
    """Show what happens until the goal is over; Ctrl-C pauses it."""
    follower = GoalFollower(session, after, rounds, is_verbose=arguments.flag("verbose"))
    code = await follower.run()
    goal = await session.goal()
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(goal))
    if goal is not None and goal.status == "paused":
        tell(f"`weft goal resume {session.id}` goes on")
    return code
