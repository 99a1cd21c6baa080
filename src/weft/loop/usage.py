"""What a turn's calls use: counted when they are over, set aside before they are made, and held to the limits."""

from __future__ import annotations

import msgspec

from weft.context import ComposedMessages, estimate_text
from weft.events import FinishReason, UsageRecorded
from weft.ids import NodeId, TurnId
from weft.loop.answer import ModelAnswer
from weft.loop.base import TurnEnvironment
from weft.loop.budget import refusal, warnings
from weft.loop.model_request import ModelCallAttempts
from weft.loop.turn_facts import usage_recorded
from weft.loop.turn_state import TurnState
from weft.messages import NOTHING_USED, Text, Usage
from weft.state import SessionState

LIKELY_OUTPUT = 1_000
"""Tokens of an answer that a family's purse sets aside for it."""


class UsageTracker(TurnState):
    """Money and tokens."""

    def __init__(self, environment: TurnEnvironment, turn_id: TurnId) -> None:
        super().__init__(environment, turn_id)
        self._expected = NOTHING_USED
        """What the call that is made now will use, as far as one can tell."""

    # -- counting

    def _note_usage(self, node: NodeId, answer: ModelAnswer, composed: ComposedMessages) -> None:
        usage, estimated = self._cost(answer, composed)
        self._notebook.note(
            usage_recorded(
                usage,
                turn_id=self.turn_id,
                node=node,
                model=self._env.model_name,
                estimated=estimated,
            )
        )
        self._warn_of_budget()

    def _note_discarded(
        self, node: NodeId, request: ModelCallAttempts, composed: ComposedMessages
    ) -> None:
        """Count what attempts used that were given up."""
        for lost in request.discarded:
            self._note_usage(node, lost, composed)

    def _cost(self, answer: ModelAnswer, composed: ComposedMessages) -> tuple[Usage, bool]:
        """What the answer used, in money too; an estimate where the vendor did not say."""
        usage = answer.usage
        if usage is None:
            characters = sum(len(part.text) for part in answer.parts if isinstance(part, Text))
            usage = Usage(
                input_tokens=self._input_tokens(composed),
                output_tokens=estimate_text(characters),
            )
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=self._env.model.info.cost(usage))
        return usage, answer.usage is None

    def _input_tokens(self, composed: ComposedMessages) -> int:
        return composed.tokens + estimate_text(len(self._env.prefix.data))

    def _pending(self) -> Usage:
        """What calls used that is not on record yet."""
        noted = (fact.usage for fact in self._notebook.facts if isinstance(fact, UsageRecorded))
        return sum(noted, NOTHING_USED)

    # -- keeping to it

    def _budget_reached(self, state: SessionState) -> tuple[FinishReason, str] | None:
        pending = self._pending()
        why = refusal(
            self._env.limits,
            state.ledger.total + pending,
            model=self._env.model_name,
            is_priced=self._is_priced,
        )
        return ("max_budget", why) if why is not None else self._purse_is_empty(pending)

    def _purse_is_empty(self, pending: Usage) -> tuple[FinishReason, str] | None:
        """Ask for the next call's share of what the family has left; it is set aside in the same instant."""
        purse = self._env.purse
        if purse is None or not purse.is_limited:
            return None
        why = purse.refuses(self.turn_id, pending, is_priced=self._is_priced)
        if why is None:
            self._expect(self._compose())
            return None
        return "max_budget", why

    def _expect(self, composed: ComposedMessages) -> None:
        """Set aside what the next call will use, as far as one can tell."""
        if self._env.purse is None or not self._env.purse.is_limited:
            return
        info = self._env.model.info
        expected = Usage(
            input_tokens=self._input_tokens(composed),
            output_tokens=min(LIKELY_OUTPUT, info.max_output_tokens),
        )
        self._expected = msgspec.structs.replace(expected, cost_usd=info.cost(expected))
        self._env.purse.hold(self.turn_id, lambda: self._expected + self._pending())

    @property
    def _is_priced(self) -> bool:
        return self._env.model.info.cost(Usage()) is not None

    def _warn_of_budget(self) -> None:
        """Tell the person, once, that most of the budget is used."""
        state, noted = self._env.journal.state, self._notebook.facts
        total = state.ledger.total + self._pending()
        self._notebook.note(*warnings(self._env.limits, total, state, noted))
