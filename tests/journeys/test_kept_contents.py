"""Nothing is deleted unless asked: what goes is said before, and nothing else goes."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.app import App
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

YEAR = 365 * 24 * 3600.0


async def written(world: World, contents: list[str], quota: int) -> App:
    """A session that wrote one file again and again, a turn for each."""
    steps = [
        step
        for content in contents
        for step in ([CallTool(name="write", args={"path": "a.txt", "content": content})], "Done.")
    ]
    app = world.open(ScriptedModel(steps), config={"history.quota": quota})
    await app.__aenter__()
    session = await app.sessions.start_session(session_id="s", auto_approve=True, title="Work")
    for number in range(len(contents)):
        await session.send_message(f"write {number}")
    return app


@pytest.mark.requirement("app:kept_contents")
async def test_what_goes_next_is_shown_before_with_what_is_lost(world: World) -> None:
    contents = [letter * 1_000 for letter in "abcdef"]
    app = await written(world, contents, 1_000_000)
    shown = await app.kept_contents()
    assert (shown.sessions, shown.next) == (1, ())
    assert shown.bytes >= 5_000
    assert shown.room == 1_000_000 - 62_500 - shown.bytes
    app.config.take_over(world.open(config={"history.quota": 4_000}).config)
    shown = await app.kept_contents()
    assert shown.quota == 4_000
    assert shown.next
    first = shown.next[0]
    assert first.bytes == 1_000
    assert {state.path for state in first.states} == {"a.txt"}
    assert {by for state in first.states for by in state.loses} == {"rewind", "bisect", "blame"}
    ids = {each for each, _ in await (await app.sessions.get("s")).messages_with_ids()}
    assert {state.message for state in first.states if state.message} <= ids
    going = {each.content for each in shown.next}
    await app.store.trim_history(str(world.project), 4_000 - 4_000 // 8)
    assert await app.store.missing_blobs(going) == going
    await app.aclose()


async def test_no_session_and_no_message_goes_by_age_or_number(world: World) -> None:
    """A hundred sessions, and then a thousand years: the tidying that there is leaves all."""
    async with world.open(*[ScriptedModel(["yes"] * 200)], config={"history.quota": 1}) as app:
        for number in range(100):
            session = await app.sessions.start_session(session_id=f"s{number}")
            await session.send_message(f"message {number}")
        await app.sessions.unload_idle(0.0)
    world.clock.advance(1_000 * YEAR)
    async with world.open(config={"history.quota": 1}) as app:
        await app.store.trim_history(str(world.project), 0)
        await app.store.sweep_blobs()
        rows = await app.sessions.list_saved(limit=1_000)
        assert len(rows) == 100
        for row in rows:
            said = (await app.sessions.read_session(row.id)).messages
            assert [each.content for each in said] == [f"message {row.id[1:]}", "yes"]
