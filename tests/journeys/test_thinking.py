"""How hard a model thinks, through a whole session: the vendor's default unless a level is set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.support.compaction import SummarizingModel
from tests.support.loopback_server import LoopbackConnection, serving
from tests.support.vendor_servers import VENDOR_WIRES, send_plan
from tests.support.world import World, facts
from weft.api.options import QueryOptions
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import SessionCreated, SettingChanged, SystemNote
from weft.providers.base import ModelInfo
from weft.providers.script import SayText, ScriptedAnswer
from weft.providers.scripted import ScriptedModel
from weft.thinking_levels import ThinkingLevel

pytestmark = pytest.mark.anyio


def model(*answers: str) -> ScriptedModel:
    info = ModelInfo(provider="scripted", name="script", thinks=True)
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
    teller = SummarizingModel()
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
async def test_a_query_thinks_at_the_vendors_default(options: QueryOptions, level: str) -> None:
    asked = model("a", "b")
    await weft.query("?", model=asked, **options)
    assert asked.last_request is not None
    assert asked.last_request.thinking == level
    async for _ in weft.stream("?", model=asked, **options):
        pass
    assert asked.last_request.thinking == level


# --- an effort behind a model's name -----------------------------------------------------


def named(name: str, *answers: str) -> ScriptedModel:
    return ScriptedModel([*answers], info=ModelInfo(provider="scripted", name=name, thinks=True))


async def set_to(session: Session) -> tuple[str, str]:
    """Model and level of a session."""
    seen = await session.editor_snapshot()
    return seen.model, seen.thinking


async def test_a_session_is_started_with_the_effort_behind_the_models_name(world: World) -> None:
    async with world.open(model(), named("other")) as app:
        start = app.sessions.start_session
        assert await set_to(await start(model="scripted/other:high")) == ("scripted:other", "high")
        given = await start(model="scripted:other:high", thinking="low")
        assert await set_to(given) == ("scripted:other", "low")
        assert await set_to(await start(model="scripted:other")) == ("scripted:other", "default")
        late = await start(session_id="late")
        again = await start(session_id="late", model="scripted:other:max")
        assert late.id == again.id
        assert await set_to(again) == ("scripted:other", "max")


async def test_the_effort_behind_the_configured_model_is_the_one_of_new_sessions(
    world: World,
) -> None:
    config = {"model.default": "scripted/script:low"}
    async with world.open(model(), named("other"), config=config) as app:
        assert await set_to(await app.sessions.start_session()) == ("scripted:script", "low")
        other = await app.sessions.start_session(model="scripted:other")
        assert await set_to(other) == ("scripted:other", "default")
        assert app.host.default_model() == "scripted:script"


async def test_a_model_is_changed_with_its_effort_in_one_step(world: World) -> None:
    async with world.open(model(), named("other")) as app:
        session = await app.sessions.start_session()
        before = (await session.editor_snapshot()).seq
        await session.update_model("scripted/other:xhigh", input_id="once")
        await session.update_model("scripted/other:xhigh", input_id="once")
        assert await set_to(session) == ("scripted:other", "xhigh")
        assert (await session.editor_snapshot()).seq == before + 2
        await session.set_model("scripted:script")
        assert await set_to(session) == ("scripted:script", "xhigh")
        await session.set_model("scripted:script:default")
        assert await set_to(session) == ("scripted:script", "default")


async def test_one_message_may_name_a_model_with_its_effort(world: World) -> None:
    asked, other = model("a"), named("other", "b", "c")
    async with world.open(asked, other) as app:
        session = await app.sessions.start_session(thinking="low")
        await session.send_message("x", model="scripted:other:max")
        await session.send_message("x", model="scripted:other:max", thinking="off")
        assert [request.thinking for request in other.requests] == ["max", "off"]
        assert await thinks_at(session, asked) == "low"


async def test_the_rotation_knows_its_place_whatever_is_written(world: World) -> None:
    config = {"model.rotation": ["scripted/script:high", "scripted:other", "scripted:script"]}
    async with world.open(model(), named("other"), config=config) as app:
        session = await app.sessions.start_session()
        assert await session.cycle_model() == "scripted:script"
        assert await set_to(session) == ("scripted:script", "high")
        assert await session.cycle_model() == "scripted:other"
        assert await session.cycle_model() == "scripted:script"
        assert await set_to(session) == ("scripted:script", "high")


@pytest.mark.parametrize("name", ["gpt-oss:20b:high", "gpt-oss:20b"])
async def test_a_query_takes_the_effort_behind_the_models_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await send_plan(
                line, VENDOR_WIRES["ollama"](), ScriptedAnswer(steps=(SayText(text="hi"),))
            )

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    async with serving(handler) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        await weft.query("?", model=f"ollama:{name}")
        await weft.query("?", model=f"ollama/{name}", thinking="low")
        async for _ in weft.stream("?", model=f"ollama:{name}"):
            pass
        sent = [msgspec.json.decode(asked.body) for asked in server.asked]
    assert {body["model"] for body in sent} == {"gpt-oss:20b"}
    effort = "high" if name.endswith("high") else None
    assert [body.get("think") for body in sent] == [effort, "low", effort]


# --- levels that a model lacks -----------------------------------------------------------


LOW_TO_HIGH = ("low", "medium", "high")


def geared(*levels: ThinkingLevel, name: str = "script", answers: int = 4) -> ScriptedModel:
    """A model that has these levels."""
    info = ModelInfo(provider="scripted", name=name, thinks=bool(levels), levels=levels)
    return ScriptedModel(["ok"] * answers, info=info)


async def notes(session: Session) -> list[str]:
    return [note.text for note in await facts(session, SystemNote)]


@pytest.mark.requirement("session:set_thinking_level")
@pytest.mark.parametrize(
    ("levels", "wanted", "said"),
    [
        (LOW_TO_HIGH, "high", []),
        (LOW_TO_HIGH, "default", []),
        (
            LOW_TO_HIGH,
            "minimal",
            ["scripted:script has no level minimal: it thinks at low (it has low, medium, high)."],
        ),
        (
            LOW_TO_HIGH,
            "off",
            ["scripted:script cannot be switched off: it thinks at low, the least that it has."],
        ),
        (
            ("off", "high"),
            "max",
            ["scripted:script has no level max: it thinks at high (it has off, high)."],
        ),
        ((), "off", []),
        (
            (),
            "low",
            [
                "scripted:script has no thinking levels; the setting takes effect with a "
                "model that has them."
            ],
        ),
    ],
)
async def test_a_level_that_the_model_lacks_is_the_nearest_and_a_note_says_so(
    plain_world: World, levels: tuple[ThinkingLevel, ...], wanted: ThinkingLevel, said: list[str]
) -> None:
    async with plain_world.open(geared(*levels)) as app:
        session = await app.sessions.start_session()
        await session.set_thinking_level(wanted)
        assert await notes(session) == said
        assert (await session.editor_snapshot()).thinking == wanted
        begun = await app.sessions.start_session(thinking=wanted)
        assert await notes(begun) == said
        behind = await app.sessions.start_session(model=f"scripted:script:{wanted}")
        assert await notes(behind) == said


async def test_another_model_says_what_it_makes_of_the_level(plain_world: World) -> None:
    one, two = geared("off", "minimal", "low"), geared("high", name="two")
    config = {"model.rotation": ["scripted:script", "scripted:two"]}
    async with plain_world.open(one, two, config=config) as app:
        session = await app.sessions.start_session(thinking="minimal")
        assert await notes(session) == []
        told = "scripted:two has no level minimal: it thinks at high (it has high)."
        await session.update_model("scripted:two")
        assert await notes(session) == [told]
        await session.update_model("scripted:script")
        assert await notes(session) == [told]
        assert await session.cycle_model() == "scripted:two"
        assert await notes(session) == [told, told]
        await session.update_model("scripted:two:default")
        assert await notes(session) == [told, told]


async def test_a_message_of_its_own_says_what_it_makes_of_the_level(plain_world: World) -> None:
    one, two = geared("off", "minimal", "low"), geared("high", name="two")
    async with plain_world.open(one, two) as app:
        session = await app.sessions.start_session(thinking="low")
        await session.send_message("a")
        await session.send_message("b", thinking="minimal")
        assert await notes(session) == []
        await session.send_message("c", thinking="max")
        await session.send_message("d", model="scripted:two")
        assert await notes(session) == [
            "scripted:script has no level max: it thinks at low (it has off, minimal, low).",
            "scripted:two has no level low: it thinks at high (it has high).",
        ]


@pytest.mark.requirement("session:cycle_thinking_level")
async def test_the_levels_go_round_among_those_that_the_model_has(plain_world: World) -> None:
    async with plain_world.open(geared("low", "high"), geared(name="none")) as app:
        session = await app.sessions.start_session()
        seen = [await session.cycle_thinking_level() for _ in range(4)]
        assert seen == ["low", "high", "default", "low"]
        await session.set_thinking_level("max")  # which is high here
        assert await session.cycle_thinking_level() == "default"
        assert len(await notes(session)) == 1


async def test_a_model_whose_levels_are_not_known_is_asked_as_wanted(plain_world: World) -> None:
    asked = model("a")
    async with plain_world.open(asked) as app:
        session = await app.sessions.start_session(thinking="minimal")
        assert await notes(session) == []
        assert await thinks_at(session, asked) == "minimal"


# --- the setting --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "settings", "level"),
    [
        ({"model.effort": "high"}, {}, "high"),
        ({"model.effort": "default"}, {}, "default"),
        ({"model.effort": "high"}, {"thinking": "low"}, "low"),
        ({"model.effort": "high"}, {"thinking": "default"}, "default"),
        ({"model.effort": "high"}, {"model": "scripted:script"}, "high"),
        ({"model.effort": "high"}, {"model": "scripted:script:off"}, "off"),
        ({"model.effort": "high", "model.default": "scripted:script:max"}, {}, "max"),
        ({"model.effort": "high", "model.default": "scripted:script:default"}, {}, "default"),
    ],
)
async def test_new_sessions_think_as_hard_as_is_configured(
    plain_world: World, config: dict[str, str], settings: dict[str, Any], level: str
) -> None:
    asked = model("a")
    async with plain_world.open(asked, config=config) as app:
        session = await app.sessions.start_session(**settings)
        assert await thinks_at(session, asked) == level


async def test_the_configured_effort_is_of_new_sessions_only(world: World) -> None:
    asked = model("a", "b")
    async with world.open(asked) as app:
        await app.sessions.start_session(session_id="s")
    async with world.open(asked, config={"model.effort": "max"}) as app:
        assert await thinks_at(await app.sessions.start_session(session_id="s"), asked) == "default"


async def test_a_configured_effort_says_nothing_of_models_that_do_not_think(
    plain_world: World,
) -> None:
    """It is meant for those that do; of one that lacks the level it says so all the same."""
    models = (geared(), geared("high", name="two"))
    async with plain_world.open(*models, config={"model.effort": "low"}) as app:
        assert await notes(await app.sessions.start_session()) == []
        other = await app.sessions.start_session(model="scripted:two")
        assert await notes(other) == [
            "scripted:two has no level low: it thinks at high (it has high)."
        ]


async def test_an_effort_that_is_none_is_refused_with_the_words_that_are(
    plain_world: World,
) -> None:
    with pytest.raises(UsageError, match=r"model\.effort .*default, off, minimal, low.*'hard'"):
        plain_world.open(model(), config={"model.effort": "hard"})


# --- over the wire ------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"thinking": "off"}, {"thinking": "minimal"}])
async def test_the_default_google_model_answers_and_is_compacted(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """Gemini 3.8 Flash refuses `minimal`, which was the least level of all Flash models once."""

    async def handler(line: LoopbackConnection) -> None:
        while asked := await line.request():
            config = msgspec.json.decode(asked.body).get("generationConfig", {})
            level = config.get("thinkingConfig", {}).get("thinkingLevel")
            if level in (None, "low", "medium", "high"):
                await send_plan(
                    line, VENDOR_WIRES["google"](), ScriptedAnswer(steps=(SayText(text="hi"),))
                )
            else:
                await line.reply(b'{"error": {"code": 400, "message": "bad level"}}', status=400)

    async with serving(handler) as server:
        environ = {
            "HOME": str(tmp_path),
            "GEMINI_API_KEY": "k",
            "GOOGLE_GEMINI_BASE_URL": server.url,
        }
        async with weft.open(tmp_path, "memory", environ=environ) as app:
            session = await app.sessions.start_session(tools=[], **settings)
            assert (await session.metadata()).model == "google:gemini-3.8-flash"
            assert (await session.send_message("hello")).text == "hi"
            assert (await session.compact()).summary == "hi"
            assert (await session.summarize())[0] == "hi"
