"""Requests in words, the same on every screen: what a part is, what the cache did, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.evidence.cache_causes import CacheReport
from weft.evidence.request_parts import RequestPart

PART_WORDS: Final = {
    "tools": "tools",
    "system": "system prompt",
    "instructions": "instructions (AGENTS.md)",
    "memory": "memory",
    "skills": "skills",
    "agents": "agents",
    "map": "map of the project",
    "summary": "summary of older messages",
    "user": "your messages",
    "files": "files and pictures",
    "notes": "notes of Weft",
    "answers": "answers",
    "reasoning": "reasoning",
    "calls": "tool calls",
    "results": "tool results",
}
PART_HEAD: Final = ("part", "tokens", "change", "cached", "cost")
_STATES: Final = {
    "first": "the first request",
    "hit": "cache hit",
    "partial": "cache partly missed",
    "miss": "cache missed",
    "unknown": "cache not reported",
}


def part_rows(parts: Sequence[RequestPart], *, has_before: bool) -> list[tuple[str, ...]]:
    """For each part: its name, tokens, how many more than before, how many cached, and its cost."""
    return [
        (
            PART_WORDS.get(part.name, part.name),
            f"{part.tokens:,}",
            _difference(part.tokens - part.before_tokens) if has_before else "",
            f"{part.cached_tokens:,}" if part.cached_tokens else "",
            "" if part.cost_usd is None else f"${part.cost_usd:.5f}",
        )
        for part in parts
    ]


def cache_lines(report: CacheReport) -> list[str]:
    """What the vendor read from its cache, and each cause why it was not more."""
    said = _STATES[report.state]
    if report.prompt_tokens and report.state != "unknown":
        said = f"{said}: {report.read_tokens:,} of {report.prompt_tokens:,} tokens read from it"
    return [said, *(f"{cause.kind}: {cause.text}" for cause in report.causes)]


def _difference(tokens: int) -> str:
    return f"{tokens:+,}" if tokens else ""
