"""`weft sandbox`: the output and the exit code are the command's, changes come over on a yes."""

from __future__ import annotations

import json

import pytest

from tests.support.weft_program import WeftProgram
from weft.cli.operate.sandboxed_command import change_rows, command_of, diff_lines
from weft.cli.parse import parse
from weft.errors import UsageError
from weft.workspace import ReviewedFile


def test_one_word_is_a_line_for_the_shell_and_several_are_a_program_with_its_words() -> None:
    assert command_of(parse(["sandbox", "--yes", "--", "make", "-k", "a b"]).words) == (
        "make -k 'a b'"
    )
    assert command_of(("make test && ./lint",)) == "make test && ./lint"
    for words in ((), (" ",)):
        with pytest.raises(UsageError, match="weft sandbox -- make test"):
            command_of(words)


def test_each_change_is_a_line_and_ignored_files_are_counted() -> None:
    files = [
        ReviewedFile(path="a", action="modified", data_before=b"x\n", data_after=b"y\nz\n"),
        ReviewedFile(path="new\x1b[2J", action="created", data_after=b"1\n"),
        ReviewedFile(path="gone", action="deleted", data_before=b"\0"),
        ReviewedFile(path="made/", action="created"),
        ReviewedFile(path="cache/1", action="created", is_ignored=True),
    ]
    rows = change_rows(files)
    assert rows[0] == "~ a  +2 -1"
    assert "\x1b" not in rows[1]
    assert rows[2:] == ["- gone", "+ made/", "  and 1 ignored file"]
    shown = diff_lines(files)
    assert {"-x", "+y", "+z"} <= set(shown)
    assert "(deleted; not shown as text)" in shown
    assert not any("cache" in line for line in shown)


def test_of_many_changes_the_first_are_named() -> None:
    rows = change_rows([ReviewedFile(path=f"f{n}", action="created") for n in range(60)])
    assert (len(rows), rows[-1]) == (51, "  and 10 more")


def sandboxed(weft: WeftProgram) -> WeftProgram:
    ended = weft.call("sandbox", "--", "true")
    if "there is no sandbox" in ended.stderr:
        pytest.skip(ended.stderr)
    return weft


@pytest.mark.process
def test_with_yes_changes_come_over_and_a_rewind_takes_them_back(weft: WeftProgram) -> None:
    (sandboxed(weft).project / "notes").write_text("remember\n")
    line = "echo out; echo changed > notes; echo x > .envrc; exit 3"
    ended = weft.call("sandbox", "--yes", line)
    assert (ended.returncode, ended.stdout) == (3, "out\n")
    assert "~ notes  +1 -1" in ended.stderr
    assert "- .envrc" in ended.stderr
    assert (weft.project / "notes").read_text() == "changed\n"
    assert not (weft.project / ".envrc").exists()
    [row] = weft.sessions()
    assert f"weft session rewind {row['id']} --to start" in ended.stderr
    weft.call("session", "rewind", row["id"], "--to", "start", "--yes")
    assert (weft.project / "notes").read_text() == "remember\n"


@pytest.mark.process
def test_where_nobody_can_be_asked_nothing_comes_over_and_no_session_is_left(
    weft: WeftProgram,
) -> None:
    ended = sandboxed(weft).call("sandbox", "--", "touch", "a b")
    assert ended.returncode == 0
    assert "+ a b" in ended.stderr
    assert "nothing was carried over" in ended.stderr
    assert not (weft.project / "a b").exists()
    assert weft.sessions() == []


@pytest.mark.process
def test_as_json_it_is_one_value_with_output_changes_and_exit_code(weft: WeftProgram) -> None:
    ended = sandboxed(weft).call("sandbox", "--json", "--yes", "echo out; touch made; exit 4")
    assert ended.returncode == 4
    said = json.loads(ended.stdout)
    assert (said["exit_code"], said["output"], said["carried_over"]) == (4, "out\n", True)
    assert said["changes"] == [{"path": "made", "action": "created", "ignored": False}]
    assert said["session_id"] == weft.sessions()[0]["id"]


@pytest.mark.process
def test_a_signal_that_kills_the_command_is_its_exit_code(weft: WeftProgram) -> None:
    assert sandboxed(weft).call("sandbox", "kill -9 $$").returncode == 137


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        ((), {}, "needs a command: weft sandbox -- make test"),
        (("--set", "sandbox.mode=off", "ls"), {}, "no sandbox to run it in: it is switched off"),
        (("--", "ls"), {"WEFT_RUN": "1"}, "this runs inside a session's command"),
    ],
)
def test_what_cannot_be_run_is_one_sentence_and_no_session(
    weft: WeftProgram, words: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    ended = weft.call("sandbox", *words, env=env)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert weft.sessions() == []
