"""The server: a listener, the gate, the routes and the projects behind them.

It runs in the caller's event loop and leaves signals to the caller.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import ssl
import stat
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
import msgspec
import uvicorn
from starlette.routing import WebSocketRoute

from weft.app import App
from weft.clock import Clock, SystemClock
from weft.errors import UsageError
from weft.server.due.due_projects import DueProjects
from weft.server.gate import RequestGate, allowed_origins
from weft.server.http_protocol import AbortableWebSocket, StrictHttpProtocol
from weft.server.operations import OPERATIONS
from weft.server.page_tokens import TokenStore
from weft.server.projects import ServedProjects
from weft.server.router import api_router
from weft.server.routes.mcp_route import mcp_route
from weft.server.server_parts import ServerParts
from weft.server.server_record import unix_name
from weft.server.static import PageFiles, page_folder
from weft.server.telemetry.traces import SessionTracer, SpanSink
from weft.server.web_socket import page_endpoint

if TYPE_CHECKING:  # loaded where there are several servers
    from weft.server.cluster.server_cluster import ClusterSettings, ServerCluster

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
GRACE_SECONDS: Final = 3
MOST_CONNECTIONS: Final = 2_000
BACKLOG: Final = 256
SEND_BUFFER_BYTES: Final = 128 * 1024
KEEPALIVE_SECONDS: Final = 15
"""How often the kernel looks whether the machine of a quiet connection is still there."""
UNANSWERED_MILLISECONDS: Final = 60_000
"""How long it may be silent; a minute without a network is no reason to hang up."""


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any that is free."""
    unix: str = ""
    """The path of a socket, in the place of host and port."""
    names: tuple[str, ...] = ()
    """Other names that it is reached by; `Host` and `Origin` are compared with them."""
    certificate: str = ""
    key: str = ""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return bool(self.unix) or self.host in ("127.0.0.1", "localhost", "::1")

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.certificate else "http"


class _QuietServer(uvicorn.Server):
    """uvicorn without signal handlers of its own: its caller has some."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class WeftServer:
    """A server on one address.  `run` serves until `stop` is called."""

    def __init__(
        self,
        main: App,
        open_other: Callable[[str], App],
        address: ServerAddress,
        *,
        clock: Clock | None = None,
        password: str = "",
        forget: bool = False,
        page: Path | None = None,
        cluster: ClusterSettings | None = None,
    ) -> None:
        """`main` is open, and is closed with the server; `open_other` makes the application of
        another folder.  With `cluster` it is one of several on one database.

        Raises:
            UsageError: the address cannot be listened on, or is not safe to listen on.
        """
        check_address(address, password)
        self._clock = clock or SystemClock()
        self._socket = bound_socket(address)
        self.port: int = 0 if address.unix else self._socket.getsockname()[1]
        self.address = address
        self.name = unix_name(address.unix) if address.unix else str(self.port)
        """Tells it from the other servers of this user."""
        shared = None if cluster is None else cluster.secret
        self.tokens = TokenStore(main.places.servers, self.name, self._clock, password, shared)
        self.tokens.open(forget=forget)
        self.parts = ServerParts(ServedProjects(main, open_other), self.tokens)
        self.cluster: ServerCluster | None = None
        """This server among others; None for one that is alone."""
        if cluster is not None:
            from weft.server.cluster.server_cluster import (
                ServerCluster,
            )  # few servers are of several

            own = f"{address.scheme}://{address.host}:{self.port}"
            self.cluster = ServerCluster(cluster, self.parts.projects, own, self._clock)
            self.parts.cluster = self.cluster
        self._page = PageFiles(page or page_folder())
        # What is wrong with a request is told to the caller; the log is for what is wrong with us.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _QuietServer(self._config())
        self._stopping = anyio.Event()
        self.spans: SpanSink | None = None
        """Where traces of turns go; none are made without it."""
        self.is_ready = anyio.Event()
        """Set when requests are answered."""

    @property
    def url(self) -> str:
        """Where a browser of this machine finds it."""
        if self.address.unix:
            return f"unix:{self.address.unix}"
        host = self.address.names[0] if self.address.names else self.address.host
        host = {"localhost": "127.0.0.1", "::1": "[::1]"}.get(host, host)
        return f"{self.address.scheme}://{host}:{self.port}"

    @property
    def pairing_url(self) -> str:
        """The address of the page with a code that lets one browser in."""
        return f"{self.url}/#code={self.tokens.new_code()}"

    def _config(self) -> uvicorn.Config:
        names: Sequence[str] = self.address.names
        if self.address.unix:
            names = ("localhost",)
        elif self.address.is_loopback:
            names = (*LOOPBACK, *names)
        elif not names:
            names = (self.address.host,)
        port = None if self.address.unix else self.port
        allowed = allowed_origins(names, port, self.address.scheme)
        cluster = self.cluster
        if cluster is not None:
            # Other servers reach it by a name of its own.
            place = cluster.hosts.address.partition("://")[2]
            allowed = msgspec.structs.replace(allowed, hosts=allowed.hosts | {place})
        page = WebSocketRoute("/api/ws", page_endpoint(self.parts))
        mcp = mcp_route(self.parts.projects.main)
        router = api_router(OPERATIONS, self.parts, [page, mcp, *self._page.routes()])
        inside = router if cluster is None else cluster.gateway(router, OPERATIONS)
        gate = RequestGate(
            inside,
            allowed,
            self.tokens,
            self._clock,
            None if cluster is None else cluster.checked_hop,
        )
        return uvicorn.Config(
            gate,
            loop="none",
            http=StrictHttpProtocol,
            ws=AbortableWebSocket,
            ws_per_message_deflate=False,
            ws_max_size=64 * 1024,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=self.address.certificate or None,
            ssl_keyfile=self.address.key or None,
        )

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until `stop`, then suspend the turns that run and close everything.

        A cancel closes it, too.
        """
        try:
            async with anyio.create_task_group() as group:
                self.parts.relays.open(group)
                self.parts.clients.open(group)
                if self.spans is not None:
                    group.start_soon(SessionTracer(self.parts.projects, self.spans).run)
                group.start_soon(self._close_in_order)
                if self.cluster is not None:
                    await self.cluster.start(group)
                cluster = self.cluster
                accepts = None if cluster is None else lambda: cluster.accepting
                group.start_soon(DueProjects(self.parts.projects, accepts).run)
                # From now on callers wait in the backlog, and are answered.
                self._socket.listen(BACKLOG)
                self.is_ready.set()
                task_status.started()
                await self._server.serve(sockets=[self._socket])
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.parts.projects.aclose()
                if self.cluster is not None:
                    await self.cluster.aclose()
            self._socket.close()
            if self.address.unix:
                with contextlib.suppress(OSError):
                    os.unlink(self.address.unix)

    async def _close_in_order(self) -> None:
        await self._stopping.wait()
        cluster = self.cluster
        if cluster is not None:
            # Readers first: they come back with their cursors, and must not be told of an end.
            self.parts.relays.close()
            await cluster.drain()
            # Balancers take a moment to send nothing more here; till then it is handed on.
            await anyio.sleep(cluster.settings.drain_seconds)
        self._server.should_exit = True
        self.parts.relays.close()
        # Beside uvicorn's own end: requests that wait for a turn are answered when it is suspended.
        await self.parts.projects.aclose()

    def stop(self) -> None:
        """Begin to close; `run` returns when all is closed."""
        self._stopping.set()

    async def begin_stop(self) -> None:
        """The same, for those that await what they call."""
        self.stop()


