"""The tool with which the planner hands in its plan."""

from __future__ import annotations

from typing import Any

from weft.agents.plan import WorkPlan, as_plan
from weft.errors import BadArguments, UsageError
from weft.tools import OutputSchema, SubmitTool

NAME = "submit"


class SubmitPlan(SubmitTool):
    """`submit` for a plan: also what the schema cannot say must be right."""

    description = (
        "Hand in the plan. Call it once, when you know what is to be done; the arguments are "
        "the plan itself."
    )

    def __init__(self, name: str = NAME) -> None:
        super().__init__(OutputSchema(WorkPlan), name)

    def value(self, args: dict[str, Any]) -> Any:
        return self._checked(super().value(args))

    def read(self, text: str) -> Any:
        return self._checked(super().read(text))

    def _checked(self, value: Any) -> Any:
        try:
            as_plan(value)
        except UsageError as error:
            raise BadArguments(
                f"{error}. Call {self.name} again with the whole plan, corrected."
            ) from error
        return value
