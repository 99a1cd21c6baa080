"""Several clients on one session: any number watch, one drives."""

from __future__ import annotations

import pytest

from tests.support.world import World, running, until, until_idle, until_status
from weft.errors import UsageError
from weft.events import ClientAttached, DriverChanged, Event, PermissionRequest, PermissionResolved
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("session:attach")
async def test_a_viewer_reads_and_changes_nothing(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        viewer = await app.sessions.get(session.id)
        await viewer.attach("viewer")
        for change in (
            viewer.send_prompt("x"),
            viewer.queue_steering("x"),
            viewer.add_system_message("x"),
            viewer.update_model("scripted:other"),
            viewer.abort(),
            viewer.continue_turn(),
            viewer.set_budget(usd=1),
            viewer.recall_queues(),
        ):
            with pytest.raises(UsageError, match="only watches"):
                await change
        await session.send_message("a")
        assert len(await viewer.messages()) == 2
        assert await viewer.get_status() == "idle"


@pytest.mark.requirement("session:detach", "session:claim_driver")
async def test_the_driver_drives_and_can_be_relieved(world: World) -> None:
    async with world.open(ScriptedModel(["one", "two"])) as app:
        session = await app.sessions.start_session()
        first, second = [await app.sessions.get(session.id) for _ in range(2)]
        seen: list[Event] = []
        async with await session.subscribe() as events, running():
            one = await first.attach("driver")
            two = await second.attach("viewer")
            await first.send_message("a")
            await second.claim_driver()
            with pytest.raises(UsageError, match="only watches"):
                await first.send_message("b")
            await second.send_message("b")
            await second.detach()
            while not (seen and isinstance(seen[-1], ClientAttached) and seen[-1].left):
                seen.append(await anext(events))
            seen.append(await anext(events))
        attached = [each for each in seen if isinstance(each, ClientAttached)]
        assert [(each.client, each.role, each.left) for each in attached] == [
            (one, "driver", False),
            (two, "viewer", False),
            (two, "driver", False),
            (two, "driver", True),
        ]
        drivers = [each.client for each in seen if isinstance(each, DriverChanged)]
        assert drivers == [one, two, ""]


@pytest.mark.process
async def test_everybody_sees_who_answered(world: World) -> None:
    call = CallTool(name="shell", args={"command": "true"})
    async with world.open(ScriptedModel([call, "ok"])) as app:
        session = await app.sessions.start_session()
        driver = await app.sessions.get(session.id)
        client = await driver.attach("driver")
        await session.send_prompt("go")
        await until(session, PermissionRequest)
        await until_status(session, "awaiting_permission")
        await driver.respond_to_permission("allow_once")
        resolved = await until(session, PermissionResolved)
        assert resolved.by == client
        await until_idle(session)


async def test_a_session_with_a_subscriber_is_not_unloaded(world: World) -> None:
    async with world.open() as app:
        session = await app.sessions.start_session()
        await session.attach()
        assert await app.sessions.unload_idle(0) == 0
        await session.detach()
        assert await app.sessions.unload_idle(0) == 1


async def test_a_client_that_was_attached_before_an_unloading_is_still_who_it_was(
    world: World,
) -> None:
    """A viewer does not become a driver because the session was stopped and came back."""
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        viewer = await app.sessions.get(session.id)
        await viewer.attach("viewer")
        await app.sessions.stop_session(session.id)
        with pytest.raises(UsageError, match="only watches"):
            await viewer.send_prompt("x")


async def test_detaching_without_having_attached_does_nothing(world: World) -> None:
    async with world.open(ScriptedModel([Stall()])) as app:
        session = await app.sessions.start_session()
        await session.detach()
        assert (await session.send_prompt("x")).status == "started"


async def test_a_driver_that_comes_back_to_watch_drives_no_more(world: World) -> None:
    async with world.open(ScriptedModel(["one"])) as app:
        session = await app.sessions.start_session()
        client = await app.sessions.get(session.id)
        async with await session.subscribe() as events, running():
            await client.attach("driver")
            await client.attach("viewer")
            heard = [await anext(events) for _ in range(4)]
        changes = [each.client for each in heard if isinstance(each, DriverChanged)]
        assert changes == [client._client, ""]
        with pytest.raises(UsageError, match="only watches"):
            await client.send_prompt("x")
