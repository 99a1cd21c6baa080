"""The answer of a model, built from the pieces of its stream, and what its stop reason means.

Pure: no waiting, no clock.

An answer that was refused, filtered or blocked ends the turn under a reason of its own.  One that
was cut off at the output limit, or paused by the vendor, is continued by itself: its text stays on
the line, and the model reads that it is to go on.  How often is bounded, because a model that says
too much once does so again, at full price.  A tool call of which only half came is never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from weft.events import FinishReason
from weft.ids import new_call_uid
from weft.messages import Part, Text, Thinking, ToolCall, Usage, clean_text
from weft.providers import (
    CallArgs,
    CallStarted,
    SentBody,
    StopReason,
    StreamEvent,
    StreamFinished,
    TextDone,
    TextPiece,
    ThinkingDone,
    ThinkingPiece,
    UsageSeen,
)

ARGS_LIMIT: Final = 8 * 1024 * 1024
"""Characters of one call's arguments; what is longer is malformed."""
DEEPEST_ARGS: Final = 64
"""Levels of nesting in arguments; what is deeper could be stored and never read again."""
LONGEST_ANSWER: Final = 8 * 1024 * 1024
"""Characters of one answer, reasoning included: far beyond what any model may say, and what a
broken server would go beyond.
"""
KEPT_OF_ENDLESS: Final = 64 * 1024
"""Characters of text that are kept of an answer without an end.

More would be in the way of every later request.
"""
BLOCK_WEIGHT: Final = 100
"""What each part of an answer counts for, besides its text."""
CUT_OFF: Final = "(nothing: the answer was cut off)"
"""The arguments of a call that was cut off before they began."""
RAW_KEPT: Final = 2_000
"""Characters of malformed arguments that are kept to show the model."""

MOST_CONTINUATIONS: Final = 3
"""How often the answers of one turn are continued in a row."""

GO_ON = (
    "Your last answer was cut off at the output limit. Go on exactly where it stopped, "
    "and do not repeat what you have said."
)
SAY_LESS = (
    "Your last answer reached the output limit before it said anything. "
    "Think less, and answer in fewer words."
)
GO_ON_PAUSED = "Your last answer was paused. Go on from where it stopped."
CUT_CALL = (
    "Your last answer was cut off at the output limit in the middle of a tool call, which was not "
    "run. Make the call again with shorter arguments: write a long file in several steps."
)
MALFORMED_CALL = (
    "Your last tool call was malformed, so nothing was run. "
    "Make it again with arguments that are one valid JSON object, or answer with text."
)
CUT_NOTE = "The answer was cut off at the output limit; it goes on."

# Of these the model would answer the same again: asking it once more only costs money.
BLOCKED: Final[Mapping[StopReason, FinishReason]] = {
    "refusal": "refusal",
    "content_filter": "content_filter",
    "safety": "safety",
}
_CONTINUED: Final[Mapping[StopReason, FinishReason]] = {"length": "length", "pause": "paused"}


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A finished (or broken off) answer."""

    parts: tuple[Part, ...]
    usage: Usage | None
    stop: StopReason | None
    """None: the stream broke off."""
    detail: str = ""
    sent: SentBody | None = None
    """What went out for it, where the provider says."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def says_something(self) -> bool:
        """True when there is text or a call, not just reasoning."""
        return any(
            isinstance(part, ToolCall) or (isinstance(part, Text) and bool(part.text.strip()))
            for part in self.parts
        )


class _Call:
    def __init__(self, started: CallStarted) -> None:
        self.started = started
        self.args: list[str] = []
        self.size = 0


