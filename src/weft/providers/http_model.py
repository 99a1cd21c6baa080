"""A model behind HTTP: what all vendors' streams share.

A `VendorProtocol` knows one vendor's words: how a request becomes HTTP and how events become ours.
`HttpModel` sends, checks the head, reads events, and makes every failure a `ProviderError`.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
)
from typing import Any, ClassVar, Final, Protocol, TypeVar

import anyio
import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import AuthFailed, ProviderError, ProviderUnavailable, RequestRefused, UsageError
from weft.messages import clean_text
from weft.providers.base import (
    SENT_BODY,
    EncodingModel,
    Model,
    ModelInfo,
    ModelRequest,
    Provider,
    SentBody,
    StreamDecoder,
    StreamEvent,
)
from weft.providers.catalogue import PRICES, CatalogueModel, CatalogueProvider, ModelCatalogue
from weft.providers.credentials import ProviderAccess, with_query
from weft.providers.normalize import proof_places, proofs_at, proofs_of, without_proofs
from weft.sha256 import sha256
from weft.transport import EventParser, HttpReply, HttpRequest, HttpTransport

PATIENCE_SECONDS: Final = 600.0
"""How long a stream may send nothing but keep-alives."""
MAX_LIST: Final = 4 * 1024 * 1024
"""Bytes of a list of models that are read."""
MOST_OF_REFUSAL: Final = 64 * 1024
"""Bytes of an answer that is none."""
REASONING_LEFT_OUT: Final = "reasoning_left_out"
"""In a form: which proofs of the request were refused and are not sent again."""
_DRAIN_SECONDS: Final = 0.25
_MOST_PROOFS: Final = 100_000


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
    key_source: str = ""
    """Where the key came from."""
    url_source: str = ""
    """The variable or setting that names the address, where one does."""
    keys_at: str = ""
    """Where the vendor gives out keys."""
    completes: ClassVar[bool] = False
    """It has an address for raw text (`ModelRequest.prompt`)."""

    def asked(self, session_id: str, now: float) -> None:
        """A session asks at this time (monotonic), before each request."""
        return

    def form(self, request: ModelRequest) -> dict[str, Any]:
        """What this process has learned that shapes the bytes of the request, as plain data; with
        it `body` makes the same bytes in any other process.
        """
        return {}

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        """The bytes of the request in this form; needs no key."""
        ...

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        """The request as it goes out, in the form of now.

        Raises:
            AuthFailed: a key is needed and there is none.
        """
        ...

    def http_after(
        self, request: ModelRequest, info: ModelInfo, error: RequestRefused
    ) -> HttpRequest | None:
        """What to send once instead of a request that was refused; None where nothing can help."""
        return None

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        """A decoder for the answer to this request."""
        ...

    def frames(self) -> FrameSplitter:
        """How the stream is cut into events."""
        ...

    async def authorized(self, request: HttpRequest, transport: HttpTransport) -> HttpRequest:
        """The request with what is only known when it is sent, such as a signature or a token that
        has to be fetched.

        Raises:
            AuthFailed: it could not be had.
        """
        return request


class RemoteVendor(VendorProtocol):
    """A vendor that is reached by an address and a key; the base of all but the embedded one."""

    refused_reasoning: ClassVar[str] = ""
    """What the vendor says (a pattern) when it does not take reasoning back; empty: it takes all.
    """

    def __init__(
        self,
        access: ProviderAccess,
        provider: str,
        catalogue: CatalogueProvider,
    ) -> None:
        """`catalogue` is what is known of the provider: its address, and whether it is free."""
        self.provider = provider
        self.secret = access.key
        self.key_source = access.key_source
        self.url_source = access.url_source
        self.keys_at = catalogue.keys_at
        self._access = access
        self._refused_proofs: set[str] = set()
        """Proofs of reasoning that the vendor does not take any more."""

    def http_after(
        self, request: ModelRequest, info: ModelInfo, error: RequestRefused
    ) -> HttpRequest | None:
        """The request without its reasoning, where that is what was refused.

        Newer models bind reasoning to all that stood before it. A compaction, or another system
        prompt, breaks that for every request that follows, so what was refused stays left out.
        """
        if not self.refused_reasoning or not re.search(self.refused_reasoning, str(error)):
            return None
        proofs = proofs_of(request) - self._refused_proofs
        if not proofs:
            return None
        if len(self._refused_proofs) > _MOST_PROOFS:
            self._refused_proofs.clear()
        self._refused_proofs |= proofs
        return self.http(request, info)

    def form(self, request: ModelRequest) -> dict[str, Any]:
        refused = self._refused_proofs
        places = proof_places(request, refused) if refused else ""
        return {REASONING_LEFT_OUT: places} if places else {}

    def accepted(self, request: ModelRequest, form: Mapping[str, Any]) -> ModelRequest:
        """The request without the reasoning that the form leaves out."""
        places = form.get(REASONING_LEFT_OUT)
        return without_proofs(request, proofs_at(request, str(places))) if places else request

    def frames(self) -> FrameSplitter:
        return event_frames()

    async def authorized(self, request: HttpRequest, transport: HttpTransport) -> HttpRequest:
        if not self._access.query:
            return request
        return msgspec.structs.replace(request, url=with_query(request.url, self._access.query))

    @property
    def is_set_up(self) -> bool:
        """Whether a key, an address or a variable says that the user wants this provider."""
        access = self._access
        return bool(access.key or access.base_url or access.variables.keys() - {"HOME"})

    def models_request(self) -> HttpRequest | None:
        """The request for the models that are there; None where the catalogue lists them."""
        return None

    def model_names(self, body: bytes) -> list[str]:
        """The names in the answer to `models_request`."""
        return []

    def listed(self, body: bytes) -> dict[str, CatalogueModel]:
        """The models in the answer to `models_request`, with what it says of them."""
        return dict.fromkeys(self.model_names(body), CatalogueModel())

    def api_key(self, variable: str, vendor: str) -> tuple[tuple[str, str], ...]:
        """The key in a header of the name `api-key`, or as a bearer token.

        Raises:
            AuthFailed: there is none.
        """
        return self._key_header("api-key", variable, vendor, is_needed=True)

    def _key_header(
        self, header: str, variable: str, vendor: str, *, is_needed: bool | None = None
    ) -> tuple[tuple[str, str], ...]:
        """The header with the key, under the name that the protocol has for it.

        Servers of others that speak the protocol may do without a key; `vendor` does not.
        """
        key = self._access.key
        if not key and is_needed is None:
            is_needed = self.provider == vendor
        if not key and is_needed:
            raise AuthFailed(
                f"there is no key for {vendor}; set {variable}, or run `weft auth login {vendor}`"
            )
        if not key:
            return ()
        if header == "authorization" or self._access.is_bearer:
            return (("authorization", f"Bearer {key}"),)
        return ((header, key),)


class HttpModel(EncodingModel):
    """A model of a vendor that is reached by HTTP."""

    def __init__(
        self,
        info: ModelInfo,
        wire: VendorProtocol,
        transport: HttpTransport,
        *,
        clock: Clock | None = None,
        known_models: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`known_models` gives the names of the vendor's models, for one that it does not have."""
        self.info = info
        self._known_models = known_models
        self._wire = wire
        self._transport = transport
        self._clock = clock or SystemClock()

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Send the request and stream the answer; leaving closes the connection at once."""
        return self._open(request)

    def body(self, request: ModelRequest, form: Mapping[str, Any]) -> bytes | None:
        return self._wire.body(request, self.info, form)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        wire = self._wire
        async with AsyncExitStack() as stack:
            try:
                reply = await self._reply(request, stack)
            except ProviderError as error:
                raise self._advised(error) from error
            except UsageError as error:
                # A setting or a variable that is only looked at now (a proxy, a project of a
                # cloud). It ends the turn with its sentence; as a usage error it would be taken
                # for a crash.
                raise RequestRefused(str(error)) from error
            decoder = wire.decoder(request)
            if request.logprobs is not None:
                from weft.providers.logprobs import LogprobDecoder  # only the loom asks for them

                decoder = LogprobDecoder(decoder)
            events = self._events(reply, wire.frames(), decoder)
            # A loop that is left by `break` does not close an async generator: it would end
            # whenever it is collected, in some other task.
            async with aclosing(events):
                yield events

    def _advised(self, error: ProviderError) -> ProviderError:
        from weft.providers.catalogue import shipped  # not while all is well
        from weft.providers.error_advice import ErrorContext, advised  # as above

        context = ErrorContext(
            provider=self.info.provider,
            title=shipped().vendor(self.info.provider).title,
            model=self.info.name,
            key_source=self._wire.key_source,
            url_source=self._wire.url_source,
            keys_at=self._wire.keys_at,
            known_models=self._known_models,
        )
        return advised(error, context)

    async def _reply(self, request: ModelRequest, stack: AsyncExitStack) -> HttpReply:
        """The reply that holds the answer; a refused request is sent once more where the vendor's
        adapter knows what it stumbled over.
        """
        wire = self._wire
        if request.prompt is not None and not wire.completes:
            raise RequestRefused(
                f"{wire.provider} has no text completion; choose another strategy for "
                f"{self.info.name}"
            )
        wire.asked(request.session_id, self._clock.monotonic())
        # Before it is sent: meanwhile the adapter may learn more, from other sessions.
        form, sent = wire.form(request), wire.http(request, self.info)
        digest = _digest_once_sent(sent.body)
        reply = await self._sent(sent, stack)
        try:
            await self._check(reply)
        except RequestRefused as error:
            again = wire.http_after(request, self.info, error)
            if again is None:
                raise
            form, sent = wire.form(request), again
        else:
            request.scratch[SENT_BODY] = SentBody(digest=digest(), form=form)
            return reply
        await stack.aclose()
        digest = _digest_once_sent(sent.body)
        reply = await self._sent(sent, stack)
        await self._check(reply)
        request.scratch[SENT_BODY] = SentBody(digest=digest(), form=form)
        return reply

    async def _sent(self, request: HttpRequest, stack: AsyncExitStack) -> HttpReply:
        sent = await self._wire.authorized(request, self._transport)
        sent = msgspec.structs.replace(sent, url_source=self._wire.url_source)
        return await stack.enter_async_context(self._transport.send(sent))

    async def _check(self, reply: HttpReply) -> None:
        """Raise unless what follows is a stream."""
        kind = reply.headers.get("content-type", "")
        # `text/event-stream` is not required: compatible servers send `text/plain`, or no type at
        # all.
        if reply.status == 200 and not kind.startswith(("application/json", "text/html")):
            return
        from weft.providers.errors import from_event, from_reply, read_body  # not while all is well

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
            except ProviderError as error:
                raise self._advised(error) from error
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
        return HttpModel(
            info, self._wire, self._transport, clock=self._clock, known_models=self._known_models
        )

    def _known_models(self) -> list[str]:
        return [info.name for info in self._catalogue.models(self.name)]

    async def models(self) -> list[ModelInfo]:
        """What the server says it has, where it can be asked; else what the catalogue lists."""
        request = self._wire.models_request()
        if request is None:
            # The same models as another provider's: of use only to those who use this one.
            is_copy = bool(self._catalogue.vendor(self.name).same_as)
            is_listed = self._wire.is_set_up or not is_copy
            return self._catalogue.models(self.name) if is_listed else []
        try:
            sent = await self._wire.authorized(request, self._transport)
            async with self._transport.send(sent) as reply:
                body = await _bounded(reply, MAX_LIST)
                is_list = reply.status == 200
        except ProviderUnavailable:
            is_list = False
        if is_list:
            listed = self._wire.listed(body)
            return [self._listed(name, said) for name, said in listed.items()]
        # No server runs on this machine: that is no error, and then there is nothing to list.
        is_free = self._catalogue.vendor(self.name).is_free
        return [] if is_free else self._catalogue.models(self.name)

    def _listed(self, name: str, said: CatalogueModel) -> ModelInfo:
        """A model that the server lists; where the catalogue knows it, the catalogue is right."""
        info = self._catalogue.info(self.name, name)
        if self._catalogue.knows(self.name, name):
            return info
        is_free = self._catalogue.vendor(self.name).is_free
        prices = dict(zip(PRICES, () if is_free else said.price, strict=False))
        return msgspec.structs.replace(
            info,
            context_window=said.window or info.context_window,
            max_output_tokens=said.output or info.max_output_tokens,
            sees_images=said.sees or info.sees_images,
            **prices,
        )

    async def aclose(self) -> None:
        """The transport is the application's; there is nothing of our own to close."""


