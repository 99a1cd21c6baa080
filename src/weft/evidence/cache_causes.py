"""Prompt caches: whether a request was read from its vendor's, and if not, what stood in the way.

A vendor reuses a request as far as its beginning is that of an earlier one, byte for byte, for the
same model with the same settings, for a limited time.  So a miss has its cause in what differs from
the request before, in the pause between the two, or with the vendor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from weft.messages import Usage

CacheState: TypeAlias = Literal["first", "hit", "partial", "miss", "unknown"]
CauseKind: TypeAlias = Literal[
    "vendor",
    "model",
    "mode",
    "tools",
    "instructions",
    "system",
    "effort",
    "compaction",
    "history",
    "pause",
    "short",
]

HIT_SHARE: Final = 0.8
"""Of the request before, what a hit reads at least: vendors cache in steps."""
MISS_SHARE: Final = 0.1
LEAST_CACHED: Final = 1_024
"""Tokens; no vendor caches a shorter request."""
_ALWAYS_REPORT: Final = frozenset({"anthropic", "openai", "google", "azure", "bedrock", "vertex"})
_KEPT_SECONDS: Final[Mapping[str, float]] = {
    "anthropic": 300,
    "bedrock": 300,
    "openai": 600,
    "azure": 600,
    "ollama": 300,
}
_USUALLY_KEPT: Final = 3_600.0
_KEPT_FOR_LONG: Final = 3_600.0


class RequestShape(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache goes by, of one request."""

    model: str
    """`provider:model`."""
    thinking: str
    mode: str
    """The permission mode."""
    system: dict[str, str]
    """The text of each zone of the system prompt, by name."""
    tools: dict[str, str]
    """The declaration of each tool, by name."""
    summary: str
    """What stands for the messages that were compacted."""
    cleared: int
    """Results of tools that were cleared."""
    messages: tuple[bytes, ...]
    """The digest of each message."""
    began: float
    ended: float
    """When it was sent, and when its answer had come."""
    is_kept_for_long: bool = False
    """The vendor was asked to keep it for an hour."""

    @property
    def provider(self) -> str:
        """Whose cache it is."""
        return self.model.partition(":")[0]

    @property
    def kept_seconds(self) -> float:
        """How long the vendor keeps it."""
        if self.is_kept_for_long:
            return _KEPT_FOR_LONG
        return _KEPT_SECONDS.get(self.provider, _USUALLY_KEPT)


