"""The tools that come with Weft, by name.

What a model reads about them (`manifest.json`) is read at the start; the code of a tool is loaded
when it is first called, because loading all of it would take as long as the rest of the start.
`describe` makes the manifest from the code, and a test holds the two together.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from weft.events import Effect
from weft.tools.base import PreparedCall, Tool, ToolContext

CORE = frozenset({"read", "write", "edit", "shell"})
"""Enough to work with."""
COMPANIONS = ("shell_output", "shell_stop")
"""What looks after commands that `shell` leaves running: offered with it, and never without."""
_MORE = frozenset(
    {"multi_edit", "apply_patch", "list", "find", "grep", "todo", "ask", "wait_for", "decision_log"}
)
INDEX_TOOLS = ("find_symbol", "references", "outline", "map")
"""What asks the index of a project: offered where there is one."""
DECISIONS = ("decision_query", "decision_update")
"""What looks at decisions: a model is told of it where the project has some."""
ALL = CORE | {*COMPANIONS, *_MORE, *INDEX_TOOLS, *DECISIONS}
"""Every built-in tool."""

EDITS = ("edit", "multi_edit")
"""What `apply_patch` stands in for, for models that are trained on it."""

MANIFEST = os.path.join(os.path.dirname(__file__), "descriptions", "manifest.json")
HOMES = {
    "read": ("read", "ReadTool"),
    "write": ("write", "WriteTool"),
    "edit": ("edit", "EditTool"),
    "multi_edit": ("edit", "MultiEditTool"),
    "apply_patch": ("apply_patch", "ApplyPatchTool"),
    "list": ("list", "ListTool"),
    "find": ("find", "FindTool"),
    "grep": ("grep", "GrepTool"),
    "find_symbol": ("index_tools", "FindSymbolTool"),
    "references": ("index_tools", "ReferencesTool"),
    "outline": ("index_tools", "OutlineTool"),
    "map": ("index_tools", "MapTool"),
    "shell": ("shell", "ShellTool"),
    "shell_output": ("background_shell", "ShellOutputTool"),
    "shell_stop": ("background_shell", "ShellStopTool"),
    "todo": ("todo", "TodoTool"),
    "ask": ("ask", "AskTool"),
    "wait_for": ("wait_for", "WaitForTool"),
    "decision_log": ("decisions", "DecisionLogTool"),
    "decision_query": ("decisions", "DecisionQueryTool"),
    "decision_update": ("decisions", "DecisionUpdateTool"),
}
"""Module and class of each tool, in the order in which models read of them."""
NAVIGATION_MANIFEST = os.path.join(os.path.dirname(__file__), "descriptions", "navigation.json")
NAVIGATION_HOMES = {"lsp": ("language", "LspTool"), "rename": ("language", "RenameTool")}
"""The tools that ask language servers.  Apart from the others: few machines have a server for
the language at hand, and what describes a tool stays in memory."""

WEB_MANIFEST = os.path.join(os.path.dirname(__file__), "descriptions", "web.json")
WEB_HOMES = {
    "fetch": ("web.fetch", "FetchTool"),
    "web_search": ("web.web_search", "WebSearchTool"),
}
"""The tools that reach the web.  Apart from the others, as those."""


class BuiltinEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a tool before its code is loaded."""

    name: str
    description: str
    schema: dict[str, Any]
    effect: Effect
    timeout_seconds: float


class BuiltinTool(Tool):
    """A built-in tool whose code is loaded by its first call."""

    def __init__(self, entry: BuiltinEntry) -> None:
        self.name = entry.name
        self.description = entry.description
        self.schema = entry.schema
        self.effect = entry.effect
        self.timeout_seconds = entry.timeout_seconds
        self._loaded: Tool | None = None

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        if self._loaded is None:
            self._loaded = load(self.name)
        return await self._loaded.prepare(args, context)


def builtin_tools() -> dict[str, Tool]:
    """A fresh set of all built-in tools, in the order in which models read of them."""
    return {entry.name: BuiltinTool(entry) for entry in _entries()}


def navigation_tools() -> dict[str, Tool]:
    """The tools that ask language servers."""
    return {entry.name: BuiltinTool(entry) for entry in _entries(NAVIGATION_MANIFEST)}


def web_tools() -> dict[str, Tool]:
    """The tools that reach the web."""
    return {entry.name: BuiltinTool(entry) for entry in _entries(WEB_MANIFEST)}


# Read once: the schemas of one set weigh more than all else that an idle session holds.
@cache
def _entries(manifest: str = MANIFEST) -> tuple[BuiltinEntry, ...]:
    with open(manifest, "rb") as file:
        return msgspec.json.decode(file.read(), type=tuple[BuiltinEntry, ...])


def load(name: str) -> Tool:
    """The tool itself, code and all."""
    module, kind = next(
        homes[name] for homes in (HOMES, NAVIGATION_HOMES, WEB_HOMES) if name in homes
    )
    folder = __package__.rpartition(".")[0] if name in WEB_HOMES else __package__
    tool: Tool = getattr(import_module(f"{folder}.{module}"), kind)()
    return tool
