"""A model that counts a request as a vendor does, with a tokenizer that is not ours, and refuses
what does not fit its window.
"""

from __future__ import annotations

from typing import Any

import msgspec

from weft.context import INSTRUCTIONS, estimate
from weft.messages import Usage
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import Fail, SayText, Spend, Step
from weft.providers.scripted import ScriptedModel


class CountingModel:
    """Answers with `answer`; a token is so many of ours (`ratio`)."""

    def __init__(
        self, *, window: int, ratio: float, answer: str = "done", name: str = "script"
    ) -> None:
        self.window = window
        self.ratio = ratio
        self.answer = answer
        self.asked: list[ModelRequest] = []
        """Requests for an answer that fitted."""
        self.summaries = 0
        self.refused = 0
        """Requests that did not fit, those for a summary not counted."""
        info = ModelInfo(
            provider="scripted",
            name=name,
            context_window=window,
            max_output_tokens=window // 8,
            price_input=1.0,
            price_output=1.0,
        )
        self.model = ScriptedModel([], choose=self._choose, info=info)

    def count(self, request: ModelRequest) -> int:
        """The tokens of a request, as this vendor counts them."""
        tools: list[Any] = [[each.name, each.description, each.schema] for each in request.tools]
        prefix = len(request.system) + len(msgspec.json.encode(tools))
        return round((estimate(request.messages) + prefix / 4) * self.ratio)

    def _choose(self, request: ModelRequest) -> list[Step]:
        tokens = self.count(request)
        is_summary = request.system == INSTRUCTIONS
        if tokens > self.window:
            self.refused += not is_summary
            return [Fail(error="ContextTooLong", message="prompt is too long")]
        spent = Spend(usage=Usage(input_tokens=tokens, output_tokens=10))
        if is_summary:
            self.summaries += 1
            return [SayText(text="The work goes on."), spent]
        self.asked.append(request)
        return [SayText(text=self.answer), spent]
