"""The gate before every request: Host, Origin, token, size and rate, in one place.

Nothing behind it looks at a header of these again.  It is an ASGI application of its own, so that
a route cannot be added that it does not guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.clock import Clock
from weft.server.errors import RequestRefusal, answer_of
from weft.server.page_tokens import TokenRole, TokenStore
from weft.server.rate_limit import RateLimit


class CheckedHop(Protocol):
    """A request that another server has handed on, as that one tells of it."""

    @property
    def role(self) -> TokenRole:
        """What its user may do."""
        ...


CheckHop: TypeAlias = Callable[[str, str, str, str], CheckedHop | None]
"""From the token, method, target and client of a request; None where no server has signed it."""

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
SAFE_HEADERS: Final = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer."""

READING: Final = frozenset({"GET", "HEAD"})
SUBPROTOCOL: Final = "weft.v1"
TOKEN_PROTOCOL: Final = "bearer."
OPEN_PATHS: Final = frozenset({"/api/health", "/api/pair", "/", "/icon.svg", "/favicon.ico"})
"""What is answered without a token, besides the files of the page below `/assets/`."""
PAIR_PATH: Final = "/api/pair"
SINGLE_HEADERS: Final = (
    *(b"host", b"origin", b"authorization", b"content-length", b"content-type"),
    *(b"weft-hop", b"weft-client"),
)

MOST_BODY_BYTES: Final = 64 * 1024 * 1024
"""What the largest body may weigh; most operations take less."""
CALLS_A_MINUTE: Final = 6_000
PAIRINGS_A_MINUTE: Final = 10
REFUSALS_A_MINUTE: Final = 120
"""Wrong tokens that are answered with 401; those beyond are told to wait."""


class AllowedOrigins(msgspec.Struct, frozen=True, kw_only=True):
    """What `Host` and `Origin` may say, compared whole."""

    hosts: frozenset[str]
    origins: frozenset[str]


def allowed_origins(names: Iterable[str], port: int | None, scheme: str) -> AllowedOrigins:
    """Those of a server that is reached by these names: at its own port, or at the one that a name
    has, which is that of a load balancer.
    """
    default = {"http": 80, "https": 443}[scheme]
    places = {_with_port(name, port) for name in names}
    hosts = {name if of in (None, default) else f"{name}:{of}" for name, of in places}
    return AllowedOrigins(
        hosts=frozenset(hosts), origins=frozenset(f"{scheme}://{host}" for host in hosts)
    )


def _with_port(name: str, port: int | None) -> tuple[str, int | None]:
    host, _, own = name.rpartition(":")
    # `::1` is an address, and has no port.
    is_named = own.isascii() and own.isdecimal() and (":" not in host or host.endswith("]"))
    return (host, int(own)) if is_named and host else (name, port)


