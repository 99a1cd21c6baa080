"""Fixtures that the benchmarks of turns share: a project, scripted models that call tools, and a
timer around rounds.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import weft
from weft.providers import ScriptedModel
from weft.providers.base import ModelInfo
from weft.providers.script import CallTool, SayText, Step

T = TypeVar("T")

LINES = 40


@asynccontextmanager
async def project(store: str) -> AsyncIterator[tuple[weft.App, Path]]:
    """An open app on a small project, on the store that is named: memory or sqlite."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "project").mkdir()
        for number in range(20):
            lines = (f"line {line} of file {number}\n" for line in range(LINES))
            (folder / "project" / f"f{number}.txt").write_text("".join(lines))
        where = "memory" if store == "memory" else folder / "weft.db"
        environ = {"HOME": name, "WEFT_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
        async with weft.open(folder / "project", store=where, environ=environ) as app:
            yield app, folder


def reads(rounds: int, name: str = "reads") -> ScriptedModel:
    """A model that reads one file a round, then answers."""
    answers: list[list[Step]] = [
        [CallTool(name="read", args={"path": f"f{number % 20}.txt", "offset": number // 20 + 1})]
        for number in range(rounds)
    ]
    return _model([*answers, [SayText(text="done")]], name)


def writes(rounds: int, name: str = "writes") -> ScriptedModel:
    """A model that writes one new file a round, then answers."""
    answers: list[list[Step]] = [
        [CallTool(name="write", args={"path": f"new{number}.txt", "content": f"{number}\n"})]
        for number in range(rounds)
    ]
    return _model([*answers, [SayText(text="done")]], name)


def _model(answers: list[list[Step]], name: str) -> ScriptedModel:
    info = ModelInfo(provider="scripted", name=name, price_input=0.0, price_output=0.0)
    return ScriptedModel(answers, info=info, keep_requests=0)


async def timed_rounds(app: weft.App, model: ScriptedModel, rounds: int) -> float:
    """Seconds that one turn of so many rounds takes."""
    session = await app.sessions.start_session(model=model, auto_approve=True, max_turns=rounds + 9)
    started = time.perf_counter()
    reply = await session.send_message("go")
    seconds = time.perf_counter() - started
    assert reply.finish_reason == "stop", reply
    assert reply.tool_calls_made == rounds, reply
    return seconds


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run one coroutine function to its end."""

    async def main() -> T:
        return await work()

    return asyncio.run(main())
