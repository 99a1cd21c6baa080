"""A command that opens more connections than this process may have files."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from weft.workspace.egress.egress_proxy import most_connections

pytestmark = pytest.mark.anyio

GATEWAY = """
import os, resource, socket
import anyio
from tests.support.allowed_hosts import proxy

async def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    most = len(os.listdir("/proc/self/fd")) + 5
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    await proxy("allow localhost:1").serve(listener)

anyio.run(main)
"""
JUNK = b"x\r\n\r\n"


@pytest.mark.process
async def test_a_proxy_without_files_waits_for_some_and_goes_on() -> None:
    command = [sys.executable, "-u", "-c", GATEWAY]
    running = await anyio.open_process(command, cwd=Path(__file__).parents[3], stderr=None)
    assert running.stdout is not None
    with anyio.fail_after(60):
        async with running:
            port = int(await running.stdout.receive())
            held = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(30)]
            # What was accepted is answered, though no file is left for the next one.
            await held[0].send(JUNK)
            assert (await held[0].receive()).startswith(b"HTTP/1.1 400")
            for stream in held:
                await stream.aclose()
            last = await anyio.connect_tcp("127.0.0.1", port)
            await last.send(JUNK)
            assert (await last.receive()).startswith(b"HTTP/1.1 400")
            await last.aclose()
            running.terminate()


@pytest.mark.parametrize(("files", "most"), [(1024, 64), (20_000, 256), (100, 16), (-1, 256)])
def test_the_connections_of_a_command_leave_files_for_everybody_else(files: int, most: int) -> None:
    assert most_connections(files) == most
