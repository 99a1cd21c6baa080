"""The stream of Chat Completions, as neutral events, with the habits of the many servers that speak
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from weft.providers.base import (
    CallArgs,
    CallStarted,
    StopReason,
    StreamEvent,
    StreamFinished,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
)
from weft.providers.http_model import error_in_stream
from weft.providers.openai_chat.chunk_decoder import ChunkDecoder, StreamChunk
from weft.providers.openai_chat.encode import DETAILS_MARK
from weft.providers.think_tags import ThinkTags

_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "safety": "safety",
    "malformed_function_call": "malformed_call",
}
_TOLD_BETTER: tuple[StopReason, ...] = ("refusal", "safety", "malformed_call")
_FAILURES = ("error", "insufficient_system_resource", "engine_overloaded", "network_error")
"""What servers give as the reason to stop when it is theirs."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None
    """Text, or from some servers the object itself."""


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | int | None = None
    function: _Function | None = None
    extra_content: Any = None
    """Google: the thought signature of the call."""


class _Delta(msgspec.Struct):
    content: Any = None
    """Text, or from some servers a list of pieces, reasoning among them."""
    # The protocol has no field for reasoning. DeepSeek and vLLM call it the one, OpenRouter and
    # Groq the other.
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Any = None
    """OpenRouter: the same in the vendor's own blocks, which are to come back unchanged."""
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    native_finish_reason: str | None = None
    """OpenRouter: the reason in the words of the vendor behind it."""
    content_filter_results: dict[str, Any] | None = None
    """Azure: what its filter found, by category."""


_DECODER = msgspec.json.Decoder(StreamChunk[_Choice])


class ChatDecoder(ChunkDecoder[_Choice]):
    """Decodes one stream.  `names` maps tool names on the wire to the real ones; `thought_mark`
    signs reasoning that the server wants to see again.
    """

    def __init__(
        self,
        provider: str,
        names: Mapping[str, str] | None = None,
        secret: str = "",
        thought_mark: str = "",
    ) -> None:
        super().__init__(provider, secret, _DECODER)
        self._names = names or {}
        self._thought_mark = thought_mark
        self._is_thinking = False
        self._calls = 0
        self._open: dict[int, tuple[int, str]] = {}
        """Place in the vendor's list → our index and the vendor's id."""
        self._bare: set[int] = set()
        """Calls without any arguments so far."""
        self._native = ""
        self._filtered: list[str] = []
        self._refused = False
        self._details = _Details()
        self._tags = ThinkTags()

    def _choice(self, choice: _Choice, events: list[StreamEvent]) -> None:
        if choice.delta is not None:
            self._delta(choice.delta, events)
        if choice.finish_reason in _FAILURES:
            said = {"message": f"it stopped with {choice.finish_reason!r}"}
            raise error_in_stream(self._provider, said, self._secret)
        if choice.finish_reason:
            self._reason = choice.finish_reason
            self._native = choice.native_finish_reason or ""
        self._filtered += _filtered(choice.content_filter_results)

    def _delta(self, delta: _Delta, events: list[StreamEvent]) -> None:
        shown = self._details.take(delta.reasoning_details)
        self._think(delta.reasoning_content or delta.reasoning or shown, events)
        for thought, text in _pieces(delta.content):
            self._think(thought, events)
            if text:
                self._take(self._tags.feed(text), events)
        if delta.refusal:
            self._refused = True
            self._say(delta.refusal, events)
        for call in delta.tool_calls or ():
            self._take(self._tags.end(), events)
            self._end_thought(events)
            self._call(call, events)

    def _take(self, pieces: list[tuple[str, str]], events: list[StreamEvent]) -> None:
        for thought, text in pieces:
            self._think(thought, events)
            self._say(text, events)

    def _think(self, thought: str, events: list[StreamEvent]) -> None:
        if thought:
            self._is_thinking = True
            events.append(ThinkingPiece(thought))

    def _say(self, text: str, events: list[StreamEvent]) -> None:
        if text:
            self._end_thought(events)
            events.append(TextPiece(text))

    def _end_thought(self, events: list[StreamEvent]) -> None:
        if self._is_thinking:
            self._is_thinking = False
            events.append(ThinkingDone(signature=self._thought_mark))

    def _call(self, call: _Call, events: list[StreamEvent]) -> None:
        function = call.function or _Function()
        their_id = "" if call.id is None else str(call.id)
        place = self._place(call, their_id)
        known = self._open.get(place)
        # Some servers give every call the same place; another id is another call.
        if known is None or (their_id and known[1] and their_id != known[1]):
            if not function.name:
                return
            known = (self._calls, their_id)
            self._open[place] = known
            self._bare.add(known[0])
            self._calls += 1
            real = self._names.get(function.name, function.name)
            proof = _thought_signature(call.extra_content)
            events.append(
                CallStarted(index=known[0], name=real, provider_id=known[1], signature=proof)
            )
        if text := _args(function.arguments):
            self._bare.discard(known[0])
            events.append(CallArgs(known[0], text))

    def _place(self, call: _Call, their_id: str) -> int:
        if call.index is not None:
            return call.index
        for place, (_, known_id) in self._open.items():
            if their_id and their_id == known_id:
                return place
        # Without an index: a named call begins, an unnamed piece goes on with the last one.
        is_new = call.function is not None and bool(call.function.name)
        return len(self._open) if is_new else len(self._open) - 1

    def _finish(self) -> Iterable[StreamEvent]:
        self.is_finished = True
        events: list[StreamEvent] = []
        self._take(self._tags.end(), events)
        self._end_thought(events)
        # Whole only now: a block may come behind the call that it led to.
        if proof := self._details.proof():
            events.append(ThinkingDone(signature=proof))
        # A call without arguments may come without any text for them; the caller needs an object.
        events += [CallArgs(index, "{}") for index in sorted(self._bare)]
        said = self._reason or "stop"
        # A gateway's own word is the coarser one: it says `stop` for a block, and `error` for a
        # malformed call.
        native = _REASONS.get(self._native.lower(), "other")
        reason = native if native in _TOLD_BETTER else _REASONS.get(said, "other")
        # Several servers say `stop` although they called tools.
        if reason == "stop" and self._calls:
            reason = "tool_calls"
        elif reason == "stop" and self._refused:
            reason = "refusal"
        detail = "" if reason in ("stop", "tool_calls") else self._detail(said)
        events.append(StreamFinished(reason=reason, detail=detail))
        return events

    def _detail(self, said: str) -> str:
        words = self._native if self._native and self._native != said else said
        found = ", ".join(dict.fromkeys(self._filtered))
        return f"{words}: {found}" if found else words


