"""Sessions whose turn waits, and a time that passes when a test says so."""

from __future__ import annotations

import anyio

from tests.support.world import World, crash, facts, until, until_status
from weft.api.session import Session
from weft.app import App
from weft.clock import ManualClock
from weft.events import ToolComplete, TurnWaiting, TurnWoken
from weft.ids import SessionId
from weft.providers.script import CallTool, Step
from weft.providers.scripted import ScriptedModel

TEN_MINUTES = CallTool(name="wait_for", args={"seconds": 600})


class HeldSleep:
    """Time that passes when the test says so."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._passed = anyio.Event()
        self.asked: list[float] = []
        self.sleepers = 0
        self.begun = anyio.Event()

    async def __call__(self, seconds: float) -> None:
        until_then = self._clock.now() + seconds
        self.asked.append(seconds)
        self.begun.set()
        self.sleepers += 1
        try:
            while self._clock.now() < until_then:
                await self._passed.wait()
        finally:
            self.sleepers -= 1

    def pass_time(self, seconds: float) -> None:
        self._clock.advance(seconds)
        self._passed.set()
        self._passed = anyio.Event()


def open_world(world: World, model: ScriptedModel) -> tuple[App, HeldSleep]:
    sleep = HeldSleep(world.clock)
    return world.open(model, sleep=sleep, clock=world.clock), sleep


async def waiting(app: App, *, prompt: str = "go") -> Session:
    """A session whose turn waits."""
    session = await app.sessions.start_session(session_id="ses_waits")
    await session.send_prompt(prompt)
    await until(session, TurnWaiting)
    await until_status(session, "waiting")
    return session


async def left_waiting(world: World, *steps: Step) -> SessionId:
    """A session whose process died while its turn waited."""
    app, _ = open_world(world, ScriptedModel([*(steps or (TEN_MINUTES,)), "never"]))
    await app.__aenter__()
    session = await waiting(app)
    await crash(app)
    return session.id


async def result_of(session: Session) -> str:
    return (await facts(session, ToolComplete))[-1].result.text


async def woken_by(session: Session) -> list[str]:
    return [each.by for each in await facts(session, TurnWoken)]
