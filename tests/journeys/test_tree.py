"""The tree as people see it."""

from __future__ import annotations

import pytest

from tests.support.compaction import SummarizingModel, send_prompts, start
from tests.support.world import World
from weft.api import tree_view as treeview

pytestmark = pytest.mark.anyio


async def test_the_tree_has_every_message_of_every_branch_and_its_names(world: World) -> None:
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        first = (await session.messages_with_ids())[1][0]
        await session.checkpoint("here")
        await session.branch_at(first, name="other way")
        await send_prompts(session, "three\n  and  more")
        await session.pin((await session.messages_with_ids())[2][0])
        tree = await session.tree()
        said = [each for each in tree.messages if each.role == "user"]
        assert [each.text for each in said] == ["one", "two", "three and more"]
        assert [each.is_pinned for each in said] == [False, False, True]
        assert [each.parent for each in said] == [None, first, first]
        assert tree.head == tree.messages[-1].id
        assert {(each.name, each.is_current) for each in tree.branches} == {
            ("main", False),
            ("other way", True),
        }
        assert [(each.name, each.node) for each in tree.checkpoints] == [
            ("here", tree.messages[3].id)
        ]
        assert tree.summarized_to is None


async def test_what_is_beyond_the_bound_is_there_without_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(treeview, "MOST_READ", 3)
    teller = SummarizingModel()
    async with world.open(teller.model) as app:
        session = await start(app)
        await send_prompts(session, "one", "two")
        await session.branch_at((await session.messages_with_ids())[1][0])
        tree = await session.tree()
        texts = [each.text for each in tree.messages]
        assert texts[0] == "one"
        assert texts[2] == ""
        assert texts[3], "after the line, the newest beside it is read"


async def test_a_session_that_says_nothing_has_an_empty_tree(world: World) -> None:
    async with world.open(SummarizingModel().model) as app:
        tree = await (await start(app)).tree()
        assert (tree.messages, tree.head) == ((), None)
