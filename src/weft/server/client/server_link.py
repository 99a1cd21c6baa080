"""The link to a server: operations of the table as calls, errors as they were raised there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final
from urllib.parse import quote, urlencode

import anyio
import msgspec

from weft.clock import SystemClock
from weft.errors import ProviderUnavailable, StoreUnavailable, UsageError, WeftError
from weft.ids import new_id
from weft.runtime import raised_error
from weft.server.errors import ErrorAnswer
from weft.server.operation import ApiOperation
from weft.server.operations import OPERATIONS
from weft.transport import HttpClient, HttpReply, HttpRequest, HttpTimeouts

BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
TRIES: Final = 3
"""How often a call is sent; under its input id it is carried out once."""
BUSY_SECONDS: Final = 1.0
"""How long to wait when too many calls were made; a hundred more are let in meanwhile."""
PATIENT: Final = HttpTimeouts(first_byte=24 * 3600.0, idle=60.0)
"""A message is answered when its turn ends; the server pings streams every 15 s."""


class ServerBusy(StoreUnavailable):
    """The server asks to come back later: too many calls were made with this token."""


class ClientForgotten(UsageError):
    """The server does not know the client of a call: it was started again since that attached."""


class ServerLink:
    """A server at an address, and the token for it."""

    def __init__(self, url: str, token: str, unix: str = "") -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._unix = unix
        self._http = HttpClient()
        self._clock = SystemClock()

    async def aclose(self) -> None:
        """Close every connection that waits."""
        await self._http.aclose()

    async def call(
        self,
        name: str,
        path: Mapping[str, str] | None = None,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        client: str = "",
        nulls: tuple[str, ...] = (),
    ) -> Any:
        """Carry out an operation; the answer is of the type that the table says.

        What is None in the body was not given, but for `nulls`.

        Raises:
            StoreUnavailable: the server cannot be reached.
            WeftError: what the server raised, by its own name.
        """
        operation = BY_NAME[name]
        given = {
            key: value for key, value in (body or {}).items() if value is not None or key in nulls
        }
        if operation.changes:
            # So that it can be sent again when its answer is lost.
            given.setdefault("input_id", new_id("inp", self._clock.now()))
        request = self.request(operation, path or {}, given, query or {}, client)
        for left in reversed(range(TRIES)):
            try:
                async with self._http.send(request) as reply:
                    return decoded(operation, reply.status, await whole(reply))
            except ProviderUnavailable as error:
                if not left:
                    raise self.unreachable(error) from error
            except ServerBusy:
                if not left:
                    raise
                await anyio.sleep(BUSY_SECONDS)
        raise AssertionError("not reached")

    def request(
        self,
        operation: ApiOperation,
        path: Mapping[str, str],
        body: Mapping[str, Any],
        query: Mapping[str, Any],
        client: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> HttpRequest:
        """An operation as a request."""
        given = {key: value for key, value in query.items() if value is not None}
        asked = f"?{urlencode(given)}" if given else ""
        more = (("weft-client", client),) if client else ()
        kind = (("content-type", "application/json"),) if operation.changes else ()
        return HttpRequest(
            url=f"{self.url}/api{filled(operation.path, path)}{asked}",
            method=operation.method,
            headers=(("authorization", f"Bearer {self._token}"), *kind, *more, *headers),
            body=msgspec.json.encode(body) if operation.changes else b"",
            unix_socket=self._unix,
            timeouts=PATIENT,
        )

    async def open_stream(self, request: HttpRequest, stack: AsyncExitStack) -> HttpReply:
        """Send a request whose answer goes on; `stack` closes it.

        Raises:
            ProviderUnavailable: the server cannot be reached.
            WeftError: what the server raised.
        """
        reply = await stack.enter_async_context(self._http.send(request))
        if reply.status != 200:
            raise raised(reply.status, await whole(reply))
        return reply

    def unreachable(self, error: WeftError) -> StoreUnavailable:
        """What is raised when the server does not answer."""
        return StoreUnavailable(f"the server at {self.url} cannot be reached: {error}")


async def whole(reply: HttpReply) -> bytes:
    """All of a reply."""
    parts: list[bytes] = []
    while part := await reply.read():
        parts.append(part)
    return b"".join(parts)


def filled(path: str, values: Mapping[str, str]) -> str:
    """A path of the table with its names filled in."""

    def fill(found: re.Match[str]) -> str:
        return quote(values[found[1]], safe="/" if found[2] else "")

    return re.sub(r"\{(\w+)(:path)?\}", fill, path)


def decoded(operation: ApiOperation, status: int, body: bytes) -> Any:
    """The answer of an operation.

    Raises:
        WeftError: it was refused.
    """
    if status >= 400:
        raise raised(status, body)
    if operation.answer is None:
        return None
    if operation.media_type != "application/json":
        return body if operation.answer is bytes else body.decode()
    return msgspec.json.decode(body, type=operation.answer)


def raised(status: int, body: bytes) -> WeftError:
    """The error that a server answered with, as it was raised there."""
    try:
        told = msgspec.json.decode(body, type=ErrorAnswer).error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return StoreUnavailable(f"the server answered with {status}, and not as Weft does")
    if told.kind == "limit":
        return ServerBusy(told.message)
    if told.kind == "client":
        return ClientForgotten(told.message)
    return raised_error(told, UsageError if status < 500 else StoreUnavailable)
