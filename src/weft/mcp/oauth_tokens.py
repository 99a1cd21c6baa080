"""Logins to MCP servers: tokens in a file that only the user can read, and how they are renewed.

`weft mcp login` writes them.  While a server is spoken to, a token that is over is exchanged for a
new one at the place that gave it out; where that is not possible the user has to log in again.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import anyio
import anyio.to_thread
import msgspec

from weft.clock import Clock
from weft.errors import ProviderUnavailable, UsageError
from weft.mcp.http_exchange import ServerAuthorization
from weft.mcp.issuer_address import scheme_problem
from weft.mcp.private_file import locked, read_private, replace_private
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport

logger = logging.getLogger(__name__)

FILE: Final = "mcp-auth.json"
EARLY_SECONDS: Final = 30.0
"""A token is renewed so long before its end: it has to reach the server."""
MOST_REPLY: Final = 64 * 1024
_SECONDS: Final = 30.0


class SavedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a login to one server."""

    access_token: str = ""
    refresh_token: str = ""
    expires_at: float | None = None
    """Seconds of the clock; None: it does not say."""
    scope: str = ""
    token_endpoint: str = ""
    issuer: str = ""
    resource: str = ""
    """What the token is for; empty where the server is not asked to say it."""
    client_id: str = ""
    client_secret: str = ""
    auth_method: str = ""
    """How we say who we are when a token is renewed."""
    client: dict[str, Any] = {}
    """What the issuer knows of us, as it was registered."""
    challenge_status: int = 0
    challenge: str = ""
    """What the server said when the login did not suffice; the next login asks for more."""

    def __repr__(self) -> str:
        """Without the tokens: values end up in logs."""
        return f"SavedLogin({self.issuer!r}, …)"


class LoginFile:
    """The logins, by the address of the server: `~/.config/weft/mcp-auth.json`."""

    def __init__(self, config: Path) -> None:
        self.path = config / FILE

    def of(self, url: str) -> SavedLogin | None:
        """The login to a server; None where there is none.

        Raises:
            UsageError: the file cannot be read.
        """
        return self._read().get(url)

    def keep(self, url: str, login: SavedLogin) -> None:
        """Keep a login, in place of an earlier one.

        Raises:
            UsageError: the file cannot be read or written.
        """
        with locked(self.path):
            self.put(url, login)

    def put(self, url: str, login: SavedLogin) -> None:
        """Keep a login; the caller holds the lock of the file.

        Raises:
            UsageError: the file cannot be read or written.
        """
        self._write({**self._read(), url: login})

    def forget(self, url: str) -> bool:
        """Forget a login; False when there was none.

        Raises:
            UsageError: the file cannot be read or written.
        """
        if not self.path.exists():
            return False
        with locked(self.path):
            kept = self._read()
            if kept.pop(url, None) is None:
                return False
            self._write(kept)
            return True

    def _read(self) -> dict[str, SavedLogin]:
        try:
            data = read_private(self.path)
            return {} if data is None else msgspec.json.decode(data, type=dict[str, SavedLogin])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            # Without the content: the sentence ends up on screens.
            why = error if isinstance(error, OSError) else "it is damaged; remove it and log in"
            raise UsageError(f"the logins in {self.path} cannot be read: {why}") from error

    def _write(self, logins: dict[str, SavedLogin]) -> None:
        try:
            replace_private(self.path, msgspec.json.encode(logins))
        except OSError as error:
            raise UsageError(f"cannot save the login in {self.path}: {error}") from error


