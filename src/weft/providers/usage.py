"""Token usage as vendors report it, in ours: a table of where each count stands, and one reader.

The counts of `Usage` do not overlap, so that each has one price; `reasoning_tokens` alone is a part
of the output.  Most vendors count the prompt as a whole, with what came from the cache in it: there
the cached parts are taken off.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from weft.messages import Usage

MOST_TOKENS: Final = 10**12
"""More than any request can use; stores count in 64 bits, and sums must stay below."""
FieldPath: TypeAlias = str
"""The way to a count inside the vendor's report: `prompt_tokens_details.cached_tokens`."""


class UsageFields(msgspec.Struct, frozen=True, kw_only=True):
    """Where one protocol's report has which count."""

    input: FieldPath
    output: tuple[FieldPath, ...]
    """Added up."""
    cache_read: tuple[FieldPath, ...] = ()
    """The first that is not zero: servers that speak the same protocol use different names."""
    cache_write: FieldPath = ""
    long_cache: FieldPath = ""
    """The part of `cache_write` that is kept for an hour."""
    reasoning: FieldPath = ""
    input_has_cached: bool = False
    """The input counts what was read from the cache, and written to it, as well."""


ANTHROPIC_USAGE: Final = UsageFields(
    input="input_tokens",
    output=("output_tokens",),
    cache_read=("cache_read_input_tokens",),
    cache_write="cache_creation_input_tokens",
    long_cache="cache_creation.ephemeral_1h_input_tokens",
)
CONVERSE_USAGE: Final = UsageFields(
    input="inputTokens",
    output=("outputTokens",),
    cache_read=("cacheReadInputTokens",),
    cache_write="cacheWriteInputTokens",
)
RESPONSES_USAGE: Final = UsageFields(
    input="input_tokens",
    output=("output_tokens",),
    cache_read=("input_tokens_details.cached_tokens",),
    cache_write="input_tokens_details.cache_write_tokens",
    reasoning="output_tokens_details.reasoning_tokens",
    input_has_cached=True,
)
CHAT_USAGE: Final = UsageFields(
    input="prompt_tokens",
    output=("completion_tokens",),
    cache_read=("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens"),
    cache_write="prompt_tokens_details.cache_write_tokens",
    reasoning="completion_tokens_details.reasoning_tokens",
    input_has_cached=True,
)
GEMINI_USAGE: Final = UsageFields(
    input="promptTokenCount",
    # Unlike the others, this vendor counts thoughts beside the answer and not in it.
    output=("candidatesTokenCount", "thoughtsTokenCount"),
    cache_read=("cachedContentTokenCount",),
    reasoning="thoughtsTokenCount",
    input_has_cached=True,
)
OLLAMA_USAGE: Final = UsageFields(input="prompt_eval_count", output=("eval_count",))


def read_usage(report: Mapping[str, Any], fields: UsageFields) -> Usage:
    """The usage that a vendor reports; what it leaves out is zero.

    A count that is no number is taken as left out: a wrong report must not end an answer that was
    paid for.
    """
    cached = next(filter(None, (_count(report, path) for path in fields.cache_read)), 0)
    written = _count(report, fields.cache_write)
    counted = _count(report, fields.input)
    # Never below zero: compatible servers report more cached tokens than prompt tokens.
    fresh = max(0, counted - cached - written) if fields.input_has_cached else counted
    return Usage(
        input_tokens=fresh,
        output_tokens=sum(_count(report, path) for path in fields.output),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=_count(report, fields.reasoning),
        # A part of the written ones; compatible servers may report what does not fit.
        long_cache_tokens=min(written, _count(report, fields.long_cache)),
    )


@functools.cache
def _names(path: FieldPath) -> tuple[str, ...]:
    """The steps of a path; there are only those of the tables above."""
    return tuple(path.split("."))


def _count(report: Mapping[str, Any], path: FieldPath) -> int:
    if not path:
        return 0
    found: object = report
    for name in _names(path):
        found = found.get(name) if isinstance(found, dict) else None
    # A bool is an int to Python, and a float is what some servers send for whole numbers.
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return int(found) if 0 <= found <= MOST_TOKENS else 0
