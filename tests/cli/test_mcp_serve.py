"""`weft mcp serve` at the end of two pipes, as another agent starts it."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

import pytest

from tests.support.weft_program import WeftProgram

pytestmark = pytest.mark.process


class Piped:
    """The program, and what is said to it."""

    def __init__(self, weft: WeftProgram, *more: str) -> None:
        self.process = weft.start("mcp", "serve", *more, stdin=subprocess.PIPE)
        self._last = 0

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The next line, whatever it is: all of them are messages.  Not those about sessions, which
        come at any time."""
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr and self.process.stderr.read().decode()
            found: dict[str, Any] = json.loads(line)
            if not found.get("method", "").startswith("notifications/resources/"):
                return found

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        self.send(id=self._last, method=method, params=params)
        found = self.receive()
        assert found["id"] == self._last
        result: dict[str, Any] = found["result"]
        return result


def test_another_agent_gives_it_a_task_and_its_user_is_asked(weft: WeftProgram) -> None:
    call = {"do": "call", "name": "write", "args": {"path": "a.txt", "content": "one"}}
    model = weft.script([call], "it is written")
    piped = Piped(weft, "--set", f"model.default={model}")
    about = {"name": "test", "version": "1"}
    piped.ask(
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={"elicitation": {}},
        clientInfo=about,
    )
    piped.send(method="notifications/initialized")
    asked = {"name": "weft_ask", "arguments": {"prompt": "write it"}}
    piped.send(id="call", method="tools/call", params=asked)
    question = piped.receive()
    assert question["method"] == "elicitation/create"
    assert not (weft.project / "a.txt").exists()
    yes = {"action": "accept", "content": {"decision": "allow"}}
    piped.send(id=question["id"], result=yes)
    done = piped.receive()
    assert done["id"] == "call"
    assert done["result"]["content"][0]["text"].startswith("it is written")
    assert (weft.project / "a.txt").read_text() == "one"
    assert piped.process.stdin is not None
    piped.process.stdin.close()
    assert piped.process.wait(30) == 0
    assert piped.process.stdout is not None
    rest = [json.loads(line)["method"] for line in piped.process.stdout.read().splitlines()]
    assert set(rest) <= {"notifications/resources/list_changed"}
    (session,) = weft.sessions()
    assert session["turn_count"] == 1


def test_it_ends_by_a_signal(weft: WeftProgram) -> None:
    piped = Piped(weft)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    assert piped.ask("server/discover", _meta=meta)["supportedVersions"] == ["2026-07-28"]
    piped.process.send_signal(signal.SIGTERM)
    assert piped.process.wait(30) == 128 + signal.SIGTERM
