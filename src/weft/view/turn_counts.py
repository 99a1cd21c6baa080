"""The tally of a turn: for how long it ran, its calls, its tokens and what it cost.

Times are those that events carry; a clock that is set back in between gives no negative ones.
"""

from __future__ import annotations

from weft.events import (
    ChildFinished,
    ChildStarted,
    Event,
    FinishReason,
    ToolComplete,
    TurnStarted,
    UsageRecorded,
)
from weft.messages import NOTHING_USED, Usage
from weft.view.blocks import NoteBlock, TurnEndBlock
from weft.view.sentences import COMPACT_COMMAND, chat_sentence, finish_sentence

LONG_SECONDS = 10.0
"""A turn of so many seconds gets a closing line, also without a tool call."""


_AGAIN = "Your message is kept. Enter on the empty line tries again; /model picks another."
_OTHERWISE = "/rewind goes back to say it otherwise; /model picks another."
_ADVICE: dict[FinishReason, str] = {
    "max_turns": "Enter on the empty line goes on from here.",
    "max_time": "Enter on the empty line goes on from here.",
    "max_tool_calls": "Enter on the empty line goes on from here.",
    "max_budget": "/budget raises it.",
    "context_overflow": "/compact makes room; /rewind goes back.",
    "provider_error": _AGAIN,
    "auth_error": _AGAIN,
    "malformed_call": _AGAIN,
    "refusal": _OTHERWISE,
    "content_filter": _OTHERWISE,
    "safety": _OTHERWISE,
    "length": "Enter on the empty line goes on from here.",
    "paused": "Enter on the empty line goes on from here.",
}
"""What the user can do in a chat about a turn that did not end well."""


def finish_note(reason: FinishReason, detail: str) -> NoteBlock:
    """A turn that did not end well, as a note: what happened, and what to do about it."""
    # The provider's own sentence says more than that a provider failed.
    sentence = detail if reason == "provider_error" and detail else finish_sentence(reason, detail)
    said = chat_sentence(sentence)
    text = said[:1].upper() + said[1:]
    advice = _ADVICE.get(reason, "")
    if reason == "context_overflow" and COMPACT_COMMAND in text:
        advice = "/rewind goes back."
    return NoteBlock(text=text, level="error", advice=advice)


class TurnCounts:
    """Counts one turn after the other."""

    def __init__(self) -> None:
        self._began = 0.0
        self._calls = 0
        self._used = NOTHING_USED
        self._agents: dict[str, float] = {}

    def take(self, event: Event) -> None:
        """Take one more event in."""
        match event:
            case TurnStarted(at=at):
                self._began, self._calls = at, 0
                self._used = NOTHING_USED
            case ToolComplete():
                self._calls += 1
            case UsageRecorded(usage=usage):
                self._used += usage
            case ChildStarted(call_uid=call_uid, at=at):
                self._agents[call_uid or ""] = at
            case ChildFinished(usage=Usage() as usage):
                self._used += usage
            case _:
                pass

    def seconds(self, at: float) -> float:
        """Of the turn, up to now."""
        return max(0.0, at - self._began) if self._began else 0.0

    def milliseconds_since(self, call_uid: str, at: float) -> int:
        """Since an agent was put to work for a call."""
        began = self._agents.pop(call_uid, 0.0)
        return max(0, round((at - began) * 1000)) if began else 0

    def end(self, at: float) -> list[TurnEndBlock]:
        """The closing line of a turn that was long or used tools."""
        seconds = self.seconds(at)
        if seconds < LONG_SECONDS and not self._calls:
            return []
        used = self._used
        return [
            TurnEndBlock(
                seconds=round(seconds, 1),
                ended_at=at,
                calls=self._calls,
                input_tokens=used.input_tokens + used.cache_write_tokens,
                output_tokens=used.output_tokens,
                cost_usd=used.cost_usd,
            )
        ]

    def stopped(self, at: float) -> NoteBlock:
        """What is said of a turn that the user stopped."""
        seconds = int(self.seconds(at))
        after = f" after {seconds} s" if seconds else ""
        return NoteBlock(text=f"Stopped{after}. What should it do instead?", level="stopped")
