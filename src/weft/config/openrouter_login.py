"""OpenRouter's key flow: the user allows it in the browser, and a key comes back (OAuth with PKCE).

The browser is sent to OpenRouter with a challenge, and from there to a server on this machine that
lives only as long as the flow; the code that it brings is exchanged for a key together with the
verifier, which never leaves this process.  A code that another page or program plants here is
worthless: it does not belong to our challenge.  Where the browser runs on another machine, the user
can paste the address that it ended at.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

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
from weft.config.providers import proxies_of
from weft.errors import AuthFailed, UsageError
from weft.transport import HttpClient, HttpRequest, HttpTimeouts, HttpTransport, target

PORT: Final = 3000
"""Tried first: some sites allow only this one for servers on the user's machine."""
_MOST_REPLY: Final = 64 * 1024


class KeyFlow:
    """One flow: where to send the browser, the code that comes back, the key."""

    def __init__(self, base_url: str, port: int) -> None:
        self._base_url = base_url.rstrip("/")
        self._verifier = secrets.token_urlsafe(48)
        # A path that no other page on this machine can guess.
        self._path = f"/{secrets.token_urlsafe(16)}"
        self._short_path = f"/{secrets.token_urlsafe(4)}"
        self._port = port
        self._code = ""
        self._arrived = anyio.Event()

    @property
    def url(self) -> str:
        """The page on which the user allows it."""
        digest = hashlib.sha256(self._verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        query = urlencode(
            {
                "callback_url": f"http://localhost:{self._port}{self._path}",
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
        )
        where = target(self._base_url)
        return f"{where.scheme}://{where.authority}/auth?{query}"

    @property
    def short_url(self) -> str:
        """An address on this machine that leads there: one line, which terminals make a link of."""
        return f"http://localhost:{self._port}{self._short_path}"

    async def code(self) -> str:
        """Wait for the code that the browser brings."""
        await self._arrived.wait()
        return self._code

    async def exchange(self, code: str, transport: HttpTransport) -> str:
        """The key for a code, or for the address that the browser ended at.

        Raises:
            AuthFailed: OpenRouter gives none for it.
            ProviderUnavailable: it could not be asked.
        """
        code = _code_in(code) or code.strip()
        body = {
            "code": code,
            "code_verifier": self._verifier,
            "code_challenge_method": "S256",
        }
        request = HttpRequest(
            url=f"{self._base_url}/auth/keys",
            headers=(("content-type", "application/json"),),
            body=msgspec.json.encode(body),
            timeouts=HttpTimeouts(first_byte=30.0, idle=30.0),
        )
        reply = bytearray()
        async with transport.send(request) as answer:
            while len(reply) < _MOST_REPLY and (data := await answer.read()):
                reply += data
            status = answer.status
        key = _key_in(bytes(reply)) if status == 200 else ""
        if not key:
            raise AuthFailed(
                f"OpenRouter gave no key (status {status}); try again, or make one at "
                "https://openrouter.ai/settings/keys"
            )
        return key

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of the browser."""
        async with stream:
            with anyio.move_on_after(HEAD_SECONDS):
                asked = await asked_target(stream)
                code = _code_in(asked) if urlsplit(asked).path == self._path else ""
                if asked == self._short_path:
                    await answer(stream, "302 Found", "", f"location: {self.url}\r\n")
                elif code:
                    await answer(stream, "200 OK", DONE_PAGE)
                else:
                    await answer(stream, "404 Not Found", NO_PAGE)
                # Only after the page: the flow may end, and with it this server.
                if code and not self._arrived.is_set():
                    self._code = code
                    self._arrived.set()


async def openrouter_key(
    base_url: str,
    environ: Mapping[str, str],
    *,
    show: Callable[[str, str], None],
    paste: Callable[[], Awaitable[str | None]],
) -> str:
    """A key that the user allows in the browser.

    `base_url` is where OpenRouter is.  `show` is called with a short address for this machine and
    one for any; `paste` may bring the address at which the browser ended, where that is on another
    machine, or None to give up.

    Raises:
        AuthFailed, ProviderUnavailable: OpenRouter gave none.
        UsageError: the user gave up, or no port can be had.
    """
    client = HttpClient(proxies=proxies_of(environ))
    try:
        async with key_flow(base_url) as flow:
            show(flow.short_url, flow.url)
            code = await first_of(flow.code, paste)
        # Outside of the flow: its task group would wrap an error.
        if not code:
            raise UsageError("no key was saved")
        return await flow.exchange(code, client)
    finally:
        await client.aclose()


@asynccontextmanager
async def key_flow(base_url: str) -> AsyncGenerator[KeyFlow]:
    """A flow whose server listens until the context is left.

    Raises:
        UsageError: no port can be had on this machine.
    """
    listener = await loopback_listener((PORT, 0))
    flow = KeyFlow(base_url, listener.extra(SocketAttribute.local_port))
    async with serving_browser(listener, flow.serve):
        yield flow


def _code_in(address: str) -> str:
    """The code in an address; empty when there is none."""
    try:
        return parse_qs(urlsplit(address.strip()).query).get("code", [""])[0]
    except ValueError:
        return ""


def _key_in(reply: bytes) -> str:
    try:
        value = msgspec.json.decode(reply)
    except msgspec.MsgspecError:
        return ""
    key = value.get("key") if isinstance(value, dict) else None
    return key if isinstance(key, str) else ""