class RequestGate:
    """Lets through what carries a token and names this server; everything else ends here."""

    def __init__(
        self,
        inside: ASGIApp,
        allowed: AllowedOrigins,
        tokens: TokenStore,
        clock: Clock,
        check_hop: CheckHop | None = None,
    ) -> None:
        self._check_hop = check_hop
        self._inside = inside
        self._allowed = allowed
        self._tokens = tokens
        self._calls = RateLimit(CALLS_A_MINUTE, 60, clock)
        self._pairings = RateLimit(PAIRINGS_A_MINUTE, 60, clock)
        self._refusals = RateLimit(REFUSALS_A_MINUTE, 60, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and hand it on."""
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *SAFE_HEADERS]
            await send(message)

        try:
            headers = _single(scope)
            self._check_names(headers)
            self._check_form(scope, headers)
            scope["weft.role"] = self._role(scope, headers)
        except RequestRefusal as refusal:
            await answer_of(refusal)(scope, receive, send_safely)
            return
        await self._inside(scope, receive, send_safely)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _single(scope)
            self._check_names(headers)
            if b"origin" not in headers:
                raise RequestRefusal(403, "origin", "a WebSocket needs an Origin")
            offered = scope.get("subprotocols", [])
            if SUBPROTOCOL not in offered:
                raise RequestRefusal(403, "subprotocol", f"ask for the subprotocol {SUBPROTOCOL}")
            scope["weft.role"] = self._role_of(_protocol_token(offered))
        except RequestRefusal as refusal:
            # Before the handshake a refusal is an answer of HTTP; its status says nothing more
            # than 403, whatever was wrong.
            response = Response(str(refusal), 403, media_type="text/plain")
            await response(scope, receive, send)
            return
        await self._inside(scope, receive, send)

    def _check_names(self, headers: dict[bytes, str]) -> None:
        if headers.get(b"host", "") not in self._allowed.hosts:
            raise RequestRefusal(421, "host", "this server does not go by that name")
        origin = headers.get(b"origin")
        if origin is not None and origin not in self._allowed.origins:
            raise RequestRefusal(403, "origin", "pages of other origins may not call this server")

    def _check_form(self, scope: Scope, headers: dict[bytes, str]) -> None:
        if scope["method"] in READING:
            return
        if headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
            raise RequestRefusal(403, "origin", "pages of other sites may not call this server")
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestRefusal(
                415, "content_type", "send JSON, with the header Content-Type: application/json"
            )
        if headers.get(b"content-encoding", "identity").strip().lower() != "identity":
            raise RequestRefusal(415, "content_encoding", "send the body as it is, not packed")
        if headers.get(b"transfer-encoding", "chunked").strip().lower() != "chunked":
            raise RequestRefusal(501, "transfer_encoding", "a body comes whole or chunked")
        length = headers.get(b"content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise RequestRefusal(400, "content_length", "Content-Length is no number")
        if int(length) > MOST_BODY_BYTES:
            raise RequestRefusal(413, "too_large", f"a body has at most {MOST_BODY_BYTES:,} bytes")

    def _role(self, scope: Scope, headers: dict[bytes, str]) -> TokenRole | None:
        path: str = scope["path"]
        if path == PAIR_PATH:
            _count(self._pairings, "all")
        if path in OPEN_PATHS or path.startswith("/assets/"):
            return None
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        hop = headers.get(b"weft-hop")
        role = (
            self._hop_role(scope, headers, hop)
            if hop is not None
            else self._role_of(token.strip() if scheme.lower() == "bearer" else "")
        )
        if role == "viewer" and scope["method"] not in READING:
            raise RequestRefusal(403, "viewer", "this token only reads; it cannot drive")
        return role

    def _hop_role(self, scope: Scope, headers: dict[bytes, str], hop: str) -> TokenRole:
        """The role of the user whose request another server has handed on."""
        query = scope["query_string"].decode("latin-1")
        target = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        client = headers.get(b"weft-client", "")
        check = self._check_hop
        token = None if check is None else check(hop, scope["method"], target, client)
        if token is None:
            _count(self._refusals, "all")
            raise RequestRefusal(401, "no_hop", "no server of this cluster has handed this on")
        scope["weft.hop"] = token
        return token.role

    def _role_of(self, token: str) -> TokenRole:
        role = self._tokens.role_of(token) if token else None
        if role is None:
            _count(self._refusals, "all")
            raise RequestRefusal(
                401,
                "no_token",
                "the header Authorization: Bearer TOKEN is missing, or the token is not known",
                www_authenticate="Bearer",
            )
        _count(self._calls, token)
        return role


def _single(scope: Scope) -> dict[bytes, str]:
    """The headers; those that decide something may come once only."""
    headers: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in headers and name in SINGLE_HEADERS:
            raise RequestRefusal(400, "header", f"the header {name.decode('latin-1')} comes twice")
        headers[name] = value.decode("latin-1")
    return headers


def _protocol_token(offered: list[str]) -> str:
    found = [each for each in offered if each.startswith(TOKEN_PROTOCOL)]
    return found[0].removeprefix(TOKEN_PROTOCOL) if len(found) == 1 else ""


def _count(limit: RateLimit, key: str) -> None:
    wait = limit.wait_seconds(key)
    if wait:
        seconds = f"{max(1, round(wait))}"
        raise RequestRefusal(429, "limit", f"too many calls; wait {seconds} s", retry_after=seconds)


def abort_of(scope: dict[str, Any]) -> None:
    """Drop the connection of a reader that does not read."""
    extension = scope.get("extensions", {}).get("weft.abort")
    if extension is not None:
        extension["abort"]()
