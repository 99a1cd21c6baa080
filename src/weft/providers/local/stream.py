"""Local models as a provider."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from weft.clock import Clock
from weft.providers.base import (
    EncodingModel,
    Model,
    ModelInfo,
    ModelRequest,
    Provider,
    StreamDecoder,
    StreamEvent,
)
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import as_json
from weft.providers.http_model import FrameSplitter, HttpModel, VendorProtocol, event_frames
from weft.providers.local.decode import FormDecoder
from weft.providers.local.encode import encode, encode_raw
from weft.providers.local.server import LlamaServer, RunningServer, ServerSettings
from weft.providers.local.weights import KNOWN, locate
from weft.providers.normalize import real_names
from weft.providers.openai_chat.decode import ChatDecoder
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport

SLOW = HttpTimeouts(connect=5.0, first_byte=900.0, idle=900.0)
"""Reading a long prompt is silent, and takes minutes on a small machine."""

_ASCII = bytes(range(128))


class LocalWire(VendorProtocol):
    """The child's HTTP over its private socket."""

    provider = "local"
    completes = True

    def __init__(self, running: RunningServer) -> None:
        self.secret = running.key
        self._running = running

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        is_raw = request.prompt is not None
        return HttpRequest(
            url=f"http://local/v1/{'completions' if is_raw else 'chat/completions'}",
            unix_socket=self._running.socket,
            headers=(
                ("content-type", "application/json"),
                ("authorization", f"Bearer {self._running.key}"),
            ),
            body=self.body(request, info, {}),
            timeouts=SLOW,
        )

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        return _body(request, info)

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        if request.prompt is not None:
            from weft.providers.completions import CompletionDecoder  # only the loom sends it

            return CompletionDecoder(self.provider, self.secret)
        if request.tools:
            return FormDecoder(self.provider, real_names(request.tools))
        return ChatDecoder(self.provider)

    def frames(self) -> FrameSplitter:
        return event_frames()


def _body(request: ModelRequest, info: ModelInfo) -> bytes:
    encoder = encode if request.prompt is None else encode_raw
    return as_json(encoder(request, info))


class LocalModel(EncodingModel):
    """A model whose child process is started with the first request."""

    def __init__(
        self, info: ModelInfo, server: LlamaServer, transport: HttpTransport, clock: Clock | None
    ) -> None:
        self.info = info
        self._server = server
        self._transport = transport
        self._clock = clock

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Stream the answer.

        The first one waits for the model to load.  Leaving stops the generation.
        """
        return self._open(request)

    def body(self, request: ModelRequest, form: Mapping[str, Any]) -> bytes | None:
        return _body(request, self.info)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        # For each request: a child that died is replaced, with another socket and another key.
        async with self._server.pool.reserved(self._most_tokens(request)):
            wire = LocalWire(await self._server.ready())
            inner = HttpModel(self.info, wire, self._transport, clock=self._clock)
            async with inner.stream(request) as events:
                yield events

    def _most_tokens(self, request: ModelRequest) -> int:
        """The tokens that a request may hold; no more than its context has."""
        # As it is sent: what the encoder adds for tools counts as well.
        body = _body(request, self.info)
        # Letters that a small vocabulary does not have are a token for each of their bytes; of the
        # others a token has two at least.
        foreign = len(body.translate(None, _ASCII))
        size = len(body) + foreign
        output = request.max_output_tokens or self.info.max_output_tokens
        return min(size // 2 + output, self.info.context_window)


class LocalProvider(Provider):
    """Everything that runs on this machine."""

    name = "local"

    def __init__(
        self,
        models_dir: Path,
        runtime_dir: Path,
        transport: HttpTransport,
        catalogue: ModelCatalogue,
        *,
        settings: ServerSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`models_dir` holds the weights, `runtime_dir` is where private sockets may be made."""
        self._models_dir = models_dir
        self._runtime_dir = runtime_dir
        self._transport = transport
        self._catalogue = catalogue
        self._settings = settings or ServerSettings(threads=spare_cores())
        self._clock = clock
        self._servers: dict[Path, LlamaServer] = {}

    def model(self, name: str) -> Model:
        """The model of this name, or of the GGUF file at this path.

        Raises:
            RequestRefused: its file is not here; the message says how to get it.
        """
        name = name or self._catalogue.default(self.name)
        info = self._catalogue.info(self.name, name)
        path = locate(name, self._models_dir)
        if path not in self._servers:
            self._servers[path] = LlamaServer(
                path, info.context_window, self._settings, self._runtime_dir
            )
        return LocalModel(info, self._servers[path], self._transport, self._clock)

    async def models(self) -> list[ModelInfo]:
        """The known models whose weights are here."""
        return [
            self._catalogue.info(self.name, name)
            for name, weights in KNOWN.items()
            if (self._models_dir / weights.file).is_file()
        ]

    async def aclose(self) -> None:
        """End every child."""
        for server in self._servers.values():
            await server.stop()
        self._servers.clear()


def spare_cores() -> int:
    """All cores but one: with all of them a busy machine makes the model twenty times slower."""
    return max(1, len(os.sched_getaffinity(0)) - 1)
