"""The login to an MCP server in the user's browser (OAuth 2.1 with PKCE), for `weft mcp login`.

What the issuer is, who we are to it and what may be asked for is found out by the MCP SDK, which is
loaded here alone.  Its requests go over our own transport; the browser comes back to a server on
this machine that lives as long as the login.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

from weft.clock import Clock
from weft.config.browser_callback import (
    DONE_PAGE,
    HEAD_SECONDS,
    NO_PAGE,
    answer,
    asked_target,
    first_of,
    loopback_listener,
    serving_browser,
)
from weft.errors import ProviderUnavailable, UsageError
from weft.mcp import with_hidden_shown, without_hidden
from weft.mcp.client import HANDSHAKE, MODERN
from weft.mcp.issuer_address import AddressGuard, address_problem
from weft.mcp.oauth_tokens import LoginFile, SavedLogin
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport
from weft.version import __version__

PATH: Final = "/callback"
LOGIN_SECONDS: Final = 600.0
"""How long the user may take in the browser."""
MOST_REPLY: Final = 1024 * 1024
_SECONDS: Final = 30.0
_CLIENT: Final = {"name": "weft", "version": __version__}
_META: Final = "io.modelcontextprotocol/"


def _discover() -> dict[str, Any]:
    about = {
        f"{_META}protocolVersion": MODERN,
        f"{_META}clientCapabilities": {},
        f"{_META}clientInfo": _CLIENT,
    }
    return {"method": "server/discover", "params": {"_meta": about}}


def _initialize() -> dict[str, Any]:
    about = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
    return {"method": "initialize", "params": about}


class LoginOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a login is made."""

    url: str
    headers: Mapping[str, str] = {}
    """Of the entry; sent to the server alone, and not to the issuer."""
    client_id: str = ""
    """Who we are to the issuer, where the user has registered us; an https address is one at which
    our description lies.  Empty: we register ourselves."""
    client_secret: str = ""
    port: int = 0
    """To which the browser comes back; 0: that of the last login, or any."""
    show: Callable[[str], None]
    """Shows the user the address to open."""
    paste: Callable[[], Awaitable[str | None]]
    """May bring the address at which the browser ended, where that is on another machine."""


