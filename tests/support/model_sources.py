"""Ways to have a model answer as planned, for the contract suite.

A plan is an answer of the scripted model.  A world makes a model of one implementation stream just
that: the scripted one plays it, a vendor's adapter gets it from a loopback server in the vendor's
own words.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from tests.support.vendor_servers import VENDOR_WIRES, vendor_server
from weft.providers.base import ModelInfo, StreamEvent
from weft.providers.replay import RecordedCall, RecordedFailure, ReplayModel, fingerprint
from weft.providers.script import Break, Fail, SayText, ScriptedAnswer, Stall
from weft.providers.scripted import ScriptedModel
from weft.testing.model_contract import REQUEST, USAGE, ServedModel

ModelSource: TypeAlias = Callable[[ScriptedAnswer], AbstractAsyncContextManager[ServedModel]]


@asynccontextmanager
async def scripted_world(plan: ScriptedAnswer) -> AsyncGenerator[ServedModel]:
    yield ServedModel(ScriptedModel([plan, plan, plan]))


@asynccontextmanager
async def replay_world(plan: ScriptedAnswer) -> AsyncGenerator[ServedModel]:
    """Plays a recording of the plan; a stall is an event that comes after a thousand hours."""
    yield ServedModel(ReplayModel([await recorded(plan)], speed=1.0))


async def recorded(plan: ScriptedAnswer) -> RecordedCall:
    """The plan as a recording made without waiting."""
    events: list[tuple[int, StreamEvent]] = []
    failure = None
    steps = []
    for step in plan.steps:
        if isinstance(step, Fail | Break):
            failure = _failure(step)
            break
        steps.append(step)
        if isinstance(step, Stall):
            break
    shown = tuple(step for step in steps if not isinstance(step, Stall))
    async with ScriptedModel([ScriptedAnswer(steps=shown)]).stream(REQUEST) as stream:
        events = [(0, event) async for event in stream]
    if failure:
        events = events[:-2]  # usage and the end never came
    if any(isinstance(step, Stall) for step in steps):
        events = [*events[:-2], (3_600_000_000, events[-1][1])]
    info = ModelInfo(provider="replay", name="contract-model")
    return RecordedCall(
        fingerprint=fingerprint(REQUEST),
        request=REQUEST,
        events=tuple(events),
        info=info,
        failure=failure,
    )


def _failure(step: Fail | Break) -> RecordedFailure:
    if isinstance(step, Break):
        return RecordedFailure(error="ProviderUnavailable", message=step.message)
    return RecordedFailure(
        error=step.error,
        message=step.message,
        status=step.status,
        retry_after_seconds=step.retry_after_seconds,
    )


def _vendor(name: str) -> ModelSource:
    inner = vendor_server(name)

    @asynccontextmanager
    async def world(plan: ScriptedAnswer) -> AsyncGenerator[ServedModel]:
        async with inner(plan) as there:
            yield ServedModel(there.model, there.left, there.usage)

    return world


MODEL_SOURCES: dict[str, ModelSource] = {
    "scripted": scripted_world,
    "replay": replay_world,
    **{name: _vendor(name) for name in VENDOR_WIRES},
}

__all__ = ["MODEL_SOURCES", "REQUEST", "USAGE", "ModelSource", "SayText", "ServedModel"]
