"""Walks through trees: the same order as a walk of everything, and only what is passed is read."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.app import App
from weft.cli.loom_view.tree_walk import LEVELS, TreeWalk
from weft.ids import NodeId
from weft.loom import LoomSession
from weft.loom.trees import tree_edits

pytestmark = pytest.mark.anyio


async def made(app: App, parents: list[int]) -> tuple[LoomSession, list[NodeId]]:
    """A tree in which node n hangs on the node of the given number."""
    store = app.loom
    root = await store.create_root("0")
    view: LoomSession = await store.open(root.id)
    ids = [root.id]
    for number, parent in enumerate(parents, start=1):
        added = tree_edits.add_child(view.loom_tree, ids[parent], str(number))
        ids.append(added)
    return view, ids


def outline(view: LoomSession, top: NodeId) -> list[NodeId]:
    return list(view.loom_tree.subtree(top))


@pytest.mark.parametrize(
    "parents", [[], [0], [0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 1, 0, 4, 4, 2], [0, 1, 0, 3, 0, 5]]
)
async def test_both_ways_give_the_order_of_the_outline(
    plain_world: World, parents: list[int]
) -> None:
    async with plain_world.open() as app:
        view, ids = await made(app, parents)
        for top in ids:
            whole, walk = outline(view, top), TreeWalk(view.loom_tree, top)
            assert [top, *walk.after(top)] == whole
            assert walk.last() == whole[-1]
            for place, node in enumerate(whole):
                assert list(walk.after(node)) == whole[place + 1 :]
                assert list(walk.before(node)) == whole[:place][::-1]
                for before, after in ((0, 0), (2, 3), (50, 50)):
                    shown = walk.around(node, before, after)
                    assert node in shown
                    assert len(shown) == min(len(whole), before + after + 1)
                    at = whole.index(shown[0])
                    assert shown == whole[at : at + len(shown)]


@pytest.mark.parametrize(
    "parents", [[0, 0, 1, 1, 0, 4, 4, 2, 2, 9, 9, 1], [0, 1, 1, 0, 4, 4, 6, 6]]
)
async def test_forks_come_in_the_order_of_the_outline_both_ways(
    plain_world: World, parents: list[int]
) -> None:
    async with plain_world.open() as app:
        view, ids = await made(app, parents)
        for top in ids:
            whole, walk = outline(view, top), TreeWalk(view.loom_tree, top)
            for place, node in enumerate(whole):
                round_trip = [*whole[place + 1 :], *whole[:place]]
                forks = [each for each in round_trip if walk.is_fork(each)]
                assert walk.next_fork(node, 1) == (forks[0] if forks else None)
                assert walk.next_fork(node, -1) == (forks[-1] if forks else None)


async def test_forks_are_found_round_the_ends_and_deleted_branches_are_none(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        view, ids = await made(app, [0, 0, 1, 1, 3])
        walk = TreeWalk(view.loom_tree, ids[0])
        assert walk.next_fork(ids[0], 1) == ids[1]
        assert walk.next_fork(ids[1], 1) == ids[0]
        assert walk.next_fork(ids[5], -1) == ids[1]
        assert walk.next_fork(ids[0], -1) == ids[1]
        tree_edits.delete(view.loom_tree, ids[4])
        walk = TreeWalk(view.loom_tree, ids[0])
        assert walk.next_fork(ids[0], 1) is None
        assert walk.next_fork(ids[5], 1) == ids[0]


async def test_only_forks_go_further_in_and_a_deep_tree_leaves_room_for_text(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        view, ids = await made(app, [0, 0, 1, 3, 4, 4])
        walk = TreeWalk(view.loom_tree, ids[0])
        margins = {node: walk.margin(node) for node in outline(view, ids[0])}
        assert [margins[each] for each in ids] == ["", "├ ", "└ ", "│ ", "│ ", "│ ├ ", "│ └ "]
        parents: list[int] = []
        for _ in range(40):
            parents += [max(0, len(parents) - 1)] * 2
        deep, more = await made(app, parents)
        margin = TreeWalk(deep.loom_tree, more[0]).margin(more[-1])
        assert margin.startswith("… ")
        assert len(margin) <= 2 * LEVELS + 2