class OAuthLogin:
    """One login."""

    def __init__(
        self,
        options: LoginOptions,
        file: LoginFile,
        transport: HttpTransport,
        clock: Clock,
        guard: AddressGuard | None = None,
    ) -> None:
        """`guard` is that of the transport: it decides what the names of strangers may lead to."""
        self._options = options
        self._file = file
        self._transport = transport
        self._clock = clock
        self._guard = guard or AddressGuard(options.url)
        self._arrived = anyio.Event()
        self._came = ""
        self._state = ""
        self._context: Any = None
        """What the SDK has found out."""

    async def run(self) -> SavedLogin:
        """Log in, and keep the login.

        Raises:
            UsageError: the server wants no login, the user or the issuer refuses, or something of
                it cannot be found out.
        """
        sdk = _sdk()
        known = self._file.of(self._options.url)
        given = self._options.port
        ports = (given,) if given else tuple(dict.fromkeys((_port_of(known), 0)))
        listener = await loopback_listener(ports)
        redirect = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}{PATH}"
        # A login that did not suffice is extended; any other begins anew.
        extends = known is not None and known.challenge_status == 403
        challenge = known.challenge if known is not None and extends else ""
        async with serving_browser(listener, self._serve):
            storage = _Storage(sdk, known, self._options, redirect, with_tokens=extends)
            provider = self._provider(sdk, storage, redirect)
            self._context = provider.context
            failure = await self._driven(sdk, provider, challenge)
        # Outside of the server: its task group would wrap an error.
        if failure:
            raise UsageError(failure)
        return self._kept(provider)

    def _provider(self, sdk: _Sdk, storage: _Storage, redirect: str) -> Any:
        given = self._options.client_id
        is_address = given.startswith("https://")
        metadata = sdk.shared.OAuthClientMetadata(
            client_name="Weft",
            redirect_uris=[redirect],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        )
        return sdk.auth.OAuthClientProvider(
            self._options.url,
            metadata,
            storage,
            redirect_handler=self._shown,
            callback_handler=lambda: self._came_back(sdk),
            client_metadata_url=given if is_address else None,
        )

    # -- the SDK's requests

    async def _driven(self, sdk: _Sdk, provider: Any, challenge: str) -> str:
        """Carry out what the SDK asks for; returns why there is no login, empty when there is."""
        try:
            with anyio.fail_after(LOGIN_SECONDS):
                first, refusal = await self._refused(sdk, challenge)
                if refusal is None:
                    return "the server does not ask for a login"
                reply = await self._flowed(sdk, provider.async_auth_flow(first), refusal)
        except TimeoutError:
            return f"no one has logged in within {LOGIN_SECONDS / 60:g} minutes"
        except (UsageError, ProviderUnavailable) as error:
            return str(error)
        except Exception as error:
            # Of the SDK, which has many; what it says is made for people.
            said = without_hidden(str(error)[:500])
            return f"the login failed: {said or type(error).__name__}"
        if reply.status_code in (401, 403):
            return f"the server refuses the login that it asked for (status {reply.status_code})"
        return ""

    async def _refused(self, sdk: _Sdk, challenge: str) -> tuple[Any, Any]:
        """A request that the server refuses for want of a login, and how; None: it refuses none."""
        request: Any = None
        for message in (_discover(), _initialize()):
            request = self._request(sdk, message)
            if challenge:
                said = {"www-authenticate": challenge}
                return request, sdk.http.Response(403, headers=said, request=request)
            reply = await self._sent(sdk, request)
            if reply.status_code in (401, 403):
                return request, reply
            if reply.status_code // 100 == 2:
                break
        return request, None

    async def _flowed(self, sdk: _Sdk, flow: Any, refusal: Any) -> Any:
        """Carry out the requests of the SDK's flow; returns the last reply."""
        try:
            await anext(flow)
            reply = refusal
            while True:
                try:
                    request = await flow.asend(reply)
                except StopAsyncIteration:
                    return reply
                reply = await self._sent(sdk, request)
        finally:
            await flow.aclose()

    def _request(self, sdk: _Sdk, message: dict[str, Any]) -> Any:
        is_modern = message["method"] == "server/discover"
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN if is_modern else HANDSHAKE,
            **({"mcp-method": message["method"]} if is_modern else {}),
            **self._options.headers,
        }
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, **message})
        return sdk.http.Request("POST", self._options.url, headers=headers, content=body)

    async def _sent(self, sdk: _Sdk, request: Any) -> Any:
        """The reply to one of the SDK's requests, over our own transport.

        Raises:
            UsageError: a stranger names an address that may not be asked.
        """
        await self._check_address(str(request.url))
        ours = ("host", "content-length", "accept-encoding", "connection", "transfer-encoding")
        headers = [(name, value) for name, value in request.headers.items() if name not in ours]
        sent = HttpRequest(
            url=str(request.url),
            method=request.method,
            headers=tuple(headers),
            body=request.content,
            timeouts=HttpTimeouts(connect=_SECONDS, first_byte=_SECONDS, idle=_SECONDS),
        )
        body = bytearray()
        async with self._transport.send(sent) as reply:
            # The answer of the server itself may be a stream without an end; no one reads it.
            is_stream = reply.headers.get("content-type", "").startswith("text/event-stream")
            while not is_stream and len(body) < MOST_REPLY and (data := await reply.read()):
                body += data
            skipped = ("content-encoding", "content-length", "transfer-encoding")
            kept = {name: text for name, text in reply.headers.items() if name not in skipped}
            return sdk.http.Response(
                reply.status, headers=kept, content=bytes(body), request=request
            )

    # -- the browser

    async def _check_address(self, address: str) -> None:
        if problem := await address_problem(address, self._options.url, self._guard):
            shown = with_hidden_shown(address[:200])
            raise UsageError(f"{shown}, which is named for the login, {problem}")

    async def _shown(self, address: str) -> None:
        await self._check_address(address)
        about = self._context.oauth_metadata
        methods = None if about is None else about.code_challenge_methods_supported
        # Without it whoever gets hold of the code has the login.
        if about is not None and "S256" not in (methods or ()):
            raise UsageError("the issuer does not say that it checks who began the login (PKCE)")
        self._state = _query_of(address).get("state", "")
        self._options.show(address)

    async def _came_back(self, sdk: _Sdk) -> Any:
        async def arrived() -> str:
            await self._arrived.wait()
            return self._came

        found = _query_of(await first_of(arrived, self._options.paste) or "")
        if "error" in found:
            said = found.get("error_description") or found["error"]
            raise UsageError(f"the issuer gives no login: {without_hidden(said[:300])}")
        if "code" not in found:
            raise UsageError("no one has logged in")
        return sdk.auth.AuthorizationCodeResult(
            code=found["code"], state=found.get("state"), iss=found.get("iss")
        )

    async def _serve(self, stream: SocketStream) -> None:
        """Answer one request of the browser."""
        async with stream:
            with anyio.move_on_after(HEAD_SECONDS):
                asked = await asked_target(stream)
                found = _query_of(asked)
                # Any page can make a browser ask for this; only the issuer knows the state.
                is_ours = bool(self._state) and found.get("state") == self._state
                if urlsplit(asked).path != PATH or not is_ours:
                    await answer(stream, "404 Not Found", NO_PAGE)
                    return
                await answer(stream, "200 OK", DONE_PAGE)
                if not self._arrived.is_set():
                    self._came = asked
                    self._arrived.set()

    # -- what is kept

    def _kept(self, provider: Any) -> SavedLogin:
        context = provider.context
        tokens, client, issuer = context.current_tokens, context.client_info, context.oauth_metadata
        if tokens is None:
            raise UsageError("the issuer gave no login")
        expires = tokens.expires_in
        version = context.protocol_version
        has_resource = context.should_include_resource_param(version)
        login = SavedLogin(
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or "",
            expires_at=None if expires is None else self._clock.now() + expires,
            scope=tokens.scope or context.client_metadata.scope or "",
            token_endpoint=_token_endpoint(context),
            issuer="" if issuer is None else str(issuer.issuer),
            resource=context.get_resource_url() if has_resource else "",
            client_id=client.client_id or "",
            client_secret=client.client_secret or "",
            auth_method=client.token_endpoint_auth_method or "",
            client=client.model_dump(mode="json", exclude_none=True),
        )
        self._file.keep(self._options.url, login)
        return login