def check_address(address: ServerAddress, password: str) -> None:
    """Refuse an address that lets others in, and a certificate that cannot be used.

    Raises:
        UsageError: it is no loopback address, and lacks TLS or a password.
    """
    if not address.is_loopback:
        _check_public(address, password)
    if not address.certificate:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(address.certificate, address.key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the certificate cannot be used: {error}") from error


def _check_public(address: ServerAddress, password: str) -> None:
    if not (address.certificate and address.key):
        raise UsageError(
            f"{address.host} can be reached from other machines: that needs TLS "
            "(--public with --cert and --key)"
        )
    if address.host in ("0.0.0.0", "::") and not address.names:
        raise UsageError(f"{address.host} is no name: say by which the server is reached (--name)")
    if not password:
        raise UsageError(
            f"{address.host} can be reached from other machines: that needs a password "
            "(WEFT_SERVER_PASSWORD, or --password-file)"
        )


def bound_socket(address: ServerAddress) -> socket.socket:
    """A socket on an address.

    Raises:
        UsageError: it is taken, or not ours.
    """
    try:
        return _unix_socket(address.unix) if address.unix else _tcp_socket(address)
    except OSError as error:
        where = address.unix or f"{address.host}:{address.port}"
        raise UsageError(f"cannot listen on {where}: {error.strerror or error}") from error


def _tcp_socket(address: ServerAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With its protocol: asyncio sends without delay only on sockets that say that they are TCP, and
    # the body of an answer would wait for the acknowledgement of its head, which takes 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it.  The kernel would let a reader that stalls hold megabytes.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        # The same: a client whose network is gone sends no end. By itself the kernel would wait for
        # a quarter of an hour where something is sent, and for ever where nothing is.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MILLISECONDS)
        made.bind((address.host, address.port))
    except BaseException:
        made.close()
        raise
    return made


def _unix_socket(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_dead_socket(path):
            os.unlink(path)  # of what is no socket, the bind below says that it is in the way
        # Nobody else may connect between the bind and a change of mode.
        before = os.umask(0o177)
        try:
            made.bind(path)
        finally:
            os.umask(before)
        # At once: a socket that nobody listens on is taken for one that a dead server left.
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def _is_dead_socket(path: str) -> bool:
    """Whether a socket lies there that nobody listens on."""
    # The kernel refuses a connection to a plain file in the same way: it must not be taken for one.
    if not (os.path.lexists(path) and stat.S_ISSOCK(os.lstat(path).st_mode)):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
