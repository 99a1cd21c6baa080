"""The hop: a request that is handed on to the server that has its session, and its answer.

The answer goes on as it comes, so that streams of events pass through.  The other server is not
asked whether it lives: the store knows, and is looked at while an answer is waited for.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec
from starlette.types import Receive, Scope, Send

from weft.clock import Clock
from weft.errors import ProviderUnavailable, StoreError, WeftError
from weft.server.cluster.cluster_secret import HOP_SECONDS, ClusterSecret, HopToken
from weft.server.cluster.session_routes import SessionPlace, SessionRoutes
from weft.server.operation import CLIENT_HEADER
from weft.transport import HttpClient, HttpReply, HttpRequest, HttpTimeouts

HOP_HEADER: Final = "weft-hop"
MOST_HOPS: Final = 3
"""Servers that a request may come through: a session may move while it is on its way, and two that
each believe that the other has it must not hand it on for ever."""
WATCH_SECONDS: Final = 1.0
"""How often it is looked whether the other server still has the session."""
EVENT_STREAM: Final = "text/event-stream"
_PATIENT: Final = HttpTimeouts(connect=3.0, first_byte=24 * 3600.0, idle=60.0)
"""A message is answered when its turn ends; streams have a ping every 15 s."""
_PASSED: Final = frozenset({b"accept", b"content-type", b"last-event-id"})
_OF_THIS_HOP: Final = frozenset(
    {
        *("connection", "date", "keep-alive", "transfer-encoding", "content-encoding"),
        *("content-length", "content-security-policy", "x-content-type-options"),
        *("referrer-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"),
    }
)
"""Headers of an answer that this server makes itself."""


class HopLost(Exception):
    """The other server cannot be reached, is gone, or has given the session away.

    Nothing of an answer has been sent to the caller.
    """


class HopRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that may be handed on, once or again."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    role: str
    client: str
    hops: int


def hop_request(scope: Scope, body: bytes) -> HopRequest:
    """What is handed on of a request: its own token and cookies stay here."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    passed = tuple((name.decode(), text) for name, text in headers.items() if name in _PASSED)
    query = scope["query_string"].decode("latin-1")
    hop: HopToken | None = scope.get("weft.hop")
    return HopRequest(
        method=scope["method"],
        target=scope["raw_path"].decode("latin-1") + (f"?{query}" if query else ""),
        headers=passed,
        body=body,
        role=scope["weft.role"],
        client=headers.get(CLIENT_HEADER.encode(), ""),
        hops=0 if hop is None else hop.hops,
    )


class ServerHop:
    """Hands requests on to other servers."""

    def __init__(
        self,
        secret: ClusterSecret,
        tenant: Callable[[], str],
        routes: SessionRoutes,
        clock: Clock,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`tls` makes the context by which other servers are known."""
        self._secret = secret
        self._tenant = tenant
        self._routes = routes
        self._clock = clock
        self._http = HttpClient(tls=tls)

    async def aclose(self) -> None:
        """Close every connection that waits."""
        await self._http.aclose()

    async def relay(
        self, request: HopRequest, place: SessionPlace, receive: Receive, send: Send
    ) -> None:
        """Hand a request on, and its answer back, until it ends or the caller goes.

        Raises:
            HopLost: see there.
            WeftError: it cannot be handed on as it is.
        """
        lost = False
        failure: WeftError | None = None
        begun: HttpReply | None = None

        async def pass_on() -> None:
            nonlocal begun
            async with self._sent(request, place) as reply:
                begun = reply
                await _pass_answer(reply, send)

        async with anyio.create_task_group() as group:

            async def watch() -> None:
                nonlocal lost
                await self._until_moved(place)
                lost = True
                group.cancel_scope.cancel()

            group.start_soon(_until_gone, receive, group.cancel_scope)
            group.start_soon(watch)
            try:
                await pass_on()
            except ProviderUnavailable:
                lost = True
            except WeftError as error:
                failure = error  # outside the group, which would wrap it
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if lost and begun is None:
            raise HopLost
        if lost and _has_cursor(begun):
            # In the middle: the caller sees that it ends, and comes back with its cursor.  What
            # has none is cut off: half an answer must not look like a whole one.
            with anyio.move_on_after(1):
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def events(self, request: HopRequest, place: SessionPlace) -> AsyncGenerator[bytes]:
        """The bytes of a stream, until it ends or the session has moved.

        Raises:
            HopLost: the other server cannot be reached, or refuses.
        """
        try:
            async with self._sent(request, place) as reply:
                if reply.status != 200:
                    raise HopLost
                while data := await self._next(reply, place):
                    yield data
        except ProviderUnavailable as error:
            raise HopLost from error

    async def _next(self, reply: HttpReply, place: SessionPlace) -> bytes:
        """The next bytes of a stream; none when it has ended or the session has moved."""
        while True:
            with anyio.move_on_after(WATCH_SECONDS):
                return await reply.read()
            if await self._has_moved(place):
                return b""

    @asynccontextmanager
    async def _sent(self, request: HopRequest, place: SessionPlace) -> AsyncIterator[HttpReply]:
        token = HopToken(
            tenant=self._tenant(),
            role=request.role,  # type: ignore[arg-type]  # from a token that was checked
            client=request.client,
            to=place.address,
            method=request.method,
            target=request.target,
            hops=request.hops + 1,
            expires=self._clock.now() + HOP_SECONDS,
        )
        client = ((CLIENT_HEADER, request.client),) if request.client else ()
        signed = (HOP_HEADER, self._secret.sign_hop(token))
        sent = HttpRequest(
            url=f"{place.address}{request.target}",
            method=request.method,
            headers=(*request.headers, *client, signed),
            body=request.body,
            timeouts=_PATIENT,
        )
        async with self._http.send(sent) as reply:
            yield reply

    async def _until_moved(self, place: SessionPlace) -> None:
        while True:
            await anyio.sleep(WATCH_SECONDS)
            if await self._has_moved(place):
                return

    async def _has_moved(self, place: SessionPlace) -> bool:
        try:
            return await self._routes.has_moved(place)
        except StoreError:
            return False  # without the database nothing moves


async def _pass_answer(reply: HttpReply, send: Send) -> None:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers.items()
        if name not in _OF_THIS_HOP
    ]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    while data := await reply.read():
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def _has_cursor(reply: HttpReply | None) -> bool:
    """Whether the caller can go on behind what has come of an answer."""
    return reply is not None and reply.headers.get("content-type", "").startswith(EVENT_STREAM)


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
