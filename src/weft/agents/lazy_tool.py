"""`agent` as it stands among a session's tools: described to models from `agent.json`; its code is
loaded by its first call.

Every session has the tool and few use it, and loading all that it needs would take a noticeable
part of the start.  `python -m weft.agents.describe` writes the file from the code, and a test holds
the two together.
"""

from __future__ import annotations

import math
import os
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from weft.events import Effect
from weft.ids import SessionId
from weft.tools import DelegateTool, PreparedCall, ToolContext

if TYPE_CHECKING:
    from weft.agents.host import AgentHost
    from weft.agents.tool import AgentTool

NAME = "agent"
DESCRIBED = os.path.join(os.path.dirname(__file__), "agent.json")


class AgentEntry(DelegateTool):
    """The tool `agent` of one session."""

    name = NAME
    effect: Effect = "unknown"
    timeout_seconds = math.inf

    def __init__(self, host: AgentHost) -> None:
        described = _described()
        self.description: str = described["description"]
        self.schema: dict[str, Any] = described["schema"]
        self._host = host
        self._loaded: AgentTool | None = None

    @property
    def tool(self) -> AgentTool:
        """The tool itself."""
        if self._loaded is None:
            from weft.agents.tool import AgentTool

            self._loaded = AgentTool(self._host)
        return self._loaded

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        return await self.tool.prepare(args, context)

    def resume(self, child: SessionId) -> None:
        """Go on with a background agent that another process left at work."""
        self.tool.resume(child)


@cache
def _described() -> dict[str, Any]:
    with open(DESCRIBED, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Any])
