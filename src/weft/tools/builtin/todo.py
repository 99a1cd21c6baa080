"""`todo`: the task list that the model keeps for itself and for the user."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect, Todo
from weft.permissions import ToolAction
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome

MAX_TASKS = 100
_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "cancelled": "[-]"}


class TodoTask(ToolArguments, frozen=True, kw_only=True):
    """One task."""

    text: Annotated[str, Meta(min_length=1, max_length=1000, description="What is to be done.")]
    status: Annotated[
        Literal["pending", "in_progress", "done", "cancelled"],
        Meta(description="Where it stands; at most one is in progress."),
    ] = "pending"
    id: Annotated[
        str, Meta(max_length=64, description="Keeps its place when the text changes.")
    ] = ""


class TodoArguments(ToolArguments, frozen=True, kw_only=True):
    """What `todo` takes."""

    todos: Annotated[
        list[TodoTask],
        Meta(
            max_length=MAX_TASKS, description="The whole list, in order; it replaces the old one."
        ),
    ]


class TodoTool(Tool):
    """Replaces the list; harmless, so it needs no permission."""

    name = "todo"
    description = (
        "Keep the list of tasks for work of several steps. Each call gives the whole "
        "list, which replaces the old one. "
        "Mark a task in_progress before you start it and done as soon as it is."
    )
    schema = late_schema(TodoArguments)
    effect: Effect = "pure"
    timeout_seconds = 10.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        todos = _named(parse(TodoArguments, args).todos)

        async def run() -> ToolOutcome:
            shown = "\n".join(f"{_MARKS[todo.status]} {todo.text}" for todo in todos)
            return ToolOutcome(text=shown or "(the list is empty)", todos=todos)

        return PreparedCall(
            action=ToolAction(tool=self.name, kind="other", has_effect=False), run=run
        )


def _named(tasks: list[TodoTask]) -> tuple[Todo, ...]:
    """Tasks with an id each; the model may leave them out."""
    given = [task.id for task in tasks if task.id]
    if len(given) != len(set(given)):
        raise FinalToolError("two tasks have the same id; give each its own, or none")
    # Twice as many numbers as tasks: enough even if every given id is one of them.
    free = (str(number) for number in range(1, 2 * len(tasks) + 1) if str(number) not in given)
    return tuple(
        Todo(id=task.id or next(free), text=task.text, status=task.status) for task in tasks
    )
