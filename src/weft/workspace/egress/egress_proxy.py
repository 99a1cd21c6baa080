"""The egress proxy of one command: it accepts what comes from the command's own network, and opens
connections to the hosts that the judge allows.

The listener was made in that network and handed out (`Cell.listener`), so nothing else can connect
to it, and the command has no other way out.  Connections go to the addresses that were judged, and
are not looked up again.  Nothing is decrypted: through a tunnel to a port of the web goes TLS for
the very host that was named, or plain requests for it, one by one; only a port that is allowed by
its number may speak anything else.

It is part of our process and lives as long as the command.  A connection takes one buffer each way.
"""

from __future__ import annotations

import logging
import resource
import socket
from contextlib import closing, suppress
from typing import Final

import anyio

from weft.workspace.egress import request_head, tls_hello
from weft.workspace.egress.host_lookup import HostLookup
from weft.workspace.egress.judge import EgressJudge, RefusedHost
from weft.workspace.egress.read_pace import ReadPace
from weft.workspace.egress.request_body import BufferedSource, send_body
from weft.workspace.egress.request_head import BadRequest, PlainRequest, read_request
from weft.workspace.egress.socket_io import (
    accepted,
    connected,
    cut,
    pour,
    pour_or_cut,
    received,
    sent,
)

logger = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 256
"""At once; more wait to be accepted."""
FEWEST_CONNECTIONS: Final = 16
WITHOUT_FILES_SECONDS: Final = 0.1
"""How long to wait for others to close some where none can be opened."""
HEAD_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 15.0
MOST_REFUSED: Final = 50
"""Refused hosts that are remembered."""


