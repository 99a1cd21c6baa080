"""A server and its clients in processes of their own: how late events come, what they cost, and
what readers that stall or hang up do to the others.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

import weft
from bench.event_readers import ReaderOrder, event_readers
from bench.logs import facts, record, row
from bench.scenes import run as run_async
from bench.table import Row
from weft.ids import NodeId, SessionId
from weft.store import Append, SearchText, Store
from weft.store.sqlite import open_sqlite

READERS, SOCKETS, STALLED = 200, 5, 100
FEW_READERS, FEW_SOCKETS = 20, 1
PIECES, FEW_PIECES = 4_000, 2_000
PACE_SECONDS = 0.005
RATE = 190.0
"""Pieces a second that must come for the rest to count."""
HANG_UPS, CALLS = 1_000, 600
DRIVEN, ROUNDS = 200, 10
STORED = 10_000


def run() -> list[Row]:
    """All of it; each scene has a server of its own."""
    rows: list[Row] = []
    for scene in (_latency, _latency_of_few, _stalled, _hang_ups, _stored, _driven):
        rows += run_async(scene)
    return rows


class Served:
    """A server in a process of its own."""

    def __init__(self, root: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self.root = root
        self.port = port
        self.process = process
        home = root / "home" / ".local" / "share" / "weft"
        self.token = (home / "server" / f"{port}.token").read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def script(self, **fields: Any) -> str:
        path = self.root / f"script{len(list(self.root.glob('script*')))}.json"
        path.write_text(json.dumps(fields))
        return f"scripted:{path}"

    def order(self, session: str, **readers: int) -> ReaderOrder:
        """Readers of one of its sessions."""
        return ReaderOrder(self.port, self.token, session, **readers)

    async def follow(self, session: str, after: int | None) -> tuple[Any, Any]:
        """A connection that reads the events of a session; its head is read."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        query = "" if after is None else f"?after={after}"
        writer.write(
            f"GET /api/sessions/{session}/events{query} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.token}\r\n\r\n".encode()
        )
        await reader.readuntil(b"\r\n\r\n")
        return reader, writer


@asynccontextmanager
async def served(store: Callable[[Path], Any] | None = None) -> AsyncIterator[Served]:
    """Start a server, and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("home", "project"):
            (root / name).mkdir()
        for number in range(20):
            (root / "project" / f"f{number}.txt").write_text("line\n" * 50)
        if store is not None:
            await store(root / "home" / ".local" / "share" / "weft" / "weft.db")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = await anyio.to_thread.run_sync(_start, root, port)
        assert process.stdout is not None
        try:
            await anyio.to_thread.run_sync(process.stdout.readline)
            yield Served(root, port, process)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def _start(root: Path, port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "weft", "serve", "--port", str(port)],
        cwd=root / "project",
        env={**os.environ, "HOME": str(root / "home"), "WEFT_REPO_INDEX": "off"},
        stdout=subprocess.PIPE,
    )


def _streaming(server: Served, pieces: int) -> str:
    text = [{"do": "text", "text": f"word{number} "} for number in range(pieces)]
    return server.script(by="position", pace_seconds=PACE_SECONDS, answers=[text])


# -- how late events come


async def _latency() -> list[Row]:
    return await _late(READERS, SOCKETS, limit=100.0)


async def _latency_of_few() -> list[Row]:
    """What a machine that is too busy for all of them can still show."""
    return await _late(FEW_READERS, FEW_SOCKETS, limit=60.0)


async def _late(readers: int, pages: int, limit: float) -> list[Row]:
    async with served() as server, weft.connect(server.url, server.token) as app:
        session = await app.sessions.start_session(model=_streaming(server, PIECES))
        wanted = server.order(session.id, streams=readers, sockets=pages)
        with event_readers(wanted) as reading:
            cpu, began = server.cpu_seconds(), time.perf_counter()
            await session.send_prompt("go")
            seen = await anyio.to_thread.run_sync(reading.report)
        seconds, spent = time.perf_counter() - began, server.cpu_seconds() - cpu
        of = f"{readers} SSE and {pages} WebSockets"
        chunks = seen.streams.chunks + seen.sockets.chunks
        return [
            Row(f"pieces a second to {of}", PIECES / seconds, "/s", limit=RATE, better="more"),
            Row("piece to SSE reader, p50", seen.streams.p50, "ms"),
            Row("piece to SSE reader, p99", seen.streams.p99, "ms", limit=limit),
            Row("piece to WebSocket, p99", seen.sockets.p99, "ms", limit=limit),
            Row("server's processor, of one core", 100 * spent / seconds, "%", limit=20.0),
            Row("the same for each chunk", 1e6 * spent / chunks, "µs", floor=_bare_send()),
            Row("server's memory", server.megabytes(), "MB", limit=80.0),
        ]


def _bare_send(size: int = 300, count: int = 2_000) -> float:
    """The floor of a chunk: microseconds of processor time to send so many bytes, and no more."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        began = time.process_time()
        for _ in range(count):
            ours.send(b"x" * size)
            theirs.recv(size)
        return 1e6 * (time.process_time() - began) / count


# -- readers that stall


async def _stalled() -> list[Row]:
    alone = await _fast_reader(0)
    beside = await _fast_reader(STALLED)
    return [
        Row("one reader alone, p99", alone, "ms"),
        Row(f"the same beside {STALLED} that stall, p99", beside, "ms", floor=alone, limit=100.0),
    ]


