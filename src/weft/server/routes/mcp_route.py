"""`/mcp`: Weft as an MCP server, behind the same gate as everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from weft.app import App

if TYPE_CHECKING:  # loaded with the first request: few servers are asked
    from weft.mcp_server import McpHttpEndpoint

PATH: Final = "/mcp"


class _McpEndpoint:
    def __init__(self, app: App) -> None:
        self._app = app
        self._endpoint: McpHttpEndpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._endpoint is None:
            from weft.mcp_server import McpDispatcher, McpHttpEndpoint, weft_offer

            self._endpoint = McpHttpEndpoint(McpDispatcher(weft_offer(self._app)))
        await self._endpoint(scope, receive, send)


def mcp_route(app: App) -> Route:
    """The route; `app` is the project that the server was started in."""
    return Route(PATH, _McpEndpoint(app))
