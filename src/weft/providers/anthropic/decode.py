"""The stream of the Messages API, as neutral events."""

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
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)
from weft.providers.http_model import broke_off, decoded, error_in_stream
from weft.providers.usage import ANTHROPIC_USAGE, read_usage

_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}


class _StopDetails(msgspec.Struct):
    category: str | None = None
    explanation: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: Any = None


class _Message(msgspec.Struct):
    usage: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Event)


class _Open:
    """A content block that has begun."""

    def __init__(self, block: _Block, call: int) -> None:
        self.kind = block.type
        self.call = call
        self.signature = block.signature
        self.redacted = block.data
        # Usually `{}`, with the arguments in deltas; compatible servers send it whole and no delta.
        self.input = block.input
        self.has_args = False


class AnthropicDecoder(StreamDecoder):
    """Decodes one stream.  `names` maps tool names on the wire to the real ones."""

    def __init__(
        self, provider: str, names: Mapping[str, str] | None = None, secret: str = ""
    ) -> None:
        self.is_finished = False
        self._provider = provider
        self._names = names or {}
        self._secret = secret
        self._blocks: dict[int, _Open] = {}
        self._calls = 0
        self._report: dict[str, Any] = {}
        self._reason: str | None = None
        self._why = ""

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one event means."""
        event = decoded(self._provider, data, _DECODER)
        match event.type:
            case "content_block_delta":
                return self._delta(event.index, event.delta or _Delta())
            case "content_block_start":
                return self._start(event.index, event.content_block or _Block())
            case "content_block_stop":
                return self._stop(event.index)
            case "message_start":
                return self._usage(event.message.usage if event.message else None)
            # The reason to stop comes before the last event, so a stream that lacks the last one is
            # whole.
            case "message_delta":
                if event.delta is not None and event.delta.stop_reason:
                    self._reason = event.delta.stop_reason
                    why = event.delta.stop_details or _StopDetails()
                    self._why = why.explanation or why.category or ""
                return self._usage(event.usage)
            case "message_stop":
                return self._finish()
            case "error":
                raise error_in_stream(self._provider, event.error, self._secret)
            case _:
                return ()  # pings, and kinds that came later than this program

    def end(self) -> Iterable[StreamEvent]:
        """A stream may forget its last event, but not why it stopped."""
        if self._reason is None:
            raise broke_off(self._provider)
        return self._finish()

    def _delta(self, index: int, delta: _Delta) -> Iterable[StreamEvent]:
        match delta.type:
            case "text_delta":
                return (TextPiece(delta.text),) if delta.text else ()
            case "thinking_delta":
                return (ThinkingPiece(delta.thinking),) if delta.thinking else ()
            case "signature_delta":
                if index in self._blocks:
                    # The signature comes at the end of its block; without it the reasoning cannot
                    # be sent back.
                    self._blocks[index].signature += delta.signature
                return ()
            case "input_json_delta":
                return self._args(index, delta.partial_json)
            case _:
                return ()

    def _args(self, index: int, text: str) -> Iterable[StreamEvent]:
        block = self._blocks.get(index)
        if block is None or block.kind != "tool_use" or not text:
            return ()
        block.has_args = True
        return (CallArgs(block.call, text),)

    def _start(self, index: int, block: _Block) -> Iterable[StreamEvent]:
        self._blocks[index] = _Open(block, self._calls)
        match block.type:
            case "tool_use":
                self._calls += 1
                real = self._names.get(block.name, block.name)
                return (CallStarted(index=self._calls - 1, name=real, provider_id=block.id),)
            case "text":
                return (TextPiece(block.text),) if block.text else ()
            case "thinking":
                return (ThinkingPiece(block.thinking),) if block.thinking else ()
            case _:
                return ()

    def _stop(self, index: int) -> Iterable[StreamEvent]:
        block = self._blocks.pop(index, None)
        if block is None:
            return ()
        if block.kind == "thinking":
            return (ThinkingDone(signature=block.signature),)
        if block.kind == "redacted_thinking":
            return (ThinkingDone(redacted=block.redacted),)
        # A call without arguments has no delta, or an empty one, but the caller needs an object.
        if block.kind == "tool_use" and not block.has_args:
            whole = msgspec.json.encode(block.input or {}).decode()
            return (CallArgs(block.call, whole),)
        return ()

    def _usage(self, report: dict[str, Any] | None) -> Iterable[StreamEvent]:
        if report is None:
            return ()
        # Counts so far: the last event repeats some of the fields with larger numbers, and leaves
        # out or nulls the others, which still hold.
        self._report.update((name, count) for name, count in report.items() if count is not None)
        return (UsageSeen(read_usage(self._report, ANTHROPIC_USAGE)),)

    def _finish(self) -> Iterable[StreamEvent]:
        self.is_finished = True
        said = self._reason or ""
        reason = _REASONS.get(said, "other")
        if not said:
            reason = "tool_calls" if self._calls else "stop"
        detail = "" if reason in ("stop", "tool_calls") else said
        if detail and self._why:
            detail = f"{detail}: {self._why}"
        return (StreamFinished(reason=reason, detail=detail),)
