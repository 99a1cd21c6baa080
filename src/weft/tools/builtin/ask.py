"""`ask`: the model asks the user something it cannot find out by itself."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.permissions import ToolAction
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome, UserQuestion

MAX_OPTIONS = 8


class AskArguments(ToolArguments, frozen=True, kw_only=True):
    """What `ask` takes."""

    question: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=4000,
            description="The question, with what is needed to answer it.",
        ),
    ]
    options: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)]],
        Meta(
            max_length=MAX_OPTIONS,
            description="Answers to choose from; another answer is always possible.",
        ),
    ] = []
    descriptions: Annotated[
        list[Annotated[str, Meta(max_length=400)]],
        Meta(
            max_length=MAX_OPTIONS,
            description="What each option means or costs, in the same order.",
        ),
    ] = []


class AskTool(Tool):
    """Waits for the user; the turn puts the question, this only says what it is."""

    name = "ask"
    description = (
        "Ask the user a question and wait for the answer. Only for what you cannot find "
        "out with the other tools and should not "
        "decide yourself; do not use it to ask for permission, which is asked for where "
        "it is needed."
    )
    schema = late_schema(AskArguments)
    effect: Effect = "pure"
    timeout_seconds = 10.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(AskArguments, args)

        async def run() -> ToolOutcome:
            raise FinalToolError("there is no user to ask here; decide for yourself, and say so")

        return PreparedCall(
            action=ToolAction(
                tool=self.name, kind="other", target=given.question, has_effect=False
            ),
            run=run,
            question=UserQuestion(text=given.question, options=tuple(given.options)),
        )