class AnswerBuilder:
    """Collects one answer."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._blocks: list[Text | Thinking | _Call] = []
        self._open: list[str] = []
        self._open_kind: str | None = None
        self._calls: dict[int, _Call] = {}
        self.usage: Usage | None = None
        self.finished: StreamFinished | None = None
        self.text_length = 0
        self.thinking_length = 0

    def add(self, event: StreamEvent) -> None:
        """Take one more piece."""
        match event:
            case TextPiece(text=text):
                self._append("text", text)
                self.text_length += len(text)
            case ThinkingPiece(text=text):
                self._append("thinking", text)
                self.thinking_length += len(text)
            case TextDone(signature=signature):
                self._close_text(signature)
            case ThinkingDone(signature=signature, redacted=redacted):
                self._close_thinking(signature, redacted)
            case CallStarted(index=index):
                self._close()
                call = _Call(event)
                self._calls[index] = call
                self._blocks.append(call)
            case CallArgs(index=index, text=text):
                self._add_args(index, text)
            case UsageSeen(usage=usage):
                self.usage = usage
            case StreamFinished():
                self.finished = event

    @property
    def is_endless(self) -> bool:
        """It is longer than any answer can be.  Arguments do not count: they have a limit of their
        own, which the model reads of.
        """
        length = self.text_length + self.thinking_length
        # Parts count too: a server that sends empty ones for ever would otherwise never reach the
        # limit.
        return length + BLOCK_WEIGHT * len(self._blocks) > LONGEST_ANSWER

    @property
    def has_begun(self) -> bool:
        """True when anything has arrived, so that the attempt is not for nothing."""
        return bool(self.text_length or self.thinking_length or self._calls or self.usage)

    @property
    def has_shown(self) -> bool:
        """True when something came that screens show while it comes."""
        return bool(self.text_length or self.thinking_length or self._calls)

    def tool_name(self, index: int) -> str:
        """The name of the `index`-th call, for showing."""
        return self._calls[index].started.name if index in self._calls else ""

    def arguments_length(self, index: int) -> int:
        """How much of the `index`-th call's arguments has come."""
        return self._calls[index].size if index in self._calls else 0

    def answer(self, now: float) -> ModelAnswer:
        """The whole answer."""
        self._close()
        finished = self.finished
        is_cut = finished is not None and finished.reason == "length"
        return ModelAnswer(
            parts=tuple(
                self._part(block, now, is_cut=is_cut and block is self._blocks[-1])
                for block in self._blocks
            ),
            usage=self.usage,
            stop=finished.reason if finished is not None else None,
            detail=finished.detail if finished is not None else "",
        )

    def partial(self) -> tuple[Part, ...]:
        """What may be kept of an answer that broke off: its text.

        Reasoning and half calls are dropped.
        """
        self._close()
        # Vendors refuse reasoning without its signature and calls with half their arguments when
        # they are sent back, so neither may get into the log.
        texts = tuple(block for block in self._blocks if isinstance(block, Text) and block.text)
        # An endless answer is mostly repetition. Its beginning shows what went wrong, and the whole
        # of it would fill the window of every later request.
        if not self.is_endless:
            return texts
        beginning = "".join(block.text for block in texts)[:KEPT_OF_ENDLESS]
        return (Text(text=beginning),) if beginning else ()

    def _append(self, kind: str, text: str) -> None:
        if self._open_kind != kind:
            self._close()
            self._open_kind = kind
        self._open.append(text)

    def _close(self) -> None:
        text = clean_text("".join(self._open))
        if self._open_kind == "text" and text:
            self._blocks.append(Text(text=text))
        elif self._open_kind == "thinking" and text:
            self._blocks.append(Thinking(text=text, provider=self._provider, model=self._model))
        self._open = []
        self._open_kind = None

    def _close_text(self, signature: str) -> None:
        """End a block of text; the next piece begins another, even if nothing comes between."""
        self._close()
        last = self._blocks[-1] if self._blocks else None
        # A signature may come in a piece of its own, without text.
        if signature and isinstance(last, Text):
            self._blocks[-1] = Text(text=last.text, signature=signature)

    def _close_thinking(self, signature: str, redacted: str) -> None:
        text = clean_text("".join(self._open)) if self._open_kind == "thinking" else ""
        if self._open_kind != "thinking":
            self._close()
        self._open = []
        self._open_kind = None
        self._blocks.append(
            Thinking(
                text=text,
                signature=signature,
                redacted=redacted,
                provider=self._provider,
                model=self._model,
            )
        )

    def _add_args(self, index: int, text: str) -> None:
        call = self._calls.get(index)
        # Arguments of a call that never started: the stream is broken, and there is nothing to add
        # them to.
        if call is None:
            return
        call.size += len(text)
        # The size goes on counting, so that `_parse_args` can tell whole arguments from a
        # beginning.
        if call.size <= ARGS_LIMIT:
            call.args.append(text)

    def _part(self, block: Text | Thinking | _Call, now: float, *, is_cut: bool) -> Part:
        if not isinstance(block, _Call):
            return block
        # The call gets an id of our own: some vendors send none, and some send the same one in
        # every answer.
        raw = "".join(block.args)
        args, problem = _parse_args(raw, block.size)
        # Decoders give a call without arguments an empty object. Of one that was cut off before its
        # arguments began, that is not what the model meant.
        if is_cut and not args:
            problem = problem or CUT_OFF
        return ToolCall(
            call_uid=new_call_uid(now),
            name=clean_text(block.started.name),
            args=args,
            provider_id=block.started.provider_id,
            provider=self._provider,
            raw_args=problem,
            signature=block.started.signature,
        )


