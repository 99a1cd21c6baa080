"""`wait_for`: the turn sleeps until a time has come, a background command or agent has ended, a
file has changed, a port is served, or a CI run has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.errors import BadArguments, ToolError
from weft.events import Effect
from weft.permissions import ToolAction
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import (
    BackgroundCommands,
    PreparedCall,
    Tool,
    ToolContext,
    ToolOutcome,
    WaitRequest,
)
from weft.tools.builtin.background_shell import outcome_of
from weft.tools.files import action


class WaitForArguments(ToolArguments, frozen=True, kw_only=True):
    """What `wait_for` takes."""

    # The turn refuses what is too long, for it knows the time: one limit for both, one sentence.
    seconds: Annotated[
        float,
        Meta(ge=0, description="How long, up to 7 days; with another, how long at most."),
    ] = 0.0
    until: Annotated[
        str,
        Meta(
            description="Until this time within 7 days, ISO 8601: 2027-01-31T17:00. "
            "Instead of `seconds`."
        ),
    ] = ""
    command: Annotated[str, Meta(description="Until this background command has ended: bg_1.")] = ""
    agent: Annotated[str, Meta(description="Until this background agent has ended.")] = ""
    file: Annotated[
        str,
        Meta(
            max_length=1000,
            description="Until this file or folder, or a pattern such as `dist/*.whl`, appears, "
            "changes or goes.",
        ),
    ] = ""
    port: Annotated[
        int,
        Meta(ge=0, le=65535, description="Until a program listens on this port of this machine."),
    ] = 0
    ci: Annotated[
        str,
        Meta(
            max_length=300,
            description="Until this CI run has ended: owner/name#RUN of GitHub, "
            "gitlab:group/name#PIPELINE, or its address.",
        ),
    ] = ""


class WaitForTool(Tool):
    """Waits; the turn does so, this only says for what."""

    name = "wait_for"
    description = (
        "Wait for one thing (a background command or agent, a file, a port, a CI run) or for some "
        "time, without asking again and again. It ends early when the user sends a message. Prefer "
        "it to `sleep` and to repeated `shell_output`; start what takes long with `shell` and "
        "`background`, then wait for it."
    )
    schema = late_schema(WaitForArguments)
    effect: Effect = "pure"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(WaitForArguments, args)
        until = _end_of(given)
        if given.file:
            return await self._for_file(given, until, context)
        if given.port:
            from weft.tools.waits import port_look  # few waits are for a port

            on, pace = port_look.port_subject(given.port), port_look.PACE_SECONDS
            wait = _request(given, until, on=on, look=port_look.port_look, pace=pace)
            return self._prepared(wait, f"port {given.port}")
        if given.ci:
            return await self._for_ci(given, until, context)
        if given.agent:
            return self._prepared(_request(given, until, agent=given.agent), given.agent)
        commands = context.background() if given.command and context.background else None
        title = commands.title_of(given.command) if commands is not None else None
        wait = _request(given, until, command=given.command, title=title or "")
        target = given.command or given.until or f"{given.seconds:g} s"
        return self._prepared(wait, target, lambda: _news(given.command, commands))

    async def _for_file(
        self, given: WaitForArguments, until: float | None, context: ToolContext
    ) -> PreparedCall:
        from weft.tools.waits import file_look  # few waits are for files

        path, place = await file_look.resolved_place(given.file, context)
        on = await file_look.file_subject(path, place)
        is_pattern = file_look.is_pattern(path)
        pace = file_look.PATTERN_PACE_SECONDS if is_pattern else file_look.PATH_PACE_SECONDS
        wait = _request(given, until, on=on, look=file_look.file_look(place), pace=pace)
        # Judged like a read: whether a file is there is something that a rule may keep.
        judged = file_look.fixed_folder(path) if is_pattern else path
        looked_at = msgspec.structs.replace(
            action(self.name, judged, context, edits=False), acts_as="read"
        )
        return PreparedCall(action=looked_at, run=_nothing, wait=wait)

    async def _for_ci(
        self, given: WaitForArguments, until: float | None, context: ToolContext
    ) -> PreparedCall:
        from weft.tools.waits import ci_look  # few waits are for a forge

        run = ci_look.ci_run(given.ci)
        on, look = ci_look.ci_subject(run), ci_look.ci_look(run, context)
        pace = ci_look.PACE_SECONDS
        wait = _request(given, until, on=on, look=look, pace=pace, keeps_permission=True)

        async def how_it_is() -> ToolOutcome:
            _, word = await ci_look.ci_state(run, context)
            return ToolOutcome(text=f"It is: {word}.")

        looked_at = await ci_look.ci_action(self.name, run, context)
        preview = looked_at.target
        return PreparedCall(action=looked_at, run=how_it_is, preview=preview, wait=wait)

    def _prepared(
        self,
        wait: WaitRequest,
        target: str,
        run: Callable[[], Awaitable[ToolOutcome]] | None = None,
    ) -> PreparedCall:
        what = ToolAction(tool=self.name, kind="other", target=target, has_effect=False)
        return PreparedCall(action=what, run=run or _nothing, wait=wait)


def _end_of(given: WaitForArguments) -> float | None:
    """The time that is named, where it is.

    Raises:
        BadArguments: nothing is waited for, or more than one thing.
    """
    things = {"command": given.command, "agent": given.agent, "file": given.file, "ci": given.ci}
    named = [name for name, value in (*things.items(), ("port", given.port)) if value]
    if not named and not given.seconds and not given.until:
        raise BadArguments(
            "say how long (`seconds`, `until`) or for what: `command`, `agent`, `file`, `port`, "
            "`ci`"
        )
    if len(named) > 1:
        raise BadArguments(f"wait for one thing at a time, not for {' and '.join(named)}")
    if given.seconds and given.until:
        raise BadArguments("give `seconds` or `until`, not both")
    return _time(given.until) if given.until else None


def _request(given: WaitForArguments, until: float | None, **what: Any) -> WaitRequest:
    return WaitRequest(seconds=given.seconds or None, until=until, **what)


async def _nothing() -> ToolOutcome:
    """What was waited for says all that there is to say."""
    return ToolOutcome(text="")


def _time(text: str) -> float:
    try:
        # Without an offset it is the time of this machine, as the user would read it.
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise BadArguments(f"`until` is no ISO 8601 time: {text!r}") from error


async def _news(command: str, commands: BackgroundCommands | None) -> ToolOutcome:
    """What the command printed, and how it is; nothing where there is none to be looked at."""
    if not command or commands is None:
        return ToolOutcome(text="")
    try:
        return outcome_of(await commands.look(command, 0))
    except ToolError:
        return ToolOutcome(text="")
