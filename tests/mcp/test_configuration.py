"""What files say of servers: read with care, and nothing of a project counts by itself."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from weft.errors import UsageError
from weft.mcp import (
    ConfiguredServers,
    GivenServers,
    ProjectChoices,
    ProjectServers,
    ServerEntry,
    UserServers,
    checked_entry,
    configured_servers,
    expanded,
    offered_names,
    variables_in,
)
from weft.mcp.project_choices import LARGEST_FILE


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def written(project: Path, table: Any) -> None:
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": table}))


def found(config: Path, project: Path, *given: str, strict: bool = False) -> ConfiguredServers:
    return configured_servers(config, str(project), GivenServers(texts=given, is_strict=strict))


def test_the_nearest_scope_counts(config: Path, project: Path) -> None:
    own = UserServers(config)
    for name in "abcd":
        own.put(name, {"command": "user"})
    written(project, {name: {"command": "project"} for name in "abc"})
    for name in "ab":
        own.put(name, {"command": "local"}, str(project))
    given = json.dumps({"mcpServers": {"a": {"command": "given"}}})
    servers = found(config, project, given).servers
    assert {name: server.entry.command for name, server in servers.items()} == {
        "a": "given",
        "b": "local",
        "c": "project",
        "d": "user",
    }
    assert list(found(config, project, given, strict=True).servers) == ["a"]
    assert found(config, project, strict=True).servers == {}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "it has no command"),
        ({"command": ""}, "it has no command"),
        ({"command": "x\0y"}, "NUL"),
        ({"command": "x", "args": "-y"}, "is not right"),
        ({"command": ["x"]}, "is not right"),
        ({"command": "x", "env": {"A": 1}}, "is not right"),
        ({"command": "x", "env": {"A=B": "1"}}, "'A=B' is no name of a variable"),
        ({"command": "x", "env": {"": "1"}}, "'' is no name of a variable"),
        ({"type": "ws", "url": "ws://x"}, "no transport 'ws'"),
        ({"type": "http", "url": "file:///etc/passwd"}, "is no address"),
        ({"type": "http"}, "is no address"),
        ({"url": "http://a", "headers": {"a b": "c"}}, "is no header"),
        ({"url": "http://a", "headers": {"a": "c\r\nevil: 1"}}, "is no header"),
        ({"command": "x", "args": ["a"] * 300}, "more than 200"),
        ("x", "is not right"),
        (None, "is not right"),
    ],
)
def test_an_entry_that_is_wrong_hurts_only_itself(
    entry: Any, why: str, config: Path, project: Path
) -> None:
    written(project, {"bad": entry, "good": {"command": "x"}})
    servers = found(config, project).servers
    assert why in servers["bad"].problem
    assert servers["good"].problem == ""
    with pytest.raises(UsageError):
        checked_entry("bad", entry)


@pytest.mark.parametrize("name", ["", "a b", "a__b", "-x", "x" * 41, "../x", "a\u200bb", "mcp/x"])
def test_a_name_that_could_be_taken_for_another_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no name of a server"):
        checked_entry(name, {"command": "x"})


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"mcpServers": []}', '{"servers": {}}', "[" * 100_000, "\ufeff{}"]
)
def test_a_project_file_that_is_no_list_of_servers_is_told(
    content: str, config: Path, project: Path
) -> None:
    (project / ".mcp.json").write_text(content)
    result = found(config, project)
    assert result.servers == {}
    assert len(result.problems) == 1


def test_a_project_file_that_is_a_link_a_pipe_or_huge_is_not_read(
    config: Path, project: Path, tmp_path: Path
) -> None:
    place = project / ".mcp.json"
    (tmp_path / "elsewhere").write_text('{"mcpServers": {"x": {"command": "x"}}}')
    place.symlink_to(tmp_path / "elsewhere")
    assert found(config, project).servers == {}
    place.unlink()
    os.mkfifo(place)
    assert found(config, project).servers == {}
    place.unlink()
    place.write_text('{"mcpServers": {"x": {"command": "' + "x" * 2_000_000 + '"}}}')
    assert found(config, project).servers == {}


def test_a_file_of_the_users_that_others_can_write_counts_for_nothing(
    config: Path, project: Path
) -> None:
    UserServers(config).put("x", {"command": "x"})
    (config / "mcp.json").chmod(0o666)
    result = found(config, project)
    assert result.servers == {}
    assert "not private" in result.problems[0]


def test_what_else_stands_in_a_project_file_stays(project: Path) -> None:
    (project / ".mcp.json").write_text('{"other": 1, "mcpServers": {"a": {"command": "a"}}}')
    file = ProjectServers(str(project))
    file.put("b", {"command": "b"})
    assert file.remove("a")
    assert not file.remove("a")
    content = json.loads((project / ".mcp.json").read_text())
    assert content == {"other": 1, "mcpServers": {"b": {"command": "b"}}}


# --- variables -----------------------------------------------------------------------------


def test_variables_are_filled_in_and_nothing_else_is() -> None:
    entry = ServerEntry(
        command="${BIN:-run}", args=("$HOME", "${A}-${B:-b}", "$(id)", "${A"), env={"X": "${A}"}
    )
    made = expanded(entry, {"A": "${SECRET}", "SECRET": "no", "B": ""})
    assert made.command == "run"
    # Once: a value that looks like a variable is a value.
    assert made.args == ("$HOME", "${SECRET}-b", "$(id)", "${A")
    assert made.env == {"X": "${SECRET}"}
    assert variables_in(entry) == ("BIN", "A", "B")
    with pytest.raises(UsageError, match="not set: A"):
        expanded(entry, {})


# --- answers about servers of a project ----------------------------------------------------


def test_an_answer_counts_for_exactly_what_was_shown(config: Path, project: Path) -> None:
    (project / "server.py").write_text("print(1)")
    choices = ProjectChoices(config)

    def server(**entry: Any) -> Any:
        written(project, {"s": {"command": "python", "args": ["server.py"], **entry}})
        return found(config, project).servers["s"]

    choices.keep(str(project), server(), "yes")
    assert choices.of(str(project), server()) == "yes"
    for other in ({"env": {"A": "1"}}, {"args": ["other.py"]}, {"sandbox": "off"}, {"cwd": "x"}):
        assert choices.of(str(project), server(**other)) is None
    # The program behind the same words.
    (project / "server.py").write_text("print(2)")
    assert choices.of(str(project), server()) is None
    # The same entry elsewhere.
    assert choices.of("/elsewhere", server()) is None
    assert choices.forget(str(project)) == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "node", "args": ["--require=./server.js", "x"]},
        {"command": "node", "args": ["x"], "env": {"NODE_OPTIONS": "--require ./server.js"}},
        {"command": "node", "args": ["x"], "env": {"NODE_OPTIONS": "--require=./server.js"}},
        {"command": "sh", "args": ["-c", "cd . && exec node './server.js' --x"]},
        # A file that is hashed before it takes all that may be hashed.
        {"command": "node", "args": ["./padding", "./server.js"]},
        {"command": "node", "args": ["./padding"]},
    ],
)
def test_whatever_file_a_server_runs_is_shown_anew_when_it_changes(
    entry: dict[str, Any], config: Path, project: Path
) -> None:
    (project / "server.js").write_text("good")
    padding = project / "padding"
    padding.write_text("")
    os.truncate(padding, LARGEST_FILE + 1)
    written(project, {"s": entry})
    choices = ProjectChoices(config)
    choices.keep(str(project), found(config, project).servers["s"], "yes")
    assert choices.of(str(project), found(config, project).servers["s"]) == "yes"
    if "./server.js" in json.dumps(entry):
        (project / "server.js").write_text("evil")
    else:
        with padding.open("r+b") as file:
            file.seek(LARGEST_FILE)
            file.write(b"!")
    assert choices.of(str(project), found(config, project).servers["s"]) is None


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["npm", "run", "mcp"], "package.json"),
        (["/usr/bin/make", "serve"], "Makefile"),
        (["uv", "run", "serve"], "pyproject.toml"),
        (["python", "-m", "tools.server"], "tools/server.py"),
        (["python", "-m", "tools"], "tools/__main__.py"),
        (["sh", "-c", "python -m tools"], "tools/__main__.py"),
    ],
)
def test_what_a_program_reads_by_itself_is_shown_anew_when_it_changes(
    words: list[str], file: str, config: Path, project: Path
) -> None:
    (project / "tools").mkdir()
    (project / file).write_text("good")
    written(project, {"s": {"command": words[0], "args": words[1:]}})
    choices = ProjectChoices(config)
    choices.keep(str(project), found(config, project).servers["s"], "yes")
    assert choices.of(str(project), found(config, project).servers["s"]) == "yes"
    (project / file).write_text("evil")
    assert choices.of(str(project), found(config, project).servers["s"]) is None


def test_a_server_that_is_given_a_folder_of_the_project_can_be_allowed(
    config: Path, project: Path
) -> None:
    (project / "docs").mkdir()
    os.mkfifo(project / "pipe")
    written(project, {"s": {"command": "npx", "args": ["-y", "server", "./docs", "./pipe"]}})
    server = found(config, project).servers["s"]
    choices = ProjectChoices(config)
    choices.keep(str(project), server, "yes")
    assert choices.of(str(project), server) == "yes"


def test_answers_that_others_could_have_written_count_for_nothing(
    config: Path, project: Path
) -> None:
    written(project, {"s": {"command": "x"}})
    server = found(config, project).servers["s"]
    choices = ProjectChoices(config)
    choices.keep(str(project), server, "yes")
    (config / "mcp-choices.json").chmod(0o622)
    assert choices.of(str(project), server) is None


# --- names ---------------------------------------------------------------------------------


def test_names_of_tools_fit_every_vendor_and_are_never_the_same() -> None:
    tools = [
        ("s", "plain"),
        ("s", "a b"),
        ("s", "a_b"),
        ("s", "a/b"),
        ("s", "x" * 100),
        ("s", "x" * 101),
        ("s", "\u202eevil"),
        ("t", "plain"),
    ]
    names = offered_names(tools)
    assert names[("s", "plain")] == "mcp__s__plain"
    assert len(set(names.values())) == len(tools)
    assert all(len(name) <= 64 and name.isascii() for name in names.values())
    assert offered_names(reversed(tools)) == names
