"""A server goes on with what is due in every project of its store."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.world import World, crash, facts, until_idle
from weft.app import App
from weft.errors import UsageError
from weft.events import ScheduleFired
from weft.providers.scripted import ScriptedModel
from weft.server.due.due_projects import AGAIN_SECONDS, DueProjects
from weft.server.projects import ServedProjects

pytestmark = pytest.mark.anyio


def other_folder(world: World) -> str:
    folder = world.base / "other"
    folder.mkdir()
    return str(folder)


def opener(world: World) -> Callable[[str], App]:
    def opened(folder: str) -> App:
        return world.open(ScriptedModel(["done"]), clock=world.clock, folder=folder)

    return opened


async def scheduled_in(world: World, folder: str) -> str:
    app = opener(world)(folder)
    await app.__aenter__()
    wait = await app.schedule("+1h", "look")
    await crash(app)
    return wait.session_id


async def test_a_project_that_is_not_open_is_opened_when_something_is_due(
    plain_world: World,
) -> None:
    folder = other_folder(plain_world)
    session_id = await scheduled_in(plain_world, folder)
    main = opener(plain_world)(str(plain_world.project))
    async with main:
        projects = ServedProjects(main, opener(plain_world))
        due = DueProjects(projects)
        assert await due.look() == []
        plain_world.clock.advance(3600)
        assert await due.look() == [folder]
        assert await due.look() == []
        app = await projects.at(folder)
        session = await app.sessions.get(session_id)
        await until_idle(session)
        assert len(await facts(session, ScheduleFired)) == 1
        await app.aclose()


async def test_a_folder_that_is_not_here_is_left_alone_for_a_while(plain_world: World) -> None:
    folder = other_folder(plain_world)
    await scheduled_in(plain_world, folder)
    shutil.rmtree(folder)
    plain_world.clock.advance(3600)
    main = opener(plain_world)(str(plain_world.project))
    async with main:
        projects = ServedProjects(main, opener(plain_world))
        due = DueProjects(projects)
        assert await due.look() == []
        Path(folder).mkdir()
        assert await due.look() == []
        plain_world.clock.advance(AGAIN_SECONDS)
        assert await due.look() == [folder]
        await (await projects.at(folder)).aclose()


class EndOfTest(Exception):
    """Ends a loop that never returns."""


@pytest.mark.parametrize("error", [OSError("too many open files"), UsageError("no key")])
async def test_a_look_that_fails_is_not_the_end_of_the_server(
    plain_world: World, error: Exception
) -> None:
    looks: list[int] = []

    class FailingLook(DueProjects):
        async def look(self) -> list[str]:
            looks.append(len(looks))
            if len(looks) == 1:
                raise error
            return []

    async def sleep(seconds: float) -> None:
        del seconds
        if len(looks) == 2:
            raise EndOfTest

    main = opener(plain_world)(str(plain_world.project))
    async with main:
        with pytest.raises(EndOfTest):
            await FailingLook(ServedProjects(main, opener(plain_world)), sleep=sleep).run()
