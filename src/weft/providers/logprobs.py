"""Logprobs: the probability that a model gave to each token of its answer, and the alternatives.

Read only for requests that ask for them, by a decoder around the vendor's own, so that everyday
streams pay nothing.  What a vendor does not report is missing, never made up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from weft.providers.base import StreamDecoder, StreamEvent, TextPiece, ThinkingPiece

MOST_ALTERNATIVES = 20
"""More are refused by every vendor that has them."""

Alternative: TypeAlias = tuple[str, float]
"""A token's text and its logprob."""


class TokenLogprob(msgspec.Struct, frozen=True, array_like=True):
    """One token of an answer: its text, its natural logarithm of probability, and what else could
    have stood there, the likeliest first.
    """

    text: str
    logprob: float
    alternatives: tuple[Alternative, ...] = ()


class ScoredPiece(TextPiece, frozen=True, tag="scored"):
    """More text of the answer, with the tokens that were reported since the piece before.

    The texts of all tokens of an answer make up its text, except where the vendor reports a token
    of half a character: that stands there as U+FFFD.
    """

    tokens: tuple[TokenLogprob, ...] = ()


class LogprobDecoder:
    """A decoder that adds the tokens of each event to the text that another one decodes."""

    def __init__(self, inner: StreamDecoder) -> None:
        self.is_finished = inner.is_finished
        self._inner = inner
        self._waiting: list[TokenLogprob] = []

    def feed(self, name: bytes, data: bytes) -> Iterable[StreamEvent]:
        """What an event means, its text with the tokens that it reports."""
        events = list(self._inner.feed(name, data))
        self.is_finished = self._inner.is_finished
        self._waiting += read_tokens(data)
        return self._scored(events)

    def end(self) -> Iterable[StreamEvent]:
        """What the end of the stream means."""
        events = list(self._inner.end())
        self.is_finished = self._inner.is_finished
        return self._scored(events)

    def _scored(self, events: list[StreamEvent]) -> list[StreamEvent]:
        # Tokens of reasoning are none of the answer; no vendor reports both in one event.
        if any(isinstance(event, ThinkingPiece) for event in events):
            self._waiting.clear()
        for place, event in enumerate(events):
            # Text may be held back (half a tag): its tokens then wait for it.
            if isinstance(event, TextPiece) and self._waiting:
                events[place] = ScoredPiece(event.text, tuple(self._waiting))
                self._waiting.clear()
        return events


def read_tokens(data: bytes) -> list[TokenLogprob]:
    """The tokens that an event reports, in any of the shapes that vendors have for them.

    Chat Completions and llama.cpp: `choices[0].logprobs.content`, a list of tokens.  Text
    completion of OpenAI and vLLM: lists side by side.  Ollama and Responses: a list `logprobs` of
    the event itself.
    """
    if b'"logprobs"' not in data:
        return []
    try:
        event: Any = msgspec.json.decode(data)
        found = _report(event)
        if isinstance(found, dict) and isinstance(found.get("tokens"), list):
            return _side_by_side(found)
        listed = found.get("content") if isinstance(found, dict) else found
        return [_token(each) for each in listed] if isinstance(listed, list) else []
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        # A report that cannot be read is none: it must not end an answer that was paid for.
        return []


def _report(event: Any) -> Any:
    if isinstance(event.get("choices"), list) and event["choices"]:
        return event["choices"][0].get("logprobs")
    return event.get("logprobs")


def _token(said: Any) -> TokenLogprob:
    others = said.get("top_logprobs") or ()
    return TokenLogprob(
        _text(said),
        _number(said["logprob"]),
        _ordered((_text(each), _number(each["logprob"])) for each in others),
    )


def _text(said: Any) -> str:
    # Where the token is a part of a character, the text is an escape of the vendor's own, and only
    # the bytes say what it is.
    if isinstance(given := said.get("bytes"), list):
        return bytes(given).decode("utf-8", "replace")
    return str(said["token"])


def _side_by_side(found: dict[str, Any]) -> list[TokenLogprob]:
    others = found.get("top_logprobs") or [None] * len(found["tokens"])
    rows = zip(found["tokens"], found["token_logprobs"], others, strict=True)
    # The first token of an echoed prompt has no probability.
    return [
        TokenLogprob(str(text), _number(logprob), _ordered((other or {}).items()))
        for text, logprob, other in rows
        if logprob is not None
    ]


def _ordered(others: Iterable[Alternative]) -> tuple[Alternative, ...]:
    pairs = [(str(text), _number(logprob)) for text, logprob in others]
    return tuple(sorted(pairs, key=lambda each: -each[1])[:MOST_ALTERNATIVES])


def _number(value: Any) -> float:
    """A finite logprob: JSON has no infinity, and vendors write -9999 or null for it."""
    number = float(value)
    if math.isnan(number):
        raise ValueError("not a number")
    return max(number, -9999.0)
