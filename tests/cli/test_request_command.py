"""`weft request`, and `weft session exclude` and `include`, as they are typed."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper

import pytest

from tests.support.weft_program import WeftProgram, call, text
from weft.cli.evidence.request import write_body


def asked(weft: WeftProgram) -> str:
    """A session of two turns, the first with a tool; returns its id."""
    (weft.project / "a.txt").write_text("what it says")
    again = {"when": {"user_says": "third"}, "steps": [text("Third.")]}
    model = weft.script(again, [call("read", path="a.txt")], "It says so.", "Again.")
    assert weft.call("-p", "-m", model, "look").stdout == "It says so.\n"
    assert weft.call("-p", "-c", "and again").stdout == "Again.\n"
    return str(weft.sessions()[0]["id"])


def test_calls_count_from_0_and_turns_from_either_end(weft: WeftProgram) -> None:
    session = asked(weft)
    first = weft.call("request", session, "1", "--call", "0")
    assert first.stdout.startswith("request 1 of 2 in this turn (--call 0)"), first.stderr
    assert weft.call("request", session, "1", "--call", "1").stdout.startswith("request 2 of 2")
    last = weft.call("request", session, "-1")
    assert last.stdout.startswith("request 1 of 1"), last.stderr
    assert weft.call("request", session, "-2").stdout.startswith("request 2 of 2")
    # A number alone is a turn of the newest session here.
    assert weft.call("request", "1").stdout.startswith("request 2 of 2")
    refused = weft.call("request", session, "--call", "-1")
    assert (refused.returncode, "a whole number from 0 on" in refused.stderr) == (2, True)
    refused = weft.call("request", session, "--nothing")
    assert (refused.returncode, "there is no option" in refused.stderr) == (2, True)


def test_a_message_is_excluded_by_its_number_and_a_result_names_its_message(
    weft: WeftProgram,
) -> None:
    session = asked(weft)
    result = weft.call("session", "exclude", session, "2")
    assert (result.returncode, result.stderr) == (
        2,
        "weft: message 2 is the result of a tool; it goes with the message that called it: 1\n",
    )
    out = json.loads(weft.call("session", "exclude", session, "1", "--json").stdout)
    assert out["calls"] == 1
    assert weft.call("-p", "-c", "third").stdout == "Third.\n"
    body = weft.call("request", session, "--raw").stdout
    assert "what it says" not in body
    assert "look" in body
    assert weft.call("session", "include", session, "1").returncode == 0
    last = weft.call("session", "exclude", session, "-1")
    assert (last.returncode, "taken out" in last.stderr + last.stdout) == (0, True)
    wrong = weft.call("session", "exclude", session)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "weft: `weft session exclude` takes ID MESSAGE\n",
    )


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_body_says_nothing_to_a_terminal_and_is_whole_in_a_pipe(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = BytesIO()
    # The pipe's encoding is not the body's.
    out = TextIOWrapper(written, encoding="ascii" if not is_terminal else "utf-8")
    monkeypatch.setattr(out, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(sys, "stdout", out)
    body = '{"text": "ü\x9b31m\u202e"}'
    write_body(body)
    shown = written.getvalue().decode()
    assert ("\x9b" in shown, "\u202e" in shown) == (not is_terminal, not is_terminal)
    assert is_terminal or shown == body
