"""Vertex AI as a provider: Gemini, and Claude as Anthropic offers it there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from weft.errors import UsageError
from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.anthropic.stream import REFUSED_REASONING as OF_CLAUDE
from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import ProviderAccess, as_json
from weft.providers.google.decode import GeminiDecoder
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.google.stream import REFUSED_REASONING as OF_GEMINI
from weft.providers.http_model import RemoteVendor
from weft.providers.normalize import real_names
from weft.providers.vertex.google_token import GoogleToken
from weft.transport import HttpRequest, HttpTransport

ANTHROPIC_VERSION = "vertex-2023-10-16"


class VertexWire(RemoteVendor):
    """`streamGenerateContent` and `streamRawPredict` over HTTP."""

    refused_reasoning = f"{OF_CLAUDE}|{OF_GEMINI}"

    def __init__(self, access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> None:
        super().__init__(access, provider, catalogue)
        self.token = GoogleToken(access)
        self._place = access.region or access.variable(
            "GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION", "GOOGLE_CLOUD_REGION"
        )
        self._place = self._place or "global"
        # The endpoint for all regions has no region in its name.
        prefix = "" if self._place == "global" else f"{self._place}-"
        usual = f"https://{prefix}aiplatform.googleapis.com"
        self._base = (access.base_url or usual).rstrip("/")

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        return HttpRequest(
            url=self._url(request.model, is_claude=_is_claude(request.model)),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                *self._access.headers,
            ),
            body=self.body(request, info, self.form(request)),
            timeouts=self._access.timeouts,
        )

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        accepted = self.accepted(request, form)
        if not _is_claude(request.model):
            return as_json(encode_gemini(accepted, info))
        body = encode_anthropic(accepted, info)
        del body["model"]  # it stands in the address
        return as_json({"anthropic_version": ANTHROPIC_VERSION, **body})

    def _url(self, model: str, *, is_claude: bool) -> str:
        publisher = "anthropic" if is_claude else "google"
        call = "streamRawPredict" if is_claude else "streamGenerateContent?alt=sse"
        # A dated Claude is `claude-sonnet-4-5@20250929`.
        name = quote(model, safe="@")
        place = f"projects/{self._project()}/locations/{self._place}/publishers/{publisher}"
        return f"{self._base}/v1/{place}/models/{name}:{call}"

    def _project(self) -> str:
        named = self._access.project or self._access.variable(
            "GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID", "GCLOUD_PROJECT"
        )
        if not named:
            raise UsageError(
                f"{self.provider} needs a project of Google Cloud; set GOOGLE_CLOUD_PROJECT, or "
                f"project of [providers.{self.provider}]"
            )
        return quote(named, safe="")

    async def authorized(self, request: HttpRequest, transport: HttpTransport) -> HttpRequest:
        request = await super().authorized(request, transport)
        token = self._access.key or await self.token.get(transport)
        # A vendor may echo it in an error.
        self.secret = token
        bearer = ("authorization", f"Bearer {token}")
        return msgspec.structs.replace(request, headers=(*request.headers, bearer))

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        names = real_names(request.tools)
        if _is_claude(request.model):
            return AnthropicDecoder(self.provider, names, self.secret)
        return GeminiDecoder(self.provider, names, self.secret)


def _is_claude(model: str) -> bool:
    return model.startswith("claude")
