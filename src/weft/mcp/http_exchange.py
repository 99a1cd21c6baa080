"""HTTP requests to an MCP server: addressed, authorized, bounded, and what their status means."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import urljoin, urlsplit

import msgspec

from weft.errors import ProviderUnavailable
from weft.jsonrpc import TOO_LONG, ErrorAnswer, PeerClosed
from weft.mcp.connection import LONGEST, AnswerLost, HeaderPairs, NeedsLogin, SessionGone
from weft.transport import HttpReply, HttpRequest, HttpTimeouts, HttpTransport

MOST_BODY: Final = 8 * 1024 * 1024
"""Bytes of one answer."""
MOST_ERROR: Final = 64 * 1024
"""Bytes that are read of an answer that is an error."""
CONNECT_SECONDS: Final = 30.0
_REDIRECTS: Final = (307, 308)
"""Those that keep the method; no other can answer a POST."""


class ServerAuthorization(Protocol):
    """What we show to a server to say who we are."""

    async def header(self) -> str:
        """The value of `authorization`; empty where there is none."""
        ...

    async def renewed(self, refused: str) -> bool:
        """Get another one in place of one that was refused; False where that is not possible."""
        ...

    async def challenged(self, status: int, challenge: str) -> None:
        """Take note of what a server said that wants a login which allows more."""
        ...


class HttpEndpoint:
    """The address of one server, and how it is asked."""

    def __init__(
        self,
        url: str,
        transport: HttpTransport,
        *,
        headers: HeaderPairs = (),
        authorization: ServerAuthorization | None = None,
    ) -> None:
        """`headers` go with every request, to this address alone.  The transport is the endpoint's
        own, and is closed with it."""
        self.url = url
        self._transport = transport
        self._headers = headers
        self._authorization = authorization
        self.session = ""
        """The id that an older server gave us."""

    async def aclose(self) -> None:
        """Close the connections that wait to be used again."""
        await self._transport.aclose()

    @property
    def _has_own_key(self) -> bool:
        return any(name.lower() == "authorization" for name, _ in self._headers)

    @asynccontextmanager
    async def asked(
        self, method: str, headers: HeaderPairs, body: bytes = b"", url: str = ""
    ) -> AsyncGenerator[HttpReply]:
        """The reply to one request; what is refused for want of a login is asked again once, with a
        login that was renewed.

        Raises:
            PeerClosed: the server cannot be reached.
            NeedsLogin: it wants a login.
            SessionGone: it has forgotten us.
        """
        address = url or self.url
        shown = await self._shown()
        for is_last in (False, False, True):
            async with self._sent(method, (*headers, *shown), body, address) as reply:
                moved = self._moved(reply, address)
                if is_last or not (reply.status == 401 or moved):
                    await self._look(reply)
                    yield reply
                    return
            if moved:
                address = moved
            else:
                shown = await self._renewed(shown)
        raise AssertionError("not reached")

    @asynccontextmanager
    async def _sent(
        self, method: str, headers: HeaderPairs, body: bytes, url: str
    ) -> AsyncGenerator[HttpReply]:
        session = (("mcp-session-id", self.session),) if self.session else ()
        request = HttpRequest(
            url=url,
            method=method,
            headers=(*headers, *session, *self._headers),
            body=body,
            # Who waits for an answer has limits of their own: a tool may work for minutes.
            timeouts=HttpTimeouts(connect=CONNECT_SECONDS, first_byte=LONGEST, idle=LONGEST),
        )
        try:
            async with self._transport.send(request) as reply:
                yield reply
        except ProviderUnavailable as error:
            raise PeerClosed(str(error)) from error

    async def _shown(self) -> HeaderPairs:
        if self._authorization is None or self._has_own_key:
            return ()
        value = await self._authorization.header()
        return (("authorization", value),) if value else ()

    async def _renewed(self, shown: HeaderPairs) -> HeaderPairs:
        if self._has_own_key:
            raise NeedsLogin("it refuses the key in its `headers`")
        refused = shown[0][1] if shown else ""
        if self._authorization is None or not await self._authorization.renewed(refused):
            raise NeedsLogin("it wants a login")
        return await self._shown()

    def _moved(self, reply: HttpReply, address: str) -> str:
        """Where it sends us, if that is the same server: what we show goes to no other."""
        if reply.status not in _REDIRECTS:
            return ""
        named = reply.headers.get("location", "")
        try:
            there = urljoin(address, named)
        except ValueError:
            there = named  # no address, and so none of this server
        if origin(there) != origin(address):
            raise PeerClosed(f"it has moved to {there[:200]}, which is another server")
        return there

    async def _look(self, reply: HttpReply) -> None:
        challenge = reply.headers.get("www-authenticate", "")
        match reply.status:
            case 401:
                raise NeedsLogin("it wants a login")
            case 403 if "insufficient_scope" in challenge:
                if self._authorization is not None:
                    await self._authorization.challenged(403, challenge[:4096])
                raise NeedsLogin("it wants a login that allows more")
            case 404 if self.session:
                raise SessionGone("it does not know our session any more")


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address."""
    try:
        parts = urlsplit(url)
        usual = 443 if parts.scheme == "https" else 80
        return parts.scheme, parts.hostname or "", parts.port or usual
    except ValueError:
        return "", "", None


async def whole_body(reply: HttpReply, most: int = MOST_BODY) -> bytes:
    """The body of a reply.

    Raises:
        ErrorAnswer: it is too long.
        AnswerLost: it breaks off.
    """
    parts: list[bytes] = []
    size = 0
    try:
        while data := await reply.read():
            size += len(data)
            if size > most:
                said = f"the answer has more than {most / 1e6:,.0f} MB, which is the limit"
                raise ErrorAnswer(TOO_LONG, said)
            parts.append(data)
    except ProviderUnavailable as error:
        raise AnswerLost(str(error)) from error
    return b"".join(parts)


class _ErrorBody(msgspec.Struct):
    code: int
    message: str = ""
    data: Any = None


class _ErrorReply(msgspec.Struct):
    error: _ErrorBody


async def error_in(reply: HttpReply) -> ErrorAnswer:
    """What a reply says that is no success: its JSON-RPC error, or its status."""
    try:
        body = await whole_body(reply, MOST_ERROR)
    except (ErrorAnswer, PeerClosed):
        body = b""
    try:
        found = msgspec.json.decode(body, type=_ErrorReply).error
        return ErrorAnswer(found.code, found.message, found.data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    is_text = reply.headers.get("content-type", "").startswith(("text/plain", "application/json"))
    first = body.decode(errors="replace").strip().split("\n")[0][:300] if is_text else ""
    return ErrorAnswer(reply.status, first or _phrase(reply.status))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no status that is known"
