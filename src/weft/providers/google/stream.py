"""Google as a provider."""

from __future__ import annotations

from urllib.parse import quote

from weft.clock import Clock
from weft.errors import AuthFailed
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import ProviderAccess, as_json, joined
from weft.providers.google.decode import GeminiDecoder
from weft.providers.google.encode import encode
from weft.providers.http_model import (
    FrameSplitter,
    HttpProvider,
    StreamDecoder,
    VendorProtocol,
    event_frames,
)
from weft.providers.normalize import real_names
from weft.transport import HttpRequest, HttpTransport

BASE_URL = "https://generativelanguage.googleapis.com"


class GeminiWire(VendorProtocol):
    """`generateContent` over HTTP."""

    def __init__(self, access: ProviderAccess, provider: str = "google") -> None:
        self.provider = provider
        self.secret = access.key
        self._access = access

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        if not access.key:
            raise AuthFailed(
                "there is no key for google; set GEMINI_API_KEY, or run `weft auth login google`"
            )
        model = quote(request.model, safe="/")
        place = model if "/" in model else f"models/{model}"
        return HttpRequest(
            url=joined(
                access.base_url or BASE_URL, f"/v1beta/{place}:streamGenerateContent?alt=sse"
            ),
            headers=(
                ("content-type", "application/json"),
                # In a header, not in the address: addresses end up in logs.
                ("x-goog-api-key", access.key),
                *access.headers,
            ),
            body=as_json(encode(request, info)),
            timeouts=access.timeouts,
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return GeminiDecoder(self.provider, real_names(request.tools), self.secret)

    def frames(self) -> FrameSplitter:
        return event_frames()


def provider(
    access: ProviderAccess,
    transport: HttpTransport,
    catalogue: ModelCatalogue,
    *,
    clock: Clock | None = None,
) -> HttpProvider:
    """Gemini."""
    return HttpProvider(GeminiWire(access), transport, catalogue, clock=clock)