def _parse_args(raw: str, size: int) -> tuple[dict[str, Any], str]:
    """The arguments, and what was sent instead when they are no JSON object."""
    if not raw.strip() and size == 0:
        return {}, ""
    if size <= ARGS_LIMIT:
        try:
            decoded = msgspec.json.decode(clean_text(raw))
        # JSON that is nested too deeply raises RecursionError and no decoding error; to us both
        # mean that the model made a mistake, which it is shown.
        except (msgspec.MsgspecError, RecursionError):
            decoded = None
        if isinstance(decoded, dict) and _depth(decoded) <= DEEPEST_ARGS:
            return decoded, ""
    return {}, clean_text(raw[:RAW_KEPT]) or "(nothing)"


def _depth(value: Any) -> int:
    """How deep lists and maps are nested, without recursion."""
    depth = 0
    level = [value]
    while level:
        depth += 1
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        # Deeper than allowed is all that is asked; the rest of a hostile value need not be walked.
        if depth > DEEPEST_ARGS:
            break
    return depth


# --- stop reasons ----------------------------------------------------------------------


class EndVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of an answer means for the turn: it ends, or the model reads `nudge`."""

    ends: FinishReason | None = None
    nudge: str = ""
    note: str = ""
    """What the user reads."""


class AnswerEnds:
    """Judges how the answers of one turn ended, and joins those that were continued."""

    def __init__(self) -> None:
        self._continued = 0
        self._before: tuple[Part, ...] = ()

    def verdict(self, answer: ModelAnswer) -> EndVerdict | None:
        """What follows from the stop reason; None for an answer that came to its own end."""
        if answer.stop is None:
            return None
        if (blocked := BLOCKED.get(answer.stop)) is not None:
            return EndVerdict(ends=blocked)
        ends = _CONTINUED.get(answer.stop)
        # An answer with calls goes on by itself, with their results.
        if ends is None or answer.calls:
            self._continued = 0
            return None
        self._continued += 1
        if self._continued > MOST_CONTINUATIONS:
            return EndVerdict(ends=ends)
        if answer.stop == "pause":
            return EndVerdict(nudge=GO_ON_PAUSED)
        if not answer.says_something:
            return EndVerdict(nudge=SAY_LESS)
        return EndVerdict(nudge=GO_ON, note=CUT_NOTE)

    def whole(self, answer: ModelAnswer) -> ModelAnswer:
        """The answer with the texts before it that it continues."""
        texts = tuple(part for part in answer.parts if isinstance(part, Text))
        joined = (*self._before, *texts)
        self._before = joined if answer.stop in _CONTINUED and not answer.calls else ()
        if len(joined) == len(texts):
            return answer
        others = tuple(part for part in answer.parts if not isinstance(part, Text))
        return msgspec.structs.replace(answer, parts=(*joined, *others))


def was_cut_in_call(answer: ModelAnswer) -> bool:
    """True when the output limit fell into a tool call."""
    return answer.stop == "length" and bool(answer.calls) and bool(answer.calls[-1].raw_args)