class CacheCause(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that kept a request from being read from the cache."""

    kind: CauseKind
    text: str


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the vendor read of a request from its cache, and why not more."""

    state: CacheState
    read_tokens: int = 0
    written_tokens: int = 0
    prompt_tokens: int = 0
    """The whole request; the answer is not in it."""
    could_read_tokens: int = 0
    """What the request before had."""
    causes: tuple[CacheCause, ...] = ()


def prompt_tokens(usage: Usage) -> int:
    """The tokens of a request, cached or not."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def cache_report(
    now: RequestShape,
    usage: Usage | None,
    before: RequestShape | None,
    earlier: Usage | None,
    *,
    reports: bool,
) -> CacheReport:
    """Judge one request by the one before; `reports`: the vendor has spoken of its cache before."""
    if usage is None:
        causes = () if before is None else differences(before, now)
        return CacheReport(state="unknown", causes=causes)
    found = CacheReport(
        state="first",
        read_tokens=usage.cache_read_tokens,
        written_tokens=usage.cache_write_tokens,
        prompt_tokens=prompt_tokens(usage),
        could_read_tokens=0 if earlier is None else prompt_tokens(earlier),
    )
    if before is None:
        return found
    state = _state(found, is_known=reports or now.provider in _ALWAYS_REPORT)
    if state == "hit":
        return msgspec.structs.replace(found, state=state)
    causes = differences(before, now) or _others(before, now, found, state)
    return msgspec.structs.replace(found, state=state, causes=causes)


def _state(report: CacheReport, *, is_known: bool) -> CacheState:
    most = report.could_read_tokens or report.prompt_tokens
    if report.read_tokens >= most * HIT_SHARE and report.read_tokens:
        return "hit"
    if not is_known and not report.read_tokens and not report.written_tokens:
        return "unknown"
    return "partial" if report.read_tokens > most * MISS_SHARE else "miss"


def _others(
    before: RequestShape, now: RequestShape, report: CacheReport, state: CacheState
) -> tuple[CacheCause, ...]:
    """What can be the cause where the request begins as the one before."""
    pause = now.began - before.ended
    if pause > before.kept_seconds:
        text = f"{_span(pause)} have passed; {now.provider} keeps it for {_span(now.kept_seconds)}"
        return (CacheCause(kind="pause", text=text),)
    if state == "unknown":
        return ()
    if report.could_read_tokens < LEAST_CACHED:
        text = f"the request before was shorter than {LEAST_CACHED:,} tokens, which is not cached"
        return (CacheCause(kind="short", text=text),)
    text = (
        "the request begins as the one before, and no pause explains it: the vendor had dropped "
        "it, or the key belongs to another account"
    )
    return (CacheCause(kind="vendor", text=text),)


def differences(before: RequestShape, now: RequestShape) -> tuple[CacheCause, ...]:
    """What differs between the beginnings of two requests, the most far-reaching first."""
    found: list[CacheCause] = []
    if before.provider != now.provider:
        found.append(_changed("vendor", "the vendor", before.provider, now.provider))
    elif before.model != now.model:
        found.append(_changed("model", "the model", before.model, now.model))
    found += _prefix_causes(before, now)
    if before.thinking != now.thinking:
        found.append(_changed("effort", "the effort", before.thinking, now.thinking))
    pause = now.began - before.ended
    if found and pause > before.kept_seconds:
        text = f"{_span(pause)} have passed besides"
        found.append(CacheCause(kind="pause", text=text))
    return (*found, *_conversation_causes(before, now))


def _prefix_causes(before: RequestShape, now: RequestShape) -> list[CacheCause]:
    found: list[CacheCause] = []
    if before.tools != now.tools:
        words = _tool_words(before.tools, now.tools)
        if before.mode != now.mode and "plan" in (before.mode, now.mode):
            text = f"the mode went from {before.mode} to {now.mode}, and with it the tools: {words}"
            found.append(CacheCause(kind="mode", text=text))
        else:
            found.append(CacheCause(kind="tools", text=f"the tools changed: {words}"))
    changed = [
        name
        for name in {**before.system, **now.system}
        if before.system.get(name, "") != now.system.get(name, "")
    ]
    if "instructions" in changed:
        text = "the instruction files (AGENTS.md) say something else"
        found.append(CacheCause(kind="instructions", text=text))
    if others := [name for name in changed if name != "instructions"]:
        text = f"the system prompt changed: {', '.join(others)}"
        found.append(CacheCause(kind="system", text=text))
    return found


def _conversation_causes(before: RequestShape, now: RequestShape) -> list[CacheCause]:
    if before.summary != now.summary:
        text = "older messages were compacted" if now.summary else "a compaction was undone"
        return [CacheCause(kind="compaction", text=text)]
    if before.cleared != now.cleared:
        text = "results of tools were cleared to make room"
        return [CacheCause(kind="compaction", text=text)]
    same = shared_messages(before.messages, now.messages)
    if same < len(before.messages):
        text = (
            f"the conversation differs from message {same + 1} of {len(before.messages)} on: "
            "another branch, an edit, or a message taken out or put back"
        )
        return [CacheCause(kind="history", text=text)]
    return []


def shared_messages(before: tuple[bytes, ...], now: tuple[bytes, ...]) -> int:
    """With how many same messages two conversations begin."""
    pairs = zip(before, now, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(before), len(now)))


def _changed(kind: CauseKind, what: str, before: str, now: str) -> CacheCause:
    return CacheCause(kind=kind, text=f"{what} went from {before} to {now}")


def _tool_words(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    added = [f"+{name}" for name in now if name not in before]
    gone = [f"-{name}" for name in before if name not in now]
    other = [name for name in now if name in before and before[name] != now[name]]
    return ", ".join((*added, *gone, *other)) or "their order"


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
