"""The way to MCP servers that are reached by an address: with the user's proxies, trusted
certificates and logins."""

from __future__ import annotations

import ssl

import anyio.to_thread

from weft.config.providers import proxies_of
from weft.errors import FinalToolError, UsageError
from weft.mcp import ServerEntry, ServerLink
from weft.mcp.http_connection import HttpConnection, SseConnection
from weft.mcp.http_exchange import HttpEndpoint
from weft.mcp.server import Handlers, StartTask
from weft.runtime.mcp.mcp_terms import McpTerms
from weft.transport import HttpClient, target


async def opened_link(
    entry: ServerEntry, terms: McpTerms, handlers: Handlers, start_task: StartTask
) -> ServerLink:
    """A connection to the server of an entry whose variables are filled in.

    Raises:
        FinalToolError: it has no address that can be used.
    """
    try:
        where = target(entry.url)
    except UsageError as error:
        raise FinalToolError(str(error)) from error
    context: ssl.SSLContext | None = None
    if where.scheme == "https":
        # Reading all certificates takes tens of milliseconds, in which nothing else would run.
        context = await anyio.to_thread.run_sync(ssl.create_default_context)
    client = HttpClient(
        proxies=proxies_of(terms.environ), tls=None if context is None else lambda: context
    )
    endpoint = HttpEndpoint(entry.url, client, headers=tuple(entry.headers.items()))
    kind = SseConnection if entry.transport == "sse" else HttpConnection
    return ServerLink(kind(endpoint, handlers, start_task))
