"""Functions as tools."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import msgspec
import pytest

from tests.support.tool_bench import ToolBench
from weft.errors import BadArguments, FinalToolError, UsageError
from weft.permissions import decide
from weft.tools import FunctionTool, ToolContext, ToolOutcome, tool

pytestmark = pytest.mark.anyio


@dataclass
class Point:
    x: int
    y: int = 0


@tool
async def shift(point: Point, by: int = 1, names: list[str] = ["a"]) -> dict[str, Any]:  # noqa: B006
    """Move a point
    to the right.

    This is for people.

    Args:
        point: Where it is.
        by (int): How far,
            in steps.
    """
    names.append("b")
    return {"x": point.x + by, "names": names}


async def run(subject: FunctionTool, bench: ToolBench, **args: Any) -> ToolOutcome:
    return await (await subject.prepare(args, bench.context)).run()


async def test_hints_and_docstring_describe_it(bench: ToolBench) -> None:
    assert shift.name == "shift"
    assert shift.description == "Move a point to the right."
    assert shift.schema["required"] == ["point"]
    properties = shift.schema["properties"]
    assert properties["point"]["description"] == "Where it is."
    assert properties["point"]["properties"]["x"] == {"type": "integer"}
    assert properties["by"] == {
        "type": "integer",
        "description": "How far, in steps.",
        "default": 1,
    }
    assert (shift.effect, shift.timeout_seconds) == ("unknown", 120.0)


async def test_it_runs_with_checked_arguments_and_answers_in_json(bench: ToolBench) -> None:
    for _ in range(2):  # a mutable default is fresh each time
        outcome = await run(shift, bench, point={"x": 1}, by="2")
        assert msgspec.json.decode(outcome.text) == {"x": 3, "names": ["a", "b"]}
    with pytest.raises(BadArguments, match="point"):
        await shift.prepare({"point": {"x": "far"}}, bench.context)
    with pytest.raises(BadArguments, match="unknown field"):
        await shift.prepare({"point": {"x": 1}, "z": 1}, bench.context)


async def test_it_is_still_the_function(bench: ToolBench) -> None:
    assert (await shift(Point(1), by=5))["x"] == 6


async def test_a_plain_function_runs_in_a_thread(bench: ToolBench) -> None:
    @tool
    def where() -> int:
        return threading.get_ident()

    assert await run(where, bench) != ToolOutcome(text=str(threading.get_ident()))


async def test_a_cancel_does_not_wait_for_a_thread(bench: ToolBench) -> None:
    started, release = threading.Event(), threading.Event()

    @tool
    def hang() -> None:
        started.set()
        release.wait(30)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run(hang, bench))
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()
    assert not release.is_set()
    release.set()


async def test_the_context_is_handed_in_and_not_asked_for(bench: ToolBench) -> None:
    @tool(effect="pure", name="peek-at", timeout_seconds=5)
    async def peek(context: ToolContext, path: str) -> str:
        return (await context.workspace.read(path)).data.decode()

    bench.write("a.txt", "hello")
    assert list(peek.schema["properties"]) == ["path"]
    assert (peek.name, peek.effect, peek.timeout_seconds) == ("peek-at", "pure", 5)
    assert (await run(peek, bench, path="a.txt")).text == "hello"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (None, "(done)"),
        ([1, 2], "[1,2]"),
        (ToolOutcome(text="mine", is_error=True), "mine"),
        (Point(1, 2), '{"x":1,"y":2}'),
    ],
)
async def test_what_it_returns_becomes_text(bench: ToolBench, value: Any, text: str) -> None:
    @tool
    async def give() -> Any:
        return value

    assert (await run(give, bench)).text == text


async def test_it_asks_unless_it_is_pure_and_is_shown_with_its_arguments(bench: ToolBench) -> None:
    @tool
    def send(to: str) -> None: ...

    @tool(effect="pure")
    def look(at: str) -> None: ...

    @tool(preview=lambda to: f"send it to {to}")
    def send_nicely(to: str) -> None: ...

    asking = await send.prepare({"to": "me"}, bench.context)
    assert decide(asking.action, mode="default").verdict == "ask"
    assert asking.preview == asking.action.target == '{"to":"me"}'
    silent = await look.prepare({"at": "x"}, bench.context)
    assert decide(silent.action, mode="default").verdict == "allow"
    nicely = await send_nicely.prepare({"to": "me"}, bench.context)
    assert nicely.preview == "send it to me"


async def test_a_grant_for_long_arguments_covers_no_others(bench: ToolBench) -> None:
    @tool
    def send(text: str) -> None: ...

    targets = {
        (await send.prepare({"text": "x" * 1000 + end}, bench.context)).action.target
        for end in "ab"
    }
    assert len(targets) == 2
    assert all(len(target) < 500 for target in targets)


async def test_its_own_tool_error_reaches_the_model(bench: ToolBench) -> None:
    @tool
    async def refuse() -> None:
        raise FinalToolError("not today")

    with pytest.raises(FinalToolError, match="not today"):
        await run(refuse, bench)


def test_literals_and_annotations_are_understood() -> None:
    @tool
    def odd(
        kind: Literal["a", "b"],
        size: Annotated[int, msgspec.Meta(ge=1, description="Own.")],
        anything: Any = None,
    ) -> None: ...

    properties = odd.schema["properties"]
    assert properties["kind"] == {"type": "string", "enum": ["a", "b"]}
    assert properties["size"] == {"type": "integer", "minimum": 1, "description": "Own."}
    assert properties["anything"] == {"default": None}


def test_what_cannot_be_described_is_refused_at_once() -> None:
    def many(*paths: str) -> None: ...
    def strange(thing: threading.Thread) -> None: ...
    def fine() -> None: ...

    with pytest.raises(UsageError, match="'paths'"):
        tool(many)
    with pytest.raises(UsageError, match="cannot be described"):
        tool(strange)
    with pytest.raises(UsageError, match="not a valid tool name"):
        tool(name="has space")(fine)
    with pytest.raises(UsageError, match="not a valid tool name"):
        tool(lambda: None)