class _Refusal(Exception):
    """What a client is told in place of a connection."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


def most_connections(files: int) -> int:
    """How many a command may have at once in a process that may open so many files: each takes two,
    and other commands, the store and the user need some as well."""
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, files // 16))


class EgressProxy:
    """The way out of one command."""

    def __init__(self, judge: EgressJudge, lookup: HostLookup | None = None) -> None:
        self._judge = judge
        self._lookup = lookup or HostLookup()
        self._pace = ReadPace()
        self._slots = anyio.Semaphore(
            most_connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        )
        self.refused: dict[tuple[str, int], RefusedHost] = {}
        """What was refused, in the order in which it was asked for."""
        self.is_used = False
        """Something was connected."""

    async def serve(self, listener: socket.socket) -> None:
        """Serve what comes in until cancelled; every connection ends with it."""
        async with anyio.create_task_group() as group:
            while True:
                await self._slots.acquire()
                group.start_soon(self._attend, await _next_client(listener))

    async def _attend(self, client: socket.socket) -> None:
        try:
            with closing(client), suppress(OSError, tls_hello.NoHello):
                await self._answered(client)
        except Exception:
            logger.exception("a connection of a command broke off")
        finally:
            self._slots.release()

    async def _answered(self, client: socket.socket) -> None:
        try:
            await self._exchange(client)
        except BadRequest as error:
            await _say(client, "400 Bad Request", str(error))
        except _Refusal as refusal:
            await _say(client, refusal.status, str(refusal))

    async def _exchange(self, client: socket.socket) -> None:
        head, rest = await self._read_head(client)
        request = read_request(head, self._judge.plain_host)
        server = await self._opened(request)
        with closing(server):
            if not request.is_tunnel:
                await self._forward(client, server, request, rest)
                return
            await sent(client, b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._tunnel(client, server, request, rest)

    async def _opened(self, request: PlainRequest) -> socket.socket:
        """A connection to the host, at an address that may be reached."""
        host, port = request.host, request.port
        self._refuse_if(self._judge.refused(host, port))
        try:
            numbers = await self._lookup.numbers(host)
        except OSError as error:
            raise _Refusal("502 Bad Gateway", f"{host} is not found: {error}") from error
        # All of them: a name that leads inside as well is not to be trusted.
        for number in numbers:
            self._refuse_if(self._judge.refused_address(host, number, port))
        why: OSError | None = None
        for number in numbers:
            try:
                with anyio.fail_after(CONNECT_SECONDS):
                    server = await connected(number, port)
            except OSError as error:  # a TimeoutError is one
                why = error
            else:
                self.is_used = True
                return server
        raise _Refusal("502 Bad Gateway", f"{host}:{port} cannot be reached: {why}")

    def _refuse_if(self, refused: RefusedHost | None) -> None:
        if refused is None:
            return
        key = (refused.host, refused.port)
        if len(self.refused) < MOST_REFUSED:
            self.refused.setdefault(key, refused)
        allow = f"; the rule {refused.rule} would allow it" if refused.rule else ""
        raise _Refusal("403 Forbidden", f"the sandbox does not reach {refused}{allow}")

    async def _tunnel(
        self, client: socket.socket, server: socket.socket, tunnel: PlainRequest, rest: bytes
    ) -> None:
        if not self._judge.names_port(tunnel.host, tunnel.port):
            first = rest or await received(client)
            await self._web_tunnel(client, server, tunnel, first)
            return
        # The server may speak first, so its side is open while nothing has come from ours.
        async with anyio.create_task_group() as group:
            group.start_soon(pour_or_cut, server, client, self._pace)
            try:
                first = rest or await received(client)
                if tls_hello.looks_like_hello(first):
                    first = await self._checked_hello(client, tunnel, first)
                await sent(server, first)
                await pour(client, server, self._pace)
            except (OSError, tls_hello.NoHello):
                cut(client, server)

    async def _web_tunnel(
        self, client: socket.socket, server: socket.socket, tunnel: PlainRequest, first: bytes
    ) -> None:
        """A tunnel to a port of the web: TLS for its host, or plain requests to it."""
        while request_head.may_become_plain(first):
            if not (more := await received(client, pace=self._pace)):
                break
            first += more
        if tls_hello.looks_like_hello(first):
            await sent(server, await self._checked_hello(client, tunnel, first))
            await self._both_ways(client, server)
        elif request_head.is_plain_request(first):
            head, rest = await self._read_head(client, first)
            request = read_request(head, self._judge.plain_host, tunnel)
            await self._forward(client, server, request, rest)
        elif first:
            why = "what goes there is neither TLS nor HTTP; name the port in the rule"
            self._note(tunnel, why, f"fetch(domain:{tunnel.host}:{tunnel.port})")

    async def _checked_hello(
        self, client: socket.socket, tunnel: PlainRequest, first: bytes
    ) -> bytes:
        """The beginning of a TLS connection, when it is for the host of the tunnel."""
        records, data = tls_hello.HelloRecords(), bytearray(first)
        while True:
            try:
                named = tls_hello.named_server(records.message(data))
                break
            except tls_hello.IncompleteHello:
                more = await received(client, pace=self._pace)
                if not more or len(data) > tls_hello.LONGEST:
                    raise tls_hello.NoHello from None
                data += more
        is_number = tunnel.host.startswith("[") or tunnel.host.rpartition(".")[2].isdigit()
        if (named or not is_number) and self._judge.plain_host(named) != tunnel.host:
            shown = named[:100] if named.isprintable() and named else "no server"
            self._note(tunnel, f"inside its tunnel the connection names {shown}")
            raise tls_hello.NoHello
        return bytes(data)

    def _note(self, tunnel: PlainRequest, why: str, rule: str = "") -> None:
        with suppress(_Refusal):  # too late to be told: the tunnel stands
            self._refuse_if(RefusedHost(tunnel.host, tunnel.port, why, rule))

    async def _both_ways(self, client: socket.socket, server: socket.socket) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(pour_or_cut, client, server, self._pace)
            group.start_soon(pour_or_cut, server, client, self._pace)

    async def _forward(
        self, client: socket.socket, server: socket.socket, request: PlainRequest, rest: bytes
    ) -> None:
        """One plain request and its answer."""
        size = request.body_size
        await sent(server, request.passed_on())
        async with anyio.create_task_group() as group:
            group.start_soon(_body, BufferedSource(client, rest, self._pace), server, size)
            await pour_or_cut(server, client, self._pace)
            # The answer is complete, whatever is left of the question.
            group.cancel_scope.cancel()

    async def _read_head(self, client: socket.socket, first: bytes = b"") -> tuple[bytes, bytes]:
        """The head of a request, and what came behind it."""
        data = bytearray(first)
        with anyio.move_on_after(HEAD_SECONDS):
            looked = 0
            while (end := data.find(request_head.HEAD_END, looked)) < 0:
                if len(data) > request_head.LONGEST:
                    raise BadRequest("its head is too long")
                looked = max(0, len(data) - len(request_head.HEAD_END))
                more = await received(client, pace=self._pace)
                if not more:
                    raise ConnectionResetError
                data += more
            return bytes(data[:end]), bytes(data[end + len(request_head.HEAD_END) :])
        raise _Refusal("408 Request Timeout", "no request came")


async def _next_client(listener: socket.socket) -> socket.socket:
    while True:
        try:
            return await accepted(listener)
        except OSError as error:
            # No file is left, or who asked is gone: nothing to end the command for.
            logger.debug("a connection of a command could not be accepted: %s", error)
            await anyio.sleep(WITHOUT_FILES_SECONDS)


async def _body(source: BufferedSource, server: socket.socket, size: int | None) -> None:
    try:
        await send_body(source, server, size)
    except (BadRequest, OSError):
        cut(server)  # half a request must not be taken for a whole one


async def _say(client: socket.socket, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    await sent(client, head.encode() + body)
    # A socket that is closed with unread bytes resets the connection, and the answer with it.
    client.shutdown(socket.SHUT_WR)
    with anyio.move_on_after(1):
        while await received(client):
            pass
