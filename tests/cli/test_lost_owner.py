"""A run whose session belongs to a process that stops answering says whether its message was
accepted.
"""

from __future__ import annotations

from typing import Self

import anyio
import anyio.lowlevel
import pytest

from tests.support.world import World
from weft.cli.headless import turn_driver
from weft.cli.headless.output_formats import ProgressNarrator, TextSink
from weft.cli.headless.own_turn import OwnTurn
from weft.cli.headless.turn_driver import TurnDriver
from weft.errors import Owned, SessionInterrupted
from weft.events import Event
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


class SilentOwner:
    """The events of a session whose owner was suspended."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        raise Owned("s", pid=1, host="here", address="", since=0.0, silent=True)


@pytest.fixture
def silent_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(*_: object, **__: object) -> SilentOwner:
        return SilentOwner()

    monkeypatch.setattr(turn_driver, "session_events", begin)


async def _outcome(world: World, own: OwnTurn | None) -> BaseException:
    async with world.open(ScriptedModel([])) as app:
        driver = TurnDriver(
            app,
            await app.sessions.start_session(),
            TextSink(ProgressNarrator(is_verbose=False)),
            own=own,
        )
        with pytest.raises(BaseExceptionGroup) as raised:
            await _run(driver)
        (error,) = raised.value.exceptions
        return error


async def _run(driver: TurnDriver) -> None:
    """A message that was accepted, and whose turn nobody works on."""
    async with anyio.create_task_group() as group:
        await group.start(driver.follow)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        raise SessionInterrupted("s", "it does not answer")


async def test_the_sender_of_a_run_tells_what_became_of_its_message(
    plain_world: World, silent_owner: None
) -> None:
    own = OwnTurn("inp_1", None, continues=False)
    assert isinstance(await _outcome(plain_world, own), SessionInterrupted)


async def test_a_program_that_sends_many_messages_is_told_that_nobody_answers(
    plain_world: World, silent_owner: None
) -> None:
    assert isinstance(await _outcome(plain_world, None), Owned)
