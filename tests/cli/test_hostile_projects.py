"""Hostile projects at the command line: the run goes on, and one line tells what is left out."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.hostile_project import (
    CANARY,
    SLOTS,
    Outside,
    endless_device,
    link_out,
    pipe,
    sparse_file,
    terminal,
)
from tests.support.weft_program import WeftProgram, lines
from weft.app import open_app
from weft.view import NoteBlock

GIGABYTE = 1024**3


def left_out(stderr: str) -> list[str]:
    """What is told, line by line; whatever else is said is an error of the test."""
    told = stderr.splitlines()
    assert all(line.startswith("weft: left out: ") for line in told), stderr
    return told


def is_kept(weft: WeftProgram, text: str) -> bool:
    """True when the data of the program hold a text."""
    files = [path for path in weft.data.rglob("*") if path.is_file()]
    return any(text.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    "trap", [link_out, pipe, endless_device, terminal], ids=lambda t: t.__name__
)
@pytest.mark.parametrize("slot", SLOTS)
def test_a_run_goes_on_without_a_trap_and_says_so_in_one_line(
    weft: WeftProgram, tmp_path: Path, slot: str, trap: Callable[[Path, Outside, str], None]
) -> None:
    (weft.home / ".ssh").mkdir()
    outside = Outside(tmp_path / "around")
    trap(weft.project / slot, outside, SLOTS[slot])
    done = weft.call("-p", "-m", weft.script("Fine."), "hi")
    assert (done.returncode, done.stdout) == (0, "Fine.\n")
    [told] = left_out(done.stderr)
    assert f"/{slot}: it is " in told
    assert not is_kept(weft, CANARY)


def test_the_canary_would_be_found_where_it_is_read(weft: WeftProgram) -> None:
    (weft.project / "AGENTS.md").write_text(CANARY)
    done = weft.run("-p", "-m", weft.script("Fine."), "hi")
    assert (done.returncode, done.stderr) == (0, "")
    assert is_kept(weft, CANARY)


def test_a_folder_of_nothing_but_traps_is_worked_in_with_little_memory(
    weft: WeftProgram, tmp_path: Path
) -> None:
    bomb = "\n".join(
        ["a0: &a0 [lol]"]
        + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    )
    for slot in SLOTS:
        sparse_file(weft.project / slot, "x")
    for kind in ("skills/bomb/SKILL.md", "agents/bomb.md", "commands/bomb.md"):
        place = weft.project / ".claude" / kind
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"---\n{bomb}\ndescription: *a29\n---\n")
    limit = (GIGABYTE, GIGABYTE)
    running = weft.start(
        *("-p", "-m", weft.script("Fine."), "hi"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    stdout, stderr = running.communicate(timeout=60)
    assert (running.returncode, stdout) == (0, b"Fine.\n")
    *named, rest = left_out(stderr.decode())
    assert len(named) == 5
    assert rest.startswith(f"weft: left out: {len(SLOTS) + 3 - 5} more; ")


def test_a_program_that_reads_json_is_not_disturbed(weft: WeftProgram) -> None:
    os.mkfifo(weft.project / "AGENTS.md")
    done = weft.run("-p", "--output-format", "stream-json", "-m", weft.script("Fine."), "hi")
    assert lines(done.stdout)[-1]["result"] == "Fine."
    assert len(left_out(done.stderr)) == 1


@pytest.mark.parametrize(
    "arguments", [["session", "list"], ["models"], ["config", "model.default"]]
)
def test_broken_settings_of_a_folder_stop_no_other_command(
    weft: WeftProgram, arguments: list[str]
) -> None:
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text("[session]\nmax_turns =\n")
    done = weft.call(*arguments)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_the_settings_say_what_of_them_is_left_out(weft: WeftProgram) -> None:
    (weft.project / ".weft").mkdir()
    (weft.project / ".weft" / "config.toml").write_text("[session]\nmax_turns =\n")
    [told] = left_out(weft.call("config").stderr)
    assert ".weft/config.toml is not valid TOML: Invalid value (at line 2" in told
    assert "is not valid TOML" in weft.call("doctor").stdout


@pytest.mark.anyio
async def test_the_chat_says_it_at_the_start_and_where_the_files_are_shown(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    os.mkfifo(project / "AGENTS.md")
    (project / "CLAUDE.md").write_text("# Ours\n")
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with (
        open_app(project, tmp_path / "weft.db", environ=environ) as app,
        driven_chat(app, "Hello.") as talk,
    ):
        await talk.say("hi")
        told = f"left out: {project}/AGENTS.md: it is a named pipe, not a regular file"
        assert [note.text for note in talk.screen.of(NoteBlock) if note.level == "warning"] == [
            told
        ]
        talk.screen.typed("/memory")
        await talk.screen.until(
            lambda: [n.text for n in talk.screen.of(NoteBlock)].count(told) == 2
        )


@pytest.mark.anyio
async def test_a_yes_to_settings_that_cannot_be_understood_trusts_nothing(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".weft").mkdir(parents=True)
    (project / ".weft" / "config.toml").write_text("[[hooks.Never]]\ncommand = 'true'\n")
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    async with (
        open_app(project, tmp_path / "weft.db", environ=environ) as app,
        driven_chat(app, "Hello.") as talk,
    ):
        await talk.screen.choice()
        talk.screen.answer(1)
        await talk.screen.noted(f"not trusted: {project}/.weft/config.toml: there is no hook event")
        await talk.say("hi")
        assert not await app.is_trusted()
