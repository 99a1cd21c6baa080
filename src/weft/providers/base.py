"""The interface to a model: a neutral request in, a neutral stream out.

A provider adapts one vendor.  It is handed a request that is already legal in the neutral form
(every call answered exactly once right after it, nothing empty, no foreign reasoning), and turns it
into the vendor's words; what comes back is decoded into the events below.  Retries, limits and
storing are the turn's business, not the provider's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from weft.messages import CallResult, CallResults, ChatMessage, Message, Usage
from weft.thinking_levels import ThinkingLevel, nearest_level

__all__ = [
    "CallArgs",
    "CallResult",
    "CallResults",
    "CallStarted",
    "ChatMessage",
    "EncodingModel",
    "Message",
    "Model",
    "ModelInfo",
    "ModelRequest",
    "Provider",
    "SentBody",
    "StopReason",
    "StreamDecoder",
    "StreamEvent",
    "StreamFinished",
    "TextDone",
    "TextPiece",
    "ThinkingDone",
    "ThinkingLevel",
    "ThinkingPiece",
    "ToolSpec",
    "UsageSeen",
]

# `other` is a reason that has no neutral name; the vendor's own word is in `StreamFinished.detail`.
StopReason: TypeAlias = Literal[
    "stop",
    "tool_calls",
    "length",
    "refusal",
    "content_filter",
    "safety",
    "pause",
    "malformed_call",
    "other",
]


# --- the request -----------------------------------------------------------------------


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is declared to the model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments: an object, without `$ref`."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a model is sent for one answer."""

    model: str
    """The vendor's own name of the model, without the provider."""
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None
    thinking: ThinkingLevel = "default"
    """What is requested; `ModelInfo.level` is the nearest that the model has."""
    schema: dict[str, Any] | None = None
    """When set, the answer is JSON that fits it."""
    session_id: str = ""
    """For vendors that route by it to keep their caches warm."""
    stop: tuple[str, ...] = ()
    prompt: str | None = None
    """Raw text to continue, without roles or a template; then `messages` and `system` are empty.

    Only for models whose provider has text completion (`text_abilities`).
    """
    suffix: str = ""
    """Text that stands behind the gap that `prompt` leaves, where the vendor takes it apart."""
    prefill: bool = False
    """The last message is the model's, and the answer goes on in the middle of it."""
    seed: int | None = None
    """For vendors that sample by it; the others leave it out."""
    logprobs: int | None = None
    """How many alternatives to report with each token (`ScoredPiece`); None for no report."""
    scratch: dict[int, Any] = {}
    """What a provider made of messages, for requests that repeat them: a caller that sends several
    requests hands in the same map each time.
    """


class SentBody(msgspec.Struct, frozen=True, kw_only=True):
    """What went out for a request, so that it can be made again and compared."""

    digest: str
    """SHA-256 of the bytes."""
    form: dict[str, Any] = {}
    """What the adapter has decided for itself, from what it had learned by then."""


SENT_BODY: Final = 1
"""Where a provider leaves the `SentBody` that was accepted, in a request's scratch; no object has
this identity.
"""


# --- the stream ------------------------------------------------------------------------


class TextPiece(msgspec.Struct, frozen=True, tag="text"):
    """More text of the answer."""

    text: str


class TextDone(msgspec.Struct, frozen=True, kw_only=True, tag="text_done"):
    """A block of text ended; what follows is another one.  Its proof belongs to it."""

    signature: str = ""


class ThinkingPiece(msgspec.Struct, frozen=True, tag="thinking"):
    """More reasoning."""

    text: str


class ThinkingDone(msgspec.Struct, frozen=True, kw_only=True, tag="thinking_done"):
    """A block of reasoning ended; its proof belongs to it."""

    signature: str = ""
    redacted: str = ""