class SavedAuthorization(ServerAuthorization):
    """The login of the user to one server, renewed when it is over."""

    def __init__(
        self,
        url: str,
        file: LoginFile,
        transport: HttpTransport,
        clock: Clock,
        hide: Callable[[str], None] = lambda secret: None,
    ) -> None:
        """`hide` is told every token: it must turn up nowhere."""
        self._url = url
        self._file = file
        self._transport = transport
        self._clock = clock
        self._hide = hide
        self._one_at_a_time = anyio.Lock()

    async def header(self) -> str:
        login = self._login()
        if login is None or not login.access_token:
            return ""
        ends = login.expires_at
        if ends is not None and self._clock.now() > ends - EARLY_SECONDS and login.refresh_token:
            # Where it fails the server decides: its clock may be another.
            await self.renewed(f"Bearer {login.access_token}")
            login = self._login() or login
        token = login.access_token
        return f"Bearer {token}" if token.isascii() and token.isprintable() else ""

    async def renewed(self, refused: str) -> bool:
        async with self._one_at_a_time:
            # Another process may be at it, and a refresh token is often good for one use.
            lock = locked(self._file.path)
            await anyio.to_thread.run_sync(lock.__enter__)
            try:
                login = self._login()
                if login is None or not login.access_token:
                    return False
                if f"Bearer {login.access_token}" != refused:
                    return True  # by someone else, meanwhile
                fresh = await self._refreshed(login)
                if fresh is None:
                    return False
                self._file.put(self._url, fresh)
                self._hide_all(fresh)
                return True
            finally:
                lock.__exit__(None, None, None)

    async def challenged(self, status: int, challenge: str) -> None:
        login = self._login()
        if login is not None and (status, challenge) != (login.challenge_status, login.challenge):
            said = msgspec.structs.replace(login, challenge_status=status, challenge=challenge)
            await anyio.to_thread.run_sync(self._file.keep, self._url, said)

    def _login(self) -> SavedLogin | None:
        try:
            login = self._file.of(self._url)
        except UsageError as error:
            logger.warning("%s", error)
            return None
        if login is not None:
            self._hide_all(login)
        return login

    def _hide_all(self, login: SavedLogin) -> None:
        for secret in (login.access_token, login.refresh_token, login.client_secret):
            if secret:
                self._hide(secret)

    async def _refreshed(self, login: SavedLogin) -> SavedLogin | None:
        """The login with new tokens (RFC 6749, 6); None where none were given."""
        if not (login.refresh_token and login.token_endpoint and login.client_id):
            return None
        if problem := scheme_problem(login.token_endpoint):
            logger.warning("a login to an MCP server is not renewed: its issuer %s", problem)
            return None
        form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
        if login.resource:
            form["resource"] = login.resource
        headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        ]
        if login.auth_method == "client_secret_basic" and login.client_secret:
            pair = f"{quote(login.client_id, safe='')}:{quote(login.client_secret, safe='')}"
            headers.append(("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        else:
            form["client_id"] = login.client_id
            if login.client_secret and login.auth_method != "none":
                form["client_secret"] = login.client_secret
        request = HttpRequest(
            url=login.token_endpoint,
            headers=tuple(headers),
            body=urlencode(form).encode(),
            timeouts=HttpTimeouts(connect=_SECONDS, first_byte=_SECONDS, idle=_SECONDS),
        )
        reply = bytearray()
        try:
            async with self._transport.send(request) as answer:
                while len(reply) < MOST_REPLY and (data := await answer.read()):
                    reply += data
                given = msgspec.json.decode(bytes(reply), type=TokenReply)
        except (ProviderUnavailable, msgspec.MsgspecError, UnicodeDecodeError) as error:
            logger.info("a login to an MCP server was not renewed: %s", type(error).__name__)
            return None
        if answer.status != 200 or not given.access_token:
            logger.info("a login to an MCP server was not renewed: status %s", answer.status)
            return None
        return msgspec.structs.replace(
            login,
            access_token=given.access_token,
            # What is not said again still holds.
            refresh_token=given.refresh_token or login.refresh_token,
            scope=given.scope or login.scope,
            expires_at=given.ends(self._clock.now()),
        )


class TokenReply(msgspec.Struct):
    """What an issuer answers."""

    access_token: str = ""
    refresh_token: str | None = None
    expires_in: float | None = None
    scope: str | None = None

    def ends(self, now: float) -> float | None:
        """When the token is over."""
        return None if self.expires_in is None else now + self.expires_in
