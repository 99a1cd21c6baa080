"""The structured result of a turn: what was handed in, whether it fits, and when no further try is
allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from weft.errors import BadArguments
from weft.ids import CallUid
from weft.loop.answer import BLOCKED, ModelAnswer
from weft.messages import Node, Text, ToolResult

if TYPE_CHECKING:  # loaded with the first structured result: it costs start-up time
    from weft.tools import SubmitTool


class OutputVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said to a result that was handed in."""

    fits: bool
    value: Any = None
    """The result, where it fits."""
    problem: str = ""
    """Why it does not fit."""
    is_last: bool = False
    """Of one that does not fit: there is no further try."""


class StructuredOutput:
    """Judges the results that a model hands in during one turn."""

    def __init__(self) -> None:
        self._misfits = 0

    def of_calls(
        self,
        submit: SubmitTool,
        node: Node,
        results: Mapping[CallUid, ToolResult],
        *,
        repairs: int,
    ) -> OutputVerdict | None:
        """The verdict on the calls of an answer; None when none of them decides anything.

        A result that does not fit has been answered by the tool already, and only counts here.
        """
        for call in node.calls:
            result = results.get(call.call_uid)
            if call.name != submit.name or result is None:
                continue
            if not result.is_error:
                return OutputVerdict(fits=True, value=submit.value(call.args))
            verdict = self._misfit(result.text, repairs)
            if verdict.is_last:
                return verdict
        return None

    def of_text(self, submit: SubmitTool, answer: ModelAnswer, *, repairs: int) -> OutputVerdict:
        """The verdict on a plain answer: models that ignore the tool often write the result as
        text.
        """
        text = "".join(part.text for part in answer.parts if isinstance(part, Text))
        try:
            return OutputVerdict(fits=True, value=submit.read(text))
        except BadArguments as problem:
            # A model that refuses will refuse again: asking it would only cost money.
            return self._misfit(str(problem), 0 if answer.stop in BLOCKED else repairs)

    def _misfit(self, problem: str, repairs: int) -> OutputVerdict:
        self._misfits += 1
        return OutputVerdict(fits=False, problem=problem, is_last=self._misfits > repairs)
