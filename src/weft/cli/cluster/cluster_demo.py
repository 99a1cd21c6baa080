"""`weft cluster demo`: Postgres and several servers on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from weft.cli.cluster.bound_program import end_program, start_program
from weft.cli.cluster.demo_database import DemoDatabase
from weft.cli.exit_codes import FAILED, OK, CommandExit
from weft.cli.parse import ParsedArguments
from weft.cli.server.serve import DEFAULT_PORT, READY
from weft.cli.stdio import write_line
from weft.errors import UsageError

DEFAULT_SERVERS: Final = 3
MOST_SERVERS: Final = 9
END_SECONDS: Final = 15.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_SECONDS: Final = 0.2
_PAGE: Final = "page ("


class DemoServer(msgspec.Struct):
    """One server that runs."""

    name: str
    url: str
    process: subprocess.Popen[bytes]
    log: Path
    page: str = ""
    has_ended: bool = False


class _Ended(Exception):
    """The user has had enough."""


def run(arguments: ParsedArguments) -> int:
    """Carry out `weft cluster demo`."""
    count, port = _wanted(arguments)
    if find_spec("asyncpg") is None:
        raise CommandExit(FAILED, "it needs the extra `postgres`: pip install 'weft[postgres]'")
    with _until_signal(), ExitStack() as stack:
        # What is put on the stack first goes last: the servers need the database until they end.
        stack.callback(_ignore_signals)
        database = DemoDatabase()
        stack.callback(database.stop)
        home = Path(tempfile.mkdtemp(prefix="weft-demo-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        servers: list[DemoServer] = []
        stack.callback(_end_all, servers)
        stack.callback(_ignore_signals)
        try:
            database.start()
            _start_all(servers, database, home, count, port)
            _watch(servers)
        except _Ended:
            write_line("ending all of it")
    return OK


def _wanted(arguments: ParsedArguments) -> tuple[int, int]:
    count = arguments.whole("servers") or DEFAULT_SERVERS
    if count > MOST_SERVERS:
        raise UsageError(f"--servers takes up to {MOST_SERVERS}, not {count}")
    port = arguments.whole("port") or DEFAULT_PORT
    if port + count > 65_536:
        raise UsageError(f"--port needs room for {count} servers below 65536, and {port} has none")
    return count, port


@contextmanager
def _until_signal() -> Iterator[None]:
    before = {number: signal.signal(number, _end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _Ended


def _ignore_signals() -> None:
    """A second Ctrl-C must not leave half of it behind; what follows takes a bounded time."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _start_all(
    servers: list[DemoServer], database: DemoDatabase, home: Path, count: int, port: int
) -> None:
    secret = secrets.token_hex(32)
    for number in range(1, count + 1):
        name = f"host-{number}"
        (home / name).mkdir()
        log = home / f"{name}.log"
        environ = {
            **os.environ,
            "WEFT_HOME": str(home / name),
            "WEFT_STORE_ADDRESS": database.address(name),
            "WEFT_CLUSTER_SECRET": secret,
            "PYTHONUNBUFFERED": "1",
        }
        words = [sys.executable, "-m", "weft", "serve", "--port", str(port + number - 1)]
        with log.open("wb") as output:
            process = start_program(
                [*words, "--drain", "0.2"],
                at_our_end=signal.SIGTERM,
                stdout=output,
                environ=environ,
                cwd=os.getcwd(),
            )
        url = f"http://127.0.0.1:{port + number - 1}"
        servers.append(DemoServer(name, url, process, log))
    for server in servers:
        _wait_until_ready(server)
    write_line(f"Postgres and {count} servers run, on {os.getcwd()}:")
    for server in servers:
        write_line(f"  {server.name}  process {server.process.pid}  {server.page or server.url}")
    write_line(
        "Each page shows the sessions of all (a link works once, for a minute). `kill -9` one of "
        "them, and what it had goes on at another. Ctrl-C ends all of it and removes its data."
    )


def _wait_until_ready(server: DemoServer) -> None:
    while True:
        lines = server.log.read_text(errors="replace").splitlines()
        pages = [line for line in lines if line.startswith(_PAGE)]
        is_ready = any(line.startswith(READY) for line in lines)
        if is_ready and (pages or not lines[-1].startswith(READY)):
            server.page = pages[0].partition("): ")[2] if pages else ""
            return
        if server.process.poll() is not None:
            said = " ".join(lines)[-500:]
            raise CommandExit(FAILED, f"{server.name} does not start: {said}")
        time.sleep(_LOOK_SECONDS / 4)


def _watch(servers: list[DemoServer]) -> None:
    """Say which servers end, until none is left."""
    while not all(server.has_ended for server in servers):
        time.sleep(_LOOK_SECONDS)
        for server in servers:
            if not server.has_ended and server.process.poll() is not None:
                server.has_ended = True
                write_line(f"{server.name} has ended; the others go on with what it had")
    raise CommandExit(FAILED, "no server is left")


def _end_all(servers: list[DemoServer]) -> None:
    for server in servers:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGCONT)
            server.process.send_signal(signal.SIGTERM)
    for server in servers:
        end_program(server.process, signal.SIGTERM, END_SECONDS)
