"""`submit`: the tool with which a model hands in a structured result, which ends its turn."""

from __future__ import annotations

from typing import Any

from weft.errors import BadArguments
from weft.events import Effect
from weft.permissions import ToolAction
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.output_schema import OutputSchema

NAME = "submit"


class SubmitTool(Tool):
    """`submit`: its arguments are the schema of the result.

    The turn ends with the first call that fits.
    """

    description = (
        "Hand in the final result. Call it once, when the work is done; the arguments are "
        "the result itself."
    )
    effect: Effect = "pure"
    timeout_seconds = 30.0

    def __init__(self, shape: OutputSchema, name: str = NAME) -> None:
        self.name = name
        self.schema = shape.arguments
        self._shape = shape

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        # Checked while preparing: a result that does not fit is an error that the model can
        # correct, and must not end the turn.
        self.value(args)
        return PreparedCall(
            action=ToolAction(tool=self.name, kind="other", has_effect=False), run=self._accept
        )

    async def _accept(self) -> ToolOutcome:
        return ToolOutcome(text="Submitted.")

    def value(self, args: dict[str, Any]) -> Any:
        """The result that these arguments are, as JSON has it.

        Raises:
            BadArguments: they do not fit; the message tells the model what to do.
        """
        try:
            return self._shape.plain(self._shape.from_arguments(args))
        except BadArguments as error:
            raise BadArguments(
                f"The result does not fit: {error}. Call {self.name} again with the whole "
                "result, corrected."
            ) from error

    def read(self, text: str) -> Any:
        """The result that a plain answer is, as JSON has it.

        Raises:
            BadArguments: it is none; the message tells the model what to do.
        """
        try:
            return self._shape.plain(self._shape.read(text))
        except BadArguments as error:
            raise BadArguments(
                f"Your answer is not the result that was asked for: {error}. Call "
                f"{self.name} with the whole result."
            ) from error
