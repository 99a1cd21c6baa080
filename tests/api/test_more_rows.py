"""Rows of the API that stand by themselves: rotation, summaries, going over to another session."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

import weft
from weft.errors import UsageError
from weft.events import Event, Replaced
from weft.providers import ModelInfo, ScriptedModel
from weft.providers.script import SayText

pytestmark = pytest.mark.anyio


def talker(*texts: str, name: str = "talker") -> ScriptedModel:
    info = ModelInfo(provider="scripted", name=name, price_input=1.0, price_output=1.0)
    return ScriptedModel([[SayText(text=text)] for text in texts], info=info)


@pytest.mark.requirement("session:cycle_model", "session:cycle_thinking_level")
async def test_the_rotation_goes_round_and_carries_the_thinking_level(tmp_path: Path) -> None:
    config = {"model.rotation": ["scripted:a", "scripted:b:high"]}
    async with weft.open(tmp_path, store="memory", config=config) as app:
        session = await app.sessions.start_session(model=talker(name="a"))
        assert await session.cycle_model() == "scripted:b"
        assert (await session.editor_snapshot()).thinking == "high"
        assert await session.cycle_model() == "scripted:a"
        assert await session.cycle_thinking_level() == "xhigh"
        assert await session.cycle_thinking_level() == "max"
        assert await session.cycle_thinking_level() == "default"


async def test_a_screen_knows_the_window_of_a_model_that_has_not_answered_yet(
    tmp_path: Path,
) -> None:
    async with weft.open(tmp_path, store="memory") as app:
        info = ModelInfo(provider="scripted", name="small", context_window=4_000)
        session = await app.sessions.start_session(model=ScriptedModel(["hi"], info=info))
        assert (await session.editor_snapshot()).context_window == 4_000
        await session.set_model("anthropic:claude-sonnet-5-5")
        snapshot = await session.editor_snapshot()
        assert snapshot.context_window in (0, 1_000_000), "0 where there is no key"


async def test_without_a_rotation_cycling_says_what_to_set(tmp_path: Path) -> None:
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=talker())
        with pytest.raises(UsageError, match=r"model\.rotation"):
            await session.cycle_model()


@pytest.mark.requirement("session:summarize")
async def test_a_handover_is_kept_under_the_sessions_id_and_its_cost_counts(
    tmp_path: Path,
) -> None:
    model = talker("an answer", "# Handover\n## Decisions\nnone")
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("remember the blue door")
        before = (await session.usage()).total
        text, path = await session.summarize()
        after = (await session.usage()).total
    assert text.startswith("# Handover")
    assert Path(path).stem == session.id
    assert Path(path).read_text() == text
    assert Path(path).stat().st_mode & 0o077 == 0
    assert "blue door" in str(model.last_request.messages)
    assert after.cost_usd is not None
    assert before.cost_usd is not None
    assert after.cost_usd > before.cost_usd


@pytest.mark.requirement("session:summarize_branch")
async def test_what_was_learned_on_another_branch_is_told_to_the_model(tmp_path: Path) -> None:
    model = talker("one", "tried the red door", "the red door is locked", "ok")
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("first")
        await session.send_message("second")
        left = (await session.messages_with_ids())[-1][0]
        await session.branch_at(1)
        await session.summarize_branch(left)
        assert "first" not in str(model.last_request.messages)
        await session.send_message("go on")
        assert "the red door is locked" in str(model.last_request.messages)
        with pytest.raises(UsageError):
            await session.summarize_branch((await session.messages_with_ids())[0][0])


@pytest.mark.requirement("session:new_session", "session:load_session")
async def test_readers_of_a_replaced_handle_are_told_where_to_go(tmp_path: Path) -> None:
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=talker("hello"))
        events = await session.subscribe()
        seen: list[Event] = []

        async def read() -> None:
            seen.extend([event async for event in events])

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await anyio.lowlevel.checkpoint()
                other = await session.new_session()
        assert other.id != session.id
        assert isinstance(seen[-1], Replaced)
        assert seen[-1].by == other.id
        again = await other.load_session(session.id)
        assert again.id == session.id
