"""Ollama as a provider."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.clock import Clock
from weft.errors import ProviderUnavailable
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import SLOW, ProviderAccess, as_json, joined
from weft.providers.http_model import FrameSplitter, HttpProvider, StreamDecoder, VendorProtocol
from weft.providers.normalize import real_names
from weft.providers.ollama.decode import LineFrames, OllamaDecoder
from weft.providers.ollama.encode import encode
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport

BASE_URL = "http://127.0.0.1:11434"


class OllamaWire(VendorProtocol):
    """`/api/chat` over HTTP."""

    def __init__(self, access: ProviderAccess, provider: str = "ollama") -> None:
        self.provider = provider
        self.secret = access.key
        self._access = access
        self._base = address(access.base_url)

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        return HttpRequest(
            url=joined(self._base, "/api/chat"),
            headers=(("content-type", "application/json"), *self._keyed(), *self._access.headers),
            body=as_json(encode(request, info)),
            timeouts=self._timeouts(),
        )

    def list_request(self) -> HttpRequest:
        """Asks which models are there."""
        return HttpRequest(
            url=joined(self._base, "/api/tags"),
            method="GET",
            headers=(*self._keyed(), *self._access.headers),
            timeouts=HttpTimeouts(connect=2.0, idle=5.0),
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return OllamaDecoder(self.provider, real_names(request.tools))

    def frames(self) -> FrameSplitter:
        return LineFrames()

    def _keyed(self) -> tuple[tuple[str, str], ...]:
        key = self._access.key
        return (("authorization", f"Bearer {key}"),) if key else ()

    def _timeouts(self) -> HttpTimeouts:
        given = self._access.timeouts
        return SLOW if given == HttpTimeouts() else given


class OllamaProvider(HttpProvider):
    """Models that an Ollama server runs."""

    def __init__(
        self,
        access: ProviderAccess,
        transport: HttpTransport,
        catalogue: ModelCatalogue,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._ask = OllamaWire(access).list_request()
        super().__init__(OllamaWire(access), transport, catalogue, clock=clock)

    async def models(self) -> list[ModelInfo]:
        """What the server has; nothing, when there is none."""
        try:
            async with self._transport.send(self._ask) as reply:
                body = bytearray()
                while data := await reply.read():
                    body += data
        except ProviderUnavailable:
            return []
        return [self._catalogue.info(self.name, name) for name in _names(bytes(body))]


def address(host: str) -> str:
    """`OLLAMA_HOST` as an address: it may lack scheme and port, and may name where the server listens."""
    if not host:
        return BASE_URL
    if "://" not in host:
        host = f"http://{host}"
    scheme, _, rest = host.rstrip("/").partition("://")
    place, slash, path = rest.partition("/")
    if ":" not in place.rpartition("]")[2] and scheme == "http":
        place = f"{place}:11434"
    place = place.replace("0.0.0.0", "127.0.0.1", 1).replace("[::]", "[::1]", 1)
    place = f"127.0.0.1{place}" if place.startswith(":") else place
    return f"{scheme}://{place}{slash}{path}"


def _names(body: bytes) -> list[str]:
    try:
        value: Any = msgspec.json.decode(body)
        return [str(model["name"]) for model in value["models"]]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return []
