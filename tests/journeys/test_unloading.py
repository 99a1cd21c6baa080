"""A session that is being unloaded just when it is used, and a store that fails meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from tests.support.idle_loop import all_tasks_blocked
from tests.support.world import World, message_lines, running
from weft.api.session import Session
from weft.app import app as app_module
from weft.errors import StoreUnavailable
from weft.providers.scripted import ScriptedModel
from weft.store import Lease, MemoryStore

pytestmark = pytest.mark.anyio


class SlowRelease(MemoryStore):
    """Gives leases back when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = anyio.Event()
        self.opened = anyio.Event()

    async def release_lease(self, lease: Lease) -> None:
        self.reached.set()
        await self.opened.wait()
        await super().release_lease(lease)


class FailingRelease(MemoryStore):
    """Cannot give leases back, a few times."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.released = anyio.Event()

    async def release_lease(self, lease: Lease) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the disk is full")
        await super().release_lease(lease)
        self.released.set()


Use = Callable[[Session], Awaitable[object]]
USES: dict[str, Use] = {
    "send_prompt": lambda session: session.send_prompt("b"),
    "send_message": lambda session: session.send_message("b"),
    "abort": lambda session: session.abort(),
    "continue_and_wait": lambda session: session.continue_and_wait(),
}


@pytest.mark.parametrize("name", USES)
async def test_a_call_that_meets_an_unloading_session_brings_it_back(
    world: World, name: str
) -> None:
    store = SlowRelease()
    async with world.open(ScriptedModel(["one", "two"]), store=store) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        done: list[str] = []

        async def use() -> None:
            await USES[name](session)
            done.append(name)

        async def unload() -> None:
            assert await app.sessions.unload_idle(0) == 1

        async with running(unload):
            await store.reached.wait()
            async with running(use):
                # The call waits in the mailbox of a session that is past the point of return.
                await all_tasks_blocked()
                assert not done
                store.opened.set()
        assert done == [name]
        assert (await message_lines(session))[:2] == ["user: a", "assistant: one"]


async def test_unloading_goes_on_after_errors_of_the_store(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "UNLOAD_EVERY_SECONDS", 0.001)
    store = FailingRelease(3)
    async with world.open(
        ScriptedModel(["one"]), store=store, config={"session.idle_unload": 0.0}
    ) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        with anyio.fail_after(10):
            await store.released.wait()
        assert store.failures == 0


async def test_one_session_that_cannot_be_unloaded_does_not_keep_the_others(world: World) -> None:
    store = FailingRelease(1)
    async with world.open(ScriptedModel(["one", "two"]), store=store) as app:
        first = await app.sessions.start_session()
        await app.sessions.start_session()
        with pytest.raises(StoreUnavailable):
            await app.sessions.unload_idle(0)
        assert [info.id for info in await app.sessions.list_active()] == [first.id]
        # It was not unloaded, so it works on.
        assert (await first.send_message("a")).text == "one"


@pytest.mark.parametrize("call", ["delete_session", "stop_session"])
async def test_a_session_that_is_being_unloaded_can_be_stopped_and_deleted(
    world: World, call: str
) -> None:
    store = SlowRelease()
    async with world.open(ScriptedModel(["one"]), store=store) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")

        async def end() -> None:
            await getattr(app.sessions, call)(session.id)

        async with running(lambda: app.sessions.unload_idle(0)):
            await store.reached.wait()
            async with running(end):
                await all_tasks_blocked()
                store.opened.set()
        assert [info.id for info in await app.sessions.list_active()] == []
        is_left = bool(await app.sessions.list_saved())
        assert is_left == (call == "stop_session")
