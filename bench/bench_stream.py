"""An answer of 2,000 chunks: what the engine adds to taking it from the model."""

from __future__ import annotations

import statistics
import time

from bench.scenes import project
from bench.scenes import run as run_async
from bench.table import Row
from weft.messages import Text
from weft.providers import ScriptedModel
from weft.providers.base import ChatMessage, ModelInfo, ModelRequest
from weft.providers.script import SayText

CHUNKS = 2_000
REPEATS = 5


def run() -> list[Row]:
    """The bare stream, then a whole turn around it with one reader of all deltas."""

    async def measure() -> tuple[float, float]:
        bare = [await _bare(_model(f"b{number}")) for number in range(REPEATS)]
        async with project("sqlite") as (app, _):
            turns = []
            for number in range(REPEATS):
                session = await app.sessions.start_session(model=_model(f"t{number}"))
                await session.subscribe()
                started = time.perf_counter()
                reply = await session.send_message("go")
                turns.append(time.perf_counter() - started)
                assert len(reply.text) == CHUNKS * 4
        return statistics.median(bare), statistics.median(turns)

    bare, turn = run_async(measure)
    return [
        Row(f"{CHUNKS:,} chunks, whole turn", turn * 1000, "ms", floor=bare * 1000),
        Row("a chunk in a turn", turn / CHUNKS * 1e6, "µs", floor=bare / CHUNKS * 1e6),
    ]


async def _bare(model: ScriptedModel) -> float:
    request = ModelRequest(
        model="x", messages=(ChatMessage(role="user", parts=(Text(text="go"),)),)
    )
    started = time.perf_counter()
    async with model.stream(request) as stream:
        async for _ in stream:
            pass
    return time.perf_counter() - started


def _model(name: str) -> ScriptedModel:
    info = ModelInfo(provider="scripted", name=name)
    return ScriptedModel([[SayText(text="word" * CHUNKS, chunk=4)]], info=info)