class CallStarted(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """The model begins its `index`-th tool call of this answer."""

    # Ours, in the order of the calls: arguments of parallel calls come interleaved, and some
    # vendors give no id, or the same one to several calls.
    index: int
    name: str
    provider_id: str = ""
    signature: str = ""


class CallArgs(msgspec.Struct, frozen=True, tag="args"):
    """More of the arguments' JSON text of one call."""

    index: int
    text: str


class UsageSeen(msgspec.Struct, frozen=True, tag="usage"):
    """Usage so far; a later one replaces it."""

    usage: Usage


class StreamFinished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The vendor says that the answer is complete; a stream that ends without it broke off."""

    reason: StopReason = "stop"
    detail: str = ""


StreamEvent: TypeAlias = (
    TextPiece
    | TextDone
    | ThinkingPiece
    | ThinkingDone
    | CallStarted
    | CallArgs
    | UsageSeen
    | StreamFinished
)


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


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model.  Prices are US dollars for a million tokens; None is unknown."""

    provider: str
    name: str
    context_window: int = 128_000
    max_output_tokens: int = 8_192
    price_input: float | None = None
    price_output: float | None = None
    price_cache_read: float | None = None
    price_cache_write: float | None = None
    long_prompt: int | None = None
    """A request with more tokens than these, cached ones included, costs `long_prices` instead."""
    long_prices: tuple[float, ...] = ()
    """Input, output, and where there are such, read from and written to the cache."""
    thinks: bool = False
    levels: tuple[ThinkingLevel, ...] = ()
    """The thinking levels that it takes, from the least on; `off` only if it can be switched off.

    Of a model that thinks and lists none, they are not known.
    """
    default_level: ThinkingLevel | None = None
    """The level that it thinks at when none is requested; None where that is not known."""
    sees_images: bool = False
    reads_pdf: bool = False
    """It takes PDF documents as they are; to others they go as text."""
    calls_tools: bool = True
    edits_by_patch: bool = False
    """It is trained to edit with patches (`apply_patch`), and does it better so."""

    def level(self, requested: ThinkingLevel) -> ThinkingLevel:
        """The level of this model that is nearest to the one requested.

        `default` asks for nothing.
        """
        return nearest_level(requested, self.levels)

    def cost(self, usage: Usage) -> float | None:
        """What the usage of one request costs, or None when a price that it needs is unknown."""
        prices: tuple[float | None, ...] = (
            self.price_input,
            self.price_output,
            self.price_cache_read,
            self.price_cache_write,
        )
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if self.long_prompt is not None and prompt > self.long_prompt:
            # The higher price is for the whole request, not only for the tokens past the limit.
            prices = (*self.long_prices, None, None, None, None)[:4]
        price_input, price_output, read, write = prices
        if price_input is None or price_output is None:
            return None
        # Without a price of their own, cached tokens are billed as input.
        read = price_input if read is None else read
        write = price_input if write is None else write
        return (
            usage.input_tokens * price_input
            + usage.output_tokens * price_output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            # What is kept for an hour costs twice the input, instead of what five minutes cost.
            + usage.long_cache_tokens * (2 * price_input - write)
        ) / 1_000_000


class Model(Protocol):
    """One model of one provider."""

    info: ModelInfo

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        """Send the request; leaving the context closes the connection at once.

        Raises, at entry or while iterating:
            ProviderError: see `weft.errors`; `retryable` says whether the same request may be sent
                again.
        """
        ...


@runtime_checkable
class EncodingModel(Model, Protocol):
    """A model that is sent bytes, and can say which."""

    def body(self, request: ModelRequest, form: Mapping[str, Any]) -> bytes | None:
        """The bytes of a request as it goes out in this form, made by the code that sends it;
        nothing is sent.  None where it is sent none after all.
        """
        ...


class Provider(Protocol):
    """Everything one vendor offers."""

    name: str

    def model(self, name: str) -> Model:
        """The model called `name`; unknown names are accepted where a vendor may have new ones."""
        ...

    async def models(self) -> list[ModelInfo]:
        """What the vendor (or the catalogue) lists."""
        ...

    async def aclose(self) -> None:
        """Close connections and child processes."""
        ...
