"""Control requests of ours to the program that drives us, and its answers.

Each waits for its answer alone.  One whose wait was cancelled is withdrawn, so that the program can
give it up as well; when the program hangs up, all waits end at once with an error, and so do later
requests.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from typing import Any

import anyio

from weft.cli import stdio as output
from weft.cli.exit_codes import CommandExit
from weft.errors import WeftError

HUNG_UP = "the program that drives the session has hung up"


class NoAnswer(WeftError):
    """The program did not answer, or answered that it failed."""


class _Wait:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.answer: Any = None
        self.error = ""


class ControlChannel:
    """The way to the program, for requests that wait for an answer."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Wait] = {}
        self._has_hung_up = False

    async def ask(self, **request: Any) -> Any:
        """Send a request, and wait for its answer.  A cancel withdraws it.

        Raises:
            NoAnswer: the program failed, or has hung up.
        """
        if self._has_hung_up:
            raise NoAnswer(HUNG_UP)
        # Random, because the program answers requests of ours and of the session in the same way:
        # two counters would meet.
        request_id = str(uuid.uuid4())
        wait = self._waiting[request_id] = _Wait()
        try:
            _write({"type": "control_request", "request_id": request_id, "request": request})
            await wait.answered.wait()
        finally:
            # Still there means unanswered: the wait was cancelled, and the program may stop working
            # on it.
            if self._waiting.pop(request_id, None) is not None:
                withdraw(request_id)
        if wait.error:
            raise NoAnswer(wait.error)
        return wait.answer

    def take(self, response: Mapping[str, Any]) -> bool:
        """Take an answer; False when it answers no request of this channel."""
        wait = self._waiting.pop(str(response.get("request_id", "")), None)
        if wait is None:
            return False
        if response.get("subtype") == "success":
            wait.answer = response.get("response")
        else:
            wait.error = f"it failed: {response.get('error') or 'no reason given'}"
        wait.answered.set()
        return True

    def hang_up(self) -> None:
        """The program sends nothing more."""
        self._has_hung_up = True
        for wait in self._waiting.values():
            wait.error = HUNG_UP
            wait.answered.set()
        self._waiting.clear()


def withdraw(request_id: str) -> None:
    """Tell the program that an answer is not waited for any more."""
    with contextlib.suppress(NoAnswer):
        _write({"type": "control_cancel_request", "request_id": request_id})


def _write(line: dict[str, Any]) -> None:
    try:
        output.write_json(line)
    except (BrokenPipeError, CommandExit) as error:
        raise NoAnswer("the reader of the output is gone") from error
