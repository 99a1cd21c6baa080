"""The stream of Bedrock's Converse, as neutral events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

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
from weft.providers.usage import CONVERSE_USAGE, read_usage

_REASONS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_tool_use": "malformed_call",
    "malformed_model_output": "malformed_call",
}


class _ToolUse(msgspec.Struct, rename="camel"):
    tool_use_id: str = ""
    name: str = ""
    input: str = ""


class _Reasoning(msgspec.Struct, rename="camel"):
    text: str = ""
    signature: str = ""
    redacted_content: str = ""


class _Delta(msgspec.Struct, rename="camel"):
    text: str = ""
    tool_use: _ToolUse | None = None
    reasoning_content: _Reasoning | None = None


class _Start(msgspec.Struct, rename="camel"):
    tool_use: _ToolUse | None = None


class _Event(msgspec.Struct, rename="camel"):
    content_block_index: int = 0
    start: _Start | None = None
    delta: _Delta | None = None
    stop_reason: str = ""
    usage: dict[str, Any] | None = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Event)


class _Open:
    """A content block that has begun; only calls are announced."""

    def __init__(self, call: int = -1) -> None:
        self.call = call
        self.has_args = False
        self.is_thought = False
        self.signature = ""
        self.redacted = ""


class ConverseDecoder(StreamDecoder):
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
        self._reason: str | None = None

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one event means; `name` is the type that its frame has."""
        event = decoded(self._provider, data, _DECODER)
        match name:
            case b"contentBlockDelta":
                return self._delta(event.content_block_index, event.delta or _Delta())
            case b"contentBlockStart":
                return self._start(event.content_block_index, event.start or _Start())
            case b"contentBlockStop":
                return self._stop(event.content_block_index)
            case b"messageStop":
                self._reason = event.stop_reason
                return ()
            # The last one: the reason to stop came before it.
            case b"metadata":
                return (*self._usage(event.usage), *self._finish())
            case b"error":
                raise error_in_stream(self._provider, event.error, self._secret)
            case _:
                return ()

    def end(self) -> Iterable[StreamEvent]:
        """A stream may lack its last event, but not why it stopped."""
        if self._reason is None:
            raise broke_off(self._provider)
        return () if self.is_finished else self._finish()

    def _start(self, index: int, start: _Start) -> Iterable[StreamEvent]:
        if start.tool_use is None:
            self._blocks[index] = _Open()
            return ()
        self._blocks[index] = _Open(self._calls)
        self._calls += 1
        called = start.tool_use
        real = self._names.get(called.name, called.name)
        return (CallStarted(index=self._calls - 1, name=real, provider_id=called.tool_use_id),)

    def _delta(self, index: int, delta: _Delta) -> Iterable[StreamEvent]:
        # Text and reasoning come without a start.
        block = self._blocks.setdefault(index, _Open())
        if delta.tool_use is not None and delta.tool_use.input and block.call >= 0:
            block.has_args = True
            return (CallArgs(block.call, delta.tool_use.input),)
        if delta.reasoning_content is not None:
            block.is_thought = True
            block.signature += delta.reasoning_content.signature
            block.redacted += delta.reasoning_content.redacted_content
            text = delta.reasoning_content.text
            return (ThinkingPiece(text),) if text else ()
        return (TextPiece(delta.text),) if delta.text else ()

    def _stop(self, index: int) -> Iterable[StreamEvent]:
        block = self._blocks.pop(index, None)
        if block is None:
            return ()
        if block.is_thought:
            return (ThinkingDone(signature=block.signature, redacted=block.redacted),)
        # A call without arguments has no delta, but the caller needs an object.
        if block.call >= 0 and not block.has_args:
            return (CallArgs(block.call, "{}"),)
        return ()

    def _usage(self, report: dict[str, Any] | None) -> Iterable[StreamEvent]:
        return () if report is None else (UsageSeen(read_usage(report, CONVERSE_USAGE)),)

    def _finish(self) -> Iterable[StreamEvent]:
        if self._reason is None:
            raise broke_off(self._provider)
        self.is_finished = True
        reason = _REASONS.get(self._reason, "other")
        detail = "" if reason in ("stop", "tool_calls") else self._reason
        return (StreamFinished(reason=reason, detail=detail),)
