"""A key in a large tree costs about what it costs in a small one: only what is seen is read.

Counted in calls, which no load of the machine changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.support.call_count import calls_made
from tests.support.world import World
from weft.app import App
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.key_map import KeyMap
from weft.cli.loom_view.scene_reader import SceneReader
from weft.cli.loom_view.view_driver import ViewDriver
from weft.cli.loom_view.view_screen import ViewScreen
from weft.ids import NodeId, new_node_id
from weft.loom.trees import tree_edits
from weft.messages import Node

pytestmark = pytest.mark.anyio

SIZE = ScreenSize(80, 24)


class DrivenScreen:
    """A screen and its driver without a terminal."""

    def __init__(self, driver: ViewDriver) -> None:
        self.driver = driver

    def press(self, key: str) -> list[str]:
        """A key, and the frame that it gives."""
        self.driver.carry_out(self.driver.screen.press(key))
        self.driver.refresh()
        return self.driver.screen.frame(SIZE).rows


async def no_editor(text: str) -> str | None:
    return None


@asynccontextmanager
async def tree_of(app: App, depth: int, beside: int) -> AsyncIterator[DrivenScreen]:
    """A line of so many nodes, each with so many siblings."""
    root = await app.loom.create_root("Once upon a time ")
    session = await app.loom.open(root.id)
    nodes: list[Node] = []
    parent: NodeId = root.id
    for number in range(depth):
        text = f"and the thread of {number} was cut from the cloth of the loom by hand "
        line = tree_edits.text_node(new_node_id(number), text, parent=parent, model="x:haiku")
        nodes.append(line)
        nodes += [
            tree_edits.text_node(new_node_id(number), f"side {n} ", parent=parent, model="x:gpt")
            for n in range(beside)
        ]
        parent = line.id
    tree_edits.add_nodes(session.loom_tree, nodes)
    await session.save()
    screen = ViewScreen(SceneReader(session).read(SIZE), KeyMap(), RowStyles())
    driver = ViewDriver(
        app, session, screen, changed=lambda: None, edit=no_editor, size=lambda: SIZE
    )
    async with anyio.create_task_group() as group:
        driver.group = group
        yield DrivenScreen(driver)
        group.cancel_scope.cancel()
    await session.aclose()


async def costs(app: App, depth: int, beside: int) -> dict[str, int]:
    """What each key costs in the middle of the line and at its end."""
    found: dict[str, int] = {}
    async with tree_of(app, depth, beside) as view:
        view.press("home")
        view.press("end")
        for key in ("h", "h", "l", "j", "k", "K", "J", "H", "L", "escape", "b", "u", "pageup"):
            found[key] = calls_made(lambda key=key: view.press(key))
            await view.driver.session.save()
        view.press("v")
        for key in ("k", "j", "K", "J", "pageup", "pagedown"):
            found[f"tree {key}"] = calls_made(lambda key=key: view.press(key))
    return found


async def test_a_key_in_a_tree_of_ten_thousand_nodes_costs_what_it_costs_in_a_small_one(
    plain_world: World,
) -> None:
    async with plain_world.open() as app:
        small = await costs(app, 100, 4)
        large = await costs(app, 2_000, 4)
    # The marks of a walk and the names on a line are looked up for as many nodes as there are, up
    # to a limit; reading the tree would be twenty times the small one.
    dear = {key: (small[key], large[key]) for key in small if large[key] > 3 * small[key] + 2_000}
    assert dear == {}


async def test_of_thousands_of_branches_only_those_in_the_window_are_read(
    plain_world: World,
) -> None:
    async with plain_world.open() as app, tree_of(app, 1, 5_000) as view:
        view.press("home")
        view.press("j")
        assert len(view.driver.screen.scene.rows) == SIZE.rows
        assert view.driver.screen.scene.count == 5_001
        # Their ids are gone through a few times; each of them read would be fifty calls.
        assert calls_made(lambda: view.press("j")) < 15 * 5_000
