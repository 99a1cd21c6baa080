"""Decoder for the JSON form that a small model fills in: text streams, a call comes whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from weft.messages import clean_text
from weft.providers.base import (
    CallArgs,
    CallStarted,
    StreamDecoder,
    StreamEvent,
    StreamFinished,
    TextPiece,
)
from weft.providers.openai_chat.decode import ChatDecoder

_BEGINS_TO_SAY = re.compile(r'\s*\{\s*"say"\s*:\s*"')
_NAMES_A_TOOL = re.compile(r'\s*\{\s*"tool"\s*:\s*"([^"\\]*)"')
# Matches every beginning of `{"say": `: as long as it does, more text has to come.
_MAY_STILL_SAY = re.compile(r'\s*(\{\s*("(s(a(y("(\s*(:(\s*)?)?)?)?)?)?)?)?)?')


class FormDecoder(StreamDecoder):
    """Decodes one stream of an answer that fits the form."""

    def __init__(self, provider: str, names: Mapping[str, str] | None = None) -> None:
        self.is_finished = False
        self._names = names or {}
        self._inner = ChatDecoder(provider)
        self._text = ""
        self._words: _Words | None = None
        self._is_words = False

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What one event means."""
        return self._translated(self._inner.feed(name, data))

    def end(self) -> Iterable[StreamEvent]:
        """What the end of the stream means."""
        return self._translated(self._inner.end())

    def _translated(self, events: Iterable[StreamEvent]) -> list[StreamEvent]:
        out: list[StreamEvent] = []
        for event in events:
            if isinstance(event, TextPiece):
                out += self._piece(event.text)
            elif isinstance(event, StreamFinished):
                self.is_finished = True
                out += self._finish(event)
            else:
                out.append(event)
        return out

    def _piece(self, text: str) -> list[StreamEvent]:
        if self._words is None:
            self._text += text
            if _MAY_STILL_SAY.fullmatch(self._text):
                return []
            found = _BEGINS_TO_SAY.match(self._text)
            if found is None:
                return []  # a call, or nonsense: judged when it is whole
            self._words = _Words()
            text = self._text[found.end() :]
        said = self._words.feed(text)
        return [TextPiece(said)] if said else []

    def _finish(self, finished: StreamFinished) -> list[StreamEvent]:
        if self._words is not None:
            return [finished]
        named = _NAMES_A_TOOL.match(self._text)
        if named is None:
            return [*([TextPiece(self._text)] if self._text.strip() else []), finished]
        real = self._names.get(named[1], named[1])
        args = _args(self._text, named.end())
        reason = finished if finished.reason == "length" else StreamFinished(reason="tool_calls")
        return [CallStarted(index=0, name=real), CallArgs(0, args), reason]


def _args(text: str, after: int) -> str:
    """The arguments of a filled-in form.

    Of one that was cut off, what there is, for the call to be refused.
    """
    try:
        value: Any = msgspec.json.decode(clean_text(text).encode())
        return msgspec.json.encode(value["args"]).decode()
    except (msgspec.MsgspecError, KeyError, TypeError, RecursionError):
        rest = text[after:].lstrip().removeprefix(",").lstrip()
        # Where nothing came, half an object: a call that was cut off must not run without
        # arguments.
        return re.sub(r'^"args"\s*:\s*', "", rest) or '{"'


class _Words:
    """Reads a JSON string as it comes, from behind its opening quote."""

    def __init__(self) -> None:
        self._held = ""
        self._is_over = False

    def feed(self, text: str) -> str:
        """The words that are complete by now; a half escape is held back."""
        if self._is_over:
            return ""
        text = self._held + text
        self._held = ""
        end = self._end(text)
        if end >= 0:
            self._is_over = True
            text = text[:end]
        else:
            cut = _half_escape(text)
            text, self._held = text[:cut], text[cut:]
        return _unescaped(text)

    def _end(self, text: str) -> int:
        """Where the closing quote stands; -1 when it has not come."""
        at = 0
        while at < len(text):
            if text[at] == "\\":
                at += 2
            elif text[at] == '"':
                return at
            else:
                at += 1
        return -1


_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')


def _half_escape(text: str) -> int:
    """Where an escape begins that is not whole yet, or a first half of a pair that waits for its
    second.
    """
    at = 0
    while (at := text.find("\\", at)) >= 0:
        found = _ESCAPE.match(text, at)
        if found is None:
            return at if len(text) - at < 6 else len(text)
        # Outside the first plane JSON escapes a character as two surrogates, and a piece may end
        # between them.
        is_first_half = found[0][1:2] == "u" and 0xD800 <= int(found[0][2:], 16) < 0xDC00
        if is_first_half and len(text) < found.end() + 6:
            return at
        at = found.end()
    return len(text)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return msgspec.json.decode(f'"{text}"'.encode(), type=str)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return clean_text(text)
