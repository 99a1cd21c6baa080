"""A program drives a session through lines of JSON."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.cli.conftest import Weft, call, kinds, lines, text

FLAGS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")


def user(said: str) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": said}})


def control(request_id: str, **request: Any) -> str:
    return json.dumps({"type": "control_request", "request_id": request_id, "request": request})


class Driver:
    """The program on the other side."""

    def __init__(self, weft: Weft, *arguments: str) -> None:
        self._running = weft.start(*FLAGS, *arguments, stdin=subprocess.PIPE)

    def send(self, *said: str) -> None:
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

    def end(self) -> int:
        """Close the input, read the rest, return the exit code."""
        self._running.communicate(timeout=10)
        return self._running.returncode


def test_several_messages_are_several_turns_in_one_session(weft: Weft) -> None:
    done = weft.run(*FLAGS, "-m", weft.script("One.", "Two."), stdin=f"{user('a')}\n{user('b')}\n")
    told = lines(done.stdout)
    assert done.returncode == 0
    assert kinds(told) == [
        *("system/init", "assistant", "result/success"),
        *("assistant", "result/success"),
    ]
    assert [each["result"] for each in told if each["type"] == "result"] == ["One.", "Two."]
    assert len({each["session_id"] for each in told}) == 1


def test_a_line_that_is_wrong_is_told_and_ends_nothing(weft: Weft) -> None:
    wrong = [
        "nonsense",
        '{"type":"dance"}',
        '{"type":"user","message":{"content":[{"type":"video"}]}}',
        "",
    ]
    done = weft.run(*FLAGS, "-m", weft.script("One."), stdin="\n".join([*wrong, user("a")]))
    told = kinds(lines(done.stdout))
    assert told.count("system/error") == 3
    assert told[-1] == "result/success"
    assert done.returncode == 0


def test_a_message_that_fails_is_a_result_and_the_next_one_works(weft: Weft) -> None:
    model = weft.script([{"do": "error", "error": "RequestRefused", "message": "no"}], "Fine.")
    done = weft.run(*FLAGS, "-m", model, stdin=f"{user('')}\n{user('a')}\n{user('b')}\n")
    results = [each for each in lines(done.stdout) if each["type"] == "result"]
    assert [each["is_error"] for each in results[:2]] == [True, True]
    assert "empty" in results[0]["error"]


def test_the_other_side_can_interrupt_and_go_on(weft: Weft) -> None:
    model = weft.script([text("word " * 50_000, 5)], "After.", "After.", pace_seconds=0.002)
    driver = Driver(weft, "-m", model, "--include-partial-messages")
    driver.send(user("a"))
    driver.until("stream_event")
    driver.send(control("r1", subtype="interrupt"))
    told = driver.until("result")
    assert told[-1]["terminal_reason"] == "aborted"
    driver.send(user("b"))
    assert driver.until("result")[-1]["subtype"] == "success"
    assert driver.end() == 0


@pytest.mark.parametrize(
    ("behaviour", "made"), [("allow", True), ("deny", False), ("nonsense", False)]
)
def test_what_needs_leave_is_asked_of_the_other_side(
    weft: Weft, behaviour: str, made: bool
) -> None:
    model = weft.script([call("shell", command="touch made")], "Done.")
    driver = Driver(weft, "-m", model, "--permission-prompt-tool", "stdio")
    driver.send(user("a"))
    asked = driver.until("control_request")[-1]
    assert asked["request"]["tool_name"] == "shell"
    assert asked["request"]["input"] == {"command": "touch made"}
    assert asked["request"]["preview"] == "touch made"
    answer = {"behavior": behaviour, "message": "because"}
    response = {"subtype": "success", "request_id": asked["request_id"], "response": answer}
    driver.send(json.dumps({"type": "control_response", "response": response}))
    driver.until("result")
    assert driver.end() == 0
    assert (weft.project / "made").exists() == made


def test_when_the_other_side_goes_away_what_it_was_asked_is_denied(weft: Weft) -> None:
    model = weft.script([call("shell", command="touch made")], "Done.")
    driver = Driver(weft, "-m", model, "--permission-prompt-tool", "stdio")
    driver.send(user("a"))
    driver.until("control_request")
    assert driver.end() == 0
    assert not (weft.project / "made").exists()
    assert not weft.sessions()[0]["turn_open"]


def test_model_and_mode_can_be_changed_on_the_way(weft: Weft) -> None:
    other = weft.script(
        [call("write", path="a.txt", content="x")], "From the other.", by="position"
    )
    driver = Driver(weft, "-m", weft.script("From the first."))
    driver.send(
        control("r1", subtype="set_model", model=other),
        control("r2", subtype="set_permission_mode", mode="acceptEdits"),
        control("r3", subtype="fly"),
    )
    answers = [driver.until("control_response")[-1]["response"] for _ in range(3)]
    assert [(each["request_id"], each["subtype"]) for each in answers] == [
        *(("r1", "success"), ("r2", "success")),
        ("r3", "error"),
    ]
    driver.send(user("a"))
    assert driver.until("result")[-1]["result"] == "From the other."
    assert driver.end() == 0
    assert (weft.project / "a.txt").read_text() == "x"