class _Sdk(msgspec.Struct, frozen=True):
    """The modules that are used of the SDK."""

    auth: Any
    shared: Any
    http: Any


def _sdk() -> _Sdk:
    # By name: it is installed for this verb alone, and takes half a second.
    try:
        found = _Sdk(*map(import_module, ("mcp.client.auth", "mcp.shared.auth", "httpx2")))
    except ImportError as error:
        raise UsageError(
            "logging in needs the MCP SDK: `pip install 'weft[mcp]'` installs it"
        ) from error
    # It tells every failure with a traceback; ours is the sentence of the error.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    return found


class _Storage:
    """What the SDK finds of earlier logins."""

    def __init__(
        self,
        sdk: _Sdk,
        known: SavedLogin | None,
        options: LoginOptions,
        redirect: str,
        *,
        with_tokens: bool,
    ) -> None:
        self._tokens: Any = None
        self._client: Any = None
        if options.client_id and not options.client_id.startswith("https://"):
            method = "client_secret_basic" if options.client_secret else "none"
            self._client = sdk.shared.OAuthClientInformationFull(
                client_id=options.client_id,
                client_secret=options.client_secret or None,
                redirect_uris=[redirect],
                token_endpoint_auth_method=method,
            )
        elif known is not None and not options.client_id:
            redirects = known.client.get("redirect_uris") or []
            # Issuers compare it letter by letter: with another port we register anew.
            if redirect in map(str, redirects):
                self._client = sdk.shared.OAuthClientInformationFull.model_validate(known.client)
        if known is not None and with_tokens:
            self._tokens = sdk.shared.OAuthToken(
                access_token=known.access_token, scope=known.scope or None
            )

    async def get_tokens(self) -> Any:
        return self._tokens

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> Any:
        return self._client

    async def set_client_info(self, client_info: Any) -> None:
        self._client = client_info


def _token_endpoint(context: Any) -> str:
    """Where tokens are renewed; servers before 2025-06-18 have it in one place."""
    issuer = context.oauth_metadata
    if issuer is not None and issuer.token_endpoint:
        return str(issuer.token_endpoint)
    return urljoin(str(context.get_authorization_base_url(context.server_url)), "/token")


def _port_of(known: SavedLogin | None) -> int:
    """The port that the issuer knows of us."""
    redirects = known.client.get("redirect_uris") if known is not None else None
    try:
        return urlsplit(str(redirects[0])).port or 0 if redirects else 0
    except (ValueError, IndexError):
        return 0


def _query_of(address: str) -> dict[str, str]:
    try:
        return {key: found[0] for key, found in parse_qs(urlsplit(address.strip()).query).items()}
    except ValueError:
        return {}
