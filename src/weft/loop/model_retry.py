"""Retries of a model call: send, stream, keep the draft, try again where that can help."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from weft import faults
from weft.errors import ProviderError, ProviderUnavailable
from weft.events import AnswerRestarted, LlmRetry, TextDelta, ThinkingDelta, ToolArgsDelta
from weft.ids import NodeId
from weft.loop.answer import AnswerBuilder, ModelAnswer
from weft.loop.base import ModelEnvironment, TurnLimits
from weft.messages import DraftPart
from weft.providers import (
    SENT_BODY,
    CallArgs,
    ModelRequest,
    SentBody,
    StreamEvent,
    TextPiece,
    ThinkingPiece,
)
from weft.request_sign import REQUEST_SENT

DRAFT_SECONDS: Final = 0.25
"""How often text in flight is kept beside the log."""
FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 30.0
# An overloaded server refuses at once; one that is silent costs minutes with every try, and is
# billed for each.
TIMEOUT_RETRIES: Final = 2
"""How often a call is made again to which nothing was answered."""
FALLBACK_RETRIES: Final = 2
"""How often a call is made again where another model can answer instead."""

LONGEST_TOLD: Final = 366 * 24 * 3600.0
"""Seconds beyond which a time to come back is not computed."""

_BEFORE_CALL = faults.point("loop.request.before_call")
_MID_STREAM = faults.point("loop.request.mid_stream")
_AFTER_STREAM = faults.point("loop.request.after_stream")


class BrokenAnswer(Exception):
    """The model could not be made to answer; the request holds what had come."""

    def __init__(self, error: ProviderError, retries: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.retries = retries


class StaleRequest(Exception):
    """It would be sent again with messages that were excluded meanwhile, or without some that were
    put back.
    """

    def __init__(self, retries: int) -> None:
        super().__init__("other messages are excluded by now")
        self.retries = retries


class ModelCallAttempts:
    """One model call with its retries.  `builder` holds what has arrived, also after a cancel."""

    def __init__(
        self, environment: ModelEnvironment, node: NodeId, *, is_quiet: bool = False
    ) -> None:
        self._env = environment
        self._node = node
        self._is_quiet = is_quiet
        self.retries = 0
        self.discarded: list[ModelAnswer] = []
        """What attempts brought that were given up; the vendor bills it all the same."""
        self.is_out = False
        """It was sent, and neither answered nor refused: the vendor bills what it was sent,
        whatever has come of it.
        """
        self._scratch: dict[int, Any] = {}
        self.builder = self._new_builder()
        self._draft = _Draft(environment, node)

    @property
    def is_billed(self) -> bool:
        """The present attempt used something, as far as one can tell."""
        return self.is_out or self.builder.has_begun

    async def answer(self, request: ModelRequest, *, may_go_stale: bool = False) -> ModelAnswer:
        """Stream the answer to its end.

        Raises:
            BrokenAnswer: retrying cannot help, or did not.
            StaleRequest: where it may go stale, and has before it could be sent again.
        """
        waited, excluded = 0.0, self._excluded
        while True:
            try:
                return await self._attempt(request)
            except ProviderError as error:
                # The vendor has answered, be it with an error; what this attempt used is what has
                # come of it.
                self.is_out = False
                wait = wait_before_retry(
                    error, retries=self.retries, waited=waited, limits=self._limits
                )
                if wait is None:
                    final = with_retry_time(error, self._env.clock.now())
                    raise BrokenAnswer(final, self.retries) from error
                waited += wait
                await self._start_over(error, wait)
                if may_go_stale and self._excluded != excluded:
                    raise StaleRequest(self.retries) from error

    @property
    def _excluded(self) -> tuple[NodeId, ...]:
        return tuple(self._env.journal.state.tree.excluded)

    @property
    def _limits(self) -> TurnLimits:
        """The limits of the turn; fewer tries where a fallback waits."""
        limits, fallback = self._env.limits, self._env.fallback
        if fallback is None or not fallback.has_next:
            return limits
        return msgspec.structs.replace(limits, retries=min(limits.retries, FALLBACK_RETRIES))

    async def _attempt(self, request: ModelRequest) -> ModelAnswer:
        _BEFORE_CALL.hit()
        self._scratch = request.scratch
        self._scratch.pop(SENT_BODY, None)
        # Set before the request is sent: a cancel in the middle of it cannot know whether the
        # vendor has begun to bill.
        self.is_out = True
        told = REQUEST_SENT.set(self._env.request_sent)
        try:
            await self._stream(request)
        finally:
            REQUEST_SENT.reset(told)
        _AFTER_STREAM.hit()
        # A connection may end without an error in the middle of an answer. Only the vendor's own
        # end marker tells a whole answer from half of one.
        if self.builder.finished is None:
            raise ProviderUnavailable("the model's answer broke off before it was finished")
        return msgspec.structs.replace(self.builder.answer(self._env.clock.now()), sent=self._sent)

    async def _stream(self, request: ModelRequest) -> None:
        builder, is_quiet = self.builder, self._is_quiet
        async with self._env.model.stream(request) as stream:
            # Models that are not reached over HTTP say nothing of it themselves.
            self._env.request_sent()
            async for event in stream:
                if not is_quiet:
                    # Before it is added to the answer: the offset of a piece is the length of what
                    # came before it.
                    self._show(event)
                builder.add(event)
                _MID_STREAM.hit()
                if builder.is_endless:
                    # Not retryable: a server that does not stop would do the same again, at full
                    # price.
                    raise ProviderError("the model's answer does not end; it was cut off")

    @property
    def _sent(self) -> SentBody | None:
        """What went out in the present attempt."""
        found: SentBody | None = self._scratch.get(SENT_BODY)
        return found

    def _show(self, event: StreamEvent) -> None:
        builder, journal = self.builder, self._env.journal
        match event:
            case TextPiece(text=text):
                journal.signal(TextDelta(node_id=self._node, offset=builder.text_length, text=text))
                self._draft.add("text", text)
            case ThinkingPiece(text=text):
                journal.signal(
                    ThinkingDelta(node_id=self._node, offset=builder.thinking_length, text=text)
                )
                self._draft.add("thinking", text)
            case CallArgs(index=index, text=text):
                journal.signal(
                    ToolArgsDelta(
                        node_id=self._node,
                        index=index,
                        tool_name=builder.tool_name(index),
                        text=text,
                        offset=builder.arguments_length(index),
                    )
                )
                self._draft.add("arguments", text, index, builder.tool_name(index))
            case _:
                pass

    async def _start_over(self, error: ProviderError, wait: float) -> None:
        self.retries += 1
        journal = self._env.journal
        journal.signal(
            LlmRetry(
                attempt=self.retries,
                tries=most_retries(error, self._limits) + 1,
                wait_ms=int(wait * 1000),
                reason=str(error),
            )
        )
        self.discard()
        await self._env.sleep(wait)

    def discard(self) -> None:
        """Give the present attempt up."""
        # A new attempt is a new answer and cannot continue the old one. What came is counted,
        # dropped, and taken back from those who were shown it.
        if self.builder.has_begun:
            self.discarded.append(self.partial())
        if not self._is_quiet and self.builder.has_shown:
            self._env.journal.signal(AnswerRestarted(node_id=self._node))
        self.builder = self._new_builder()
        if not self._is_quiet:
            self._draft.restart()

    def partial(self) -> ModelAnswer:
        """What has arrived of the present attempt and may be kept."""
        return ModelAnswer(
            parts=self.builder.partial(), usage=self.builder.usage, stop=None, sent=self._sent
        )

    def _new_builder(self) -> AnswerBuilder:
        info = self._env.model.info
        return AnswerBuilder(info.provider, info.name)


def most_retries(error: ProviderError, limits: TurnLimits) -> int:
    """How often a call is made again after such an error."""
    return min(limits.retries, TIMEOUT_RETRIES) if error.timed_out else limits.retries


def wait_before_retry(
    error: ProviderError, *, retries: int, waited: float, limits: TurnLimits
) -> float | None:
    """Seconds to wait before a failed call is made again; None when it is not."""
    if not error.retryable or retries >= most_retries(error, limits):
        return None
    import random  # not while all is well: it costs start-up time

    backoff = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2**retries)
    # Jitter: the agents of a session share a rate limit, and without it they would all come back in
    # the same instant.
    wait = backoff * random.uniform(0.5, 1.0)
    if error.retry_after_seconds is not None:
        wait = max(wait, error.retry_after_seconds)
    # A wait that the vendor asks for is never shortened: where it is too long, giving up at once
    # says so while the user is still there.
    return wait if waited + wait <= limits.retry_seconds else None


def with_retry_time(error: ProviderError, now: float) -> ProviderError:
    """The error with the time at which the vendor wants to be asked again, if it named one.

    `now` is wall-clock time.
    """
    seconds = error.retry_after_seconds
    if not error.retryable or seconds is None or seconds < 1:
        return error
    from datetime import UTC, datetime, timedelta  # only for this sentence

    # A vendor may name any number; a date beyond the calendar would hide the error itself.
    until = datetime.fromtimestamp(now, UTC) + timedelta(seconds=min(seconds, LONGEST_TOLD))
    again = f"{until:%H:%M:%S}" if seconds < 12 * 3600 else f"{until:%Y-%m-%d %H:%M}"
    # The vendor's sentence goes on, so its full stop goes.
    text = f"{str(error).rstrip('. ')}; it asks to wait {_duration(seconds)}, until {again} UTC"
    return error.reworded(text)


def _duration(seconds: float) -> str:
    whole = math.ceil(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = math.ceil(whole / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class _Draft:
    """Text in flight, handed to the store a few times a second."""

    def __init__(self, environment: ModelEnvironment, node: NodeId) -> None:
        self._env = environment
        self._node = node
        self._chunks: dict[tuple[DraftPart, int, str], list[str]] = {}
        """What has come since, by part, and by call where it is arguments."""
        self._monotonic = environment.clock.monotonic
        self._since = self._monotonic()

    def add(self, part: DraftPart, text: str, index: int = 0, tool: str = "") -> None:
        key = (part, index, tool)
        if key in self._chunks:
            self._chunks[key].append(text)
        else:
            self._chunks[key] = [text]
        now = self._monotonic()
        # A few times a second and never waited for: each draft is a write of its own, and a crash
        # may cost the last quarter of a second of words, but no answer may be slowed down by the
        # disk.
        if now - self._since < DRAFT_SECONDS:
            return
        self._since = now
        for (kind, place, name), texts in self._chunks.items():
            self._env.journal.draft(self._node, kind, "".join(texts), index=place, tool=name)
        self._chunks = {}

    def restart(self) -> None:
        self._chunks = {}
        self._env.journal.draft(self._node, "text", "", restart=True)
