"""Whether a provider takes a key: its own server is asked, by a request that costs nothing."""

from __future__ import annotations

from typing import Final, Literal

import anyio
import msgspec

from weft.config.api_keys import provider_title
from weft.errors import ProviderUnavailable
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess, joined
from weft.providers.vendors import CLOUDS, PROTOCOLS
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport

CHECK_SECONDS: Final = 10.0
_LISTS: Final = {
    "anthropic": ("https://api.anthropic.com", "/v1/models?limit=1"),
    "google": ("https://generativelanguage.googleapis.com", "/v1beta/models?pageSize=1"),
    "openai": ("https://api.openai.com/v1", "/models"),
    # Its list of models is open to everyone.
    "openrouter": ("", "/key"),
}
"""By provider: its own address, and what only those with a key may read there."""
_REFUSED: Final = (401, 403)


class KeyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider's server says of a key."""

    state: Literal["works", "refused", "unknown"]
    why: str = ""
    """Of a key that is refused, or that could not be tested."""


async def checked_key(provider: str, access: ProviderAccess, transport: HttpTransport) -> KeyCheck:
    """Ask the server of a provider whether it takes the key of this access."""
    if (request := _request(provider, access)) is None:
        return KeyCheck(state="unknown", why="it can only be tested by a message")
    title = provider_title(provider)
    try:
        with anyio.fail_after(CHECK_SECONDS):
            async with transport.send(request) as reply:
                return _said(title, provider, reply.status)
    except (ProviderUnavailable, TimeoutError):
        return KeyCheck(state="unknown", why=f"{title} could not be reached")


def _said(title: str, provider: str, status: int) -> KeyCheck:
    # Gemini's word for a key that is none.
    if status in _REFUSED or (provider == "google" and status == 400):
        return KeyCheck(state="refused", why=f"{title} refuses this key ({status})")
    if status == 200:
        return KeyCheck(state="works")
    return KeyCheck(state="unknown", why=f"{title} answered {status}")


def _request(provider: str, access: ProviderAccess) -> HttpRequest | None:
    spoken = PROTOCOLS.get(access.protocol, provider)
    own, path = _LISTS.get(spoken) or _LISTS.get(provider) or ("", "/models")
    base = access.base_url or own or shipped().vendor(provider).url
    if not base or not access.key or spoken in CLOUDS:
        return None
    return HttpRequest(
        url=joined(base, path),
        method="GET",
        headers=(*_credentials(spoken, access), *access.headers),
        unix_socket=access.unix_socket,
        timeouts=HttpTimeouts(connect=5.0, first_byte=CHECK_SECONDS, idle=5.0),
    )


def _credentials(spoken: str, access: ProviderAccess) -> tuple[tuple[str, str], ...]:
    if spoken == "anthropic" and not access.is_bearer:
        return (("x-api-key", access.key), ("anthropic-version", "2023-06-01"))
    if spoken == "google":
        return (("x-goog-api-key", access.key),)
    return (("authorization", f"Bearer {access.key}"),)


def masked_key(key: str) -> str:
    """A key as it may be shown: enough to tell it from another, not enough to use it."""
    return f"{key[:6]}…{key[-4:]}" if len(key) >= 24 else "…" if key else ""
