"""Usage by day: what was paid for, once, on its day, for its project and model."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.support.role_models import agent_call, role_model
from tests.support.served_world import serving
from tests.support.world import World
from weft.errors import UsageError
from weft.messages import Usage
from weft.providers import ModelInfo
from weft.providers.script import SayText, Spend
from weft.providers.scripted import ScriptedModel
from weft.runtime.daily_usage import DAY_SECONDS, DailyUsage, day_of

pytestmark = pytest.mark.anyio


def spender(name: str, *tokens: int) -> ScriptedModel:
    info = ModelInfo(provider="scripted", name=name, context_window=100_000)
    steps = [(SayText(text="."), Spend(usage=Usage(input_tokens=each))) for each in tokens]
    return ScriptedModel(steps, info=info)


def cells(rows: list[DailyUsage]) -> list[tuple[str, str, str, int, int]]:
    return [
        (each.day, Path(each.project_path).name, each.model, each.calls, each.usage.input_tokens)
        for each in rows
    ]


async def test_each_day_project_and_model_has_its_own_sum(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first, second = spender("one", 10, 20, 40), spender("two", 5, 7)
    async with world.open(first, second, clock=world.clock) as app:
        began = world.clock.now()
        session = await app.sessions.start_session(model="scripted:one")
        elsewhere = await app.sessions.start_session(model="scripted:two", project_path=str(other))
        await session.send_message("Go.")
        await session.send_message("Go.")
        await elsewhere.send_message("Go.")
        assert cells(await app.usage_by_day()) == [
            (day_of(began), "project", "scripted:one", 2, 30),
            (day_of(began), "other", "scripted:two", 1, 5),
        ]
        world.clock.advance(2 * DAY_SECONDS)
        await session.send_message("Go.")
        today = day_of(world.clock.now())
        rows = await app.usage_by_day()
        assert cells(rows)[0] == (today, "project", "scripted:one", 1, 40)
        assert len(rows) == 3
        assert cells(await app.usage_by_day(days=2)) == cells(rows)[:1]
        await app.sessions.delete_session(session.id)
        assert [each[1] for each in cells(await app.usage_by_day())] == ["other"]


async def test_what_an_agent_used_is_counted_once(world: World) -> None:
    model = role_model(
        {"parent": [agent_call("child: look around."), "Done."], "child": ["I have looked."]}
    )
    async with world.open(model) as app:
        session = await app.sessions.start_session(auto_approve=True)
        await session.send_message("parent: ask an agent.")
        total = (await session.usage()).total
        rows = await app.usage_by_day()
        assert sum(each.usage.total_tokens for each in rows) == total.total_tokens
        assert sum(each.calls for each in rows) == 3


@pytest.mark.parametrize("days", [0, -1, 367])
async def test_a_number_of_days_that_makes_no_sense_is_refused(world: World, days: int) -> None:
    async with world.open(ScriptedModel([])) as app:
        with pytest.raises(UsageError, match="days"):
            await app.usage_by_day(days=days)


async def test_two_who_ask_at_once_and_those_who_ask_again_get_the_same(world: World) -> None:
    async with world.open(spender("one", 10)) as app:
        session = await app.sessions.start_session(model="scripted:one")
        await session.send_message("Go.")
        found: list[list[DailyUsage]] = []

        async def ask() -> None:
            found.append(await app.usage_by_day())

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
        assert found[0] == found[1] == await app.usage_by_day()
        assert sum(each.calls for each in found[0]) == 1


async def test_the_server_tells_it_for_all_projects_or_one(plain_world: World) -> None:
    async with serving(plain_world, spender("one", 10)) as served:
        made = await served.good("POST", "/sessions", {"model": "scripted:one"})
        await served.good("POST", f"/sessions/{made['id']}/message", {"content": "Go."})
        [row] = await served.good("GET", "/usage?days=1")
        assert (row["model"], row["calls"], row["usage"]["input_tokens"]) == ("scripted:one", 1, 10)
        assert await served.good("GET", "/usage?project=main") == [row]
        assert (await served.call("GET", "/usage?days=0")).status == 400
        assert (await served.call("GET", "/usage?project=none")).status == 404
