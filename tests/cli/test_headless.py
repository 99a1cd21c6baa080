"""Runs without a person: the real program, from prompt to exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_code import SRC
from tests.support.weft_program import WeftProgram, call, kinds, lines, text


def test_the_last_answer_goes_to_standard_output_and_nothing_else(weft: WeftProgram) -> None:
    (weft.project / "a.txt").write_text("x")
    model = weft.script([text("Let me look."), call("read", path="a.txt")], "It says x.")
    done = weft.run("-p", "-m", model, "What does it say?")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It says x.\n", "")


@pytest.mark.parametrize("verb", ["run", "exec"])
def test_the_verbs_are_the_same_as_print(weft: WeftProgram, verb: str) -> None:
    done = weft.run(verb, "-m", weft.script("Hello."), "hi")
    assert (done.returncode, done.stdout) == (0, "Hello.\n")


def test_without_a_terminal_a_prompt_is_answered(weft: WeftProgram) -> None:
    assert weft.call("-m", weft.script("Hello."), "hi").stdout == "Hello.\n"


def test_what_is_piped_in_reaches_the_model_behind_the_prompt(weft: WeftProgram) -> None:
    model = weft.script({"when": {"user_says": "Explain\n\nline 1"}, "steps": [text("Seen.")]})
    assert weft.run("-p", "-m", model, "Explain", stdin="line 1\n").stdout == "Seen.\n"


def test_json_is_one_object_with_the_whole_result(weft: WeftProgram) -> None:
    done = weft.call("-p", "-m", weft.script("Hello."), "--output-format", "json", "hi")
    (line,) = lines(done.stdout)
    assert (line["type"], line["subtype"], line["result"]) == ("result", "success", "Hello.")
    assert line["session_id"] == weft.sessions()[0]["id"]
    assert line["usage"]["output_tokens"] > 0


def test_a_stream_of_json_tells_everything_in_order(weft: WeftProgram) -> None:
    (weft.project / "a.txt").write_text("x")
    model = weft.script([text("Look.", 2), call("read", path="a.txt")], "Done.")
    done = weft.run(
        *("-p", "-m", model, "--output-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "hi"),
    )
    told = lines(done.stdout)
    assert [kind for kind in kinds(told) if kind != "stream_event"] == [
        *("system/init", "assistant", "user", "assistant"),
        "result/success",
    ]
    assert told[0]["tools"][:2] == ["read", "write"]
    assert told[0]["permissionMode"] == "default"
    assert {each["session_id"] for each in told} == {told[0]["session_id"]}
    pieces = [
        each["event"]["delta"].get("text", "")
        for each in told
        if each["type"] == "stream_event" and each["event"]["type"] == "content_block_delta"
    ]
    assert "".join(pieces) == "Look.Done."


def test_a_very_long_answer_comes_whole_in_every_format(weft: WeftProgram) -> None:
    long = "word " * 20_000
    for format_ in ("text", "json", "stream-json"):
        done = weft.run("-p", "-m", weft.script(long), "--output-format", format_, "hi")
        found = done.stdout if format_ == "text" else lines(done.stdout)[-1]["result"]
        assert found.strip() == long.strip()


def test_what_a_terminal_could_obey_is_escaped_in_json_and_the_same_json(weft: WeftProgram) -> None:
    evil = "a\x1b]0;x\x07\x9b31m\u202e\x7f\U000e0041z"
    done = weft.call("-p", "-m", weft.script(evil), "--output-format", "json", "hi")
    assert not any(letter in done.stdout for letter in "\x1b\x07\x9b\u202e\x7f\U000e0041")
    assert lines(done.stdout)[0]["result"] == evil
    assert weft.run("-p", "-m", weft.script(evil), "hi").stdout == f"{evil}\n", (
        "a pipe gets what was said"
    )


def test_what_needs_permission_is_denied_with_a_reason_and_never_waits(weft: WeftProgram) -> None:
    model = weft.script([call("shell", command="touch made")], "I could not.")
    done = weft.call("-p", "-m", model, "hi")
    assert (done.returncode, done.stdout) == (0, "I could not.\n")
    assert "1 tool call was denied: no one to approve it in -p mode" in done.stderr
    assert "accept_edits (for tools of MCP servers: bypass) approves it beforehand" in done.stderr
    assert not (weft.project / "made").exists()


@pytest.mark.parametrize(
    "flags",
    [
        ["--permission-mode", "bypass"],
        ["--permission-mode", "bypassPermissions"],
        ["--dangerously-skip-permissions"],
        ["--yolo"],
        ["--allowedTools", "Bash"],
        ["--allowed-tools", "read, shell(touch made)"],
    ],
    ids=" ".join,
)
def test_permission_can_be_given_beforehand(weft: WeftProgram, flags: list[str]) -> None:
    model = weft.script([call("shell", command="touch made")], "Done.")
    done = weft.call("-p", "-m", model, *flags, "hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Done.\n", "")
    assert (weft.project / "made").exists()


def test_edits_can_be_allowed_and_commands_not(weft: WeftProgram) -> None:
    steps = [call("write", path="a.txt", content="x"), call("shell", command="touch made")]
    done = weft.call(
        "-p", "-m", weft.script(steps, "Ok."), "--permission-mode", "acceptEdits", "hi"
    )
    assert done.stdout == "Ok.\n"
    assert (weft.project / "a.txt").read_text() == "x"
    assert not (weft.project / "made").exists()


def test_a_denied_rule_beats_everything(weft: WeftProgram) -> None:
    model = weft.script([call("write", path="a.txt", content="x")], "No.")
    done = weft.call("-p", "-m", model, "--yolo", "--disallowedTools", "write(a.txt)", "hi")
    assert done.stdout == "No.\n"
    assert not (weft.project / "a.txt").exists()


def test_tools_can_be_chosen_and_taken_away(weft: WeftProgram) -> None:
    def tools(*flags: str) -> list[str]:
        done = weft.call(
            "-p", "-m", weft.script("x"), "--output-format", "stream-json", *flags, "hi"
        )
        found: list[str] = lines(done.stdout)[0]["tools"]
        return found

    assert tools("--tools", "read,Bash") == ["read", "shell"]
    assert "shell" not in tools("--disallowedTools", "Bash")
    assert "shell" in tools("--disallowedTools", "Bash(rm -rf /)")
    assert not {"edit", "multi_edit"} & set(tools("--disallowedTools", "Edit"))
    kept = tools("--disallowedTools", "Bash")
    assert {"agent", "skill", "lsp", "mcp__*"} <= set(kept), "one is taken away, and no other"
    assert tools("--tools", "read,Task,Skill") == ["read", "agent", "skill"]


@pytest.mark.parametrize("option", ["--allowedTools", "--disallowedTools"])
@pytest.mark.parametrize("rule", ["Bash(:*)", "shell(ls | rm *)", "Bsh", "Bash(ls", "Reed(.env)"])
def test_a_rule_that_would_do_nothing_is_refused(weft: WeftProgram, option: str, rule: str) -> None:
    done = weft.call("-p", "-m", weft.script("x"), option, rule, "hi")
    assert done.returncode == 2
    assert f"{option}: the rule {rule!r} cannot be taken" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("rule", ["Bsh", "Bash(ls | rm:*)", "Read(.env"])
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_a_rule_in_the_settings_that_would_do_nothing_is_refused(
    weft: WeftProgram, verdict: str, rule: str
) -> None:
    settings = weft.config / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[permissions]\n{verdict} = ["{rule}"]\n')
    done = weft.call("-p", "-m", weft.script("x"), "hi")
    assert done.returncode == 2
    assert f"the rule {rule!r} cannot be taken" in done.stderr
    assert str(settings) in done.stderr
    assert done.stdout == ""


def test_a_denied_rule_counts_in_the_spelling_of_other_agents(weft: WeftProgram) -> None:
    (weft.project / ".env").write_text("SECRET=hunter22\n")
    model = weft.script([call("read", path=".env")], "No.")
    done = weft.call(
        *("-p", "-m", model, "--yolo", "--output-format", "stream-json"),
        *("--disallowedTools", "Read(./.env)", "hi"),
    )
    assert "hunter22" not in done.stdout
    assert lines(done.stdout)[-1]["permission_denials"]


def test_agents_are_taken_away_by_the_name_that_other_agents_have_for_them(
    weft: WeftProgram,
) -> None:
    model = weft.script([call("agent", prompt="Look around.")], "No.")
    done = weft.call(
        *("-p", "-m", model, "--yolo", "--output-format", "stream-json"),
        *("--set", "permissions.deny=Task", "hi"),
    )
    assert "system/task_started" not in kinds(lines(done.stdout))


def test_an_added_folder_is_open_to_it(weft: WeftProgram, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("from the other folder")
    model = weft.script([call("read", path=str(other / "b.txt"))], "Read.")
    without = weft.call("-p", "-m", model, "--output-format", "stream-json", "hi").stdout
    assert "from the other folder" not in without
    within = weft.call(
        "-p", "-m", model, "--output-format", "stream-json", "--add-dir", str(other), "hi"
    )
    assert "from the other folder" in within.stdout


def test_a_session_goes_on_where_it_was(weft: WeftProgram) -> None:
    model = weft.script("One.", "Two.", "Three.")
    weft.run("-p", "-m", model, "first")
    assert weft.run("-p", "-c", "second").stdout == "Two.\n"
    (session,) = weft.sessions()
    assert weft.run("-p", "-r", session["id"], "third").stdout == "Three.\n"
    assert weft.sessions()[0]["message_count"] == 6


def test_a_session_is_found_by_its_id_the_beginning_of_it_or_its_title(weft: WeftProgram) -> None:
    model = weft.script("One.", "Two.", "Three.", "Four.")
    weft.call("-p", "-m", model, "--session-id", "my-own-id", "-n", "The Title", "first")
    for given in ("my-own-id", "my-own", "the title"):
        assert weft.call("-p", "-r", given, "next").returncode == 0
    assert [row["id"] for row in weft.sessions()] == ["my-own-id"]


def test_a_fork_shares_the_past_and_leaves_the_old_session_alone(weft: WeftProgram) -> None:
    model = weft.script("One.", "Two.", [call("shell", command="touch made")], "Four.")
    weft.call("-p", "-m", model, "first")
    assert weft.call("-p", "-c", "--fork", "second").stdout == "Two.\n"
    counts = sorted(row["message_count"] for row in weft.sessions())
    assert len(counts) == 2
    done = weft.call("-p", "-c", "--fork", "third")
    assert (done.returncode, done.stdout) == (0, "Four.\n"), "what a fork asks for is denied, too"
    assert not (weft.project / "made").exists()


def test_only_without_the_sandbox_does_bypass_reach_the_whole_disk(weft: WeftProgram) -> None:
    outside = weft.project.parent / "outside"
    model = weft.script([call("shell", command=f"touch {outside}")], "Done.")
    if shutil.which("bwrap") is None:
        pytest.skip("this machine has no sandbox")
    weft.call("-p", "-m", model, "--permission-mode", "bypass", "hi")
    assert not outside.exists(), "the sandbox did not hold"
    weft.call("-p", "-m", model, "--permission-mode", "bypass", "--no-sandbox", "hi")
    assert outside.exists()


def test_an_ephemeral_run_keeps_nothing(weft: WeftProgram) -> None:
    assert weft.run("-p", "--ephemeral", "-m", weft.script("Hello."), "hi").stdout == "Hello.\n"
    assert weft.sessions() == []


def test_limits_end_the_run_with_a_failure_and_say_why(weft: WeftProgram) -> None:
    (weft.project / "a.txt").write_text("x")
    model = weft.script([text("Look."), call("read", path="a.txt")], "Never said.")
    done = weft.call("-p", "-m", model, "--max-turns", "1", "hi")
    assert done.returncode == 1
    said = "the limit of 1 answer in one turn is reached; `weft -c` continues"
    assert done.stderr == f"weft: {said}\n"
    json_ = weft.call("-p", "-m", model, "--max-turns", "1", "--output-format", "json", "hi")
    assert lines(json_.stdout)[0]["subtype"] == "error_max_turns"
    money = weft.call(
        "-p", "-m", model, "--max-budget-usd", "0.000001", "--output-format", "json", "hi"
    )
    assert lines(money.stdout)[0]["subtype"] == "error_max_budget_usd"


def test_a_schema_gives_a_checked_value(weft: WeftProgram, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(
        json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    )
    model = weft.script([call("submit", n=42)], "Done.")
    for given in (str(schema), schema.read_text()):
        done = weft.call("-p", "-m", model, "--json-schema", given, "hi")
        assert (done.returncode, json.loads(done.stdout)) == (0, {"n": 42})
    json_ = weft.call(
        "-p", "-m", model, "--json-schema", str(schema), "--output-format", "json", "hi"
    )
    assert lines(json_.stdout)[0]["structured_output"] == {"n": 42}


def test_the_last_answer_can_go_to_a_file(weft: WeftProgram, tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    assert weft.call("-p", "-m", weft.script("Hello."), "-o", str(path), "hi").stdout == "Hello.\n"
    assert path.read_text() == "Hello.\n"


def test_the_system_prompt_can_be_replaced_and_added_to(weft: WeftProgram) -> None:
    model = weft.script({"when": {"system_says": "PIRATE"}, "steps": [text("Arr.")]}, "Hello.")
    assert weft.call("-p", "-m", model, "hi").stdout == "Hello.\n"
    for flag in ("--system-prompt", "--append-system-prompt"):
        assert weft.call("-p", "-m", model, flag, "Be a PIRATE", "hi").stdout == "Arr.\n"


@pytest.mark.parametrize("format_", ["text", "json"])
def test_the_first_retry_is_said_on_standard_error(weft: WeftProgram, format_: str) -> None:
    """Minutes without a word look like a program that hangs."""
    refusal = [{"do": "error", "message": "it is overloaded"}]
    model = weft.script(refusal, refusal, "Hello.", by="position")
    done = weft.call("-p", "-m", model, "--output-format", format_, "hi")
    assert "Hello." in done.stdout
    (told,) = done.stderr.splitlines()
    assert told.startswith("· it is overloaded; trying again in ")


def test_verbose_tells_what_is_done_on_standard_error(weft: WeftProgram) -> None:
    (weft.project / "a.txt").write_text("x")
    model = weft.script([call("read", path="a.txt")], "Done.")
    done = weft.call("-p", "--verbose", "-m", model, "hi")
    assert done.stdout == "Done.\n"
    assert "read a.txt: done" in done.stderr


def test_a_setting_can_be_set_for_one_run(weft: WeftProgram) -> None:
    done = weft.call("-p", "--set", f"model.default={weft.script('From the setting.')}", "hi")
    assert done.stdout == "From the setting.\n"


# --- standard output that is not there ---------------------------------------------------------


def test_a_reader_that_goes_away_ends_the_run_quietly(weft: WeftProgram) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        running = weft.start("-p", "-m", weft.script("word " * 1000), "hi", stdout=gone)
        _, stderr = running.communicate(timeout=30)
    assert (running.returncode, stderr) == (141, b"")


def test_a_stream_whose_reader_goes_away_is_stopped_and_the_session_is_whole(
    weft: WeftProgram,
) -> None:
    """It would go on for minutes, if nobody stopped it."""
    model = weft.script([{"do": "text", "text": "word " * 100_000, "chunk": 5}], pace_seconds=0.002)
    running = weft.start(
        *("-p", "-m", model, "--output-format", "stream-json", "--include-partial-messages", "hi")
    )
    assert running.stdout is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=30) == 141
    assert running.stderr is not None
    assert running.stderr.read() == b""
    running.stderr.close()
    (session,) = weft.sessions()
    assert not session["turn_open"]


def test_a_closed_standard_output_is_refused_unless_a_file_takes_the_answer(
    weft: WeftProgram, tmp_path: Path
) -> None:
    model, path = weft.script("Hello.", "Hello."), tmp_path / "answer"
    shell = ["bash", "-c", 'exec "$@" >&-', "bash"]
    refused = subprocess.run(
        [*shell, *weft.argv("-p", "-m", model, "hi")],
        env=weft.environment,
        cwd=weft.project,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert refused.returncode == 1
    assert b"standard output is closed" in refused.stderr
    assert weft.sessions() == []
    taken = subprocess.run(
        [*shell, *weft.argv("-p", "-m", model, "-o", str(path), "hi")],
        env=weft.environment,
        cwd=weft.project,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (taken.returncode, path.read_text()) == (0, "Hello.\n")


@pytest.mark.process
def test_the_three_standard_numbers_are_taken_before_a_file_gets_one_of_them() -> None:
    program = (
        "import os; [os.close(fd) for fd in (0, 1, 2)]\n"
        "from weft.cli.stdio import take_standard_streams; take_standard_streams()\n"
        "null = os.stat(os.devnull)\n"
        "same = [os.path.samestat(os.fstat(fd), null) for fd in (0, 1, 2)]\n"
        "os._exit(0 if same == [True] * 3 else 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SRC.parent)}, check=False
    )
    assert done.returncode == 0


def test_a_full_disk_behind_standard_output_is_a_failure_in_a_sentence(weft: WeftProgram) -> None:
    with open("/dev/full", "wb") as full:
        running = weft.start("-p", "-m", weft.script("Hello."), "hi", stdout=full)
        _, stderr = running.communicate(timeout=30)
    assert running.returncode == 1
    assert stderr == b"weft: cannot write the output: No space left on device\n"
