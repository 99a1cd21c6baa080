"""Ollama as a provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import SLOW, ProviderAccess, as_json, joined
from weft.providers.http_model import FrameSplitter, RemoteVendor
from weft.providers.normalize import real_names
from weft.providers.ollama.decode import LineFrames, OllamaDecoder
from weft.providers.ollama.encode import encode
from weft.transport import HttpRequest, HttpTimeouts

BASE_URL = "http://127.0.0.1:11434"


class OllamaWire(RemoteVendor):
    """`/api/chat` over HTTP, and `/api/generate` for raw text."""

    completes = True

    def __init__(
        self,
        access: ProviderAccess,
        provider: str,
        catalogue: CatalogueProvider,
    ) -> None:
        super().__init__(access, provider, catalogue)
        self._base = address(access.base_url)

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        path = "/api/chat" if request.prompt is None else "/api/generate"
        return HttpRequest(
            url=joined(self._base, path),
            headers=(("content-type", "application/json"), *self._keyed(), *self._access.headers),
            body=self.body(request, info, {}),
            timeouts=self._timeouts(),
        )

    def form(self, request: ModelRequest) -> dict[str, Any]:
        return {}

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        if request.prompt is None:
            return as_json(encode(request, info))
        from weft.providers.ollama.generate import encode_raw  # only the loom sends raw text

        return as_json(encode_raw(request, info))

    def models_request(self) -> HttpRequest:
        return HttpRequest(
            url=joined(self._base, "/api/tags"),
            method="GET",
            headers=(*self._keyed(), *self._access.headers),
            timeouts=HttpTimeouts(connect=2.0, first_byte=5.0, idle=5.0),
        )

    def model_names(self, body: bytes) -> list[str]:
        try:
            value: Any = msgspec.json.decode(body)
            return [str(model["name"]) for model in value["models"]]
        except (msgspec.MsgspecError, KeyError, TypeError):
            return []

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        if request.prompt is not None:
            from weft.providers.ollama.generate import GenerateDecoder  # as above

            return GenerateDecoder(self.provider)
        return OllamaDecoder(self.provider, real_names(request.tools))

    def frames(self) -> FrameSplitter:
        return LineFrames()

    def _keyed(self) -> tuple[tuple[str, str], ...]:
        key = self._access.key
        return (("authorization", f"Bearer {key}"),) if key else ()

    def _timeouts(self) -> HttpTimeouts:
        given = self._access.timeouts
        return SLOW if given == HttpTimeouts() else given


def address(host: str) -> str:
    """`OLLAMA_HOST` as an address: it may lack scheme and port, and may name where the server
    listens.
    """
    if not host:
        return BASE_URL
    if "://" not in host:
        host = f"http://{host}"
    scheme, _, rest = host.rstrip("/").partition("://")
    place, slash, path = rest.partition("/")
    if ":" not in place.rpartition("]")[2] and scheme == "http":
        place = f"{place}:11434"
    # Where a server listens; as an address to connect to, 0.0.0.0 does not work everywhere.
    place = place.replace("0.0.0.0", "127.0.0.1", 1).replace("[::]", "[::1]", 1)
    place = f"127.0.0.1{place}" if place.startswith(":") else place
    return f"{scheme}://{place}{slash}{path}"
