"""A family after a crash: every child is found again where it stood, and nothing is started or run
twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

import weft
from tests.support.idle_loop import all_tasks_blocked
from tests.support.role_models import agent_call, agent_calls, only_child, role_model
from tests.support.world import World, crash, facts, message_lines, running, until, until_idle
from weft.api.session import Session
from weft.app import App
from weft.errors import StoreUnavailable
from weft.events import (
    ChildFinished,
    ChildStarted,
    SessionRestarted,
    SystemNote,
    ToolComplete,
    ToolExecuting,
    TurnFinished,
)
from weft.messages import Usage
from weft.providers.script import CallTool, SayText, Spend, Stall
from weft.tools import FunctionTool

pytestmark = pytest.mark.anyio


class Counter:
    """A tool with an effect, which counts its runs and may wait in the middle of one."""

    def __init__(self, *, waits: bool = False) -> None:
        self.runs = 0
        self.reached = anyio.Event()
        self.opened = anyio.Event()
        if not waits:
            self.opened.set()

    async def count(self) -> str:
        """Count one up."""
        self.runs += 1
        self.reached.set()
        await self.opened.wait()
        return f"run {self.runs}"

    @property
    def tool(self) -> FunctionTool:
        return weft.tool(self.count)


COUNT = CallTool(name="count")


async def start(app: App, *tools: Any) -> Session:
    return await app.sessions.start_session(
        session_id="s", tools=["all", *tools], auto_approve=True
    )


@pytest.mark.parametrize("leave", [crash, App.aclose])
async def test_a_call_is_attached_again_to_the_child_that_was_at_work(
    world: World, leave: Callable[[App], Awaitable[None]]
) -> None:
    counter = Counter()
    roles: dict[str, Any] = {
        "ask": [agent_call("work"), "Done."],
        "work": [COUNT, (Stall(times=1), SayText(text="Worked."))],
    }
    model = role_model(roles)
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("ask")
    await model.gate().reached.wait()
    child = await only_child(session)
    await leave(app)
    roles["work"] = [COUNT, "Worked."]
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert await session.get_status() == "interrupted"
        reply = await session.continue_and_wait()
        assert (reply.finish_reason, reply.text) == ("stop", "Done.")
        assert await only_child(session) == child
        assert len(await facts(session, ChildStarted)) == 1
        assert len(await facts(session, ChildFinished)) == 1
        assert [fact.attempt for fact in await facts(session, ToolExecuting)] == [1, 2]
        [complete] = await facts(session, ToolComplete)
        assert (complete.result.text, complete.result.status) == ("Worked.", "done")
        assert await facts(session, SystemNote) == []
    assert counter.runs == 1


async def test_a_child_that_had_ended_gives_its_result_without_another_model_call(
    world: World,
) -> None:
    """The crash comes between the child's end and its parent's record of it."""
    model = role_model(
        {
            "ask": [agent_calls("fast", "slow"), "Done."],
            "fast": [(Spend(usage=Usage(input_tokens=70)), SayText(text="Fast."))],
            "slow": [Stall()],
        }
    )
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_prompt("ask")
    await model.gate().reached.wait()
    fast = await app.sessions.get((await session.children())[0].id)
    # Not until it is idle: it is so before its turn begins, too.
    await until(fast, TurnFinished)
    await crash(app)
    again = role_model({"ask": [agent_calls("fast", "slow"), "Done."], "slow": ["Slow."]})
    async with world.open(again) as app:
        session = await start(app)
        reply = await session.continue_and_wait()
        assert reply.text == "Done."
        assert (await message_lines(session))[2:4] == ["tool: Fast.", "tool: Slow."]
        assert again.request_count == 2
        ends = await facts(session, ChildFinished)
        assert sum(end.usage.input_tokens for end in ends if end.usage is not None) == 170


async def test_an_effect_of_a_child_that_was_cut_short_is_not_run_again_and_the_child_is_told(
    world: World,
) -> None:
    counter = Counter(waits=True)
    model = role_model({"ask": [agent_call("work"), "Done."], "work": [COUNT, "I looked."]})
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("ask")
    await counter.reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert (await session.continue_and_wait()).text == "Done."
        child = await app.sessions.get(await only_child(session))
        [complete] = await facts(child, ToolComplete)
        assert complete.result.status == "interrupted"
    assert counter.runs == 1


async def test_a_family_of_three_comes_back(world: World) -> None:
    counter = Counter()
    roles: dict[str, Any] = {
        "one": [agent_call("two"), "1"],
        "two": [COUNT, agent_call("three"), "2"],
        "three": [COUNT, (Stall(), SayText(text="3"))],
    }
    model = role_model(roles)
    app = await world.open(model).__aenter__()
    session = await start(app, counter.tool)
    await session.send_prompt("one")
    await model.gate().reached.wait()
    await crash(app)
    roles["three"] = [COUNT, "3"]
    async with world.open(model) as app:
        session = await start(app, counter.tool)
        assert (await session.continue_and_wait()).text == "1"
        assert await session.get_status() == "idle"
    assert counter.runs == 2


async def test_a_child_that_was_named_and_never_made_is_made_then(world: World) -> None:
    """The crash comes right after the intent: the child has a name on record, and no log."""
    model = role_model({"ask": [agent_call("work"), "Done."], "work": ["Worked."]})
    app = await world.open(model).__aenter__()
    session = await start(app)
    reached, gone = anyio.Event(), anyio.Event()

    async def never(*_: object) -> Any:
        """A process that dies at this very instant."""
        reached.set()
        await gone.wait()
        raise StoreUnavailable("the process is gone")

    app.host.registry.open_child = never  # type: ignore[method-assign,assignment]
    await session.send_prompt("ask")
    await reached.wait()
    child = await only_child(session)
    async with anyio.create_task_group() as group:
        group.start_soon(crash, app)
        await all_tasks_blocked()
        gone.set()
    async with world.open(model) as app:
        session = await start(app)
        assert await app.host.row(child) is None  # type: ignore[arg-type]
        assert (await session.continue_and_wait()).text == "Done."
        assert await only_child(session) == child
        assert await message_lines(await app.sessions.get(child)) == [
            "user: work",
            "assistant: Worked.",
        ]


async def test_when_something_else_is_said_the_childs_use_is_counted_all_the_same(
    world: World,
) -> None:
    spend = Spend(usage=Usage(input_tokens=400))
    model = role_model(
        {"ask": [agent_call("work"), "Fine."], "work": [(spend, CallTool(name="list")), Stall()]}
    )
    app = await world.open(model).__aenter__()
    session = await start(app)
    await session.send_prompt("ask")
    await model.gate().reached.wait()
    await crash(app)
    async with world.open(model) as app:
        session = await start(app)
        before = (await session.usage()).total.input_tokens
        await session.send_message("never mind")
        [ended] = await facts(session, ChildFinished)
        assert ended.reason == "halted"
        assert ended.usage is not None
        assert ended.usage.input_tokens >= 400
        assert (await session.usage()).total.input_tokens >= before + 400
        [complete] = await facts(session, ToolComplete)
        assert complete.result.status == "aborted"


async def test_a_parent_that_crashes_in_a_living_process_finds_its_child_still_at_work(
    world: World,
) -> None:
    """The supervisor brings the parent's turn back; the child is not stopped for it."""
    model = role_model(
        {
            "ask": [agent_call("work"), "Done."],
            "work": [(Stall(), SayText(text="Worked."))],
        }
    )
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        actor = app.host.registry.ports["s"].actor  # type: ignore[attr-defined,index]
        turn = actor._worker.turn
        await actor._mailbox.call(_ended(turn, RuntimeError("it broke")))
        model.gate().opened.set()
        await until_idle(session)
        assert len(await facts(session, SessionRestarted)) == 1
        [complete] = await facts(session, ToolComplete)
        assert complete.result.text == "Worked."
        child = await app.sessions.get(await only_child(session))
        [finished] = await facts(child, TurnFinished)
        assert finished.reason == "stop"


def _ended(turn: Any, error: BaseException) -> Any:
    from weft.session.work.mailbox_messages import TurnEnded

    return TurnEnded(turn, error)


async def test_an_aborted_parent_that_is_continued_does_not_go_back_to_the_stopped_child(
    world: World,
) -> None:
    model = role_model({"ask": [agent_call("work"), "Then not."], "work": [Stall()]})
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("ask")
        await model.gate().reached.wait()
        async with running(session.abort):
            pass
        assert (await session.continue_and_wait()).text == "Then not."
        assert len(await session.children()) == 1
