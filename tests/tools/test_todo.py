"""The task list."""

from __future__ import annotations

import pytest

from tests.support.tool_bench import ToolBench
from weft.errors import BadArguments, FinalToolError
from weft.events import Todo

pytestmark = pytest.mark.anyio


async def test_the_list_is_replaced_and_shown(bench: ToolBench) -> None:
    todos = [
        {"text": "plan", "status": "done"},
        {"text": "build", "status": "in_progress", "id": "1"},
        {"text": "ship"},
    ]
    outcome = await bench.run("todo", todos=todos)
    assert outcome.text == "[x] plan\n[>] build\n[ ] ship"
    assert outcome.todos == (
        Todo(id="2", text="plan", status="done"),
        Todo(id="1", text="build", status="in_progress"),
        Todo(id="3", text="ship"),
    )
    assert (await bench.run("todo", todos=[])).todos == ()


async def test_it_asks_no_one(bench: ToolBench) -> None:
    prepared = await bench.prepare("todo", todos=[{"text": "x"}])
    assert not prepared.action.has_effect


async def test_a_doubled_id_and_too_many_tasks_are_refused(bench: ToolBench) -> None:
    with pytest.raises(FinalToolError, match="same id"):
        await bench.run("todo", todos=[{"text": "a", "id": "1"}, {"text": "b", "id": "1"}])
    with pytest.raises(BadArguments):
        await bench.run("todo", todos=[{"text": "a"}] * 101)
