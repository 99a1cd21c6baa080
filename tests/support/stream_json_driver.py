"""The program on the other side of the line protocol: it sends messages, and answers what it is
asked."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support.weft_program import WeftProgram, kinds

STREAMS = ("--input-format", "stream-json", "--output-format", "stream-json")
PRINT = ("-p", *STREAMS)
"""A plain program: our own names are spoken."""
ASKS = ("--permission-prompt-tool", "stdio")


def user(said: str) -> str:
    """The line of a message."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": said}})


def control(request_id: str, **request: Any) -> str:
    """The line of a control request."""
    return json.dumps({"type": "control_request", "request_id": request_id, "request": request})


def answer(asked: dict[str, Any], **response: Any) -> str:
    """The line that answers what we were asked."""
    body = {"subtype": "success", "request_id": asked["request_id"], "response": response}
    return json.dumps({"type": "control_response", "response": body})


def failure(asked: dict[str, Any], error: str) -> str:
    """The line that says that our answer to what we were asked failed."""
    body = {"subtype": "error", "request_id": asked["request_id"], "error": error}
    return json.dumps({"type": "control_response", "response": body})


class StreamJsonDriver:
    """A program that drives a session; `flags` are those it starts with."""

    def __init__(self, weft: WeftProgram, *arguments: str, flags: tuple[str, ...] = PRINT) -> None:
        self._running = weft.start(*flags, *arguments, stdin=subprocess.PIPE)

    def send(self, *said: str) -> None:
        """Write these lines."""
        assert self._running.stdin is not None
        self._running.stdin.write("".join(f"{line}\n" for line in said).encode())
        self._running.stdin.flush()

    def until(self, kind: str) -> list[dict[str, Any]]:
        """Lines up to and including the first of this kind."""
        assert self._running.stdout is not None
        seen: list[dict[str, Any]] = []
        while line := self._running.stdout.readline():
            seen.append(json.loads(line))
            if kinds(seen[-1:])[0].startswith(kind):
                return seen
        raise AssertionError(f"the output ended without {kind!r}: {kinds(seen)}")

    def asked(self, subtype: str) -> dict[str, Any]:
        """The next control request that we are sent, which is of this subtype."""
        request = self.until("control_request")[-1]
        assert request["request"]["subtype"] == subtype, request
        return request

    def control(self, **request: Any) -> dict[str, Any]:
        """Send a control request, and wait for its answer."""
        self.send(control("driver-1", **request))
        response: dict[str, Any] = self.until("control_response")[-1]["response"]
        return response

    def hang_up(self) -> None:
        """Close the input, and stay to read."""
        assert self._running.stdin is not None
        self._running.stdin.close()
        self._running.stdin = None

    def end(self) -> int:
        """Close the input, read the rest, return the exit code."""
        self._running.communicate(timeout=10)
        return self._running.returncode


class SdkDriver(StreamJsonDriver):
    """A program that drives us as the Claude Agent SDK does: without `-p`, so that its names are
    spoken."""

    def __init__(self, weft: WeftProgram, *arguments: str) -> None:
        super().__init__(weft, "--verbose", *arguments, flags=STREAMS)

    def initialize(self, **fields: Any) -> dict[str, Any]:
        """What `initialize` is answered."""
        return self.control(subtype="initialize", **fields)
