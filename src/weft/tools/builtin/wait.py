"""`wait`: the turn sleeps until a time has come or a background command has ended."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

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


class WaitArguments(ToolArguments, frozen=True, kw_only=True):
    """What `wait` takes."""

    # The turn refuses what is too long, for it knows the time: one limit for both, one sentence.
    seconds: Annotated[
        float,
        Meta(ge=0, description="How long, up to 7 days; with `command`, how long at most."),
    ] = 0.0
    until: Annotated[
        str,
        Meta(
            description="Until this time within 7 days, ISO 8601: 2027-01-31T17:00. "
            "Instead of `seconds`."
        ),
    ] = ""
    command: Annotated[str, Meta(description="Until this background command has ended: bg_1.")] = ""


class WaitTool(Tool):
    """Waits; the turn does so, this only says for what."""

    name = "wait"
    description = (
        "Wait until a background command has ended or some time has passed, without asking "
        "again and again. It ends early when the user sends a message. Prefer it to `sleep` and "
        "to repeated `shell_output`; start what takes long with `shell` and `background`, then "
        "wait for it."
    )
    schema = late_schema(WaitArguments)
    effect: Effect = "pure"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(WaitArguments, args)
        commands = context.background() if given.command and context.background else None
        wait, target = _wait(given, commands)

        async def run() -> ToolOutcome:
            return await _news(given.command, commands)

        action = ToolAction(tool=self.name, kind="other", target=target, has_effect=False)
        return PreparedCall(action=action, run=run, wait=wait)


def _wait(given: WaitArguments, commands: BackgroundCommands | None) -> tuple[WaitRequest, str]:
    if not given.command and not given.seconds and not given.until:
        raise BadArguments("say how long (`seconds`, `until`) or for which `command`")
    if given.seconds and given.until:
        raise BadArguments("give `seconds` or `until`, not both")
    until = _time(given.until) if given.until else None
    title = commands.title_of(given.command) if commands is not None else None
    wait = WaitRequest(
        command=given.command, title=title or "", seconds=given.seconds or None, until=until
    )
    return wait, given.command or given.until or f"{given.seconds:g} s"


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
