"""Streams of OpenAI's older kind: chunks with choices, then one with the usage, then `[DONE]`.

Chat Completions and text completion have it in common, at OpenAI and all that speak as it does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

from weft.providers.base import StreamDecoder, StreamEvent, UsageSeen
from weft.providers.http_model import broke_off, decoded, error_in_stream
from weft.providers.usage import CHAT_USAGE, read_usage

ChoiceT = TypeVar("ChoiceT")


class StreamChunk(msgspec.Struct, Generic[ChoiceT]):
    """One event; the kinds of stream differ in their choices."""

    choices: list[ChoiceT] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class ChunkDecoder(StreamDecoder, Generic[ChoiceT]):
    """Decodes one stream of chunks."""

    def __init__(
        self, provider: str, secret: str, chunks: msgspec.json.Decoder[StreamChunk[ChoiceT]]
    ) -> None:
        self.is_finished = False
        self._provider = provider
        self._secret = secret
        self._chunks = chunks
        self._reason: str | None = None

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one event means."""
        if data == b"[DONE]":
            return self._finish()
        chunk = decoded(self._provider, data, self._chunks)
        if chunk.error:
            raise error_in_stream(self._provider, chunk.error, self._secret)
        events: list[StreamEvent] = []
        # The chunk with the usage comes last and has no choices.
        if chunk.choices:
            self._choice(chunk.choices[0], events)
        if chunk.usage is not None:
            events.append(UsageSeen(read_usage(chunk.usage, CHAT_USAGE)))
        return events

    def end(self) -> Iterable[StreamEvent]:
        """A stream may forget its last word, but not why it stopped."""
        if self._reason is None:
            raise broke_off(self._provider)
        return self._finish()

    @abstractmethod
    def _choice(self, choice: ChoiceT, events: list[StreamEvent]) -> None:
        """Take the choice of a chunk in."""

    @abstractmethod
    def _finish(self) -> Iterable[StreamEvent]:
        """The answer is over."""
