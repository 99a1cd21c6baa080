"""Ollama's stream, one JSON value a line, as neutral events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from weft.errors import ProviderUnavailable
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
from weft.providers.http_model import FrameSplitter, broke_off, decoded, error_in_stream
from weft.providers.think_tags import ThinkTags
from weft.providers.usage import OLLAMA_USAGE, read_usage
from weft.transport import MAX_EVENT


class _Function(msgspec.Struct):
    name: str = ""
    arguments: Any = None


class _Call(msgspec.Struct):
    function: _Function | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Line(msgspec.Struct):
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(_Line)


class LineFrames(FrameSplitter):
    """Cuts bytes into lines."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The lines that these bytes complete."""
        self._buffer += data
        # JSON escapes line ends inside strings, so a newline always ends a value.
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        if len(rest) > MAX_EVENT:
            raise ProviderUnavailable(f"the stream sent a line of over {MAX_EVENT} bytes")
        return [(b"", bytes(line)) for line in lines if line.strip()]

    def finish(self) -> list[tuple[bytes, bytes]]:
        """The line that the end completes."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        return [(b"", rest)] if rest.strip() else []


class OllamaDecoder(StreamDecoder):
    """Decodes one stream.  Calls come whole, without ids."""

    def __init__(self, provider: str, names: Mapping[str, str] | None = None) -> None:
        self.is_finished = False
        self._provider = provider
        self._names = names or {}
        self._is_thinking = False
        self._tags = ThinkTags()
        self._calls = 0

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one line means."""
        line = decoded(self._provider, data, _DECODER)
        if line.error:
            raise error_in_stream(self._provider, {"message": str(line.error)})
        events: list[StreamEvent] = []
        if line.message is not None:
            self._message(line.message, events)
        if line.done:
            self._take(self._tags.end(), events)
            self._end_thought(events)
            events += self._finish(line)
        return events

    def end(self) -> Iterable[StreamEvent]:
        """This vendor always says when it is done."""
        raise broke_off(self._provider)

    def _message(self, message: _Message, events: list[StreamEvent]) -> None:
        if message.thinking:
            self._is_thinking = True
            events.append(ThinkingPiece(message.thinking))
        if message.content:
            self._take(self._tags.feed(message.content), events)
        for call in message.tool_calls or ():
            self._take(self._tags.end(), events)
            self._end_thought(events)
            function = call.function or _Function()
            index = self._calls
            self._calls += 1
            real = self._names.get(function.name, function.name)
            events.append(CallStarted(index=index, name=real))
            events.append(CallArgs(index, _args(function.arguments)))

    def _take(self, pieces: list[tuple[str, str]], events: list[StreamEvent]) -> None:
        for thought, text in pieces:
            if thought:
                self._is_thinking = True
                events.append(ThinkingPiece(thought))
            if text:
                self._end_thought(events)
                events.append(TextPiece(text))

    def _end_thought(self, events: list[StreamEvent]) -> None:
        if self._is_thinking:
            self._is_thinking = False
            events.append(ThinkingDone())

    def _finish(self, line: _Line) -> list[StreamEvent]:
        self.is_finished = True
        # The counts stand in the last line itself, among the rest.
        usage = read_usage(msgspec.structs.asdict(line), OLLAMA_USAGE)
        reason: StopReason = "tool_calls" if self._calls else "stop"
        detail = "" if line.done_reason in (None, "", "stop") else line.done_reason
        if detail:
            # `load` and `unload`: the server did that and no more.
            reason = "length" if detail == "length" else "other"
        return [UsageSeen(usage), StreamFinished(reason=reason, detail=detail)]


def _args(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return msgspec.json.encode(arguments or {}).decode()
