"""What running tools have printed: shown by signals, stored only with a call that was stopped."""

from __future__ import annotations

import msgspec

from weft.events import Fact, ToolComplete, ToolOutput
from weft.ids import CallUid

KEPT = 4_000
"""Characters of each call, from the end: what a screen shows of a running one."""


class RunningOutput:
    """The ends of what the running calls of a session have printed."""

    def __init__(self) -> None:
        self._ends: dict[CallUid, str] = {}

    def take(self, output: ToolOutput) -> None:
        """Take in what a tool has printed."""
        end = self._ends.get(output.call_uid, "") + output.chunk
        self._ends[output.call_uid] = end[-KEPT:]

    def with_ends(self, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """These facts; a call that was stopped has with it what it had printed, for screens.

        A call that ended by itself has its whole output, so its end is forgotten.
        """
        if not self._ends:
            return facts
        return tuple(
            self._with_end(fact) if isinstance(fact, ToolComplete) else fact for fact in facts
        )

    def _with_end(self, fact: ToolComplete) -> ToolComplete:
        end = self._ends.pop(fact.call_uid, "")
        if fact.result.status != "aborted" or not end.strip():
            return fact
        data = {**fact.result.data, "output": end}
        return msgspec.structs.replace(fact, result=msgspec.structs.replace(fact.result, data=data))
