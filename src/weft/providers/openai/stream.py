"""OpenAI as a provider, through the Responses API."""

from __future__ import annotations

from weft.clock import Clock
from weft.errors import AuthFailed
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import ProviderAccess, as_json, joined
from weft.providers.http_model import (
    FrameSplitter,
    HttpProvider,
    StreamDecoder,
    VendorProtocol,
    event_frames,
)
from weft.providers.normalize import real_names
from weft.providers.openai.decode import ResponsesDecoder
from weft.providers.openai.encode import encode
from weft.transport import HttpRequest, HttpTransport

BASE_URL = "https://api.openai.com/v1"


class ResponsesWire(VendorProtocol):
    """The Responses API over HTTP."""

    def __init__(self, access: ProviderAccess, provider: str = "openai") -> None:
        self.provider = provider
        self.secret = access.key
        self._access = access

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        if not access.key:
            raise AuthFailed(
                "there is no key for openai; set OPENAI_API_KEY, or run `weft auth login openai`"
            )
        return HttpRequest(
            url=joined(access.base_url or BASE_URL, "/responses"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                ("authorization", f"Bearer {access.key}"),
                *access.headers,
            ),
            body=as_json(encode(request, info)),
            timeouts=access.timeouts,
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return ResponsesDecoder(self.provider, real_names(request.tools), self.secret)

    def frames(self) -> FrameSplitter:
        return event_frames()


def provider(
    access: ProviderAccess,
    transport: HttpTransport,
    catalogue: ModelCatalogue,
    *,
    clock: Clock | None = None,
) -> HttpProvider:
    """GPT, through Responses."""
    return HttpProvider(ResponsesWire(access), transport, catalogue, clock=clock)