class _Details:
    """Collects the blocks of reasoning that a gateway sends in pieces."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, object], dict[str, Any]] = {}

    def take(self, pieces: Any) -> str:
        """Take more pieces in; returns their text, for showing."""
        shown = ""
        for piece in pieces if isinstance(pieces, list) else ():
            if not isinstance(piece, dict):
                continue
            kind = str(piece.get("type"))
            # Pieces of one block have its place; without one each is whole.
            place = piece.get("index", ("alone", len(self._blocks)))
            block = self._blocks.setdefault((kind, str(place)), {})
            for name, value in piece.items():
                if name in ("text", "summary", "data") and isinstance(block.get(name), str):
                    block[name] += value if isinstance(value, str) else ""
                elif value is not None or name not in block:
                    block[name] = value
            said = piece.get("text") or piece.get("summary")
            shown += said if isinstance(said, str) else ""
        return shown

    def proof(self) -> str:
        """All blocks as a signature; empty when there are none."""
        if not self._blocks:
            return ""
        return DETAILS_MARK + msgspec.json.encode(list(self._blocks.values())).decode()


def _thought_signature(extra: Any) -> str:
    google = extra.get("google") if isinstance(extra, dict) else None
    found = google.get("thought_signature") if isinstance(google, dict) else None
    return found if isinstance(found, str) else ""


def _filtered(results: dict[str, Any] | None) -> list[str]:
    """The categories for which Azure's filter stopped the answer."""
    return [
        name
        for name, found in (results or {}).items()
        if isinstance(found, dict) and found.get("filtered") is True
    ]


def _args(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return msgspec.json.encode(arguments).decode()


def _pieces(content: Any) -> list[tuple[str, str]]:
    """Reasoning and text of a delta's content, in its order."""
    if content is None or isinstance(content, str):
        return [("", content or "")]
    found: list[tuple[str, str]] = []
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and piece.get("type") == "thinking":
            found += [(text, "") for _, text in _pieces(piece.get("thinking"))]
        elif isinstance(piece, dict) and isinstance(piece.get("text"), str):
            found.append(("", piece["text"]))
    return found
