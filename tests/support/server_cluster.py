"""Several real `weft serve` processes on one Postgres, each with a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from tests.support.free_port import free_port
from tests.support.postgres_server import PostgresServer
from tests.support.tmux_terminal import wait_until
from tests.support.weft_program import WeftProgram
from weft.server import RemoteApp, connect

SECRET = "a secret that all servers of a test share"
LEASE = "0.3,1.2,4"
"""Beat, grace and time to live, in seconds."""


def script(folder: Path, *answers: Any) -> str:
    """A model that gives these answers, whichever server asks."""
    path = folder / "script.json"
    path.write_text(json.dumps({"by": "content", "answers": answers}))
    return f"scripted:{path}"


async def seen(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    await anyio.to_thread.run_sync(wait_until, holds)


class ClusterServer:
    """One server."""

    def __init__(self, root: Path, project: Path | None, environ: Mapping[str, str]) -> None:
        root.mkdir()
        self.program = WeftProgram(root)
        self.project = project or self.program.project
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environ = {**self.program.environment, "WEFT_SANDBOX_MODE": "off", **environ}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        words = self.program.argv("serve", "--port", str(self.port), "--drain", "0.2")
        with (self.program.home / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                words,
                env=self._environ,
                cwd=self.project,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(b"weft serves "), (line, self.errors)

    @property
    def errors(self) -> str:
        """What it has complained of."""
        return (self.program.home / "errors").read_text()

    @property
    def token(self) -> str:
        """The token of programs."""
        return (self.program.data / "server" / f"{self.port}.token").read_text().strip()

    def connect(self) -> RemoteApp:
        """A client of it."""
        return connect(self.url, self.token)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Let it die without a word."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        """End it, whatever became of it."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()


@asynccontextmanager
async def server_cluster(
    postgres: PostgresServer,
    root: Path,
    count: int = 2,
    *,
    model: str = "",
    shared: bool = True,
    environ: Mapping[str, str] | None = None,
    lease: str = LEASE,
    dsns: Sequence[str] = (),
) -> AsyncIterator[list[ClusterServer]]:
    """Servers that run; they have one project, or each a folder of its own.  `dsns` are other ways
    to the database, one for each.
    """
    project = root / "shared"
    project.mkdir()
    given = {
        "WEFT_CLUSTER_SECRET": SECRET,
        "WEFT_MODEL_DEFAULT": model,
        **(environ or {}),
    }
    with ExitStack() as stack:
        servers = []
        for number in range(count):
            place = project if shared else None
            dsn = dsns[number] if dsns else postgres.dsn()
            mark = "&" if "?" in dsn else "?"
            address = f"{dsn}{mark}tenant={root.name}&lease={lease}"
            environ = {**given, "WEFT_STORE_ADDRESS": address}
            server = ClusterServer(root / f"host{number}", place, environ)
            stack.callback(server.close)
            servers.append(server)
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(anyio.to_thread.run_sync, server.start)
        yield servers
