"""What a turn's calls use: counted when they are over, set aside before they are made, and held to
the limits.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from weft.context import ComposedMessages, estimate_text
from weft.events import FinishReason, UsageRecorded
from weft.ids import NodeId, TurnId
from weft.loop.answer import ModelAnswer
from weft.loop.base import ModelEnvironment
from weft.loop.model_retry import ModelCallAttempts
from weft.loop.pending_facts import PendingFacts
from weft.loop.turn_facts import usage_recorded
from weft.loop.turn_line import TurnLine
from weft.messages import NOTHING_USED, Text, Usage
from weft.providers import SentBody
from weft.state import SessionState

LIKELY_OUTPUT = 1_000
"""Tokens of an answer that a shared budget sets aside for it.  Too few, and agents that run side by
side go beyond the budget together; too many, and the last of them are refused money that is left.
"""


class UsageTracker:
    """Money and tokens of the model calls of one turn."""

    def __init__(
        self,
        turn_id: TurnId,
        environment: Callable[[], ModelEnvironment],
        pending: PendingFacts,
        line: TurnLine,
    ) -> None:
        """`environment` gives what the next call uses: model and limits may change during
        a turn.
        """
        self._turn_id = turn_id
        self._environment = environment
        self._pending = pending
        self._line = line
        self._expected = NOTHING_USED
        """What the call that is made now will use, as far as one can tell."""

    @property
    def _env(self) -> ModelEnvironment:
        return self._environment()

    # -- counting

    def note_usage(self, node: NodeId, answer: ModelAnswer, composed: ComposedMessages) -> None:
        """Count what an answer used, and warn where a budget is nearly used up."""
        self.note_cost(node, *self.cost(answer, composed), composed, answer.sent)

    def note_cost(
        self,
        node: NodeId,
        usage: Usage,
        estimated: bool,
        composed: ComposedMessages,
        sent: SentBody | None,
    ) -> None:
        """The same, for a usage that `cost` has given."""
        self._pending.note(
            usage_recorded(
                usage,
                turn_id=self._turn_id,
                node=node,
                model=self._env.model_name,
                estimated=estimated,
                request_estimate=0 if estimated else self._uncalibrated(composed),
                sent=sent,
            )
        )
        self.warn_of_budget()

    def note_discarded(
        self, node: NodeId, request: ModelCallAttempts, composed: ComposedMessages
    ) -> None:
        """Count what attempts used that were given up."""
        for lost in request.discarded:
            self.note_usage(node, lost, composed)

    def cost(self, answer: ModelAnswer, composed: ComposedMessages) -> tuple[Usage, bool]:
        """What the answer used, in money too; an estimate where the vendor did not say."""
        usage = answer.usage
        # Vendors leave the usage out of answers that were cut off. An estimate, marked as one,
        # keeps the budget honest.
        if usage is None:
            characters = sum(len(part.text) for part in answer.parts if isinstance(part, Text))
            usage = Usage(
                input_tokens=self.input_tokens(composed),
                output_tokens=estimate_text(characters),
            )
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=self._env.model.info.cost(usage))
        return usage, answer.usage is None

    def input_tokens(self, composed: ComposedMessages) -> int:
        """What a request with these messages reads, estimated as its vendor counts."""
        return round(self._uncalibrated(composed) * self._env.token_ratio)

    def _uncalibrated(self, composed: ComposedMessages) -> int:
        return composed.tokens + estimate_text(len(self._env.prefix.data))

    def _uncommitted(self) -> Usage:
        """What calls used that is not on record yet."""
        # The ledger has it only after the next append; without it a turn would go one call too far.
        noted = (fact.usage for fact in self._pending.facts if isinstance(fact, UsageRecorded))
        return sum(noted, NOTHING_USED)

    def call_is_over(self) -> None:
        """The call that was made is answered or given up; nothing is set aside for it any more."""
        self._expected = NOTHING_USED

    def release(self) -> None:
        """The turn is over: what was set aside for it is free."""
        if self._env.shared_budget is not None:
            self._env.shared_budget.release(self._turn_id)

    # -- keeping to it

    async def budget_reached(self, state: SessionState) -> tuple[FinishReason, str] | None:
        """Why no further model call may be made; None when one may."""
        # Before anything is added up: every round asks, and most sessions have no budget.
        why = None
        if self._env.limits.has_budget:
            from weft.loop.budget import refusal  # few sessions have one: start-up time

            why = refusal(
                self._env.limits,
                state.ledger.total + self._uncommitted(),
                model=self._env.model_name,
                is_priced=self._is_priced,
            )
        if why is None:
            why = await self._shared_budget_refuses()
        return None if why is None else ("max_budget", why)

    async def _shared_budget_refuses(self) -> str | None:
        """Ask for the next call's share of what the agents of a session have left together."""
        budget = self._env.shared_budget
        if budget is None or not budget.is_limited:
            return None
        self._expected = self._next_call(self._line.compose())
        why = await budget.reserve(
            self._turn_id,
            self._uncommitted(),
            # A function and not a number: what is uncommitted changes with every note, and the
            # budget asks at the moment it decides.
            lambda: self._expected + self._uncommitted(),
            is_priced=self._is_priced,
        )
        if why is not None:
            self.call_is_over()
        return why

    def _next_call(self, composed: ComposedMessages) -> Usage:
        """What the next call will use, as far as one can tell."""
        info = self._env.model.info
        expected = Usage(
            input_tokens=self.input_tokens(composed),
            output_tokens=min(LIKELY_OUTPUT, info.max_output_tokens),
        )
        return msgspec.structs.replace(expected, cost_usd=info.cost(expected))

    @property
    def _is_priced(self) -> bool:
        return self._env.model.info.cost(Usage()) is not None

    def warn_of_budget(self) -> None:
        """Note for the user, once, that most of the budget is used."""
        if not self._env.limits.has_budget:
            return
        from weft.loop.budget import warnings  # as above

        state, noted = self._env.journal.state, self._pending.facts
        total = state.ledger.total + self._uncommitted()
        self._pending.note(*warnings(self._env.limits, total, state, noted))
