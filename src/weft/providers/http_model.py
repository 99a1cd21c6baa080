"""A model behind HTTP: what all vendors' streams share.

A `VendorProtocol` knows one vendor's words: how a request becomes HTTP and how events become ours.
`HttpModel` sends, checks the head, reads events, and makes every failure a `ProviderError`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Final, Protocol, TypeVar

import anyio
import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import AuthFailed, ProviderUnavailable, RequestRefused
from weft.messages import clean_text
from weft.providers.base import Model, ModelInfo, ModelRequest, Provider, StreamEvent
from weft.providers.catalogue import CatalogueProvider, ModelCatalogue
from weft.providers.credentials import ProviderAccess
from weft.providers.errors import MAX_BODY, from_event, from_reply, read_body, read_value
from weft.transport import EventParser, HttpReply, HttpRequest, HttpTransport

PATIENCE_SECONDS: Final = 600.0
"""How long a stream may send nothing but keep-alives."""
MAX_LIST: Final = 4 * 1024 * 1024
"""Bytes of a list of models that are read."""
_DRAIN_SECONDS: Final = 0.25


class StreamDecoder(Protocol):
    """Turns one stream's events into ours.  Pure; one for each stream."""

    is_finished: bool
    """The vendor said that the answer is complete."""

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What an event means.

        Raises:
            ProviderError: the event says that the vendor failed.
        """
        ...

    def end(self) -> Iterable[StreamEvent]:
        """What the end of the stream means.

        Raises:
            ProviderUnavailable: it came too early.
        """
        ...


class FrameSplitter(Protocol):
    """Cuts bytes into events."""

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The events that these bytes complete."""
        ...

    def finish(self) -> list[tuple[bytes, bytes]]:
        """The event that the end completes."""
        ...


class VendorProtocol(Protocol):
    """One vendor's way of speaking."""

    provider: str
    secret: str
    """The key, to be cut out of everything the vendor says; empty when there is none."""

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        """The request as it goes out.

        Raises:
            AuthFailed: a key is needed and there is none.
        """
        ...

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        """A decoder for the answer to this request."""
        ...

    def frames(self) -> FrameSplitter:
        """How the stream is cut into events."""
        ...


class RemoteVendor(VendorProtocol):
    """A vendor that is reached by an address and a key; the base of all but the embedded one."""

    def __init__(
        self,
        access: ProviderAccess,
        provider: str,
        catalogue: CatalogueProvider,
    ) -> None:
        """`catalogue` is what is known of the provider: its address, and whether it is free."""
        self.provider = provider
        self.secret = access.key
        self._access = access

    def frames(self) -> FrameSplitter:
        return event_frames()

    def models_request(self) -> HttpRequest | None:
        """The request for the models that are there; None where the catalogue lists them."""
        return None

    def model_names(self, body: bytes) -> list[str]:
        """The names in the answer to `models_request`."""
        return []

    def _key(self, variable: str, login: str) -> str:
        if not self._access.key:
            raise AuthFailed(
                f"there is no key for {self.provider}; set {variable}, "
                f"or run `weft auth login {login}`"
            )
        return self._access.key


