"""MCP servers: what they cost the first request, a call, and whoever has to listen to a bad one."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from statistics import median
from typing import Any, NamedTuple

import anyio
import msgspec
from tests.support.mcp_servers import PATIENCE, command, served, terms

from bench.table import Row
from weft.errors import ToolError
from weft.mcp import ServerRecord, offered_names
from weft.mcp.tool_search import ToolCallTool, ToolSearchTool

RUNS = 7
CALLS = 500
TOOLS = 106
IDLE = 10
PROBE_SECONDS = 0.002
_FIRST = """
import gc, os, sys, time, anyio, weft
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel, ScriptedProvider
class Timed(ScriptedModel):
    def stream(self, request):
        if not self.request_count:
            print(time.perf_counter() - self.wall, time.process_time() - self.cpu, flush=True)
        return super().stream(request)
async def main():
    home, learns = sys.argv[1], sys.argv[2] == "learn"
    search = [CallTool(name="tool_search", args={"query": "*"})]
    model = Timed([search, "done"] if learns else ["done"])
    environ = {"HOME": home, "WEFT_HOME": home, "PATH": os.environ["PATH"]}
    environ["WEFT_REPO_INDEX"] = "off"
    config = {"model.default": "scripted:script", "lsp.enabled": False}
    providers = {"scripted": ScriptedProvider({"script": model})}
    given = sys.argv[3:]
    os.makedirs(home + "/project", exist_ok=True)
    async with weft.open(home + "/project", "memory", config, environ=environ,
                         providers=providers, mcp_config=given) as app:
        model.wall, model.cpu = time.perf_counter(), time.process_time()
        mode = "bypass" if learns else "default"
        session = await app.sessions.start_session(permission_mode=mode)
        await session.send_message("go")
        gc.collect()
        with open("/proc/self/statm") as file:
            print(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, flush=True)
        os._exit(0)
anyio.run(main)
"""


def run() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as home:
        rows = [*_first_requests(home), _idle_servers(home)]
    return [*rows, *anyio.run(_server_rows), _prompt_row()]


def _first_requests(home: str) -> list[Row]:
    """From the start of a session to its first request, in a process of its own."""
    four = {f"s{number}": _entry() for number in range(4)}
    known = {f"k{number}": _entry() for number in range(4)}
    cases = {
        "no server": {},
        "4 servers": four,
        "4 that are known": known,
        "1 that hangs": {"h": _entry("hang")},
        "5, one hangs": {**four, "h": _entry("hang")},
    }
    given = {name: _given(servers) for name, servers in cases.items()}
    _turn(home, *given["4 that are known"], mode="learn")
    found: dict[str, list[_Turn]] = {name: [] for name in cases}
    # In turns: what else the machine does then falls on all of them.
    for _ in range(RUNS):
        for name, words in given.items():
            found[name].append(_turn(home, *words))
    base = found.pop("no server")
    rows: list[Row] = []
    for name, spent in found.items():
        for place, what in enumerate(("", ", CPU")):
            later = median(each[place] for each in spent) - median(each[place] for each in base)
            rows.append(Row(f"first request later, {name}{what}", later * 1000, "ms", limit=20.0))
    return rows


def _idle_servers(home: str) -> Row:
    """What our process has in memory for servers that run and do nothing."""
    many = {f"i{number}": _entry() for number in range(IDLE)}
    without = median(_turn(home).megabytes for _ in range(3))
    beside = median(_turn(home, *_given(many), mode="learn").megabytes for _ in range(3))
    return Row(f"{IDLE} idle servers", beside - without, "MB", floor=without, limit=15.0)


def _given(servers: dict[str, Any]) -> list[str]:
    return [json.dumps({"mcpServers": servers})] if servers else []


def _entry(*traps: str) -> dict[str, Any]:
    program, *args = command(*traps)
    return {"command": program, "args": args}


class _Turn(NamedTuple):
    wall: float
    cpu: float
    megabytes: float
    """In memory at its end."""


def _turn(home: str, *given: str, mode: str = "use") -> _Turn:
    argv = [sys.executable, "-c", _FIRST, home, mode, *given]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return _Turn(*map(float, done.stdout.split()))


async def _server_rows() -> list[Row]:
    return [
        *await _calls(),
        await _timed("20,000 changes of a list", "list_storm", limit=1.0),
        *await _huge(),
        await _lag_beside_errors(),
    ]


async def _calls() -> list[Row]:
    async with served() as server:
        await server.must_be_ready(PATIENCE)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(CALLS):
            await server.call("echo", {"text": "x"}, terms(), start_seconds=PATIENCE)
        spent = time.process_time() - cpu, time.perf_counter() - wall
    return [
        Row("a call, CPU", spent[0] / CALLS * 1000, "ms", limit=0.3),
        Row("a call", spent[1] / CALLS * 1000, "ms"),
    ]


async def _timed(name: str, trap: str, *, limit: float) -> Row:
    async with served() as plain:
        floor = await _seconds(lambda: plain.call("echo", {}, terms(), start_seconds=PATIENCE))
    async with served(trap) as server:
        work = lambda: server.call("echo", {}, terms(), start_seconds=PATIENCE)  # noqa: E731
        return Row(name, await _seconds(work), "s", floor=floor, limit=limit)


async def _seconds(work: Callable[[], Awaitable[Any]]) -> float:
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


async def _huge() -> list[Row]:
    async with served("huge_result=100") as server:
        await server.must_be_ready(PATIENCE)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.perf_counter()
        with suppress(ToolError):
            await server.call("echo", {}, terms(), start_seconds=PATIENCE)
        spent = time.perf_counter() - begun
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return [
        Row("a result of 100 MB is refused", spent, "s", limit=2.0),
        Row("memory for it", more, "MB", limit=20.0),
    ]


async def _lag_beside_errors() -> Row:
    floor = await _worst_lag(1.0)
    async with served("stderr=200") as server:
        server.start()
        return Row("lag while 200 MB of errors come", await _worst_lag(2.0), "ms", floor=floor)


async def _worst_lag(seconds: float) -> float:
    worst, end = 0.0, time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        await anyio.sleep(PROBE_SECONDS)
        worst = max(worst, time.perf_counter() - now - PROBE_SECONDS)
    return worst * 1000


def _prompt_row() -> Row:
    """What a request has of many tools: two that find and call them, and all their names."""
    names = offered_names([("server", f"tool_number_{number}") for number in range(TOOLS)])
    index: Any = ServerRecord()
    tools = [ToolSearchTool(index), ToolCallTool(index)]
    described = [(tool.name, tool.description, tool.schema) for tool in tools]
    size = len(msgspec.json.encode(described)) + len(", ".join(names.values()))
    return Row(f"{TOOLS} tools in a prompt", size / 4, "tokens", limit=2_000.0)
