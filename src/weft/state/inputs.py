"""Idempotency: which commands were carried out already, by their input id."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.errors import StaleInput
from weft.events import AnyFact, CommandCause, UnknownFact
from weft.ids import InputId

REMEMBERED = 10_000
"""How many input ids a session remembers; older ones are forgotten, oldest first."""


class InputMemory(msgspec.Struct):
    """The remembered causes, oldest first."""

    causes: dict[InputId, CommandCause] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if isinstance(fact, UnknownFact) or fact.cause is None:
            return
        self.causes[fact.cause.input_id] = fact.cause
        # Bounded, because it is part of every snapshot. A repeat that comes later than so many
        # other inputs is carried out again.
        if len(self.causes) > REMEMBERED:
            del self.causes[next(iter(self.causes))]

    def earlier_answer(self, input_id: InputId | None, digest: str) -> tuple[bool, Any]:
        """Whether this very command was carried out before, and what it answered.

        Raises:
            StaleInput: the id was used for something else.
        """
        cause = self.causes.get(input_id) if input_id else None
        if cause is None:
            return False, None
        # The same id with other arguments is a mistake of the caller; the first answer would hide
        # it.
        if cause.digest != digest:
            raise StaleInput(cause.input_id)
        return True, cause.answer
