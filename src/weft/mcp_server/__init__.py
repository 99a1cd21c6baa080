"""Weft as an MCP server: its sessions and the files of the project, for other agents.

Owns the protocol's server side of two eras (`dispatcher`), the pipes (`stdio_loop`), HTTP
(`http_endpoint`) and what is offered (`session_offer`, `ask_tool`).  Everything goes through the
application's public calls, so that rules, permission requests and masks hold as for every other
client.  Who may ask over HTTP is decided by `server/`.
"""

from weft.mcp_server.catalogue import (
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    CallClient,
    RequestProblem,
    ResourceMissing,
    RunTool,
    ServedOffer,
    ServedPrompt,
    ServedResource,
    ServedTool,
    ToolReply,
)
from weft.mcp_server.dispatcher import McpDispatcher
from weft.mcp_server.http_endpoint import McpHttpEndpoint
from weft.mcp_server.session_offer import weft_offer
from weft.mcp_server.stdio_loop import serve_stdio

__all__ = [
    "INVALID_PARAMS",
    "MISSING_CAPABILITY",
    "CallClient",
    "McpDispatcher",
    "McpHttpEndpoint",
    "RequestProblem",
    "ResourceMissing",
    "RunTool",
    "ServedOffer",
    "ServedPrompt",
    "ServedResource",
    "ServedTool",
    "ToolReply",
    "serve_stdio",
    "weft_offer",
]
