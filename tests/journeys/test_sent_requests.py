"""What was sent to the model: as it was, with what changed, and each cause of a cache miss."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.support.compaction import SummarizingModel, send_prompts, start
from tests.support.world import World, until_idle
from weft.api.session import Session
from weft.errors import UsageError
from weft.messages import Usage
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Spend, Stall, Step
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.runtime.requests.call_log import LoggedCall, logged_calls
from weft.runtime.requests.rebuilt_request import rebuilt
from weft.session.log.load import load_state_at

pytestmark = pytest.mark.anyio

READ = Usage(input_tokens=50, output_tokens=5, cache_read_tokens=9_950)
MISSED = Usage(input_tokens=10_000, output_tokens=5)


def caching(name: str = "script", **info: Any) -> ScriptedModel:
    """A model whose vendor says what it read from its cache: what the test expects of it."""

    def choose(request: ModelRequest) -> list[Step]:
        # A note of what has changed may come behind it.
        is_hit = "missed" not in str(request.messages[-3:])
        return [SayText(text="ok"), Spend(usage=READ if is_hit else MISSED)]

    known = ModelInfo(
        provider="scripted",
        name=name,
        context_window=200_000,
        price_input=1.0,
        price_output=2.0,
        price_cache_read=0.1,
        thinks=True,
        levels=("off", "low", "high"),
    )
    return ScriptedModel([], choose=choose, info=ModelInfo(**{**_fields(known), **info}))


def _fields(info: ModelInfo) -> dict[str, Any]:
    return {name: getattr(info, name) for name in info.__struct_fields__}


Options = dict[str, Any]
Plant = Callable[[World, Session], Awaitable[Options | None]]


async def _agents_file(world: World, session: Session) -> None:
    # It is told in a note as long as the prefix stays; a new prefix has it in itself.
    world.write("AGENTS.md", "Say more.\n")
    await session.update_model("scripted:other")
    await session.send_message("between")
    world.write("AGENTS.md", "Say less.\n")
    await session.set_permission_mode("plan")


async def _tools(world: World, session: Session) -> Options:
    return {"tools": ["read", "list"]}


async def _model(world: World, session: Session) -> None:
    await session.update_model("scripted:other")


async def _other_vendor(world: World, session: Session) -> None:
    await session.update_model("elsewhere:script")


async def _effort(world: World, session: Session) -> None:
    await session.set_thinking_level("high")


async def _mode(world: World, session: Session) -> None:
    await session.set_permission_mode("plan")


async def _compaction(world: World, session: Session) -> None:
    await session.compact()


async def _pause(world: World, session: Session) -> None:
    world.clock.advance(7_200)


async def _nothing(world: World, session: Session) -> None:
    """The vendor has dropped it, or the key is another one."""


async def _history(world: World, session: Session) -> None:
    line = await session.messages_with_ids()
    await session.exclude(line[0][0])


PLANTS: dict[str, tuple[Plant, list[str]]] = {
    "AGENTS.md": (_agents_file, ["mode", "instructions"]),
    "tools": (_tools, ["tools", "system"]),
    "model": (_model, ["model"]),
    "effort": (_effort, ["effort"]),
    "mode": (_mode, ["mode"]),
    "compaction": (_compaction, ["compaction"]),
    "pause": (_pause, ["pause"]),
    "vendor": (_nothing, ["vendor"]),
    "another vendor": (_other_vendor, ["vendor"]),
    "history": (_history, ["history"]),
}


@pytest.mark.parametrize("name", PLANTS)
async def test_the_cause_of_a_cache_miss_is_named(plain_world: World, name: str) -> None:
    plant, expected = PLANTS[name]
    world = plain_world
    world.write("AGENTS.md", "Be brief.\n")
    models = [caching(), caching("other")]
    elsewhere = caching(provider="elsewhere")
    providers = {
        "scripted": ScriptedProvider({each.info.name: each for each in models}),
        "elsewhere": ScriptedProvider({"script": elsewhere}),
    }
    async with world.open(providers=providers, clock=world.clock) as app:
        session = await app.sessions.start_session()
        await session.send_message("one")
        await session.send_message("two")
        hit = (await session.request()).cache
        assert (hit.state, hit.causes, hit.read_tokens) == ("hit", (), 9_950)
        options = await plant(world, session) or {}
        await session.send_message("missed", **options)
        found = (await session.request()).cache
        # Of a vendor that never says what it had, the cause is named all the same.
        assert found.state == ("unknown" if name == "another vendor" else "miss")
        kinds = [cause.kind for cause in found.causes]
        assert kinds == expected, found.causes


async def test_the_first_request_has_nothing_to_be_read(plain_world: World) -> None:
    async with plain_world.open(caching()) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="no request"):
            await session.request()
        await session.send_message("missed")
        found = await session.request()
        assert (found.cache.state, found.cache.causes, found.change) == ("first", (), None)


@pytest.mark.requirement("session:request")
async def test_a_request_is_shown_part_by_part_beside_the_one_before(plain_world: World) -> None:
    plain_world.write("a.txt", "what the file says\n" * 200)
    plain_world.write("AGENTS.md", "Be brief.\n")
    read = CallTool(name="read", args={"path": "a.txt"})
    spent = Spend(usage=Usage(input_tokens=4_000, cache_read_tokens=6_000, output_tokens=9))
    info = caching().info
    model = ScriptedModel([[read, spent], [SayText(text="done"), spent]], info=info)
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("look")
        first, second = await session.request(1, 0), await session.request(1)
        assert (first.call, second.call, second.calls) == (0, 1, 2)
        parts = {part.name: part for part in second.parts}
        assert {"tools", "system", "instructions", "user", "calls", "results"} <= parts.keys()
        assert parts["results"].before_tokens == 0 < parts["results"].tokens
        assert sum(part.tokens for part in parts.values()) == 10_000
        assert sum(part.cached_tokens for part in parts.values()) == 6_000
        costs = [part.cost_usd for part in parts.values() if part.cost_usd is not None]
        assert sum(costs) == pytest.approx((4_000 * 1.0 + 6_000 * 0.1) / 1e6)
        assert second.change is not None
        assert (second.change.removed_messages, second.change.added_messages) == (0, 2)
        shown = await session.request(diff=True)
        assert "+" in shown.diff
        assert "what the file says" in shown.diff
        # A scripted model is sent no bytes: the words are compared by their digest.
        assert (second.match, second.is_wire) == ("same_words", False)


async def test_a_turn_is_named_by_number_or_message_and_what_is_none_is_refused(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two", "three")
        line = [each for each, _ in await session.messages_with_ids()]
        second = await session.request(2)
        assert second.node == line[3]
        assert (await session.request(line[2])).node == line[3]
        assert (await session.request(line[3])).node == line[3]
        assert (await session.request(-1)).node == line[5] == (await session.request()).node
        for wrong in (0, 4, -4, "nod_none"):
            with pytest.raises(UsageError, match="there is no"):
                await session.request(wrong)
        with pytest.raises(UsageError, match="has no call 1"):
            await session.request(2, 1)


async def test_requests_stay_what_they_were_after_a_rewind_a_compaction_and_in_a_fork(
    world: World,
) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        line = [each for each, _ in await session.messages_with_ids()]
        before = await session.request(line[3])
        await session.compact()
        await session.pin(line[0])
        await send_prompts(session, "three")
        assert (await session.request()).match == "same_words"
        await session.branch_at(1, "other")
        await send_prompts(session, "four")
        assert (await session.request()).match == "same_words"
        assert (await session.request(line[3])).body == before.body
        fork = await app.sessions.fork_session("s")
        assert (await fork.request(line[1])).match == "same_words"
        await send_prompts(fork, "five")
        assert (await fork.request()).match == "same_words"
    async with world.open(teller.model) as app:
        session = await app.sessions.get("s")
        assert (await session.request(line[3])).body == before.body


async def test_a_log_of_another_version_is_said_to_differ(plain_world: World) -> None:
    teller = SummarizingModel()
    async with plain_world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one")
        [call] = await logged_calls(session.id, app.store)
        state = await load_state_at(call.place, app.store)
        for digest, match in (("0" * 64, "differs"), ("", "unknown")):
            other = msgspec.structs.replace(call.started, digest=digest)
            made = await rebuilt(
                LoggedCall(place=call.place, started=other), state, app.store, teller.model
            )
            assert made.match == match
            assert ("another version" in made.said) == (match == "differs")


async def test_a_request_of_a_turn_that_still_runs_is_shown(plain_world: World) -> None:
    model = ScriptedModel(["one", [Stall(gate="go"), SayText(text="two")]])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("one")
        await session.send_prompt("two")
        await model.gate("go").reached.wait()
        found = await session.request()
        assert (found.usage, found.cache.state, found.match) == (None, "unknown", "same_words")
        model.gate("go").opened.set()
        await until_idle(session)
