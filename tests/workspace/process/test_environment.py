"""The environment of programs that a model starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.workspace import LocalRunner, ProcessCommand, scrubbed, secret_values

SECRETS = {
    "OPENAI_API_KEY": "k1",
    "AWS_SECRET_ACCESS_KEY": "k2",
    "github_token": "k3",
    "DB_PASSWORD": "k4",
    "MYSQL_PASSWD": "k5",
    "GOOGLE_APPLICATION_CREDENTIALS": "k6",
}
REPOINTING = [
    *(
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "NODE_OPTIONS",
        "RIPGREP_CONFIG_PATH",
    ),
    *(
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_GLOBAL",
        "GIT_EXEC_PATH",
        "GIT_INDEX_FILE",
    ),
    *("BASH_FUNC_git%%", "PYTHONSTARTUP", "LESSOPEN"),
]


def test_secrets_and_what_re_points_tools_are_dropped() -> None:
    left = scrubbed(
        SECRETS | dict.fromkeys(REPOINTING, "x") | {"HOME": "/home/me", "GIT_AUTHOR_NAME": "me"}
    )
    assert not set(SECRETS) & set(left)
    assert not set(REPOINTING) & set(left)
    assert (left["HOME"], left["GIT_AUTHOR_NAME"]) == ("/home/me", "me")


def test_the_values_of_the_secrets_are_known_for_masking() -> None:
    assert sorted(secret_values(SECRETS | {"HOME": "/", "EMPTY_TOKEN": ""})) == sorted(
        SECRETS.values()
    )


def test_nothing_waits_for_the_user_whatever_they_have_set() -> None:
    left = scrubbed({"PAGER": "less", "GIT_PAGER": "less", "TERM": "xterm", "EDITOR": "vi"})
    assert (left["PAGER"], left["GIT_PAGER"], left["TERM"]) == ("cat", "cat", "dumb")
    assert (left["EDITOR"], left["GIT_TERMINAL_PROMPT"]) == ("true", "0")


@pytest.mark.parametrize(
    ("path", "kept"), [("/a:.:/b::c", "/a:/b"), ("", "/usr/local/sbin"), (":.", "/usr/local/sbin")]
)
def test_programs_are_never_searched_in_the_folder_we_happen_to_be_in(path: str, kept: str) -> None:
    assert scrubbed({"PATH": path})["PATH"].startswith(kept)


@pytest.mark.process
@pytest.mark.anyio
async def test_a_program_sees_the_scrubbed_environment(tmp_path: Path) -> None:
    runner = LocalRunner({**os.environ, **SECRETS, "LD_PRELOAD": "/no.so", "HELLO": "there"})
    result = await runner.run(ProcessCommand(argv=("env",), cwd=str(tmp_path)))
    names = {line.partition("=")[0] for line in result.output.split("\n")}
    assert not names & {*SECRETS, "LD_PRELOAD"}
    assert {"HELLO", "PATH", "GIT_PAGER"} <= names


@pytest.mark.process
@pytest.mark.anyio
async def test_nothing_carries_over_from_one_command_to_the_next(tmp_path: Path) -> None:
    runner = LocalRunner(os.environ)
    await runner.run(
        ProcessCommand(argv=("bash", "-c", "export GIT_EXTERNAL_DIFF=./x; cd /"), cwd=str(tmp_path))
    )
    result = await runner.run(
        ProcessCommand(argv=("bash", "-c", "echo [$GIT_EXTERNAL_DIFF] $PWD"), cwd=str(tmp_path))
    )
    assert result.output == f"[] {tmp_path}\n"


@pytest.mark.process
@pytest.mark.anyio
async def test_a_bare_repository_in_the_project_is_not_obeyed(tmp_path: Path) -> None:
    """Its configuration could name programs to run.

    Git must not take a folder for a repository by its looks.
    """
    runner = LocalRunner(os.environ)
    marker = tmp_path / "ran"
    script = (
        "git init -q --bare evil && cd evil && git --git-dir=. config core.fsmonitor "
        f"'touch {marker}; false' && "
        "git --git-dir=. config core.bare false && git --git-dir=. config core.worktree . ; "
        "git status; git ls-files -o"
    )
    await runner.run(ProcessCommand(argv=("bash", "-c", script), cwd=str(tmp_path)))
    assert not marker.exists()
