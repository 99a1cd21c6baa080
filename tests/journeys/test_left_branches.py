"""Leaving a branch says what was left, so that what was learned there can be brought along."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.api.session import Session
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def head(session: Session) -> str:
    return (await session.messages_with_ids())[-1][0]


async def test_who_leaves_a_branch_is_told_its_end_and_can_bring_its_lessons_along(
    world: World,
) -> None:
    model = ScriptedModel(["one", "two", "Blue is better.", "three"])
    async with world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        await session.send_message("b")
        end = await head(session)
        branch = await session.branch_at(0)
        assert branch.left == end
        assert await session.summarize_branch(branch.left) == "Blue is better."
        await session.send_message("c")
        other = await head(session)
        assert (await session.switch_branch("main")).left == other


async def test_what_the_new_line_has_too_is_not_left(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        # It goes on from its own end.
        assert (await session.branch_at(-1, "side")).left is None
        await session.send_message("b")
        assert (await session.switch_branch("side")).left is None
        assert [branch.left for branch in await session.list_branches()] == [None, None]


async def test_a_rewind_says_what_it_left(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        place = await head(session)
        await session.send_message("b")
        end = await head(session)
        assert (await session.rewind(place, preview=True)).left == end
        assert (await session.rewind(place)).left == end
        assert (await session.undo_rewind()).left is None
        assert (await session.rewind(place, conversation=False)).left is None
