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
from weft.mcp.issuer_address import AddressGuard
from weft.mcp.oauth_tokens import LoginFile, SavedAuthorization
from weft.mcp.server import Handlers, StartTask
from weft.runtime.mcp.mcp_terms import McpTerms
from weft.transport import HttpClient, target


async def http_client(url: str, terms: McpTerms, guard: AddressGuard) -> HttpClient:
    """A client for an address, with the proxies of the user's environment; `guard` decides what
    names may lead to.

    Raises:
        UsageError: it is none that can be used.
    """
    context: ssl.SSLContext | None = None
    if target(url).scheme == "https":
        # Reading all certificates takes tens of milliseconds, in which nothing else would run.
        context = await anyio.to_thread.run_sync(ssl.create_default_context)
    tls = None if context is None else lambda: context
    return HttpClient(proxies=proxies_of(terms.environ), resolve=guard.resolve, tls=tls)


async def opened_link(
    entry: ServerEntry,
    terms: McpTerms,
    guard: AddressGuard,
    handlers: Handlers,
    start_task: StartTask,
) -> ServerLink:
    """A connection to the server of an entry whose variables are filled in.

    Raises:
        FinalToolError: it has no address that can be used.
    """
    try:
        client = await http_client(entry.url, terms, guard)
    except UsageError as error:
        raise FinalToolError(str(error)) from error
    logins = LoginFile(terms.places.config)
    authorization = SavedAuthorization(
        entry.url, logins, client, terms.clock, hide=terms.redact.add
    )
    endpoint = HttpEndpoint(
        entry.url, client, headers=tuple(entry.headers.items()), authorization=authorization
    )
    kind = SseConnection if entry.transport == "sse" else HttpConnection
    return ServerLink(kind(endpoint, handlers, start_task))
