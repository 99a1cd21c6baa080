"""The ledger counts every model call, whatever it was for and however it ended."""

from __future__ import annotations

import contextlib

import anyio
import pytest

import weft
from tests.support.compaction import (
    TURN,
    WINDOW,
    SummarizingModel,
    gate_reached,
    send_prompts,
    start,
)
from tests.support.world import PATIENCE, World, crash, facts
from weft.api.session import Session
from weft.errors import SessionError, WeftError
from weft.events import ModelCallStarted, UsageRecorded
from weft.ids import NodeId
from weft.messages import Usage
from weft.providers import ModelRequest
from weft.providers.script import Fail, SayText, Spend, Stall, Step, Think
from weft.providers.scripted import ScriptedModel, ScriptedProvider

pytestmark = pytest.mark.anyio


async def rows(session: Session, purpose: str) -> list[UsageRecorded]:
    return [each for each in await facts(session, UsageRecorded) if each.purpose == purpose]


async def left_branch(session: Session) -> NodeId:
    """The end of a line that was left."""
    left = (await session.messages_with_ids())[-1][0]
    await session.branch_at(0)
    return NodeId(left)


async def ask(session: Session, purpose: str) -> None:
    if purpose == "compaction":
        await session.compact()
    elif purpose == "summary":
        await session.summarize()
    else:
        await session.summarize_branch(await left_branch(session))


async def ask_in_vain(session: Session, purpose: str) -> None:
    with contextlib.suppress(WeftError):
        await ask(session, purpose)


async def talk_in_vain(session: Session) -> None:
    with contextlib.suppress(WeftError):
        await send_prompts(session, *(f"{number} {TURN}" for number in range(40)))


def stalling(*before: Step) -> ScriptedModel:
    return ScriptedModel(["one", "two", (*before, Stall(gate="s"))])


@pytest.mark.parametrize("purpose", ["compaction", "summary", "branch"])
async def test_a_call_beside_the_turns_that_died_with_its_process_is_counted_once(
    world: World, purpose: str
) -> None:
    model = stalling(SayText(text="so far"))
    app = world.open(model)
    async with anyio.create_task_group() as group:
        await app.__aenter__()
        session = await start(app)
        await send_prompts(session, "a", "b")
        group.start_soon(ask_in_vain, session, purpose)
        with anyio.fail_after(PATIENCE):
            await model.gate("s").reached.wait()
        [begun] = [
            each for each in await facts(session, ModelCallStarted) if each.purpose != "turn"
        ]
        assert (begun.purpose, await rows(session, purpose)) == (purpose, [])
        await crash(app)
        group.cancel_scope.cancel()
    for _ in range(2):
        async with world.open(ScriptedModel([])) as app:
            session = await app.sessions.get("s")
            await session.add_system_message("I am back")
            [used] = await rows(session, purpose)
            assert (used.node, used.estimated) == (begun.node, True)
            assert used.usage.input_tokens == begun.input_tokens > 0
            assert (await session.usage()).by_purpose[purpose] == used.usage


async def test_a_compaction_that_died_in_the_midst_of_a_turn_is_counted(world: World) -> None:
    teller = SummarizingModel(window=WINDOW, summary=lambda request: Stall(gate="s"))
    app = world.open(teller.model)
    async with anyio.create_task_group() as group:
        await app.__aenter__()
        session = await start(app)
        group.start_soon(talk_in_vain, session)
        await gate_reached(teller, "s")
        await crash(app)
        group.cancel_scope.cancel()
    teller.summary = lambda request: SayText(text="short")
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        # Counting may come long before the turn goes on: what is known of its own call must not
        # hang on it.
        await session.add_system_message("I am back")
        await session.continue_and_wait()
        # The turn's own call waited for the room, and was never sent.
        assert not any(each.estimated for each in await rows(session, "turn"))
        estimated = [each for each in await rows(session, "compaction") if each.estimated]
        assert len(estimated) == 1
        assert estimated[0].usage.input_tokens > 0
        assert estimated[0].turn_id is not None


async def test_a_turns_call_that_died_after_room_was_made_is_counted(world: World) -> None:
    teller = SummarizingModel(window=WINDOW, summary=lambda request: SayText(text="short"))

    def say(request: ModelRequest) -> Stall | SayText:
        return Stall(gate="s") if "short" in str(request.messages[0]) else SayText(text=TURN)

    teller.say = say
    app = world.open(teller.model)
    async with anyio.create_task_group() as group:
        await app.__aenter__()
        session = await start(app)
        group.start_soon(talk_in_vain, session)
        await gate_reached(teller, "s")
        await crash(app)
        group.cancel_scope.cancel()
    teller.say = lambda request: SayText(text="Here.")
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        await session.continue_and_wait()
        [lost] = [each for each in await rows(session, "turn") if each.estimated]
        assert lost.usage.input_tokens > 0


