"""The stream of the Responses API, as neutral events."""

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
from weft.providers.usage import RESPONSES_USAGE, read_usage

_CUT_SHORT: dict[str, StopReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
"""Why a response is incomplete, in the vendor's words and in ours."""


PARAGRAPH = "\n\n"
"""Opens every message of an answer but the first, so that their texts can be read as one."""


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Content(msgspec.Struct):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    encrypted_content: str | None = None
    content: list[_Content] | None = None


class _Response(msgspec.Struct):
    usage: dict[str, Any] | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    output: list[_Item] | None = None


class _Event(msgspec.Struct):
    type: str = ""
    output_index: int = 0
    summary_index: int = 0
    delta: str | None = None
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None
    code: Any = None
    message: str | None = None


_DECODER = msgspec.json.Decoder(_Event)


class ResponsesDecoder(StreamDecoder):
    """Decodes one stream.  `names` maps tool names on the wire to the real ones."""

    def __init__(
        self, provider: str, names: Mapping[str, str] | None = None, secret: str = ""
    ) -> None:
        self.is_finished = False
        self._provider = provider
        self._names = names or {}
        self._secret = secret
        self._calls: dict[int, int] = {}
        self._with_args: set[int] = set()
        self._thought = False
        self._refused = False
        self._said: set[int] = set()
        """Places of the messages that have text."""

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one event means."""
        # Not part of this API, but compatible servers end with it out of habit.
        if data == b"[DONE]":
            return ()
        event = decoded(self._provider, data, _DECODER)
        match event.type:
            case "response.output_text.delta":
                return self._say(event.output_index, event.delta or "")
            case "response.function_call_arguments.delta":
                return self._args(event.output_index, event.delta or "")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._think(event.delta or "")
            case "response.reasoning_summary_part.added":
                # Each part of a summary is a paragraph; the stream has nothing between them.
                return self._think("\n\n") if event.summary_index else ()
            case "response.refusal.delta":
                self._refused = True
                return self._say(event.output_index, event.delta or "")
            case "response.output_item.added":
                return self._added(event.output_index, event.item or _Item())
            case "response.output_item.done":
                return self._done(event.output_index, event.item or _Item())
            case "response.completed" | "response.incomplete":
                return self._finish(event.response or _Response())
            case "response.failed":
                response = event.response or _Response()
                raise error_in_stream(self._provider, response.error, self._secret)
            case "error":
                said = event.error or {"code": event.code, "message": event.message}
                raise error_in_stream(self._provider, said, self._secret)
            case _:
                return ()

    def end(self) -> Iterable[StreamEvent]:
        """This vendor always says when it is done."""
        raise broke_off(self._provider)

    def _think(self, text: str) -> Iterable[StreamEvent]:
        self._thought = True
        return (ThinkingPiece(text),) if text else ()

    def _say(self, place: int, text: str) -> list[StreamEvent]:
        if not text:
            return []
        if place in self._said or not self._said:
            self._said.add(place)
            return [TextPiece(text)]
        # Each message is a paragraph; the stream has nothing between them.
        self._said.add(place)
        return [TextDone(), TextPiece(PARAGRAPH), TextPiece(text)]

    def _message(self, place: int, item: _Item) -> list[StreamEvent]:
        """A whole message, of which no delta came: servers may send only the end."""
        if place in self._said:
            return []
        events: list[StreamEvent] = []
        for content in item.content or ():
            self._refused = self._refused or bool(content.refusal)
            events += self._say(place, content.text or content.refusal or "")
        return events

    def _added(self, place: int, item: _Item) -> Iterable[StreamEvent]:
        if item.type != "function_call" or place in self._calls:
            return ()
        index = len(self._calls)
        self._calls[place] = index
        name = item.name or ""
        real = self._names.get(name, name)
        return (CallStarted(index=index, name=real, provider_id=item.call_id or ""),)

    def _args(self, place: int, text: str) -> Iterable[StreamEvent]:
        if place not in self._calls or not text:
            return ()
        self._with_args.add(place)
        return (CallArgs(self._calls[place], text),)

    def _done(self, place: int, item: _Item) -> Iterable[StreamEvent]:
        if item.type == "reasoning":
            if not (self._thought or item.encrypted_content):
                return ()
            self._thought = False
            proof = f"{item.id or ''} {item.encrypted_content}" if item.encrypted_content else ""
            return (ThinkingDone(signature=proof.strip()),)
        if item.type == "message":
            return self._message(place, item)
        if item.type != "function_call":
            return ()
        # Servers may leave out `added`, and the deltas; `done` repeats the whole item.
        started = tuple(self._added(place, item))
        if place in self._with_args:
            return started
        return (*started, CallArgs(self._calls[place], item.arguments or "{}"))

    def _finish(self, response: _Response) -> Iterable[StreamEvent]:
        self.is_finished = True
        events: list[StreamEvent] = []
        if not self._said and not self._calls:
            # Reasoning has no place in it: its end came before, or what it led to did.
            for place, item in enumerate(response.output or ()):
                events += self._done(place, item) if item.type != "reasoning" else ()
        if response.usage is not None:
            events.append(UsageSeen(read_usage(response.usage, RESPONSES_USAGE)))
        cut = (response.incomplete_details or _Incomplete()).reason or ""
        events.append(StreamFinished(reason=self._reason(cut), detail=cut))
        return events

    def _reason(self, cut: str) -> StopReason:
        if cut:
            return _CUT_SHORT.get(cut, "other")
        # The API has no reason for this: a response with calls is `completed` like any other.
        if self._calls:
            return "tool_calls"
        return "refusal" if self._refused else "stop"
