"""`weft lsp`: which language servers there are."""

from __future__ import annotations

import json

from tests.support.weft_program import WeftProgram


def with_servers(weft: WeftProgram, *names: str) -> dict[str, str]:
    """An environment in which only these programs are on the search path."""
    folder = weft.home / "bin"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def test_servers_on_path_are_listed_with_what_they_look_at(weft: WeftProgram) -> None:
    done = weft.call("lsp", env=with_servers(weft, "ty", "pyright-langserver", "ruff", "gopls"))
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["server", "ty", "pyright", "ruff", "gopls"]
    assert lines[1][1:5] == ["not", "started", ".py", ".pyi"]
    assert "another one serves these files" in done.stdout


def test_without_a_server_that_is_said(weft: WeftProgram) -> None:
    done = weft.call("lsp", "status", env=with_servers(weft))
    assert done.returncode == 0
    assert "no language server on PATH" in done.stderr + done.stdout


def test_the_list_as_json_has_the_program_and_the_state(weft: WeftProgram) -> None:
    done = weft.run("lsp", "status", "--json", env=with_servers(weft, "clangd"))
    (row,) = json.loads(done.stdout)
    assert row["name"] == "clangd"
    assert row["state"] == "not started"
    assert row["program"] == str(weft.home / "bin" / "clangd")


def test_a_configured_server_that_is_not_there_is_listed_as_missing(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    settings = '[lsp.servers.nim]\ncommand = ["nimls"]\nsuffixes = [".nim"]\n'
    (weft.config / "config.toml").write_text(settings)
    done = weft.call("lsp", env=with_servers(weft))
    assert "nim     not found" in done.stdout


def test_a_wrong_table_is_refused_in_a_sentence(weft: WeftProgram) -> None:
    weft.config.mkdir(parents=True)
    (weft.config / "config.toml").write_text("[lsp.servers.nim]\nargs = []\n")
    done = weft.call("lsp")
    assert done.returncode == 2
    assert "lsp.servers.nim" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_restart_is_asked_for_whether_or_not_one_runs(weft: WeftProgram) -> None:
    done = weft.call("lsp", "restart")
    assert done.returncode == 0, done.stderr
    assert (weft.data / "language-servers" / "restart").exists()
