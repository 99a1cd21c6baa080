"""An owner that says it takes no commands any more is not asked."""

from __future__ import annotations

import pytest

from tests.support.world import World
from weft.errors import Owned
from weft.providers.scripted import ScriptedModel
from weft.session import AddNote

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_an_owner_that_closes_is_not_asked_and_one_that_accepts_again_is(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.runtime.ports.remote.PATIENCE_SECONDS", 0.3)
    world = shared_world
    async with world.open(ScriptedModel([])) as here, world.open(ScriptedModel([])) as there:
        session = await here.sessions.start_session()
        address = here.store.owner.address
        assert address
        await here.store.register_address(address, accepting=False)
        port = await there.host.port(session.id)
        with pytest.raises(Owned):
            await port.call(AddNote(text="too late"))
        assert not (await session.messages())
        await here.store.register_address(address, accepting=True)
        monkeypatch.setattr("weft.runtime.ports.remote.PATIENCE_SECONDS", 5.0)
        await port.call(AddNote(text="heard"))
        assert len(await session.messages()) == 1
