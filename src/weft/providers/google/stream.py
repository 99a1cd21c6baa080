"""Google as a provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.credentials import as_json, joined
from weft.providers.google.decode import GeminiDecoder
from weft.providers.google.encode import encode
from weft.providers.http_model import RemoteVendor
from weft.providers.normalize import real_names
from weft.transport import HttpRequest

BASE_URL = "https://generativelanguage.googleapis.com"


REFUSED_REASONING = r"[Tt]hought.?[Ss]ignature"
"""What the service says when it does not take a signature back."""


class GeminiWire(RemoteVendor):
    """`generateContent` over HTTP."""

    refused_reasoning = REFUSED_REASONING

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        model = quote(request.model, safe="/")
        # Tuned models are named with their folder, `tunedModels/…`.
        place = model if "/" in model else f"models/{model}"
        return HttpRequest(
            # Without `alt=sse` the stream is one long JSON array.
            url=joined(
                access.base_url or BASE_URL, f"/v1beta/{place}:streamGenerateContent?alt=sse"
            ),
            headers=(
                ("content-type", "application/json"),
                # In a header, not in the address: addresses end up in logs.
                *self._key_header("x-goog-api-key", "GEMINI_API_KEY", "google"),
                *access.headers,
            ),
            body=self.body(request, info, self.form(request)),
            timeouts=access.timeouts,
        )

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        return as_json(encode(self.accepted(request, form), info))

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return GeminiDecoder(self.provider, real_names(request.tools), self.secret)
