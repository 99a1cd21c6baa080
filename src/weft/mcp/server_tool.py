"""Tools of MCP servers as ours: prepared, judged and run like every other.

Nothing that a server says of itself makes a call freer.  What it says of a tool is pinned: a call
of one that is another now, or new, asks the user first, whatever rules and modes say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from weft.errors import BadArguments, FinalToolError
from weft.events import Effect
from weft.mcp.server_config import canonical
from weft.mcp.tool_names import other_names
from weft.mcp.tool_pins import (
    KnownTool,
    ListedTool,
    pin_diff,
    with_hidden_shown,
    without_hidden,
)
from weft.permissions import ToolAction
from weft.sha256 import sha256
from weft.tools import PreparedCall, Tool, ToolContext, ToolOutcome

LONGEST_SECONDS: Final = 86_400.0
"""What the turn allows a call: its own limits are the server's, and stand still for questions."""
MOST_TARGET: Final = 400
MOST_ARGUMENTS: Final = 256 * 1024
"""Bytes of the arguments of one call."""
MOST_DEPTH: Final = 60
"""How deeply they may be nested: rules look at every value in them."""


class ToolServer(Protocol):
    """The server of a tool, as a session reaches it."""

    name: str

    def tool(self, name: str) -> KnownTool | None:
        """A tool as it is known now; None where it has none of that name."""
        ...

    @property
    def about(self) -> str:
        """A line for the user who is asked about a call: what runs, and where."""
        ...

    async def why_exposed(self, context: ToolContext) -> str:
        """Why it could read what a rule keeps from being read; empty when it cannot."""
        ...

    async def call(
        self, tool: KnownTool, args: dict[str, Any], context: ToolContext
    ) -> ToolOutcome:
        """Make a call of the tool as it was when it was judged.

        Raises:
            ToolError: it fails, or the tool is another by now.
        """
        ...

    def agree(self, tool: ListedTool) -> None:
        """The user knows a tool as it was shown to them."""
        ...


class ServerTool(Tool):
    """One tool of a server."""

    def __init__(
        self, offered: str, server: ToolServer, tool: KnownTool, *, only_reads: bool = False
    ) -> None:
        """`offered` is its name for models; `only_reads`: the user takes its word for that."""
        shown = tool.shown
        self.name = offered
        self.tool = shown.name
        self.description = shown.description or without_hidden(shown.name)
        self.schema = shown.schema
        self.effect: Effect = "unknown"
        self.may_plan = only_reads
        """Plan mode leaves it to the model."""
        self.timeout_seconds = LONGEST_SECONDS
        self.server = server

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        known = self.server.tool(self.tool)
        if known is None:
            raise FinalToolError(f"The MCP server {self.server.name} has no tool {self.tool!r} now")
        if _depth(args) > MOST_DEPTH:
            raise BadArguments(f"the arguments are nested more than {MOST_DEPTH} times")
        written = canonical(args)
        if len(written) > MOST_ARGUMENTS:
            raise BadArguments(f"the arguments have more than {MOST_ARGUMENTS // 1024} kB")
        text = written.decode()
        action = ToolAction(
            tool=self.name,
            kind="other",
            target=bounded(text),
            arguments=text,
            other_names=other_names(self.server.name, self.tool),
            has_effect=not self.may_plan,
            is_claimed=self.may_plan,
            unfamiliar=_unfamiliar(known, self.server.name),
            exposes=await self.server.why_exposed(context),
        )
        return PreparedCall(
            action=action,
            run=partial(self._run, known, args, context),
            preview=_preview(self.server.about, known, args),
        )

    async def _run(
        self, known: KnownTool, args: dict[str, Any], context: ToolContext
    ) -> ToolOutcome:
        if known.state != "pinned":
            # Permission for a call that shows the difference is the user's word for it.
            self.server.agree(known.now)
        work: Callable[[], Awaitable[ToolOutcome]] = partial(self.server.call, known, args, context)
        return await work() if context.watched is None else await context.watched(work)


def _depth(value: Any) -> int:
    """How many lists and objects a value has inside each other."""
    depth, level = 0, [value]
    while level and depth <= MOST_DEPTH:
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for items in inner for each in items if isinstance(each, dict | list)]
        depth += 1
    return depth


def _unfamiliar(known: KnownTool, server: str) -> str:
    match known.state:
        case "pinned":
            return ""
        case "new":
            return f"the tool {known.now.name!r} is new on the MCP server {server}"
        case "changed":
            return f"the MCP server {server} describes {known.now.name!r} in another way now"


def _preview(about: str, known: KnownTool, args: dict[str, Any]) -> str:
    shown = msgspec.json.format(canonical(args)).decode()
    # In one line: what follows it must be nobody's words but the call's.
    lines = [" ".join(with_hidden_shown(f"{known.now.name} of {about}").split())]
    if known.now.only_reads and known.state == "pinned":
        lines.append("The server says that it only reads.")
    lines.append(with_hidden_shown(shown))
    if known.state != "pinned":
        lines += ["", "What it says of itself, against what you know:", pin_diff(known)]
    return "\n".join(lines)


def bounded(shown: str) -> str:
    """Arguments as the target of a grant: short, and still different for different ones."""
    if len(shown) <= MOST_TARGET:
        return shown
    return f"{shown[:MOST_TARGET]}… #{sha256(shown.encode()).hexdigest()[:16]}"
