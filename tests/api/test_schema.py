"""Structured results of whole turns: `schema=` for `send_message` and `run`."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pytest

import weft
from weft.app import App
from weft.errors import UsageError
from weft.events import SystemNote, TurnFinished
from weft.providers.script import CallTogether, CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.store import Append, MemoryStore

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
    "required": ["name", "size"],
    "additionalProperties": False,
}


class Thing(msgspec.Struct):
    name: str
    size: int


@dataclasses.dataclass
class Plain:
    name: str
    size: int


class Typed(TypedDict):
    name: str
    size: int


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with weft.open(tmp_path, "memory", environ={"HOME": str(tmp_path)}) as app:
        yield app


async def ask(app: App, answers: list[Any], schema: Any = SCHEMA, **options: Any) -> weft.Reply:
    session = await app.sessions.start_session(model=ScriptedModel(answers), tools=[])
    return await session.send_message("what is it?", schema=schema, **options)


def submit(**args: Any) -> CallTool:
    return CallTool(name="submit", args=args)


@pytest.mark.requirement("reason:submitted")
async def test_a_submitted_result_ends_the_turn_and_is_the_deliverable(app: App) -> None:
    reply = await ask(app, [submit(name="a", size=2), "never asked for"])
    assert reply.finish_reason == "submitted"
    assert reply.deliverable == {"name": "a", "size": 2}
    assert reply.iterations == 1


async def test_the_model_is_told_of_the_tool_and_its_schema(app: App) -> None:
    model = ScriptedModel([submit(name="a", size=2)])
    session = await app.sessions.start_session(model=model, tools=["read"])
    await session.send_message("go", schema=SCHEMA)
    assert [tool.name for tool in model.last_request.tools] == ["read", "submit"]
    assert model.last_request.tools[1].schema == SCHEMA


@pytest.mark.requirement("result:deliverable")
@pytest.mark.parametrize("kind", [Thing, Plain, Typed])
async def test_a_type_gives_a_value_of_that_type(app: App, kind: Any) -> None:
    reply = await ask(app, [submit(name="a", size=2)], kind)
    expected = {"name": "a", "size": 2} if kind is Typed else kind(name="a", size=2)
    assert reply.deliverable == expected


async def test_a_result_that_is_no_object_is_wrapped_for_the_tool_only(app: App) -> None:
    reply = await ask(app, [submit(value=[1, 2])], list[int])
    assert reply.deliverable == [1, 2]


async def test_a_misfit_is_told_to_the_model_and_may_be_repaired_twice(app: App) -> None:
    model = ScriptedModel(
        [submit(name="a", size=0), submit(name=1, size=1), submit(name="a", size=1)]
    )
    session = await app.sessions.start_session(model=model, tools=[])
    reply = await session.send_message("go", schema=SCHEMA)
    assert reply.finish_reason == "submitted"
    told = [message.content for message in reply.messages if message.is_error]
    assert "size: 0 is less than the minimum of 1" in told[0]
    assert "name: 1 is not of type 'string'" in told[1]


@pytest.mark.requirement("reason:schema_failed")
async def test_a_third_misfit_ends_with_schema_failed(app: App) -> None:
    reply = await ask(app, [submit(name="a")] * 3 + ["never asked for"])
    assert reply.finish_reason == "schema_failed"
    assert reply.deliverable is None
    assert "'size' is a required property" in reply.detail
    assert reply.iterations == 3


async def test_plain_json_that_fits_counts_as_a_submission(app: App) -> None:
    reply = await ask(app, ['Here it is:\n```json\n{"name": "a", "size": 3}\n```\nDone.'])
    assert reply.finish_reason == "submitted"
    assert reply.deliverable == {"name": "a", "size": 3}


async def test_plain_words_are_answered_with_the_tool_to_use(app: App) -> None:
    model = ScriptedModel(["It is a thing.", "Really.", submit(name="a", size=1)])
    session = await app.sessions.start_session(model=model, tools=[])
    events = await session.subscribe(after=0)
    reply = await session.send_message("go", schema=SCHEMA)
    assert reply.finish_reason == "submitted"
    notes = []
    async for event in events:
        if isinstance(event, SystemNote):
            notes.append(event.text)
        if isinstance(event, TurnFinished):
            break
    assert len(notes) == 2
    assert "Call submit" in notes[0]


async def test_only_words_end_with_schema_failed(app: App) -> None:
    reply = await ask(app, ["one", "two", "three", "four"])
    assert (reply.finish_reason, reply.iterations) == ("schema_failed", 3)


async def test_the_calls_beside_a_submission_are_run_too(app: App, tmp_path: Path) -> None:
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    both = CallTogether(calls=(submit(name="a", size=1), write))
    session = await app.sessions.start_session(
        model=ScriptedModel([both]), tools=["write"], auto_approve=True
    )
    reply = await session.send_message("go", schema=SCHEMA)
    assert reply.finish_reason == "submitted"
    assert (tmp_path / "a.txt").read_text() == "x"


async def test_a_submission_survives_a_crash_behind_it(tmp_path: Path) -> None:
    """The log is cut where the process died: after the intent of the call beside the submission."""
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    both = CallTogether(calls=(submit(name="a", size=1), write))
    home = {"HOME": str(tmp_path)}
    before, after = MemoryStore(), MemoryStore()
    async with weft.open(tmp_path, before, environ=home) as app:
        session = await app.sessions.start_session(
            model=ScriptedModel([both]), tools=["write"], auto_approve=True
        )
        await session.send_message("go", schema=SCHEMA)
        log, row = await before.read(session.id), await before.row(session.id)
    intent = next(record.seq for record in log if record.kind == "tool_executing")
    lease = await after.take_lease(session.id)
    kept = tuple(log[:intent])
    await after.append(
        Append(stream=session.id, expected_seq=0, records=kept, fence=lease.fence, row=row)
    )
    await after.release_lease(lease)
    async with weft.open(tmp_path, after, environ=home) as app:
        model = ScriptedModel([])
        again = await app.sessions.start_session(session_id=session.id, model=model)
        reply = await again.continue_and_wait()
    assert (reply.finish_reason, reply.deliverable) == ("submitted", {"name": "a", "size": 1})
    assert model.request_count == 0


async def test_steering_that_waits_comes_before_the_end(app: App) -> None:
    model = ScriptedModel([[Stall(), submit(name="a", size=1)], submit(name="b", size=2)])
    session = await app.sessions.start_session(model=model, tools=[])
    accepted = await session.send_prompt("go", schema=SCHEMA)
    assert accepted.status == "started"
    await model.gate().reached.wait()
    await session.queue_steering("call it b")
    model.gate().opened.set()
    events = await session.subscribe(after=0)
    async for event in events:
        if isinstance(event, TurnFinished):
            assert event.reason == "submitted"
            assert event.deliverable == {"name": "b", "size": 2}
            return


async def test_the_schema_holds_for_its_message_only(app: App) -> None:
    model = ScriptedModel([submit(name="a", size=1), "just words"])
    session = await app.sessions.start_session(model=model, tools=[])
    await session.send_message("go", schema=SCHEMA)
    reply = await session.send_message("and now?")
    assert reply.finish_reason == "stop"
    assert [tool.name for tool in model.last_request.tools] == []


async def test_a_queued_message_keeps_its_schema(app: App) -> None:
    model = ScriptedModel([[Stall(), SayText(text="first")], submit(name="a", size=1)])
    session = await app.sessions.start_session(model=model, tools=[])
    await session.send_prompt("one")
    await model.gate().reached.wait()
    await session.queue_follow_up("two", schema=Thing)
    model.gate().opened.set()
    async for event in await session.subscribe(after=0):
        if isinstance(event, TurnFinished) and event.deliverable is not None:
            assert event.deliverable == {"name": "a", "size": 1}
            return


@pytest.mark.requirement("entry:run:schema")
async def test_run_delivers_a_type(tmp_path: Path) -> None:
    model = ScriptedModel([submit(name="a", size=1)])
    result = await weft.run("go", model=model, tools=[], cwd=tmp_path, schema=Thing)
    assert result.deliverable == Thing(name="a", size=1)


async def test_a_callback_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    def fails(event: object) -> None:
        raise RuntimeError("mine")

    result = await weft.run(
        "go", model=ScriptedModel(["hello"]), tools=[], cwd=tmp_path, on_event=fails
    )
    assert (result.finish_reason, result.text) == ("stop", "hello")


LOOP = {
    "$ref": "#/$defs/a",
    "$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/a"}}}},
}


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "nonsense"}, "not a JSON Schema"),
        ({"$ref": "https://example.org/schema.json"}, "which it does not define"),
        (LOOP, "refers to itself"),
        (lambda: None, "is not a schema"),
        (7, "is not a schema"),
    ],
)
async def test_what_is_no_schema_is_refused_before_anything_starts(
    app: App, schema: Any, says: str
) -> None:
    session = await app.sessions.start_session(model=ScriptedModel(["x"]), tools=[])
    with pytest.raises(UsageError, match=says):
        await session.send_message("go", schema=schema)
    assert await session.messages() == []