def _digest_once_sent(body: bytes) -> Callable[[], str]:
    """The SHA-256 of a body that is sent now: made while the server is at work on it."""

    @functools.cache
    def digest() -> str:
        return sha256(body).hexdigest()

    asyncio.get_running_loop().call_soon(digest)
    return digest


def _is_something_else(reply: HttpReply, size: int) -> bool:
    """True for a whole body that does not even claim to be a stream.

    The same request would get it again.  A body without a byte and without a length may also be a
    connection that broke off, which is worth another try.
    """
    kind = reply.headers.get("content-type", "")
    if kind.startswith(("text/event-stream", "application/x-ndjson")):
        return False
    return size > 0 or "content-length" in reply.headers


async def _bounded(reply: HttpReply, most: int = MOST_OF_REFUSAL) -> bytes:
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
        mended = _mended(data)
        try:
            return decoder.decode(mended)
        except msgspec.ValidationError:
            return msgspec.json.decode(_plain(mended), type=decoder.type, strict=False)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProviderUnavailable(
            f"{provider} sent an event that cannot be understood: {error}"
        ) from error


def _mended(data: bytes) -> bytes:
    """Bytes with lone surrogates and invalid UTF-8 replaced: some servers cut characters in two."""
    text = clean_text(data.decode("utf-8", "replace")).encode()
    return _SURROGATE.sub(lambda found: found[0] if found[1] or found[2] else rb"\ufffd", text)


_MODELS_OWN: Final = frozenset({"args", "arguments", "input"})
"""Fields with what the model wrote: a null means something there."""


def _plain(data: bytes) -> bytes:
    """The event without its nulls: a field that a server has nothing for is one that it left out.

    With `strict=False` whole floats and digits in quotes are numbers then.
    """
    return msgspec.json.encode(_without_nulls(msgspec.json.decode(data)))


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {
            name: inner if name in _MODELS_OWN else _without_nulls(inner)
            for name, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value


def error_in_stream(provider: str, error: object, secret: str = "") -> Exception:
    """The error that a vendor sent as an event."""
    from weft.providers.errors import from_event, read_value  # not while all is well

    return from_event(provider, read_value({"error": error}), secret=secret)


def broke_off(provider: str) -> ProviderUnavailable:
    """The stream ended before the vendor said that it was done."""
    return ProviderUnavailable(f"the stream of {provider} ended before the answer was complete")


def event_frames() -> FrameSplitter:
    """Server-sent events."""
    return EventParser()
