"""Handing in: a turn that is to bring a structured result ends with one that fits, or after too many that do not."""

from __future__ import annotations

from weft.errors import BadArguments
from weft.ids import TurnId
from weft.loop.answer import ModelAnswer
from weft.loop.base import TurnEnvironment
from weft.loop.turn_state import TurnState
from weft.messages import Node, Text
from weft.tools import SubmitTool


class StructuredOutput(TurnState):
    """The result of a turn, where one is wanted."""

    def __init__(self, environment: TurnEnvironment, turn_id: TurnId) -> None:
        super().__init__(environment, turn_id)
        self._misfits = 0

    async def _was_handed_in(self, node: Node) -> bool:
        """End the turn if one of these calls handed in a result that fits, or too many did not."""
        submit = self._env.submit
        if submit is None:
            return False
        results = next(entry.results for entry in self._line if entry.node.id == node.id)
        for call in node.calls:
            result = results.get(call.call_uid)
            if call.name != submit.name or result is None:
                continue
            if not result.is_error:
                value = submit.value(call.args)
                return await self._finish_unless_steered("submitted", deliverable=value)
            if await self._does_not_fit(result.text):
                return True
        return False

    async def _is_handed_in_as_text(self, answer: ModelAnswer, submit: SubmitTool) -> bool:
        """A plain answer that is the result counts; another one is told to call the tool."""
        text = "".join(part.text for part in answer.parts if isinstance(part, Text))
        try:
            value = submit.read(text)
        except BadArguments as problem:
            if await self._does_not_fit(str(problem), is_final=answer.stop == "refusal"):
                return True
            self._nudge(str(problem))
            return False
        return await self._finish_unless_steered("submitted", answer.detail, value)

    async def _does_not_fit(self, problem: str, *, is_final: bool = False) -> bool:
        """Count a result that does not fit; True when it was the last try, and the turn is over."""
        self._misfits += 1
        if self._misfits <= self._env.limits.repairs and not is_final:
            return False
        await self._finish("schema_failed", problem)
        return True
