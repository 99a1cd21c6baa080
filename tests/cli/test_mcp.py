"""`weft mcp`, `/mcp`, and the question about servers that a project names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from tests.support.weft_program import WeftProgram
from weft.app import App
from weft.cli.mcp.chat_command import question_line
from weft.runtime.mcp.project_servers import ServerQuestion
from weft.view import TableBlock


def test_a_server_is_added_listed_shown_and_removed(weft: WeftProgram) -> None:
    assert "no MCP server is configured" in weft.run("mcp").stderr
    weft.run("mcp", "add", "-e", "A=1", "time", "--", "uvx", "mcp-server-time", "--local")
    weft.run("mcp", "add-json", "-s", "user", "all", '{"command": "x", "network": false}')
    lines = weft.run("mcp", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["server", "all", "time"]
    assert "uvx mcp-server-time --local" in lines[2]
    (row,) = (row for row in json.loads(weft.run("mcp", "--json").stdout) if row["name"] == "time")
    assert (row["scope"], row["state"]) == ("local", "not started")
    shown = json.loads(weft.run("mcp", "get", "all", "--json").stdout)
    assert (shown["scope"], shown["network"]) == ("user", False)
    weft.run("mcp", "remove", "time")
    weft.run("mcp", "remove", "all")
    assert json.loads(weft.run("mcp", "--json").stdout) == []


def test_a_program_that_is_not_there_is_named_when_it_is_added(weft: WeftProgram) -> None:
    told = weft.run("mcp", "add", "files", "--", "no-such-program", "x").stderr
    assert "added files to" in told
    assert "there is no program 'no-such-program' on PATH: install it" in told
    for place, command in enumerate(("sh", "./tools/run.sh", "${RUNNER}")):
        assert "on PATH" not in weft.run("mcp", "add", f"s{place}", "--", command).stderr


def test_a_server_at_an_address_is_added_and_its_headers_are_not_shown(weft: WeftProgram) -> None:
    header = "Authorization: Bearer ${KEY:-secret-1234}"
    weft.run("mcp", "add", "-H", header, "far", "https://u:pass-1234@far.example/mcp?api_key=k-1")
    weft.run("mcp", "add", "-t", "sse", "old", "http://old.example/sse")
    listed = weft.run("mcp", "list").stdout
    assert "https://…@far.example/mcp?api_key=…" in listed
    shown = weft.run("mcp", "get", "far").stdout
    assert "Authorization" in shown
    assert "1234" not in shown + listed
    assert json.loads(weft.run("mcp", "get", "old", "--json").stdout)["transport"] == "sse"
    (file,) = weft.home.rglob("mcp.json")
    entry = next(iter(json.loads(file.read_text())["projects"].values()))["far"]
    assert entry["headers"] == {"Authorization": "Bearer ${KEY:-secret-1234}"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "time"], "weft mcp add NAME -- COMMAND"),
        (["add", "-H", "no colon", "x", "http://a"], "-H takes 'NAME: VALUE'"),
        (["add", "-H", "A: b", "x", "--", "y"], "-H is for servers that are reached by an address"),
        (["add", "x", "http://a", "b"], "takes -H and no arguments"),
        (["add", "-t", "http", "x", "y"], "is no address"),
        (["add", "-t", "ws", "x", "ws://y"], "stdio, http"),
        (["add", "a__b", "--", "x"], "two _ in a row"),
        (["add", "-e", "A", "x", "--", "y"], "-e takes NAME=VALUE"),
        (["add-json", "x", "{"], "is not JSON"),
        (["add-json", "x", '{"command": 7}'], "is not right"),
        (["add-json", "x", '{"type": "sdk"}'], "only a program that drives Weft"),
        (["remove", "nothing"], "no MCP server 'nothing'"),
        (["get", "nothing"], "no MCP server 'nothing'"),
        (["allow", "nothing"], "no MCP server 'nothing'"),
        (["login", "nothing"], "no MCP server 'nothing'"),
        (["logout", "nothing"], "no MCP server 'nothing'"),
        (["import", "nowhere.json"], "nothing to import"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    words: list[str], why: str, weft: WeftProgram
) -> None:
    done = weft.call("mcp", *words)
    assert done.returncode == 2
    assert why in done.stderr


def test_logins_are_for_servers_at_an_address_that_may_be_used(weft: WeftProgram) -> None:
    weft.run("mcp", "add", "near", "--", "x")
    assert "is a program, which needs no login" in weft.call("mcp", "login", "near").stderr
    (weft.project / ".mcp.json").write_text('{"mcpServers": {"far": {"url": "http://far"}}}')
    assert "`weft mcp allow far` first" in weft.call("mcp", "login", "far").stderr
    weft.run("mcp", "allow", "far")
    assert "there is no login to far" in weft.call("mcp", "logout", "far").stderr


def test_a_server_of_the_project_is_allowed_and_the_answer_forgotten(weft: WeftProgram) -> None:
    (weft.project / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "x"}}}')
    assert "needs_trust" in weft.run("mcp").stdout
    weft.run("mcp", "allow", "s")
    assert "not started" in weft.run("mcp").stdout
    weft.run("mcp", "reset-project-choices")
    assert "needs_trust" in weft.run("mcp").stdout


def test_a_project_does_not_take_the_place_of_the_users_own_server(weft: WeftProgram) -> None:
    """Nor does it switch it off by naming one that nobody would agree to."""

    def row() -> tuple[str, str, str]:
        (found,) = json.loads(weft.run("mcp", "--json").stdout)
        return found["scope"], found["shown"], found["state"]

    weft.run("mcp", "add", "-s", "user", "guard", "--", "mine")
    (weft.project / ".mcp.json").write_text('{"mcpServers": {"guard": {"command": "theirs"}}}')
    assert row() == ("user", "mine", "not started")
    weft.run("mcp", "refuse", "guard")
    assert row() == ("user", "mine", "not started")
    weft.run("mcp", "allow", "guard")
    assert row() == ("project", "theirs", "not started")
    (weft.project / ".mcp.json").write_text('{"mcpServers": {"guard": {"command": "other"}}}')
    assert row() == ("user", "mine", "not started")


def test_a_single_run_says_which_servers_it_leaves_out(weft: WeftProgram) -> None:
    (weft.project / ".mcp.json").write_text('{"mcpServers": {"s": {"command": "x"}}}')
    done = weft.call("-p", "hi", "-m", "scripted:x")
    assert "an MCP server that you have not allowed: s; `weft mcp allow s`" in done.stderr


def test_servers_of_other_agents_are_shown_and_only_then_written(weft: WeftProgram) -> None:
    files = {
        ".vscode/mcp.json": {"servers": {"v": {"command": "v", "args": ["1"]}}},
        "opencode.json": {"mcp": {"o": {"command": ["o", "2"], "environment": {"A": "1"}}}},
    }
    for name, content in files.items():
        path = weft.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    assert "v: v 1" in weft.run("mcp", "import", "vscode").stderr
    assert json.loads(weft.run("mcp", "--json").stdout) == []
    for source in ("vscode", "opencode"):
        weft.run("mcp", "import", source, "--yes")
    rows = json.loads(weft.run("mcp", "--json").stdout)
    assert [(row["name"], row["scope"], row["shown"]) for row in rows] == [
        ("o", "user", "o 2"),
        ("v", "user", "v 1"),
    ]


CODEX = """
[mcp_servers.docs]
url = "https://docs.example/mcp"
bearer_token_env_var = "DOCS_KEY"
http_headers = { "X-Team" = "a" }
env_http_headers = { "X-Key" = "OTHER_KEY" }
tool_timeout_sec = 90
[mcp_servers.local]
command = "npx"
args = ["-y", "local"]
env = { A = "1" }
env_vars = ["LOCAL_KEY"]
startup_timeout_sec = 7.5
required = true
[mcp_servers.off]
command = "x"
enabled = false
[mcp_servers.guarded]
command = "x"
disabled_tools = ["drop"]
"""
VSCODE = """{
  // what the team uses
  "inputs": [{"type": "promptString", "id": "api-key", "password": true}],
  "servers": {
    "v": {
      "type": "stdio",
      "command": "${workspaceFolder}/v",
      "args": ["--key", "${input:api-key}", "https://x/*y*/"], /* more */
      "env": {"B": "${env:HOME_OF_B}"},
      "envFile": ".env",
    },
  },
}"""
OPENCODE = """{
  "mcp": {
    "o": {"type": "local", "command": ["o", "2"], "environment": {"A": "{env:A_KEY}"}},
    "r": {"type": "remote", "url": "https://r.example", "headers": {"K": "{env:R}"}, "oauth": {}},
    "f": {"type": "local", "command": ["f", "{file:~/.key}"]},
  }
}"""
CLAUDE = {"c": {"type": "http", "url": "https://c.example", "headers": {"A": "${C:-d}"}}}


def test_what_four_agents_have_means_the_same_here(weft: WeftProgram) -> None:
    local = {"projects": {str(weft.project): {"mcpServers": {"l": {"command": "l"}}}}}
    files = {
        weft.home / ".codex/config.toml": CODEX,
        weft.project / ".vscode/mcp.json": VSCODE,
        weft.home / ".config/opencode/opencode.jsonc": OPENCODE,
        weft.home / ".claude.json": json.dumps({"mcpServers": CLAUDE, **local}),
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    shown = weft.run("mcp", "import", "codex").stderr
    assert "guarded: it would be left out: its key 'disabled_tools' is not supported" in shown
    told = {
        source: weft.run("mcp", "import", source, "--yes").stderr
        for source in ("codex", "vscode", "opencode", "claude")
    }
    kept = json.loads((weft.config / "mcp.json").read_text())["mcpServers"]
    assert kept == {
        "docs": {
            "url": "https://docs.example/mcp",
            "headers": {
                "X-Team": "a",
                "X-Key": "${OTHER_KEY}",
                "Authorization": "Bearer ${DOCS_KEY}",
            },
            "timeout": 90_000,
        },
        "local": {
            "command": "npx",
            "args": ["-y", "local"],
            "env": {"A": "1", "LOCAL_KEY": "${LOCAL_KEY}"},
            "startupTimeout": 7_500,
        },
        "off": {"command": "x", "disabled": True},
        "v": {
            "type": "stdio",
            "command": "./v",
            "args": ["--key", "${API_KEY}", "https://x/*y*/"],
            "env": {"B": "${HOME_OF_B}"},
        },
        "o": {"type": "local", "command": "o", "args": ["2"], "env": {"A": "${A_KEY}"}},
        "r": {"type": "remote", "url": "https://r.example", "headers": {"K": "${R}"}},
        "c": CLAUDE["c"],
        "l": {"command": "l"},
    }
    assert "left out guarded: its key 'disabled_tools' is not supported here" in told["codex"]
    assert "left out f: {file:~/.key} has no meaning here" in told["opencode"]
    assert "local: required does nothing here" in told["codex"]
    assert "docs: it needs the variables OTHER_KEY, DOCS_KEY" in told["codex"]
    assert "v: envFile does nothing here" in told["vscode"]
    assert "v: it needs the variables API_KEY, HOME_OF_B" in told["vscode"]


@pytest.mark.parametrize("content", ["/* " * 200_000, "[" * 100_000, '{"servers": {"a": 1}}', ""])
def test_a_file_of_another_agent_that_is_none_is_refused_at_once(
    weft: WeftProgram, content: str
) -> None:
    path = weft.project / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(content)
    done = weft.call("mcp", "import", "vscode")
    is_empty = content.startswith("{")
    assert done.returncode == (0 if is_empty else 2)
    assert ("no MCP server stands there" if is_empty else "cannot read") in done.stderr


def test_a_pipe_is_no_file_of_another_agent(weft: WeftProgram) -> None:
    (weft.project / ".vscode").mkdir()
    os.mkfifo(weft.project / ".vscode" / "mcp.json")
    done = weft.call("mcp", "import", "vscode")
    assert (done.returncode, "no plain file" in done.stderr) == (2, True)


def test_what_is_imported_is_looked_for_in_the_project(weft: WeftProgram, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "opencode.json").write_text(OPENCODE)
    assert "r: https://r.example" in weft.run("mcp", "import", "opencode", "-C", str(other)).stderr


def test_a_rule_for_a_server_that_is_not_configured_is_refused(weft: WeftProgram) -> None:
    weft.run("mcp", "add", "-s", "user", "files", "--", "x")
    weft.config.mkdir(parents=True, exist_ok=True)
    (weft.config / "config.toml").write_text('[permissions]\ndeny = ["mcp__fles__write"]\n')
    done = weft.call("-p", "hi", "-m", "scripted:x")
    assert done.returncode == 2
    assert "no MCP server 'fles' is configured; did you mean 'files'?" in done.stderr


@pytest.mark.parametrize("option", ["--disallowedTools", "--allowedTools"])
def test_an_option_names_a_server_that_is_configured(weft: WeftProgram, option: str) -> None:
    weft.run("mcp", "add", "files", "--", "x")
    model = weft.script("hi")
    done = weft.call("-p", "-m", model, option, "mcp__fles__write", "hi")
    assert done.returncode == 2
    assert "no MCP server 'fles' is configured; did you mean 'files'?" in done.stderr
    assert weft.call("-p", "-m", model, option, "mcp__files__write", "hi").returncode == 0


@pytest.mark.parametrize("scope", ["local", "project"])
def test_a_rule_of_the_users_may_name_a_server_of_another_project(
    weft: WeftProgram, tmp_path: Path, scope: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    weft.run("mcp", "add", "-s", scope, "files", "--", "x")
    weft.run("config", "set", "permissions.deny", "mcp__files__write")
    model = weft.script("hi")
    for words in ((), ("-C", str(other)), ("--strict-mcp-config",)):
        assert weft.call("-p", "-m", model, "hi", *words).returncode == 0


@pytest.mark.anyio
async def test_the_chat_asks_about_servers_of_the_project_and_shows_what_would_run(
    app: App,
) -> None:
    entry = {"command": "evil", "args": ["--now"], "env": {"T": "${TOKEN}"}, "sandbox": "off"}
    content = {"mcpServers": {"s": entry}}
    (Path(app.project_path) / ".mcp.json").write_text(json.dumps(content))
    async with driven_chat(app, "Hello.") as talk:
        question = await talk.screen.choice()
        assert question.title == "Start s?"
        rows = [row for block in talk.screen.of(TableBlock) for row in block.rows]
        assert ("runs", "evil --now") in rows
        assert ("where", "WITHOUT the sandbox, with the network") in rows
        assert ("gets", "your variables TOKEN") in rows
        talk.screen.answer(None)
        await talk.screen.noted("s is not started")
        talk.screen.typed("/mcp")
        await talk.screen.until(lambda: ("s", "needs_trust") in _rows(talk.screen.of(TableBlock)))
        talk.screen.typed("/mcp allow s")
        await talk.screen.noted("s may be started here; it counts from your next conversation on")
    assert [each.state for each in app.mcp.status()] == ["not started"]


def _rows(blocks: list[TableBlock]) -> list[tuple[str, ...]]:
    return [tuple(row) for block in blocks for row in block.rows]


def test_all_that_a_project_would_have_run_is_told() -> None:
    question = ServerQuestion(
        name="s",
        shown="node ok.js",
        variables=("KEY",),
        environ=("NODE_OPTIONS=--require\n./evil.js",),
        headers=(),
        is_remote=False,
        network=True,
        is_sandboxed=False,
        had_answer=False,
        replaces_own=True,
    )
    assert question_line(question) == (
        "this project names s, which would run `node ok.js`, WITHOUT the sandbox, with "
        "NODE_OPTIONS=--require<newline>./evil.js, in the place of your own server of this name "
        "and get your variables KEY; /mcp allow s lets it"
    )


@pytest.mark.parametrize(
    "hidden", ["\x1b]0;$(evil)\x07", "\x9d0;$(evil)\x9c", "\u202e$(evil)", "\n" * 90 + "$(evil)"]
)
def test_nothing_hides_in_a_command_that_the_user_may_allow(hidden: str) -> None:
    question = ServerQuestion(
        name="x",
        shown=f"sh -c ok;{hidden}",
        variables=(),
        environ=(),
        headers=(),
        is_remote=False,
        network=True,
        is_sandboxed=True,
        had_answer=False,
    )
    line = question_line(question)
    assert "$(evil)" in line
    assert "\n" not in line
    assert line.isprintable()
