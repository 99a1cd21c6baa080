"""Bad input: one clear sentence, the right exit code, no traceback, nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.weft_program import WeftProgram, text


def refused(weft: WeftProgram, *arguments: str, stdin: bytes = b"", **env: str) -> tuple[int, str]:
    """Exit code and the one sentence; whatever else it says is an error of the test."""
    done = weft.call(*arguments, stdin=stdin, env=env)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    first, *more = done.stderr.splitlines()
    assert first.startswith("weft: ")
    assert more in ([], ["weft: `weft --help` lists the options"])
    return done.returncode, first.removeprefix("weft: ")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["-p", "-m", "nope:x", "hi"], 2, "no provider 'nope'"),
        (["-p", "-m", "nonsense", "hi"], 2, "write provider:model"),
        (["-p", "-m", "antropic:x", "hi"], 2, "did you mean 'anthropic'?"),
        (["-p", "-m", "scripted:/nowhere.json", "hi"], 2, "cannot read the script"),
        (["-p", "--modle", "x"], 2, "did you mean '--model'?"),
        (["-p", "-r", "ses_nope", "hi"], 2, "there is no session 'ses_nope'"),
        (["-p", "-c", "hi"], 2, "no session in this folder"),
        (["-p", "--fork", "hi"], 2, "--fork needs a session"),
        (["-p", "--ephemeral", "-c", "hi"], 2, "--ephemeral keeps no sessions"),
        (["-p", "--ephemeral", "-r", "x", "hi"], 2, "--ephemeral keeps no sessions"),
        (["-p", "-o", "/nowhere/x.txt", "hi"], 2, "there is no folder '/nowhere'"),
        (["-p", "-o", "/etc", "hi"], 2, "it is a folder"),
        (["sesion"], 2, "did you mean 'session'?"),
        (["sesion", "list"], 2, "`weft -- sesion` sends it as a prompt"),
        (["--bogus"], 2, "there is no option '--bogus'"),
        (["-p", "-c", "-r", "x", "hi"], 2, "not both"),
        (["-p", "-r"], 2, "no terminal to pick"),
        (["-p", ""], 2, "there is no prompt"),
        (["-p", "  \n"], 2, "there is no prompt"),
        (["-p"], 2, "there is no prompt"),
        (["-p", "@missing.txt"], 2, "there is no file 'missing.txt'"),
        (["-p", "-i", "missing.png", "hi"], 2, "there is no file"),
        (["-p", "-C", "/nowhere", "hi"], 2, "it does not exist"),
        (["-p", "-C", "/etc/passwd", "hi"], 2, "it is not a folder"),
        (["-p", "--add-dir", "/nowhere", "hi"], 2, "is not a folder"),
        (["-p", "--set", "nonsense", "hi"], 2, "KEY=VALUE"),
        (["-p", "--set", "model.defualt=x", "hi"], 2, "'model.default'"),
        (["-p", "--tools", "hammer", "hi"], 2, "no tool 'hammer'"),
        (["-p", "--json-schema", "{", "hi"], 2, "not JSON"),
        (["-p", "--json-schema", "/nowhere", "hi"], 2, "cannot read the schema"),
        (["-p", "--system-prompt", "a", "--system-prompt-file", "b", "hi"], 2, "not both"),
        (["-p", "--input-format", "stream-json"], 2, "needs --output-format stream-json"),
        (["-p", "--output-format", "yaml", "hi"], 2, "needs one of text, json, stream-json"),
        (["-p", "--session-id", "../x", "hi"], 2, "cannot be a session id"),
        (["session", "show", "ses_nope"], 2, "there is no session 'ses_nope'"),
        (["session", "delete"], 2, "at least one id"),
        (["session", "import", "/nowhere"], 2, "cannot read"),
        (["help", "nonsense"], 2, "there is no command 'nonsense'"),
        (["completion", "tcsh"], 2, "bash, zsh, fish"),
        (["auth", "logout", "anthropic"], 2, "no key for 'anthropic' is saved"),
        (["auth", "login", "a/b"], 2, "cannot be a provider's name"),
        (["auth", "login", "anthropic"], 2, "no key was given"),
        (["config", "model.defualt"], 2, "'model.default'"),
        (["models", "pull", "nope"], 2, "no model 'nope' to pull"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_one_sentence(
    weft: WeftProgram, arguments: list[str], code: int, told: str
) -> None:
    if "-m" not in arguments and arguments[0] == "-p":
        arguments = ["-m", weft.script("Never."), *arguments]
    found, sentence = refused(weft, *arguments)
    assert told in sentence
    assert found == code
    assert weft.call("session", "list", "--json").stdout == "[]\n", "nothing is left behind"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p", "--modle", "x"],
        ["-p", "-m", "nope:x", "hi"],
        ["session", "show", "ses_nope"],
        ["help", "nonsense"],
        ["session", "--help"],
    ],
    ids=" ".join,
)
def test_the_program_says_what_its_main_function_says(
    weft: WeftProgram, arguments: list[str]
) -> None:
    """The tests that call `main()` in their own process stand for the program itself."""
    called, ran = weft.call(*arguments), weft.run(*arguments)
    assert (called.returncode, called.stdout, called.stderr) == (
        ran.returncode,
        ran.stdout,
        ran.stderr,
    )


@pytest.mark.parametrize(
    ("piped", "told"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is not text"),
        (b"a\x00b", "NUL"),
        (b"a" * (10 * 1024 * 1024 + 1), "larger than 10 MB"),
    ],
    ids=["binary", "nul", "too large"],
)
def test_what_is_piped_in_must_be_text_of_a_sensible_size(
    weft: WeftProgram, piped: bytes, told: str
) -> None:
    code, sentence = refused(weft, "-p", "-m", weft.script("Never."), "hi", stdin=piped)
    assert code == 2
    assert told in sentence


def test_ten_megabytes_are_still_taken(weft: WeftProgram) -> None:
    done = weft.run("-p", "-m", weft.script("Taken."), stdin=b"a b c d e\n" * 1_000_000)
    assert (done.returncode, done.stdout) == (0, "Taken.\n")


def test_a_prompt_that_is_not_text_is_refused(weft: WeftProgram) -> None:
    done = weft.run(*[os.fsdecode(b) for b in (b"-p", b"-m", b"a:b", b"\xff\xfe")])
    assert done.returncode == 2
    assert "not text" in done.stderr


def test_a_missing_key_says_how_to_give_one(weft: WeftProgram) -> None:
    done = weft.run("-p", "-m", "anthropic:claude-sonnet-4-6", "hi")
    assert done.returncode == 3
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "weft auth login" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rejected_key_says_so_and_the_prompt_is_kept(weft: WeftProgram) -> None:
    model = weft.script(
        [{"do": "error", "error": "AuthFailed", "message": "the key was refused", "status": 401}],
        "Now.",
    )
    done = weft.run("-p", "-m", model, "a long prompt")
    assert done.returncode == 1
    assert done.stderr.startswith("weft: the key was refused; ")
    assert "weft auth login" in done.stderr
    assert weft.sessions()[0]["first_prompt"] == "a long prompt", "what was asked is not lost"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("x = [", "is not valid TOML"),
        ("[model]\ndefualt = 'x'", "did you mean 'model.default'?"),
        ("[session]\nmax_turns = 'many'", "session.max_turns"),
    ],
)
def test_settings_that_cannot_be_read_are_named(weft: WeftProgram, content: str, told: str) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text(content)
    code, sentence = refused(weft, "-p", "-m", "a:b", "hi")
    assert code == 2
    assert told in sentence


def test_settings_that_are_a_folder_are_named(weft: WeftProgram) -> None:
    (weft.config / "config.toml").mkdir(parents=True)
    code, sentence = refused(weft, "-p", "-m", "a:b", "hi")
    assert (code, "settings" in sentence, "config.toml" in sentence) == (2, True, True)


def test_no_place_to_write_is_a_failure_that_names_the_place(
    weft: WeftProgram, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    code, sentence = refused(
        weft, "-p", "-m", weft.script("Never."), "hi", WEFT_HOME=str(blocked / "data")
    )
    assert code == 1
    assert str(blocked / "data") in sentence


def test_a_project_that_may_not_be_read_by_its_settings_cannot_widen_permissions(
    weft: WeftProgram,
) -> None:
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text("[permissions]\nmode = 'bypass'\n")
    model = weft.script([{"do": "call", "name": "shell", "args": {"command": "touch made"}}], "No.")
    assert weft.run("-p", "-m", model, "hi").stdout == "No.\n"
    assert not (weft.project / "made").exists()


def test_an_error_inside_is_one_sentence_too_and_its_trace_is_in_the_log(weft: WeftProgram) -> None:
    """Planted: a script that is not a JSON object where one is taken apart."""
    done = weft.run("-p", "-m", weft.script([text("x")]), "hi", env={"WEFT_LOG": "NONSENSE"})
    assert "Traceback" not in done.stderr
    assert done.returncode == 1
    assert "something went wrong inside Weft" in done.stderr


def test_a_folder_that_is_gone_is_named(weft: WeftProgram, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    import subprocess

    done = subprocess.run(
        ["bash", "-c", command, "bash", str(gone), *weft.argv("-p", "hi")],
        env=weft.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 2
    assert "the folder you are in is gone" in done.stderr
