"""Programs that know docs/http.md and nothing of our package: they start, prompt, follow, approve
and rewind.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.source_code import SRC
from tests.support.weft_program import WeftProgram

EXAMPLES = SRC.parents[1] / "docs" / "examples"
pytestmark = pytest.mark.process


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[WeftProgram, str, str]]:
    """A server as a program of its own; its address and the file of its token."""
    weft = WeftProgram(tmp_path)
    write = [{"do": "call", "name": "write", "args": {"path": "a.txt", "content": "x"}}]
    model = weft.script(write, "It is written.", "Again.")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    running = weft.start("serve", "--port", port, "--set", f"model.default={model}")
    assert running.stdout is not None
    with running.stdout:
        assert running.stdout.readline().startswith(b"weft serves ")
        yield weft, f"http://127.0.0.1:{port}", str(weft.data / "server" / f"{port}.token")
        weft.run("serve", "stop")
    weft.close()


def test_a_program_with_the_standard_library_alone(server: tuple[WeftProgram, str, str]) -> None:
    weft, url, token = server
    # Neither our package nor any other is there to be imported.
    command = [sys.executable, "-I", "-S", str(EXAMPLES / "http_client.py"), url, token, "Write."]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "allowing write a.txt" in done.stdout
    assert "It is written." in done.stdout
    assert "rewind would delete a.txt" in done.stdout
    assert "messages left: 0" in done.stdout
    assert not (weft.project / "a.txt").exists()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_shell_script_with_curl(server: tuple[WeftProgram, str, str]) -> None:
    weft, url, token = server
    command = ["sh", str(EXAMPLES / "http_client.sh"), url, token, "Write it."]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "allowing req_" in done.stdout
    assert "delete" in done.stdout
    assert '"messages":[]' in done.stdout
    assert not (weft.project / "a.txt").exists()
