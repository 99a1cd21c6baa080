"""A model that plays pieces of a stream and can be held or broken between any two of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TypeAlias

import anyio
import anyio.lowlevel
import msgspec

from weft.errors import ProviderUnavailable
from weft.messages import ChatMessage, Text, ToolCall, Usage
from weft.providers import (
    CallArgs,
    CallStarted,
    Model,
    ModelInfo,
    ModelRequest,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)


class Hold(msgspec.Struct, frozen=True):
    """The stream says nothing more."""


class Snap(msgspec.Struct, frozen=True):
    """The connection breaks."""


Beat: TypeAlias = StreamEvent | Hold | Snap

HELLO = "Hello."
SAID = "I will make two notes, one after the other."
SHOWN = SAID[:12]
"""The part of it that comes before a stop in its midst."""
NEXT = "Then that is done."


class PlayedModel(Model):
    """Plays what `choose` picks; `on_hold` is called when a stream holds."""

    def __init__(
        self,
        info: ModelInfo,
        choose: Callable[[ModelRequest], Sequence[Beat]],
        on_hold: Callable[[], None],
    ) -> None:
        self.info = info
        self._choose = choose
        self._on_hold = on_hold
        self.requests: list[ModelRequest] = []

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[StreamEvent]]:
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[StreamEvent]]:
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        beats = self._choose(request)
        if beats and isinstance(beats[0], Snap):
            raise ProviderUnavailable("it could not be reached")
        async with aclosing(self._events(beats)) as events:
            yield events

    async def _events(self, beats: Sequence[Beat]) -> AsyncGenerator[StreamEvent]:
        for beat in beats:
            await anyio.lowlevel.checkpoint()
            match beat:
                case Hold():
                    self._on_hold()
                    await anyio.sleep_forever()
                case Snap():
                    raise ProviderUnavailable("the stream broke")
                case _:
                    yield beat


def turn_beats(
    stop: Beat | None = None, place: str = "", *, signature: str = ""
) -> tuple[Beat, ...]:
    """The answer with reasoning, text and two calls; `stop` comes in the midst of `place`."""

    def at(name: str) -> tuple[Beat, ...]:
        return (stop,) if stop is not None and place == name else ()

    return (
        *at("start"),
        ThinkingPiece("Two notes, "),
        *at("thinking"),
        ThinkingPiece("I think."),
        ThinkingDone(signature="proof-of-the-turn"),
        TextPiece(SHOWN),
        *at("text"),
        TextPiece(SAID[len(SHOWN) :]),
        CallStarted(index=0, name="note", provider_id="call_a", signature=signature),
        CallArgs(0, '{"key": '),
        *at("args"),
        CallArgs(0, '"one"}'),
        CallStarted(index=1, name="note", provider_id="call_b"),
        CallArgs(1, '{"key": "two"}'),
        *at("end"),
        UsageSeen(Usage(input_tokens=10, output_tokens=10)),
        StreamFinished(reason="tool_calls"),
    )


def plain_beats(text: str, stop: Beat | None = None, place: str = "") -> tuple[Beat, ...]:
    """An answer with reasoning and text; broken off where `turn_beats` would be, too."""
    if stop is not None and place == "start":
        return (stop,)
    broken = stop is not None
    return (
        ThinkingPiece("So that "),
        *((stop,) if stop is not None and place == "thinking" else ()),
        ThinkingPiece("is that."),
        ThinkingDone(signature=f"proof-of-{len(text)}"),
        TextPiece(text[:4]),
        *((stop,) if stop is not None and place == "text" else ()),
        TextPiece(text[4:]),
        *(
            (CallStarted(index=0, name="note", provider_id="call_c"), CallArgs(0, '{"ke'), stop)
            if broken
            else ()
        ),
        UsageSeen(Usage(input_tokens=10, output_tokens=5)),
        StreamFinished(),
    )


def has_called(request: ModelRequest) -> bool:
    """Whether the two notes were asked for already."""
    return any(
        isinstance(part, ToolCall)
        for message in request.messages
        if isinstance(message, ChatMessage)
        for part in message.parts
    )


def said_by_user(request: ModelRequest) -> list[str]:
    """Every prompt of the user."""
    return [
        part.text
        for message in request.messages
        if isinstance(message, ChatMessage) and message.role == "user"
        for part in message.parts
        if isinstance(part, Text)
    ]
