"""`weft serve` and `weft web`: started, found, stopped; refused where they would let others in."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.weft_program import WeftProgram
from weft.cli.parse import parse
from weft.cli.server.serve import DEFAULT_PORT, server_address
from weft.errors import UsageError


def test_a_server_listens_on_loopback_unless_it_is_told_otherwise() -> None:
    address, password = server_address(parse(["serve"]))
    assert (address.host, address.port, password) == ("127.0.0.1", DEFAULT_PORT, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["serve", "--host", "0.0.0.0"], "--public"),
        (["serve", "--unix", "s", "--port", "1"], "--unix"),
        (["web", "--host", "10.0.0.1"], "--public"),
        (["serve", "--public", "--password-file", "/no/such/file"], "/no/such/file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        server_address(parse(words))


@pytest.mark.process
def test_a_server_goes_on_in_the_background_is_found_and_is_stopped(weft: WeftProgram) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

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
