"""The stream of Gemini, as neutral events.

It has no last word: the stream ends with the connection's framing, and the answer is complete when
a finish reason came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from weft.providers.base import (
    CallArgs,
    CallStarted,
    StopReason,
    StreamDecoder,
    StreamEvent,
    StreamFinished,
    TextDone,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.http_model import broke_off, decoded, error_in_stream
from weft.providers.usage import GEMINI_USAGE, read_usage

_REASONS: dict[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "safety",
    "IMAGE_SAFETY": "safety",
    "PROHIBITED_CONTENT": "safety",
    "IMAGE_PROHIBITED_CONTENT": "safety",
    "RECITATION": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "SPII": "content_filter",
    "MALFORMED_FUNCTION_CALL": "malformed_call",
    "UNEXPECTED_TOOL_CALL": "malformed_call",
    "TOO_MANY_TOOL_CALLS": "malformed_call",
    # What is not listed is `other`, with its word as detail.
}


class _FunctionCall(msgspec.Struct):
    name: str = ""
    # Raw: the arguments as the model wrote them. Decoding and encoding again could change numbers.
    args: msgspec.Raw = msgspec.Raw(b"")
    id: str = ""


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: _FunctionCall | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Rating(msgspec.Struct):
    category: str | None = None
    blocked: bool | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    safety_ratings: list[_Rating] | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None
    safety_ratings: list[_Rating] | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: dict[str, Any] | None = None
    prompt_feedback: _Feedback | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Chunk)


class GeminiDecoder(StreamDecoder):
    """Decodes one stream.  `names` maps tool names on the wire to the real ones."""

    def __init__(
        self, provider: str, names: Mapping[str, str] | None = None, secret: str = ""
    ) -> None:
        self.is_finished = False
        self._provider = provider
        self._names = names or {}
        self._secret = secret
        self._is_thinking = False
        self._has_text = False
        self._thought_signature = ""
        self._calls = 0
        self._reason = ""
        self._detail = ""
        self._block_reason = ""

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one event means."""
        chunk = decoded(self._provider, data, _DECODER)
        if chunk.error:
            raise error_in_stream(self._provider, chunk.error, self._secret)
        events: list[StreamEvent] = []
        # Only one is ever asked for.
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content.parts if candidate.content else None) or ():
                self._part(part, events)
            if candidate.finish_reason:
                self._reason = candidate.finish_reason
                self._detail = candidate.finish_message or _blocked(candidate.safety_ratings)
        # A prompt that was blocked has no candidate, and so no finish reason either.
        if (said := chunk.prompt_feedback) and said.block_reason:
            self._block_reason = said.block_reason
            self._detail = said.block_reason_message or _blocked(said.safety_ratings)
        if chunk.usage_metadata is not None:
            events.append(UsageSeen(read_usage(chunk.usage_metadata, GEMINI_USAGE)))
        return events

    def end(self) -> Iterable[StreamEvent]:
        """The end of the stream is the end of the answer, if a reason for it came."""
        if not self._reason and not self._block_reason:
            raise broke_off(self._provider)
        self.is_finished = True
        events: list[StreamEvent] = []
        self._end_thought(events)
        events.append(self._finished())
        return events

    def _finished(self) -> StreamFinished:
        if self._block_reason:
            why = f"{self._block_reason}: {self._detail}" if self._detail else self._block_reason
            return StreamFinished(reason="safety", detail=f"the prompt was blocked: {why}")
        reason = _REASONS.get(self._reason, "other")
        # Gemini says STOP after calls as well.
        if reason == "stop":
            return StreamFinished(reason="tool_calls" if self._calls else "stop")
        detail = f"{self._reason}: {self._detail}" if self._detail else self._reason
        return StreamFinished(reason=reason, detail=detail)

    def _part(self, part: _Part, events: list[StreamEvent]) -> None:
        if part.function_call is not None:
            self._end_thought(events)
            self._call(part.function_call, part.thought_signature, events)
        elif part.thought:
            self._is_thinking = True
            self._thought_signature = part.thought_signature or self._thought_signature
            if part.text:
                events.append(ThinkingPiece(part.text))
        else:
            self._text(part.text or "", part.thought_signature, events)

    def _text(self, text: str, signature: str, events: list[StreamEvent]) -> None:
        if text or signature:
            self._end_thought(events)
        # A part that is signed goes back as it came, not joined with the text before it.
        if text and signature and self._has_text:
            events.append(TextDone())
        if text:
            events.append(TextPiece(text))
        if signature:
            events.append(TextDone(signature=signature))
        self._has_text = bool(text) and not signature

    def _end_thought(self, events: list[StreamEvent]) -> None:
        if self._is_thinking:
            self._is_thinking = False
            events.append(ThinkingDone(signature=self._thought_signature))
            self._thought_signature = ""

    def _call(self, call: _FunctionCall, signature: str, events: list[StreamEvent]) -> None:
        # A call comes whole, in one part, so its start and its arguments are one step.
        index = self._calls
        self._calls += 1
        real = self._names.get(call.name, call.name)
        args = bytes(call.args).decode("utf-8", "replace")
        events.append(CallStarted(index=index, name=real, provider_id=call.id, signature=signature))
        events.append(CallArgs(index, "{}" if args in ("", "null") else args))


def _blocked(ratings: list[_Rating] | None) -> str:
    """The categories for which something was blocked."""
    found = [rating.category for rating in ratings or () if rating.blocked and rating.category]
    return ", ".join(found)
