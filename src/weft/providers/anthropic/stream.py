"""Anthropic as a provider."""

from __future__ import annotations

from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.anthropic.encode import BINDING_BETA, encode
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.credentials import as_json, joined
from weft.providers.http_model import RemoteVendor, StreamDecoder
from weft.providers.normalize import real_names
from weft.transport import HttpRequest

BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"


class AnthropicWire(RemoteVendor):
    """The Messages API over HTTP."""

    refused_reasoning = r"bound to a different|[Ii]nvalid.{0,12}signature|thinking.{0,4} block"

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        url = joined(access.base_url or BASE_URL, "/v1/messages")
        # Servers that only speak like it refuse fields that they do not know.
        body = encode(self._accepted(request), info, is_vendor=url.startswith(f"{BASE_URL}/"))
        is_bound = "block_binding" in body.get("thinking", {})
        return HttpRequest(
            url=url,
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
