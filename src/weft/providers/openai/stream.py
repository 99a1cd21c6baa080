"""OpenAI as a provider, through the Responses API."""

from __future__ import annotations

from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.credentials import as_json, joined
from weft.providers.http_model import RemoteVendor, StreamDecoder
from weft.providers.normalize import real_names
from weft.providers.openai.decode import ResponsesDecoder
from weft.providers.openai.encode import encode
from weft.transport import HttpRequest

BASE_URL = "https://api.openai.com/v1"


class ResponsesWire(RemoteVendor):
    """The Responses API over HTTP."""

    refused_reasoning = r"(?i)encrypted.content|reasoning item"

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        return HttpRequest(
            url=joined(access.base_url or BASE_URL, "/responses"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                *self._key_header("authorization", "OPENAI_API_KEY", "openai"),
                *access.headers,
            ),
            body=as_json(encode(self._accepted(request), info)),
            timeouts=access.timeouts,
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return ResponsesDecoder(self.provider, real_names(request.tools), self.secret)
