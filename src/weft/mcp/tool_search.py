"""The tools of servers that a model is not told of by themselves: found by words, and called.

With many tools their descriptions would take more room than the conversation, and a list that
changes would change the beginning of every request.  So a model gets two tools that never change:
one that finds others and says what they take, and one that calls what was found, with that tool's
own name before rules and hooks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from weft.errors import BadArguments
from weft.events import Effect
from weft.mcp.server_tool import LONGEST_SECONDS, ServerTool
from weft.permissions import ToolAction
from weft.tools import ForwardingTool, PreparedCall, Tool, ToolContext, ToolOutcome

SEARCH: Final = "tool_search"
CALL: Final = "tool_call"
MOST_FOUND: Final = 8
MOST_NAMED: Final = 40
_SELECT: Final = "select:"
_WORD: Final = r"[a-z0-9]+"


class ToolIndex(Protocol):
    """The tools of all servers of a session."""

    async def settled(self) -> str:
        """Wait for servers that start; returns what to say of those that are not there."""
        ...

    def all_tools(self) -> Mapping[str, ServerTool]:
        """All tools, by the names that models know."""
        ...

    def instructions(self, server: str) -> str:
        """What a server says of how its tools are used."""
        ...


class ToolSearchTool(Tool):
    """Finds tools."""

    def __init__(self, index: ToolIndex) -> None:
        self.name = SEARCH
        self.description = (
            "Find tools of the user's MCP servers, which are not listed here. Returns the names, "
            "descriptions and parameters of those that fit, to be called with tool_call."
        )
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Words that say what is needed; or `select:` with names of "
                    "tools, comma-separated; or `*` for all names.",
                }
            },
            "required": ["query"],
        }
        self.effect: Effect = "pure"
        self.timeout_seconds = 120.0
        self._index = index

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        query = args.get("query")
        if not isinstance(query, str) or not query.strip():
            raise BadArguments("tool_search needs a `query`")
        return PreparedCall(
            action=ToolAction(tool=SEARCH, kind="other", target=query[:200], has_effect=False),
            run=lambda: self._run(query.strip()),
        )

    async def _run(self, query: str) -> ToolOutcome:
        missing = await self._index.settled()
        tools = self._index.all_tools()
        if query == "*":
            text = _names(tools)
        else:
            found = _found(query, tools)
            text = self._described(found) if found else f"No tool fits. {_names(tools)}"
        return ToolOutcome(text=f"{text}\n{missing}".strip())

    def _described(self, found: list[ServerTool]) -> str:
        servers = dict.fromkeys(tool.server.name for tool in found)
        said = [
            f"[what the MCP server {name} says of its use]\n{text}"
            for name in servers
            if (text := self._index.instructions(name))
        ]
        return "\n\n".join([*map(_described, found), *said])


def _described(tool: ServerTool) -> str:
    schema = msgspec.json.encode(tool.schema).decode()
    return f"{tool.name}\n{tool.description}\nParameters: {schema}"


def _names(tools: Mapping[str, ServerTool]) -> str:
    listed = ", ".join(list(tools)[:MOST_NAMED])
    more = f", and {len(tools) - MOST_NAMED} more" if len(tools) > MOST_NAMED else ""
    return f"The tools are: {listed}{more}." if tools else "There are none."


def _found(query: str, tools: Mapping[str, ServerTool]) -> list[ServerTool]:
    if query.startswith(_SELECT):
        wanted = [name.strip() for name in query.removeprefix(_SELECT).split(",")]
        return [tools[name] for name in wanted if name in tools]
    words = set(re.findall(_WORD, query.lower()))
    scored = [(_score(words, tool), tool) for tool in tools.values()]
    # By name where they are equal, so that the same question has the same answer.
    best = sorted((each for each in scored if each[0]), key=lambda each: (-each[0], each[1].name))
    return [tool for _, tool in best[:MOST_FOUND]]


def _score(words: set[str], tool: ServerTool) -> int:
    name, about = tool.name.lower(), tool.description.lower()
    return sum(4 * (word in name) + (word in about) for word in words)


class ToolCallTool(ForwardingTool):
    """Calls a tool that was found."""

    def __init__(self, index: ToolIndex) -> None:
        self.name = CALL
        self.description = "Call a tool of an MCP server, by a name that tool_search has found."
        self.schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "mcp__server__tool"},
                "arguments": {"type": "object", "description": "As its parameters say."},
            },
            "required": ["name", "arguments"],
        }
        self.effect: Effect = "unknown"
        self.timeout_seconds = LONGEST_SECONDS
        self._index = index

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        tool, given = await self.forwarded(args)
        return await tool.prepare(given, context)

    async def forwarded(self, args: dict[str, Any]) -> tuple[Tool, dict[str, Any]]:
        name, given = args.get("name"), args.get("arguments", {})
        if not isinstance(name, str) or not isinstance(given, dict):
            raise BadArguments("tool_call needs a `name`, and `arguments` that are an object")
        tools, missing = self._index.all_tools(), ""
        if name not in tools:
            missing = await self._index.settled()
            tools = self._index.all_tools()
        if name not in tools:
            raise BadArguments(f"there is no tool {name!r}. {_names(tools)} {missing}".strip())
        return tools[name], given
