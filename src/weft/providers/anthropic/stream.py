"""Anthropic as a provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.anthropic.encode import BINDING_BETA, encode
from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import ProviderAccess, as_json, joined
from weft.providers.http_model import RemoteVendor
from weft.providers.normalize import real_names
from weft.transport import HttpRequest

BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"


REFUSED_REASONING = r"bound to a different|[Ii]nvalid.{0,12}signature|thinking.{0,4} block"
"""What the service says when it does not take reasoning back, here and on other clouds."""
CACHE = "cache"
"""In a form: how long what is cached is kept, where that is not the usual time."""
LONG_CACHE = "1h"
SHORT_CACHE_SECONDS = 300.0
LONG_CACHE_SECONDS = 3600.0
_MOST_SESSIONS = 4_096


class SessionPace:
    """Which sessions pause for longer than the cache is kept by default.

    To keep it for an hour costs 0.75 of the input price more, once for each token; to write the
    conversation anew after a pause costs 1.15 for all of it.  So it pays from the first such pause
    on, and never for a run that does not stop to wait for its user.
    """

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._slow: set[str] = set()

    def note(self, session_id: str, now: float) -> None:
        """A session asks."""
        before = self._last.pop(session_id, now)
        if SHORT_CACHE_SECONDS < now - before < LONG_CACHE_SECONDS:
            self._slow.add(session_id)
        self._last[session_id] = now
        if len(self._last) > _MOST_SESSIONS:
            oldest = next(iter(self._last))
            del self._last[oldest]
            self._slow.discard(oldest)

    def is_slow(self, session_id: str) -> bool:
        """True for a session that has paused so."""
        return bool(session_id) and session_id in self._slow


class AnthropicWire(RemoteVendor):
    """The Messages API over HTTP."""

    refused_reasoning = REFUSED_REASONING

    def __init__(self, access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> None:
        super().__init__(access, provider, catalogue)
        self._pace = SessionPace()

    def asked(self, session_id: str, now: float) -> None:
        self._pace.note(session_id, now)

    def form(self, request: ModelRequest) -> dict[str, Any]:
        is_long = self._is_vendor and self._pace.is_slow(request.session_id)
        return {**super().form(request), **({CACHE: LONG_CACHE} if is_long else {})}

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        return as_json(self._encoded(request, info, form))

    def _encoded(
        self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]
    ) -> dict[str, Any]:
        return encode(
            self.accepted(request, form),
            info,
            is_vendor=self._is_vendor,
            long_cache=form.get(CACHE) == LONG_CACHE,
        )

    @property
    def _is_vendor(self) -> bool:
        # Servers that only speak like it refuse fields that they do not know.
        return self._url.startswith(f"{BASE_URL}/")

    @property
    def _url(self) -> str:
        return joined(self._access.base_url or BASE_URL, "/v1/messages")

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        body = self._encoded(request, info, self.form(request))
        is_bound = "block_binding" in body.get("thinking", {})
        return HttpRequest(
            url=self._url,
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                # The version of the wire format, frozen since 2023; what is newer comes by beta
                # headers.
                ("anthropic-version", VERSION),
                *self._key_header("x-api-key", "ANTHROPIC_API_KEY", "anthropic"),
                *((("anthropic-beta", BINDING_BETA),) if is_bound else ()),
                *access.headers,
            ),
            body=as_json(body),
            timeouts=access.timeouts,
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return AnthropicDecoder(self.provider, real_names(request.tools), self.secret)
