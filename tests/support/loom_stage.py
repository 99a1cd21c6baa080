"""A view at work on a terminal in memory, with scripted models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.support.memory_terminal import MemoryTerminal
from weft.app import App
from weft.cli.loom_view.start import run_view
from weft.providers import ModelInfo
from weft.testing import ScriptedModel


def scripted(name: str, *answers: Any, **info: Any) -> ScriptedModel:
    """A model of this name, with a price."""
    known = ModelInfo(
        provider="scripted", name=name, **{"price_input": 1.0, "price_output": 2.0, **info}
    )
    return ScriptedModel(list(answers), info=known)


class DrivenView:
    """A view that is shown, and the user in front of it."""

    def __init__(self, app: App, terminal: MemoryTerminal) -> None:
        self.app = app
        self.terminal = terminal
        self.code: int | None = None
        self.ended = anyio.Event()

    async def shows(self, *texts: str) -> str:
        """Wait until these texts are on the screen."""
        return await self.terminal.shows(*texts)

    async def gone(self, text: str) -> None:
        """Wait until a text has left the screen."""
        await self.terminal.until(lambda: text not in self.terminal.text)

    async def press(self, keys: str, *texts: str) -> str:
        """Type, and wait until these texts are on the screen."""
        self.terminal.type(keys)
        return await self.terminal.shows(*texts)

    async def left(self) -> int:
        """Wait for its end; returns the exit code."""
        with anyio.fail_after(10):
            await self.ended.wait()
        assert self.code is not None
        return self.code


@asynccontextmanager
async def shown_view(
    app: App, start: str | None, *, columns: int = 80, rows: int = 24
) -> AsyncIterator[DrivenView]:
    """A view on this tree; it is left at the end."""
    terminal = MemoryTerminal(columns, rows)
    view = DrivenView(app, terminal)

    async def run() -> None:
        view.code = await run_view(app, start, terminal=terminal)
        view.ended.set()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await terminal.until(lambda: view.ended.is_set() or terminal.text.strip())
            yield view
            if not view.ended.is_set():
                terminal.hang_up()
                await view.left()
            group.cancel_scope.cancel()
    finally:
        terminal.close()


async def planned_tree(app: App, text: str, *models: ScriptedModel, n: int = 1) -> str:
    """A new tree that these models write on."""
    root = await app.loom.create_root(text)
    view = await app.loom.open(root.id)
    view.set_model_plan(
        [
            {"model": app.loom.model_name(model), "n_branches": n, "max_tokens": 40}
            for model in models
        ]
    )
    await view.aclose()
    return root.id
