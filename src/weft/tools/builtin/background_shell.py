"""`shell_output` and `shell_stop`: the output and the end of background commands."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.permissions import ToolAction
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import (
    BackgroundCommands,
    BackgroundOutput,
    PreparedCall,
    Tool,
    ToolContext,
    ToolOutcome,
)
from weft.tools.builtin.shell import how_it_ended, readable

MAX_WAIT_SECONDS = 30.0
Name = Annotated[str, Meta(min_length=1, description="As `shell` named it, bg_1.")]


class OutputArguments(ToolArguments, frozen=True, kw_only=True):
    """What `shell_output` takes."""

    id: Name
    wait_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=MAX_WAIT_SECONDS,
            description="Wait so long for new output or the end, if there is neither yet.",
        ),
    ] = 0.0


class StopArguments(ToolArguments, frozen=True, kw_only=True):
    """What `shell_stop` takes."""

    id: Name


class ShellOutputTool(Tool):
    """Shows what a background command printed."""

    name = "shell_output"
    description = (
        "What a background command printed since you last looked, and whether it still runs."
    )
    schema = late_schema(OutputArguments)
    effect: Effect = "pure"
    timeout_seconds = MAX_WAIT_SECONDS + 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(OutputArguments, args)
        commands = _commands(context)

        async def run() -> ToolOutcome:
            return outcome_of(await commands.look(given.id, given.wait_seconds))

        action = ToolAction(tool=self.name, kind="read", target=given.id, has_effect=False)
        return PreparedCall(action=action, run=run)


class ShellStopTool(Tool):
    """Ends a background command."""

    name = "shell_stop"
    description = "End a background command, with everything that it started."
    schema = late_schema(StopArguments)
    effect: Effect = "unknown"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(StopArguments, args)
        commands = _commands(context)

        async def run() -> ToolOutcome:
            return outcome_of(await commands.stop(given.id))

        # The user allowed it to start, and need not be asked whether it may end.
        action = ToolAction(tool=self.name, kind="other", target=given.id, has_effect=False)
        return PreparedCall(action=action, run=run)


def _commands(context: ToolContext) -> BackgroundCommands:
    if context.background is None:
        raise FinalToolError("nothing runs in the background here")
    return context.background()


def outcome_of(look: BackgroundOutput) -> ToolOutcome:
    """What the model reads of a look."""
    output = readable(look.output).rstrip("\n") or "(nothing new)"
    end = "it still runs" if look.is_running else how_it_ended(look)
    return ToolOutcome(text=f"{output}\n({look.id}: {end})")
