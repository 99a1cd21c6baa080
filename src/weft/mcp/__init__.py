"""MCP servers: configured, started, listed, pinned and called; their tools as ours.

Knows neither sessions nor the sandbox: it is handed what starts a program, and a way to the user.
Loaded where a server is configured, and the parts that speak to one only when one is spoken to.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.mcp.config_files import (
    ConfiguredServers,
    GivenServers,
    ProjectServers,
    UserServers,
    configured_servers,
)
from weft.mcp.project_choices import Answer, ProjectChoices, shown_hash
from weft.mcp.server_config import (
    MOST_SERVERS,
    SCOPES,
    START_SECONDS,
    ConfiguredServer,
    Scope,
    ServerEntry,
    canonical,
    checked_entry,
    expanded,
    name_problem,
    restricting_key,
    variables_in,
)
from weft.mcp.tool_names import PREFIX, offered_names, other_names, server_of
from weft.mcp.tool_pins import (
    KnownTool,
    ListedTool,
    RecordFolder,
    ServerRecord,
    pin_diff,
    with_hidden_shown,
    without_hidden,
)

if TYPE_CHECKING:  # loaded when a server is spoken to
    from weft.mcp.client import CallTerms
    from weft.mcp.connection import StdioConnection
    from weft.mcp.results import outcome_of
    from weft.mcp.server import McpServer, ServerLink

__all__ = [
    "MOST_SERVERS",
    "PREFIX",
    "SCOPES",
    "START_SECONDS",
    "Answer",
    "CallTerms",
    "ConfiguredServer",
    "ConfiguredServers",
    "GivenServers",
    "KnownTool",
    "ListedTool",
    "McpServer",
    "ProjectChoices",
    "ProjectServers",
    "RecordFolder",
    "Scope",
    "ServerEntry",
    "ServerLink",
    "ServerRecord",
    "StdioConnection",
    "UserServers",
    "canonical",
    "checked_entry",
    "configured_servers",
    "expanded",
    "name_problem",
    "offered_names",
    "other_names",
    "outcome_of",
    "pin_diff",
    "restricting_key",
    "server_of",
    "shown_hash",
    "variables_in",
    "with_hidden_shown",
    "without_hidden",
]

_HOMES = {
    "CallTerms": "client",
    "McpServer": "server",
    "ServerLink": "server",
    "StdioConnection": "connection",
    "outcome_of": "results",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
