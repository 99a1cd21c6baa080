"""The rounds of tool calls in a turn: each answer's calls are run, and circles and mistakes are counted."""

from __future__ import annotations

from weft.loop.base import ToolCallEnvironment
from weft.loop.loop_detection import ProgressWatch
from weft.loop.pending_facts import PendingFacts
from weft.loop.tool_calls import ToolCallBatch
from weft.loop.turn_line import TurnLine
from weft.messages import Node, ToolCall

NO_PROGRESS = (
    "You have made the same calls with the same results several times. "
    "Do something else, or say what keeps you from going on."
)


class ToolRounds:
    """The calls of one answer after the other."""

    def __init__(self, pending: PendingFacts, line: TurnLine, repeats: int) -> None:
        """`repeats` is `TurnLimits.repeats`."""
        self._pending = pending
        self._line = line
        self._watch = ProgressWatch(repeats)
        self.mistakes = 0
        """Answers in a row that could not be acted on."""
        self.halted = ""
        """Why a hook wants the turn to end; empty when none does."""

    @property
    def is_stuck(self) -> bool:
        """The model goes round in circles, and a warning did not help."""
        return self._watch.is_stuck

    async def run(
        self, environment: ToolCallEnvironment, node: Node, calls: tuple[ToolCall, ...]
    ) -> None:
        """Settle calls of an answer; the results are noted, and in the line."""
        batch = ToolCallBatch(environment, self._pending, node.id)
        await batch.run(calls)
        self._line.take_results(node, batch.results)
        self.mistakes = 0 if batch.ran else self.mistakes + 1
        # The first reason stays: a later round is only there to settle what was open.
        self.halted = self.halted or batch.halted
        if self._watch.should_nudge(calls, batch.results):
            self._pending.nudge(NO_PROGRESS)

    def count_mistake(self, nudge: str) -> None:
        """An answer without calls could not be acted on; `nudge` says to the model what to do."""
        self.mistakes += 1
        self._pending.nudge(nudge)
