"""How hard a model thinks, through a whole session: the vendor's default unless somebody says otherwise."""

from __future__ import annotations

import pytest

import weft
from tests.journeys.compacting import Teller
from tests.journeys.world import World, facts
from weft.app import Session
from weft.events import SessionCreated, SettingChanged
from weft.providers.base import ModelInfo
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


def model(*answers: str, **known: object) -> ScriptedModel:
    info = ModelInfo(provider="scripted", name="script", thinks=True, **known)  # type: ignore[arg-type]  # as given
    return ScriptedModel([*answers], info=info)


async def thinks_at(session: Session, asked: ScriptedModel) -> str:
    """The level that the next model call asks for."""
    await session.send_message("think")
    assert asked.last_request is not None
    return asked.last_request.thinking


# --- the vendor's default ----------------------------------------------------------------


async def test_a_session_that_was_told_nothing_thinks_at_the_vendors_default(
    world: World,
) -> None:
    asked = model("a", "b")
    async with world.open(asked) as app:
        session = await app.sessions.start_session(session_id="s")
        assert await thinks_at(session, asked) == "default"
        assert (await session.editor_snapshot()).thinking == "default"
        assert "thinking" not in (await facts(session, SessionCreated))[0].settings
    async with world.open(asked) as app:
        assert await thinks_at(await app.sessions.get("s"), asked) == "default"


async def test_a_session_that_was_switched_off_stays_off(world: World) -> None:
    """As sessions of earlier versions have it on record, at their creation or later."""
    asked = model("a", "b")
    async with world.open(asked) as app:
        await app.sessions.start_session(session_id="early", thinking="off")
        late = await app.sessions.start_session(session_id="late")
        await late.set_thinking_level("off")
    async with world.open(asked) as app:
        for name in ("early", "late"):
            assert await thinks_at(await app.sessions.get(name), asked) == "off"


async def test_going_back_to_the_default_takes_the_setting_away(world: World) -> None:
    """So that a program that knows no such level reads nothing that it would misread."""
    asked = model("a")
    async with world.open(asked) as app:
        session = await app.sessions.start_session(thinking="high")
        await session.set_thinking_level("default")
        changed = (await facts(session, SettingChanged))[-1]
        assert (changed.name, changed.value) == ("thinking", None)
        assert await thinks_at(session, asked) == "default"


async def test_one_message_may_think_at_the_default_of_its_own(world: World) -> None:
    asked = model("a", "b")
    async with world.open(asked) as app:
        session = await app.sessions.start_session(thinking="high")
        await session.send_message("think", thinking="default")
        assert asked.last_request is not None
        assert asked.last_request.thinking == "default"
        assert await thinks_at(session, asked) == "high"


async def test_a_summary_is_written_with_as_little_thought_as_the_model_has(world: World) -> None:
    teller = Teller()
    async with world.open(teller.model) as app:
        session = await app.sessions.start_session(thinking="max", tools=[])
        await session.send_message("one")
        await session.compact()
        await session.summarize()
    assert [request.thinking for request in teller.summaries] == ["off"]
    assert [request.thinking for request in teller.asked] == ["max", "off"]


@pytest.mark.parametrize(
    ("options", "level"),
    [({}, "default"), ({"thinking": "off"}, "off"), ({"thinking": "max"}, "max")],
)
async def test_a_query_thinks_at_the_vendors_default(options: dict[str, str], level: str) -> None:
    asked = model("a", "b")
    await weft.query("?", model=asked, **options)
    assert asked.last_request is not None
    assert asked.last_request.thinking == level
    async for _ in weft.stream("?", model=asked, **options):
        pass
    assert asked.last_request.thinking == level
