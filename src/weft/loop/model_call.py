"""Model calls: room is made, the call goes on record, the answer comes and is noted.

An answer that cannot be had comes out as the reason to stop; what was said by then is kept, and
what was used is counted.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.context import ComposedMessages, PromptPrefix
from weft.errors import (
    AuthFailed,
    ContextTooLong,
    PolicyRefused,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRefused,
    WeftError,
)
from weft.events import (
    ContextUsage,
    ErrorRaised,
    Fact,
    FinishReason,
    ModelCallStarted,
    NodeMarked,
    PrefixFrozen,
)
from weft.faults import FailPointPair
from weft.ids import NodeId, TurnId
from weft.loop.answer import ModelAnswer
from weft.loop.base import ModelEnvironment
from weft.loop.model_retry import BrokenAnswer, ModelCallAttempts, StaleRequest
from weft.loop.pending_facts import PendingFacts
from weft.loop.turn_facts import answer_node, call_started, promote
from weft.loop.turn_line import PICTURES, REFUSED, TurnLine
from weft.loop.usage import UsageTracker
from weft.providers import ModelRequest, ToolSpec
from weft.state import SessionState

if TYPE_CHECKING:  # loaded where a line has to be compacted
    from weft.loop.compaction.room_maker import RoomMaker

_CALL = FailPointPair("loop.call")
_ABOUT_PICTURES: Final = (
    r"(?i)\b(?:(?:input_)?images?|image_url|pictures?|media(?:_type)?|pdfs?|documents?|input_file"
    r"|file_data)\b"
)
"""What vendors say of a picture or document that they cannot decode or that is too large."""
_ADDRESS: Final = r"https?://\S+"
"""Vendors add one to any refusal: what its words are about says nothing."""


class TurnStop(msgspec.Struct, frozen=True):
    """Why a turn has to end without an answer."""

    reason: FinishReason
    detail: str


class ModelCaller:
    """The model calls of a turn, one after the other."""

    def __init__(
        self,
        turn_id: TurnId,
        environment: ModelEnvironment,
        pending: PendingFacts,
        line: TurnLine,
        renew: Callable[[], None] = lambda: None,
    ) -> None:
        """`renew` calls `use` with what the settings say now, and raises `WeftError` where they
        name no model that can be had.
        """
        self._turn_id = turn_id
        self.environment = environment
        """What the next call uses."""
        self._pending = pending
        self._line = line
        self._renew = renew
        self.usage = UsageTracker(turn_id, lambda: self.environment, pending, line)
        self.retries = 0
        """Calls that were made again."""
        self._request: ModelCallAttempts | None = None
        self._in_flight: NodeId | None = None
        self._compacted_for_overflow = False
        self._scratch: dict[int, Any] = {}
        self._specs_of: tuple[PromptPrefix, tuple[ToolSpec, ...]] | None = None

    @property
    def _env(self) -> ModelEnvironment:
        return self.environment

    def use(self, environment: ModelEnvironment) -> None:
        """Go on with another model, thinking level or limits."""
        before, self.environment = self.environment, environment
        is_same = environment.model_name == before.model_name
        if not is_same:
            self._line.render_for(environment.model.info)
            if "_room" in self.__dict__:
                self._room.use_other_model()
        if environment.prefix.id != before.prefix.id:
            prefix = environment.prefix
            frozen = PrefixFrozen(
                prefix=prefix.id, reason="other tools" if is_same else "another model"
            )
            self._pending.note(frozen, blobs={prefix.id: prefix.data})

    def _renew_if_possible(self) -> None:
        """Take the settings of now.

        Where that fails, the next round of the turn says what is wrong.
        """
        with contextlib.suppress(WeftError):
            self._renew()

    async def ask(self) -> ModelAnswer | TurnStop:
        """The model's answer, noted and in the line; or why the turn has to end instead."""
        await self._line.take_excluded()
        if (stop := await self._make_room()) is not None:
            return stop
        node = await self._open_call()
        self._env.journal.status("thinking")
        composed = self._line.compose()
        request = self._request = ModelCallAttempts(self._env, node)
        self._in_flight = node
        try:
            answer = await request.answer(self._model_request(composed), may_go_stale=True)
        except StaleRequest as stale:
            self.usage.call_is_over()
            self.retries += stale.retries
            self.usage.note_discarded(node, request, composed)
            self._request = self._in_flight = None
            # A call of its own: what is sent now is on record.
            return await self.ask()
        except BrokenAnswer as broken:
            self.usage.call_is_over()
            self.retries += broken.retries
            falls_back = self._falls_back(broken.error, request)
            self.usage.note_discarded(node, request, composed)
            if falls_back or self._leaves_out_after(broken.error):
                return await self.ask()
            if await self._made_room_after(broken):
                # At most once: the flag of the compaction is lowered only by an answer.
                return await self.ask()
            return self._give_up(node, broken.error, request, composed)
        self.usage.call_is_over()
        self._compacted_for_overflow = False
        self.retries += request.retries
        self._request = self._in_flight = None
        self.usage.note_discarded(node, request, composed)
        # Billed, but not put on the line: vendors refuse messages without content.
        if not answer.parts:
            self.usage.note_usage(node, answer, composed)
            return answer
        self._note_answer(node, answer, composed)
        return answer

    def _falls_back(self, error: ProviderError, request: ModelCallAttempts) -> bool:
        """Go on with another model, where one is configured and this one cannot be reached.

        At most once for each fallback: it is taken, and not given back before the turn ends.
        """
        fallback, failed = self._env.fallback, self._env.model_name
        if fallback is None or not isinstance(error, ProviderUnavailable | RateLimited):
            return False
        other = fallback.take_next(failed)
        if not other:
            return False
        # Another model cannot continue this one's words.
        request.discard()
        self._request = self._in_flight = None
        said = f"{error}; {other} answers instead"
        self._pending.note(ErrorRaised(message=said, where="model", error=type(error).__name__))
        return True

    def _leaves_out_after(self, error: ProviderError) -> bool:
        """Where the vendor refuses a picture or a document: leave out the newest, now and from then
        on.

        Vendors name the place in ways of their own, or not at all; what was taken before is rarely
        what is refused now, so the newest go first, a message at a time.
        """
        is_refused = isinstance(error, RequestRefused) and not isinstance(error, PolicyRefused)
        if not is_refused or not re.search(_ABOUT_PICTURES, re.sub(_ADDRESS, "", str(error))):
            return False
        found = self._line.leave_out_newest_pictures()
        if found is None:
            return False
        node, names = found
        self._request = self._in_flight = None
        said = f"{error}; from now on these are left out: {', '.join(names)}"
        self._pending.note(
            NodeMarked(node=node, mark=PICTURES, value=REFUSED),
            ErrorRaised(message=said, where="model", error=type(error).__name__),
        )
        return True

    # -- room

    async def _make_room(self) -> TurnStop | None:
        """Compact before the next request would not fit; why the turn has to end where that would
        go on for ever.
        """
        if self._env.is_window_full:
            return None  # no summary would help, and each message would ask for one
        level = self._env.room_level(self._line.compose().tokens)
        if level == "free":
            return None
        why = await self._room.before_call(level)
        return TurnStop("no_progress", why) if why else None

    async def _made_room_after(self, broken: BrokenAnswer) -> bool:
        """The vendor says that the request does not fit: compact once, and try again."""
        if not isinstance(broken.error, ContextTooLong) or self._compacted_for_overflow:
            return False
        self._compacted_for_overflow = True
        self._request = self._in_flight = None
        return await self._room.after_overflow()

    @cached_property
    def _room(self) -> RoomMaker:
        from weft.loop.compaction.room_maker import RoomMaker  # few turns are compacted

        return RoomMaker(
            self._turn_id, lambda: self.environment, self._pending, self._line, self.usage
        )

    # -- the call

    async def _open_call(self) -> NodeId:
        """Make the model call durable, with everything noted and all steering that waits.

        Returns the answer's node id.
        """
        state = self._env.journal.state
        turn = state.turn.open
        open_call = turn.call if turn is not None and turn.turn_id == self._turn_id else None
        await self._line.take_excluded()
        is_steered = bool(state.queue.waiting("steering"))  # while room was made
        # The call that was opened in the append that started the turn is used as it is; another one
        # would cost the first answer a second wait for the disk.  With facts that wait there is an
        # append anyway, which takes the settings of its own instant.
        if open_call is not None and not is_steered and not self._pending.has_facts:
            self._renew_if_possible()
            is_same = open_call.model == self._env.model_name and not self._pending.has_facts
            if is_same and open_call.digest == self._digest():
                return open_call.node
        started = await self._put_on_record()
        # The queue holds only the beginning of a long message; all of it is on the line by now.
        # What is on record last is what is sent.
        if started.digest != self._digest():
            started = await self._put_on_record()
        return started.node

    async def _put_on_record(self) -> ModelCallStarted:
        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            # Here, and not before: a model that the user has set by now is meant for this call.
            self._renew_if_possible()
            now = self._env.clock.now()
            promoted = promote(state, noted, now)
            prefix, digest = self._env.prefix.id, self._digest((*noted, *promoted))
            name = self._env.model_name
            return [*promoted, call_started(self._turn_id, name, prefix, now, digest=digest)]

        stored = await self._pending.commit(_CALL, more, drop_draft=True)
        await self._line.take_promoted(stored)
        return next(fact for fact in reversed(stored) if isinstance(fact, ModelCallStarted))

    def _digest(self, facts: Sequence[Fact] = ()) -> str:
        """The digest of the request as it will be once these facts are in."""
        return self._line.digest(self._env, facts)

    def _model_request(self, composed: ComposedMessages) -> ModelRequest:
        prefix = self._env.prefix
        used = self.usage.input_tokens(composed)
        self._env.journal.signal(
            ContextUsage(used=used, window=self._env.model.info.context_window)
        )
        return ModelRequest(
            model=self._env.model.info.name,
            messages=composed.messages,
            system=prefix.prefix.system,
            tools=self._specs(),
            thinking=self._env.thinking,
            session_id=self._env.journal.state.session_id,
            scratch=self._scratch,
        )

    def _specs(self) -> tuple[ToolSpec, ...]:
        """The tools as providers describe them: the same object for every call, so that they encode
        it once.
        """
        prefix = self._env.prefix.prefix
        if self._specs_of is None or self._specs_of[0] is not prefix:
            specs = tuple(
                ToolSpec(name=tool.name, description=tool.description, schema=tool.schema)
                for tool in prefix.tools
            )
            self._specs_of = (prefix, specs)
        return self._specs_of[1]

    # -- the answer

    def _note_answer(self, node: NodeId, answer: ModelAnswer, composed: ComposedMessages) -> None:
        usage, estimated = self.usage.cost(answer, composed)
        added = answer_node(
            self._env.journal.state, node, answer, model=self._env.model_name, usage=usage
        )
        self._pending.note(added)
        self._line.add(added.node)
        self.usage.note_cost(node, usage, estimated, composed, answer.sent)

    def _note_partial(
        self, node: NodeId, request: ModelCallAttempts, composed: ComposedMessages
    ) -> None:
        """Keep what had come of an answer that broke off, and in any case what it used."""
        partial = request.partial()
        if partial.parts:
            self._note_answer(node, partial, composed)
        elif request.is_billed:
            self.usage.note_usage(node, partial, composed)

    def note_in_flight(self, *, stays_open: bool = False) -> None:
        """Keep what has come of a call that was cancelled, and count what it used.

        With `stays_open` a call of which nothing has come is left to recovery, which counts it.
        """
        request, node = self._request, self._in_flight
        self._request = self._in_flight = None
        if request is not None and node is not None:
            composed = self._line.compose()
            self.usage.note_discarded(node, request, composed)
            if not stays_open or request.partial().parts:
                self._note_partial(node, request, composed)

    def _give_up(
        self,
        node: NodeId,
        error: ProviderError,
        request: ModelCallAttempts,
        composed: ComposedMessages,
    ) -> TurnStop:
        """The model cannot be reached: keep what it said so far, and say how the turn ends."""
        self._request = self._in_flight = None
        self._note_partial(node, request, composed)
        reason: FinishReason = "provider_error"
        if isinstance(error, AuthFailed):
            reason = "auth_error"
        elif isinstance(error, ContextTooLong):
            reason = "context_overflow"
        elif isinstance(error, PolicyRefused):
            reason = "content_filter" if error.is_filtered else "refusal"
        return TurnStop(reason, str(error))
