"""The small commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.file_tree import files_holding
from tests.support.weft_program import WeftProgram, call
from weft.cli.options import VERBS


def said(weft: WeftProgram, prompt: str, title: str) -> str:
    """A session with one turn; returns its id."""
    weft.call("-p", "-m", weft.script("An answer.", "Another."), "-n", title, prompt)
    return str(next(row["id"] for row in weft.sessions() if row["title"] == title))


def test_sessions_are_listed_per_folder_newest_first_and_searched(
    weft: WeftProgram, tmp_path: Path
) -> None:
    said(weft, "about apples", "First")
    said(weft, "about pears", "Second")
    listed = weft.call("session", "list").stdout
    assert listed.index("Second") < listed.index("First")
    assert "Second" not in weft.call("session", "list", "apples").stdout
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    nothing = weft.call("session", "list", cwd=elsewhere)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "--all" in nothing.stderr
    assert "First" in weft.call("session", "list", "--all", cwd=elsewhere).stdout
    assert "First" in weft.call("session", "list", "-C", str(weft.project), cwd=elsewhere).stdout
    assert len(json.loads(weft.call("session", "list", "--json", "--limit", "1").stdout)) == 1


def test_a_session_is_shown_renamed_forked_and_deleted(weft: WeftProgram) -> None:
    session = said(weft, "hello there", "Old")
    assert "hello there" in weft.call("session", "show", "old").stdout
    shown = json.loads(weft.call("session", "show", session, "--json").stdout)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]
    assert weft.call("session", "rename", session, "New", "title").returncode == 0
    assert weft.sessions()[0]["title"] == "New title"
    forked = weft.call("session", "fork", session, "--at", "0", "-n", "Forked").stdout.strip()
    assert weft.call("-p", "-r", forked, "go on").stdout == "An answer.\n", (
        "it shares the question, not the answer"
    )
    refused = weft.call("session", "delete", session)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert weft.call("session", "rm", "-y", session).returncode == 0
    assert [row["title"] for row in weft.sessions()] == ["Forked"]
    assert "hello there" in weft.call("session", "show", forked).stdout, "what a fork shares stays"


@pytest.mark.process
def test_a_deleted_session_is_not_readable_in_the_data_folder_and_its_log_lines_go(
    weft: WeftProgram,
) -> None:
    before = "2001-01-01 00:00:00,000 7 ERROR weft.a [-] from before\n  its trace\n"
    (weft.data).mkdir(parents=True)
    log = weft.data / "weft.log"
    log.write_text(before)
    kept, gone = said(weft, "hello there", "Kept"), said(weft, "xylophone7 there", "Xylophone7")
    lines = (
        f"2999-01-01 00:00:00,000 7 ERROR weft.a [{kept}] of the other\n  its trace\n",
        f"2999-01-01 00:00:00,000 7 ERROR weft.a [{gone}] xylophone7 failed\n  xylophone7 trace\n",
        "2999-01-01 00:00:00,000 7 ERROR weft.a [-] xylophone7 of an unknown session\n",
        "2999-01-01 00:00:00,000 7 ERROR weft.a xylophone7 of an older version\n",
    )
    with log.open("a") as file:
        file.writelines(lines)
    log.with_suffix(".log.1").write_text(lines[1] + before)
    assert weft.call("session", "delete", "-y", gone).returncode == 0
    assert files_holding(weft.data, "xylophone7") == []
    assert log.read_text() == before + lines[0]
    assert log.with_suffix(".log.1").read_text() == before
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_delete_says_what_stays_because_a_fork_reads_it(weft: WeftProgram) -> None:
    session = said(weft, "hello there", "Old")
    forked = weft.call("session", "fork", session).stdout.strip()
    told = weft.call("session", "delete", "-y", session)
    assert told.returncode == 0
    assert f"{session}: its messages stay stored until {forked} is deleted too" in told.stderr
    assert weft.call("session", "delete", "-y", forked).stderr == ""


@pytest.mark.parametrize("format_", ["json", "jsonl"])
def test_an_export_can_be_imported(weft: WeftProgram, tmp_path: Path, format_: str) -> None:
    session = said(weft, "hello there", "Title")
    path = tmp_path / f"out.{format_}"
    assert weft.call("session", "export", session, "-o", str(path)).returncode == 0
    imported = weft.call("session", "import", str(path), "-n", "Back").stdout.strip()
    assert "hello there" in weft.call("session", "show", imported).stdout
    assert weft.call("-p", "-r", "back", "more").stdout == "Another.\n"


def test_an_export_for_people_goes_to_standard_output(weft: WeftProgram) -> None:
    session = said(weft, "hello there", "Title")
    assert "# Title" in weft.call("session", "export", session).stdout
    assert weft.call("session", "export", session, "-f", "html").stdout.startswith("<!")


def test_stats_add_up(weft: WeftProgram) -> None:
    said(weft, "a", "A")
    assert "1 session, 1 turn, 2 messages" in weft.call("stats").stdout
    said(weft, "b", "B")
    numbers = json.loads(weft.call("stats", "--json").stdout)
    assert (numbers["sessions"], numbers["turns"], numbers["messages"]) == (2, 2, 4)
    assert numbers["cost_usd"] > 0
    assert "2 sessions, 2 turns" in weft.call("stats").stdout


def test_config_shows_each_value_with_its_source(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text("[session]\nmax_turns = 7\n[model]\ndefault = 'a:b'\n")
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text("[model]\ndefault = 'c:d'\n")
    shown = json.loads(weft.call("config", "--json", env={"WEFT_PERMISSIONS_MODE": "plan"}).stdout)
    assert shown["session.max_turns"]["value"] == 7
    assert shown["session.max_turns"]["source"].endswith("config.toml")
    assert (shown["model.default"]["value"], ".weft" in shown["model.default"]["source"]) == (
        "c:d",
        True,
    )
    assert shown["permissions.mode"]["source"] == "WEFT_PERMISSIONS_MODE"
    assert shown["session.idle_unload"]["source"] == "default"
    line = weft.call("config", "session.max_turns", "--set", "session.max_turns=3").stdout
    assert "caller" in line


def test_config_changes_the_users_file_and_reads_it_back(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    file = weft.config / "config.toml"
    file.write_text("# mine\n[model]\nstyle = 'detailed'  # long\n")
    done = weft.call("config", "set", "model.default", "sonnet:high")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f'model.default = "sonnet:high" in {file}\n'
    assert file.read_text() == (
        "# mine\n[model]\nstyle = 'detailed'  # long\ndefault = \"sonnet:high\"\n"
    )
    assert weft.call("config", "get", "model.default").stdout == "sonnet:high\n"
    assert weft.call("config", "set", "notify", "off").returncode == 0
    assert weft.call("config", "get", "notify").stdout == "false\n"
    done = weft.call("config", "unset", "model.default")
    assert done.stdout == 'model.default is back at its default, ""\n'
    assert weft.call("config", "unset", "model.default").stdout.startswith(
        f"model.default is not set in {file}; "
    )
    assert "keys" in weft.call("config", "list").stdout


def test_config_says_what_still_comes_before_the_users_file(weft: WeftProgram) -> None:
    done = weft.call("config", "set", "theme", "dark", env={"WEFT_THEME": "light"})
    assert 'WEFT_THEME comes before it: theme is still "light"' in done.stdout


def test_a_wrong_value_can_be_taken_out_of_the_users_file(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text("theme = 'blue'\nkeys = 'vi'\n")
    assert weft.call("config").returncode == 2
    assert weft.call("config", "unset", "theme").returncode == 0
    assert (weft.config / "config.toml").read_text() == "keys = 'vi'\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set",), "`weft config set` needs a setting and its value"),
        (("set", "theme"), "`weft config set` needs a setting and its value"),
        (("set", "theme", "blue"), "theme: it takes one of auto, dark, light, none, not 'blue'"),
        (("set", "them", "dark"), "there is no setting 'them'; did you mean 'theme'?"),
        (("set", "model.default", "nope"), "unknown model 'nope'"),
        (("set", "providers", "x"), "providers is a table; write it into "),
        (("unset",), "`weft config unset` needs the name of one setting"),
        (("unset", "theem"), "there is no setting 'theem'; did you mean 'theme'?"),
        (("get",), "`weft config get` takes the name of one setting"),
        (("get", "nope"), "there is no setting 'nope'"),
        (("theme", "light", "blue"), "`weft config set theme 'light blue'` sets it"),
        (("gett",), "`weft config` has no command 'gett'; did you mean 'get'?"),
    ],
)
def test_config_refuses_what_is_wrong_with_one_sentence(
    weft: WeftProgram, arguments: tuple[str, ...], told: str
) -> None:
    done = weft.call("config", *arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (weft.config / "config.toml").exists()


def test_models_are_listed_with_window_and_price(weft: WeftProgram) -> None:
    listed = weft.call("models").stdout
    assert "anthropic:claude-sonnet-4-6" in listed
    assert "think (low medium high" in listed
    found = json.loads(weft.call("models", "list", "sonnet", "--json").stdout)
    assert found
    assert all("sonnet" in model["name"] for model in found)
    assert "smollm2" in weft.call("models", "pull").stdout, (
        "without a name it says what could be fetched"
    )


# --- keys ------------------------------------------------------------------------------------


def test_a_key_is_kept_where_only_the_user_can_read_it_and_never_shown(weft: WeftProgram) -> None:
    secret = "sk-ant-planted-0123456789"
    done = weft.run("auth", "login", "anthropic", stdin=f"{secret}\n".encode())
    path = weft.config / "auth.json"
    assert done.returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret in path.read_text()
    everything = [
        weft.call("auth", "list"),
        weft.call("auth", "list", "--json"),
        weft.call("doctor"),
        weft.call("config"),
        done,
    ]
    assert all(secret not in each.stdout + each.stderr for each in everything)
    assert "anthropic" in everything[0].stdout
    assert weft.call("auth", "logout", "anthropic").returncode == 0
    assert secret not in path.read_text()


def test_a_key_in_the_environment_counts_first_and_that_is_said(weft: WeftProgram) -> None:
    env = {"ANTHROPIC_API_KEY": "from-env"}
    told = weft.call("auth", "login", "anthropic", stdin=b"kept\n", env=env).stderr
    assert "ANTHROPIC_API_KEY is set" in told
    listed = json.loads(weft.call("auth", "list", "--json", env=env).stdout)
    assert listed["anthropic"] == "ANTHROPIC_API_KEY"


@pytest.mark.parametrize("key", ["", "two words", "caf\u00e9", "a\x1b[31m", "x" * 9000])
def test_what_is_no_key_is_not_kept(weft: WeftProgram, key: str) -> None:
    done = weft.call("auth", "login", "anthropic", stdin=f"{key}\n".encode())
    assert done.returncode == 2
    assert not (weft.config / "auth.json").exists()


def test_a_damaged_key_file_is_said_without_its_content(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "auth.json").write_text('{"anthropic": {"key": "sk-secret"')
    done = weft.call("auth", "list")
    assert done.returncode == 2
    assert "damaged" in done.stderr
    assert "sk-secret" not in done.stderr


# --- doctor ----------------------------------------------------------------------------------


def findings(weft: WeftProgram, **env: str) -> dict[str, dict[str, str]]:
    done = weft.call("doctor", "--json", env=env)
    return {each["what"]: each for each in json.loads(done.stdout)}


def test_doctor_finds_out_what_is_there(weft: WeftProgram) -> None:
    found = findings(weft)
    assert {
        "weft",
        "python",
        "settings",
        "data",
        "store",
        "keys",
        "terminal",
        "git",
        "sandbox",
        "keeper",
    } <= set(found)
    assert found["data"]["state"] == found["store"]["state"] == "ok"
    assert found["keys"]["state"] == "missing"
    assert weft.call("doctor").returncode == 0, "what is missing is no failure"


def test_doctor_runs_no_program_of_the_folder_it_is_called_in(
    weft: WeftProgram, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    for name in ("git", "rg"):
        for folder in (weft.project, weft.project / "bin"):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(f"#!/bin/sh\n: > {marker}\n")
            (folder / name).chmod(0o755)
    found = findings(weft, PATH=f".:bin::{weft.project}/bin:{os.environ['PATH']}")
    assert found["git"]["detail"].startswith("git version")
    assert not marker.exists()


def test_doctor_notices_a_sandbox_that_does_not_hold(weft: WeftProgram, tmp_path: Path) -> None:
    """Planted: a bwrap that runs the command without any wall."""
    (tmp_path / "bwrap").write_text(
        '#!/bin/sh\nwhile [ "$1" != touch ]; do shift; done\nexec "$@"\n'
    )
    (tmp_path / "bwrap").chmod(0o755)
    found = findings(weft, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert found["sandbox"]["state"] == "wrong"


def test_doctor_says_that_there_is_no_sandbox_and_what_follows(
    weft: WeftProgram, tmp_path: Path
) -> None:
    found = findings(weft, PATH=str(tmp_path))
    assert found["sandbox"]["state"] == "missing"
    assert "bubblewrap is not installed; commands run with all your rights" in str(
        found["sandbox"]["detail"]
    )


def test_doctor_tries_the_whole_sandbox_and_says_what_it_is_made_of(weft: WeftProgram) -> None:
    detail = str(findings(weft)["sandbox"]["detail"])
    assert "commands run with all your rights" in detail or (
        detail.startswith("working: bubblewrap, overlay") and "network blocked" in detail
    )


def test_doctor_says_which_hosts_the_rules_let_commands_reach(weft: WeftProgram) -> None:
    for verdict, domain in (
        ("allow", "pypi.org"),
        ("allow", "*.other.example"),
        ("deny", "other.example"),
    ):
        weft.call("permissions", "add", verdict, f"fetch(domain:{domain})")
    detail = str(findings(weft)["sandbox"]["detail"])
    assert "commands run with all your rights" in detail or detail.endswith(
        "network blocked but for pypi.org"
    )


def test_doctor_fails_when_something_is_wrong(weft: WeftProgram, tmp_path: Path) -> None:
    weft.call("-p", "-m", weft.script("x"), "hi")
    database = weft.data / "weft.db"
    content = bytearray(database.read_bytes())
    content[5000:9000] = b"\xff" * 4000
    for leftover in weft.data.glob("weft.db-*"):
        leftover.unlink()
    database.write_bytes(content)
    done = weft.call("doctor")
    assert done.returncode == 1
    assert "✗ store" in done.stdout
    assert "Traceback" not in done.stderr


# --- completion --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["weft", "sess"], "session"),
        (["weft", "session", "ex"], "export"),
        (["weft", "--permission-mode", "pl"], "plan"),
        (["weft", "session", "list", "--li"], "--limit"),
        (["weft", "-m", "a:b", "--output-f"], "--output-format"),
        (["weft", "session", "export", "-f", "jsonl"], "jsonl"),
        (["weft", "decisions", "export", "-f", "mer"], "mermaid"),
        (["weft", "run", "--permission-mode", "pl"], "plan"),
        (["weft", "loom", "com"], "compare"),
        (["weft", "loom", "export", "--format", "base"], "basemode"),
        (["weft", "loom", "weave", "1", "2", "--par"], "--paragraphs"),
    ],
)
def test_bash_completes(weft: WeftProgram, words: list[str], expected: str) -> None:
    script = weft.call("completion", "bash").stdout
    shell = (
        f'{script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weft; printf "%s\\n" '
        f'"${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", shell, "bash", *words], capture_output=True, text=True, check=True
    )
    assert expected in done.stdout.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_scripts_name_every_command_and_parse_where_the_shell_is(
    weft: WeftProgram, shell: str
) -> None:
    script = weft.call("completion", shell).stdout
    assert all(verb.name in script for verb in VERBS)
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_version_and_help_go_to_standard_output(weft: WeftProgram) -> None:
    assert weft.call("--version").stdout.startswith("weft ")
    assert weft.call("-V").stdout == weft.call("-v").stdout
    for flags in (["--help"], ["-h"], ["help"], ["session", "--help"], ["session", "list", "-h"]):
        done = weft.call(*flags)
        assert (done.returncode, done.stderr) == (0, "")
        assert "weft" in done.stdout


def test_the_installed_program_is_the_same(weft: WeftProgram) -> None:
    program = Path(sys.executable).with_name("weft")
    if not program.exists():
        pytest.skip("not installed; `make ready` installs it")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == weft.run("--version").stdout


def test_a_tool_result_with_windows_line_ends_reads_well(weft: WeftProgram) -> None:
    (weft.project / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    model = weft.script([call("read", path="dos.txt")], "Read.\r\nReally.")
    assert weft.call("-p", "-m", model, "hi").stdout == "Read.\r\nReally.\n"