class HttpModel(Model):
    """A model of a vendor that is reached by HTTP."""

    def __init__(
        self,
        info: ModelInfo,
        wire: VendorProtocol,
        transport: HttpTransport,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.info = info
        self._wire = wire
        self._transport = transport
        self._clock = clock or SystemClock()

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Send the request and stream the answer; leaving closes the connection at once."""
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        wire = self._wire
        async with self._transport.send(wire.http(request, self.info)) as reply:
            await self._check(reply)
            events = self._events(reply, wire.frames(), wire.decoder(request))
            # A loop that is left by `break` does not close an async generator: it would end
            # whenever it is collected, in some other task.
            async with aclosing(events):
                yield events

    async def _check(self, reply: HttpReply) -> None:
        """Raise unless what follows is a stream."""
        kind = reply.headers.get("content-type", "")
        # `text/event-stream` is not required: compatible servers send `text/plain`, or no type at
        # all.
        if reply.status == 200 and not kind.startswith(("application/json", "text/html")):
            return
        body = await _bounded(reply)
        provider, secret = self._wire.provider, self._wire.secret
        if reply.status != 200:
            raise from_reply(
                provider,
                reply.status,
                reply.headers,
                body,
                now=self._clock.now(),
                secret=secret,
            )
        # Some gateways answer 200 and put the error into the body.
        if kind.startswith("application/json") and b'"error"' in body:
            raise from_event(provider, read_body(body, kind), secret=secret)
        shown = read_body(body, kind).message if "html" in kind else kind
        raise RequestRefused(
            f"{provider} did not answer with a stream but with {shown[:200]}; is the base "
            "URL right?"
        )

    async def _events(
        self, reply: HttpReply, frames: FrameSplitter, decoder: StreamDecoder
    ) -> AsyncGenerator[StreamEvent]:
        last_word = self._clock.monotonic()
        has_spoken, size = False, 0
        # Ends with the vendor's last word, not with the connection: some servers keep it open after
        # that.
        while not decoder.is_finished:
            data = await reply.read()
            size += len(data)
            pieces = frames.feed(data) if data else frames.finish()
            spoke = False
            try:
                for name, payload in pieces:
                    for event in decoder.feed(name, payload):
                        spoke = has_spoken = True
                        yield event
                if not data:
                    for event in decoder.end():
                        has_spoken = True
                        yield event
                    return
            except ProviderUnavailable as error:
                if has_spoken or not _is_something_else(reply, size):
                    raise
                raise RequestRefused(
                    f"{self._wire.provider} did not answer with a stream of events; is the base "
                    "URL right?"
                ) from error
            now = self._clock.monotonic()
            # Pings are bytes, so the transport's idle timeout never fires; only events count here.
            if spoke:
                last_word = now
            elif now - last_word > PATIENCE_SECONDS:
                silent = ProviderUnavailable(
                    f"{self._wire.provider} sent only keep-alives for {PATIENCE_SECONDS:g} seconds"
                )
                silent.timed_out = True
                raise silent
        await _drain(reply)


class HttpProvider(Provider):
    """A vendor whose models are reached by HTTP and listed in the catalogue."""

    def __init__(
        self,
        wire: RemoteVendor,
        transport: HttpTransport,
        catalogue: ModelCatalogue,
        *,
        clock: Clock | None = None,
    ) -> None:
        self.name = wire.provider
        self._wire = wire
        self._transport = transport
        self._catalogue = catalogue
        self._clock = clock

    def model(self, name: str) -> Model:
        """The model called `name`, or the provider's default for an empty name."""
        info = self._catalogue.info(self.name, name or self._catalogue.default(self.name))
        return HttpModel(info, self._wire, self._transport, clock=self._clock)

    async def models(self) -> list[ModelInfo]:
        """What the server says it has, where it can be asked; else what the catalogue lists."""
        request = self._wire.models_request()
        if request is None:
            return self._catalogue.models(self.name)
        try:
            async with self._transport.send(request) as reply:
                body = await _bounded(reply, MAX_LIST)
        except ProviderUnavailable:
            # No server runs: that is no error, a list of models is shown before one is started.
            return []
        return [self._catalogue.info(self.name, name) for name in self._wire.model_names(body)]

    async def aclose(self) -> None:
        """The transport is the application's; there is nothing of our own to close."""


def _is_something_else(reply: HttpReply, size: int) -> bool:
    """True for a whole body that does not even claim to be a stream.

    The same request would get it again.  A body without a byte and without a length may also be a
    connection that broke off, which is worth another try.
    """
    kind = reply.headers.get("content-type", "")
    if kind.startswith(("text/event-stream", "application/x-ndjson")):
        return False
    return size > 0 or "content-length" in reply.headers


async def _bounded(reply: HttpReply, most: int = MAX_BODY) -> bytes:
    """The body of a refusal, as far as it is of interest; one that breaks off is taken as far as it
    came."""
    body = bytearray()
    try:
        while len(body) < most and (data := await reply.read()):
            body += data
    except ProviderUnavailable:
        pass
    return bytes(body)


async def _drain(reply: HttpReply) -> None:
    """Read the last bytes after the vendor's last word, so that the connection can be used
    again.
    """
    with anyio.move_on_after(_DRAIN_SECONDS):
        try:
            while await reply.read():
                pass
        except ProviderUnavailable:
            pass  # the answer is complete; the connection is not kept


# --- decoding --------------------------------------------------------------------------

_T = TypeVar("_T")
_SURROGATE = re.compile(
    # An escaped backslash and a whole pair match first and are kept; what is left is half a pair.
    rb"(\\\\)|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def decoded(provider: str, data: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
    """One event's JSON as a value; broken characters become U+FFFD.

    Raises:
        ProviderUnavailable: it is not JSON, or not of the shape that the vendor documents.
    """
    try:
        # As it came first: mending costs more than decoding, and nearly every event is sound.
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass
    try:
        return decoder.decode(_mended(data))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProviderUnavailable(
            f"{provider} sent an event that cannot be understood: {error}"
        ) from error


def _mended(data: bytes) -> bytes:
    """Bytes with lone surrogates and invalid UTF-8 replaced: some servers cut characters in two."""
    text = clean_text(data.decode("utf-8", "replace")).encode()
    return _SURROGATE.sub(lambda found: found[0] if found[1] or found[2] else rb"\ufffd", text)


def error_in_stream(provider: str, error: object, secret: str = "") -> Exception:
    """The error that a vendor sent as an event."""
    return from_event(provider, read_value({"error": error}), secret=secret)


def broke_off(provider: str) -> ProviderUnavailable:
    """The stream ended before the vendor said that it was done."""
    return ProviderUnavailable(f"the stream of {provider} ended before the answer was complete")


def event_frames() -> FrameSplitter:
    """Server-sent events."""
    return EventParser()