async def _fast_reader(stalled: int) -> float:
    async with served() as server, weft.connect(server.url, server.token) as app:
        session = await app.sessions.start_session(model=_streaming(server, FEW_PIECES))
        with event_readers(server.order(session.id, streams=1, stalled=stalled)) as reading:
            await session.send_prompt("go")
            return (await anyio.to_thread.run_sync(reading.report)).streams.p99


# -- readers that hang up


async def _hang_ups() -> list[Row]:
    async with served() as server, weft.connect(server.url, server.token) as app:
        calls = [
            [
                {
                    "do": "call",
                    "name": "read",
                    "args": {"path": f"f{n % 20}.txt", "offset": n // 20 + 1},
                }
            ]
            for n in range(1, CALLS)
        ]
        model = server.script(by="content", answers=[*calls, "done"])
        session = await app.sessions.start_session(
            model=model, auto_approve=True, max_turns=CALLS + 9
        )
        await session.send_prompt("go")
        seen, connections = await _impatient(server, session.id)
        wrong = 0 if seen == list(range(1, len(seen) + 1)) else 1
        return [
            Row(
                "connections of a reader that hangs up",
                connections,
                "",
                limit=HANG_UPS,
                better="more",
            ),
            Row("facts missed, twice or out of order", wrong, "", limit=0.0),
        ]


async def _impatient(server: Served, session: str) -> tuple[list[int], int]:
    """Every fact that a reader has seen which hangs up after a few, and comes back."""
    choice = random.Random(7)
    seen: list[int] = []
    connections, is_over = 0, False
    while not is_over:
        connections += 1
        patience = choice.randint(1, 3)
        reader, writer = await server.follow(session, seen[-1] if seen else 0)
        while patience and not is_over:
            line = await reader.readline()
            if line.startswith(b"id: "):
                seen.append(int(line[4:]))
                patience -= 1
                is_over = b'"kind":"turn_finished"' in await reader.readline()
        writer.transport.abort()
    return seen, connections


# -- many sessions that are stored


async def _stored() -> list[Row]:
    async with served(_prepare) as server, weft.connect(server.url, server.token) as app:
        asked = (("list", None), ("search, in all", "checkout cart"), ("search, in 100", "word7"))
        rows = []
        for name, query in asked:
            took = []
            for _ in range(21):
                began = time.perf_counter()
                found = await app.sessions.list_saved(query=query, limit=50)
                took.append(1000 * (time.perf_counter() - began))
            assert len(found) == 50
            shown = f"{name}: 50 of {STORED:,} stored sessions"
            rows.append(Row(shown, statistics.median(took), "ms", limit=100.0))
        return rows


async def _prepare(path: Path) -> None:
    path.parent.mkdir(parents=True)
    async with await open_sqlite(path) as store:
        for start in range(0, STORED, 500):
            await store.append(*[await _stored_one(store, start + n) for n in range(500)])


async def _stored_one(store: Store, number: int) -> Append:
    session_id = SessionId(f"ses_{number:026}")
    lease = await store.take_lease(session_id)
    [first] = facts(session_id, 1)
    said = f"the checkout fails for an empty cart, word{number % 100} of {number}"
    return Append(
        stream=session_id,
        expected_seq=0,
        fence=lease.fence,
        records=(record(first),),
        row=row(session_id, number),
        said=(SearchText(NodeId(f"nod_{number:026}"), said),),
    )


# -- sessions driven from another process


async def _driven() -> list[Row]:
    async with served() as server, weft.connect(server.url, server.token) as app:
        settings: dict[str, Any] = {"auto_approve": True, "max_turns": ROUNDS + 9}
        sessions = [
            await app.sessions.start_session(model=_reads(server, n), **settings)
            for n in range(DRIVEN)
        ]
        spent = server.cpu_seconds()
        through = await _rounds(sessions)
        spent = server.cpu_seconds() - spent
        here, spent_here = await _in_one_process(server)
    count = DRIVEN * ROUNDS
    return [
        Row(
            f"{DRIVEN} sessions through HTTP, a reader each",
            through,
            "rounds/s",
            floor=here,
            limit=0.7,
            of="ratio",
            better="more",
        ),
        Row(
            "the server's processor for a round",
            1000 * spent / count,
            "ms",
            floor=1000 * spent_here / count,
        ),
    ]


def _reads(server: Served, number: int) -> str:
    del number
    calls = [
        [{"do": "call", "name": "read", "args": {"path": f"f{n % 20}.txt"}}] for n in range(ROUNDS)
    ]
    path = server.root / "script-reads.json"
    path.write_text(json.dumps({"by": "content", "answers": [*calls, "done"]}))
    return f"scripted:{path}"


async def _in_one_process(server: Served) -> tuple[float, float]:
    """Rounds a second, and the processor time that they took."""
    async with weft.open(server.root / "project", store=server.root / "own.db") as app:
        sessions = [
            await app.sessions.start_session(
                model=_reads(server, n), auto_approve=True, max_turns=ROUNDS + 9
            )
            for n in range(DRIVEN)
        ]
        began = time.process_time()
        rounds = await _rounds(sessions)
        return rounds, time.process_time() - began


async def _rounds(sessions: list[Any]) -> float:
    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for session in sessions:
            events = await session.subscribe(after=0)
            group.start_soon(_drain, events)
            group.start_soon(_talk, session)
    return len(sessions) * ROUNDS / (time.perf_counter() - began)


async def _drain(events: Any) -> None:
    async with events:
        async for event in events:
            if type(event).__name__ == "TurnFinished":
                return


async def _talk(session: Any) -> None:
    reply = await session.send_message("go")
    assert reply.finish_reason == "stop", reply
