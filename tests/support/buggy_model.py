"""A scripted model whose adapter raises what no provider may raise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from weft.providers import ModelRequest, StreamEvent
from weft.providers.scripted import ScriptedModel


class BuggyModel(ScriptedModel):
    """A model whose adapter has a bug: it raises what no provider may raise, so many times."""

    def __init__(self, times: int, answers: list[str]) -> None:
        super().__init__([*answers])
        self.left = times
        self.crashes = 0

    def stream(self, request: ModelRequest) -> object:  # type: ignore[override]
        if self.left:
            self.left -= 1
            self.crashes += 1
            return self._crash()
        return super().stream(request)

    @asynccontextmanager
    async def _crash(self) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        await anyio.lowlevel.checkpoint()
        if self.crashes:
            raise KeyError("a bug")
        yield empty()


async def empty() -> AsyncIterator[StreamEvent]:
    nothing: tuple[StreamEvent, ...] = ()
    for each in nothing:
        yield each
