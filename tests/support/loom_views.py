"""Views of text trees for tests: models that play a script, and all events of a generation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio

from weft.loom import GenerationEvent, LoomSession
from weft.providers import ModelInfo
from weft.providers.scripted import ScriptedModel

HOW: dict[str, Any] = {"model": "m", "strategy": "system", "max_tokens": 10, "temperature": 0.9}
"""How a node was made that a test adds by itself."""


def scripted(name: str, *answers: Any, **info: Any) -> ScriptedModel:
    """A scripted model of this name."""
    return ScriptedModel(list(answers), info=ModelInfo(provider="scripted", name=name, **info))


async def view_of(app: Any, *plan: dict[str, Any], text: str = "Once") -> LoomSession:
    """A view of a new tree with this plan."""
    root = await app.loom.create_root(text)
    view: LoomSession = await app.loom.open(root.id)
    if plan:
        view.set_model_plan(list(plan))
    return view


async def events_of(run: AsyncIterator[GenerationEvent]) -> list[GenerationEvent]:
    """All events of a generation."""
    with anyio.fail_after(20):
        return [event async for event in run]
