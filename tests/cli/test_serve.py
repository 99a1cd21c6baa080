"""`weft serve` and `weft web`: started, found, stopped; refused where they would let others in."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager

import anyio
import pytest

from tests.support.weft_program import WeftProgram
from tests.support.world import PATIENCE
from weft.cli.parse import parse
from weft.cli.server.serve import DEFAULT_PORT, server_address
from weft.errors import UsageError
from weft.events import FactBase, TurnFinished
from weft.server import connect
from weft.server.client.remote_events import RemoteEvents


def test_a_server_listens_on_loopback_unless_it_is_told_otherwise() -> None:
    address, password = server_address(parse(["serve"]))
    assert (address.host, address.port, password) == ("127.0.0.1", DEFAULT_PORT, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["serve", "--host", "0.0.0.0"], "--public"),
        (["serve", "--unix", "s", "--port", "1"], "--unix"),
        (["web", "--host", "10.0.0.1"], "--public"),
        (["serve", "--public"], "--host"),
        (
            ["serve", "--public", "--host", "::", "--password-file", "/no/such/file"],
            "/no/such/file",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        server_address(parse(words))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server_process(weft: WeftProgram, port: int, model: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server as a program of its own, from its first line on; killed at the end."""
    words = weft.argv("serve", "--port", str(port), "--set", f"model.default={model}")
    process = subprocess.Popen(
        words, env=weft.environment, cwd=weft.project, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            assert process.stdout.readline().startswith(b"weft serves ")
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.mark.anyio
@pytest.mark.process
async def test_a_reader_sees_each_fact_once_through_a_kill_and_a_restart(
    weft: WeftProgram,
) -> None:
    port, model = free_port(), weft.script("One.", "Two.")
    seen: list[int] = []

    async def read_turn(events: RemoteEvents) -> None:
        with anyio.fail_after(PATIENCE):
            async for event in events:
                seen.extend([event.seq] if isinstance(event, FactBase) else [])
                if isinstance(event, TurnFinished):
                    return

    token_file = weft.data / "server" / f"{port}.token"
    with server_process(weft, port, model):
        app = connect(f"http://127.0.0.1:{port}", token_file.read_text().strip())
        session = await app.sessions.start_session()
        events = await session.subscribe(after=0)
        await session.send_prompt("Go.")
        await read_turn(events)
        # `server_process` kills it: no socket is closed in good order, no turn is suspended.
    with server_process(weft, port, model):
        async with app, events:
            await session.send_prompt("Go on.")
            await read_turn(events)
    assert seen == list(range(1, seen[-1] + 1))


@pytest.mark.process
def test_a_server_takes_more_connections_than_the_files_of_a_usual_program(
    weft: WeftProgram,
) -> None:
    port = free_port()
    few = ["bash", "-c", 'ulimit -Sn 100; exec "$@"', "bash"]
    words = [*few, *weft.argv("serve", "--port", str(port))]
    server = subprocess.Popen(words, env=weft.environment, cwd=weft.project, stdout=subprocess.PIPE)
    assert server.stdout is not None
    held: list[socket.socket] = []
    with server.stdout:
        try:
            assert server.stdout.readline().startswith(b"weft serves ")
            held += [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            url = f"http://127.0.0.1:{port}/api/health"
            with urllib.request.urlopen(url, timeout=30) as answer:
                assert answer.status == 200
        finally:
            for each in held:
                each.close()
            server.kill()
            server.wait()


@pytest.mark.process
def test_a_server_goes_on_in_the_background_is_found_and_is_stopped(weft: WeftProgram) -> None:
    port = free_port()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "weft", *words],
            env=weft.environment,
            cwd=weft.project,
            capture_output=True,
            text=True,
            check=False,
        )

    started = run("serve", "--detach", "--port", str(port))
    assert started.stdout.startswith("weft serves "), started
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", "/api/health")
            assert connection.getresponse().status == 200
        assert f":{port}" in run("serve", "status").stdout
        link = run("web", "--no-open").stdout
        assert f"http://127.0.0.1:{port}/#code=" in link
        taken = run("serve", "--detach", "--port", str(port))
        assert "Address already in use" in taken.stderr
    finally:
        stopped = run("serve", "stop")
    assert stopped.returncode == 0
    assert run("serve", "status").returncode == 1


@pytest.mark.process
def test_the_json_log_of_a_server_in_the_background_goes_where_standard_error_goes(
    weft: WeftProgram,
) -> None:
    """Not to a file that no one can read, and that grows for as long as the server runs."""
    port = free_port()
    log = weft.home / "server.log"
    with log.open("wb") as stderr:
        words = ("serve", "--detach", "--port", str(port), "--log-format", "json")
        assert weft.start(*words, stderr=stderr).wait() == 0
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", "/api/health")
            connection.getresponse().read()
    finally:
        assert weft.run("serve", "stop").returncode == 0
    assert [json.loads(line)["logger"] for line in log.read_text().splitlines()]