# --- nothing had come


async def test_a_turn_that_is_aborted_before_a_byte_has_come_counts_what_was_sent(
    world: World,
) -> None:
    model = ScriptedModel([Stall(gate="s"), "fine"])
    async with world.open(model) as app:
        session = await start(app)
        await session.send_prompt("x" * 4_000)
        await model.gate("s").reached.wait()
        await session.abort()
        [lost] = await rows(session, "turn")
        assert lost.estimated
        assert lost.usage.input_tokens > 1_000
        assert lost.usage.output_tokens == 0
        assert lost.usage.cost_usd
        assert (await session.usage()).total == lost.usage


async def test_what_was_only_thought_is_counted_when_the_answer_breaks_off(world: World) -> None:
    model = ScriptedModel([(Think(text="hm"), Fail(error="RequestRefused"))])
    async with world.open(model) as app:
        session = await start(app)
        await session.send_message("go")
        [lost] = await rows(session, "turn")
        assert (lost.estimated, lost.usage.input_tokens > 0) == (True, True)


async def test_nothing_is_counted_while_one_waits_to_try_again(plain_world: World) -> None:
    waits = anyio.Event()

    async def wait(seconds: float) -> None:
        waits.set()
        await anyio.sleep_forever()

    model = ScriptedModel([Fail(error="RateLimited")])
    app = weft.open(
        plain_world.project,
        "memory",
        environ=plain_world.environ,
        providers={"scripted": ScriptedProvider({"script": model})},
        sleep=wait,
    )
    async with app:
        session = await app.sessions.start_session(model="scripted:script", tools=[])
        await session.send_prompt("go")
        with anyio.fail_after(PATIENCE):
            await waits.wait()
            await session.abort()
        assert await rows(session, "turn") == []


@pytest.mark.parametrize("purpose", ["compaction", "summary", "branch"])
async def test_a_call_beside_the_turns_that_is_stopped_before_a_byte_has_come_is_counted(
    world: World, purpose: str
) -> None:
    model = stalling()
    async with world.open(model) as app:
        session = await start(app)
        await send_prompts(session, "a", "b")
        async with anyio.create_task_group() as group:
            group.start_soon(ask_in_vain, session, purpose)
            with anyio.fail_after(PATIENCE):
                await model.gate("s").reached.wait()
            if purpose == "compaction":
                await session.abort()
            group.cancel_scope.cancel()
        [lost] = await rows(session, purpose)
        assert (lost.estimated, lost.usage.input_tokens > 0) == (True, True)


@pytest.mark.parametrize("purpose", ["summary", "branch"])
async def test_a_summary_that_is_cancelled_counts_what_had_come(world: World, purpose: str) -> None:
    model = stalling(Spend(usage=Usage(input_tokens=70, output_tokens=3)), SayText(text="so far"))
    async with world.open(model) as app:
        session = await start(app)
        await send_prompts(session, "a", "b")
        async with anyio.create_task_group() as group:
            group.start_soon(ask_in_vain, session, purpose)
            with anyio.fail_after(PATIENCE):
                await model.gate("s").reached.wait()
            group.cancel_scope.cancel()
        [used] = await rows(session, purpose)
        assert (used.usage.input_tokens, used.usage.output_tokens) == (70, 3)


@pytest.mark.parametrize("purpose", ["compaction", "summary", "branch"])
async def test_a_call_that_fails_is_over_and_is_not_counted_again(
    world: World, purpose: str
) -> None:
    model = ScriptedModel(["one", "two", Fail(error="RequestRefused")])
    async with world.open(model) as app:
        session = await start(app)
        await send_prompts(session, "a", "b")
        with pytest.raises((SessionError, WeftError)):
            await ask(session, purpose)
        assert sum(each.usage.total_tokens for each in await rows(session, purpose)) == 0
    async with world.open(ScriptedModel([])) as app:
        session = await app.sessions.get("s")
        await session.add_system_message("I am back")
        assert sum(each.usage.total_tokens for each in await rows(session, purpose)) == 0


async def test_a_summary_counts_its_broken_attempts_too(world: World) -> None:
    spent = Spend(usage=Usage(input_tokens=10, output_tokens=1))

    def choose(request: ModelRequest) -> list[Step]:
        asked.append(request)
        if len(asked) == 2:
            return [spent, SayText(text="half"), Fail(error="ProviderUnavailable")]
        return [spent, SayText(text="whole")]

    asked: list[ModelRequest] = []
    async with world.open(ScriptedModel([], choose=choose)) as app:
        session = await start(app)
        await send_prompts(session, "a")
        await session.summarize()
        [used] = await rows(session, "summary")
        assert used.usage.input_tokens == 20
