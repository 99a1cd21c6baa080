"""Real MCP servers of three eras: they list their tools in the sandbox, and answer.

They run where `make oracles` has installed them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.free_port import free_port
from tests.support.mcp_http_server import http_client
from tests.support.mcp_processes import are_gone, bearing, has_ended, keeper
from tests.support.mcp_servers import called as server_call
from tests.support.real_servers import FOLDERS
from tests.support.real_servers import SERVERS as SERVERS_FOLDER
from tests.support.world import World, request_lines
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.oracle]

PATIENCE = 120
SERVERS: dict[str, tuple[list[str], str, dict[str, Any], str]] = {
    "mcp-server-time": ([], "get_current_time", {"timezone": "UTC"}, '"timezone": "UTC"'),
    "mcp-server-git": ([], "git_status", {"repo_path": "."}, "Repository status"),
    "mcp-server-fetch": ([], "fetch", {"url": "http://127.0.0.1:1/"}, ""),
    "mcp-server-everything": ([], "get-sum", {"a": 2, "b": 3}, "The sum of 2 and 3 is 5"),
    "mcp-server-memory": ([], "read_graph", {}, '"entities"'),
    "mcp-server-sequential-thinking": (
        [],
        "sequentialthinking",
        {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        '"thoughtNumber": 1',
    ),
    "mcp-server-filesystem": (["."], "list_directory", {"path": "."}, "[FILE] a.txt"),
}
"""By program: its arguments, one of its tools, what that is given, and what it says."""


LISTED = {
    "playwright-mcp": ("mcp__real__browser_navigate", 25),
    "context7-mcp": ("mcp__real__query-docs", 2),
    "mcp-server-github": ("mcp__real__create_issue", 26),
}
"""Those that need the network for a call: one of their tools, and how many there are."""
DEAD = {
    "mcp-server-sqlite": "ended before it answered, with exit code 1: AttributeError",
    "github-mcp-server": "ended before it answered, with exit code 0, without a word",
}
"""Those that do not start, and what is said of it."""


def program_of(program: str) -> str:
    """Where a server is installed; the test is skipped where it is not."""
    found = shutil.which(program, path=":".join([*map(str, FOLDERS), os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"{program} is not installed: `make oracles`")
    return found


def configuration(program: str) -> str:
    """The server as a command line brings it."""
    path = ":".join([*map(str, FOLDERS), os.environ["PATH"]])
    args = SERVERS[program][0] if program in SERVERS else []
    entry = {"command": program_of(program), "args": args, "env": {"PATH": path}}
    return json.dumps({"mcpServers": {"real": entry}})


def called(tool: str, **args: Any) -> list[CallTool]:
    given = {"name": f"mcp__real__{tool}", "arguments": args}
    return [CallTool(name="tool_call", args=given)]


def prepare(world: World) -> None:
    """A repository with a file."""
    world.write("a.txt", "one")
    subprocess.run(["git", "init", "-q"], cwd=world.project, check=True)


async def told(world: World, program: str, *calls: list[CallTool]) -> tuple[list[str], set[str]]:
    """What a model is told, and the files that were touched."""
    model = ScriptedModel([[CallTool(name="tool_search", args={"query": "*"})], *calls, "done"])
    given = [configuration(program)]
    async with world.open(model, config={"sandbox.mode": "on"}, mcp_config=given) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        with anyio.fail_after(PATIENCE):
            await session.send_message("go")
        touched = {file.path for file in await session.touched_files()}
        await session.rewind(0)
    lines = request_lines(model.requests[-1])
    return [line for line in lines if line.startswith("result: ")], touched


@pytest.mark.parametrize("program", SERVERS)
async def test_a_real_server_lists_its_tools_and_answers(plain_world: World, program: str) -> None:
    prepare(plain_world)
    _, tool, args, said = SERVERS[program]
    results, _ = await told(plain_world, program, called(tool, **args))
    assert f"mcp__real__{tool}" in results[0]
    assert said in results[1]


@pytest.mark.parametrize("program", LISTED)
async def test_a_real_server_lists_its_tools(plain_world: World, program: str) -> None:
    prepare(plain_world)
    tool, least = LISTED[program]
    results, _ = await told(plain_world, program)
    assert tool in results[0]
    assert results[0].count("mcp__real__") >= least


@pytest.mark.parametrize("program", DEAD)
async def test_a_real_server_that_does_not_start_is_named_with_its_last_words(
    plain_world: World, program: str
) -> None:
    prepare(plain_world)
    results, _ = await told(plain_world, program)
    assert f"The MCP server real is not there: {DEAD[program]}" in results[0]


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Generator[str]:
    """Where a server listens; given are its program and its arguments, with PORT in them."""
    program, *words = request.param.split()
    port = str(free_port())
    with subprocess.Popen(
        [program_of(program), *(word.replace("PORT", port) for word in words)],
        env={**os.environ, "PORT": port},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        try:
            # It says so when it listens.
            while port not in (line := running.stderr.readline()):
                assert line, "it has ended"
            yield f"http://localhost:{port}"
        finally:
            running.terminate()


@pytest.mark.parametrize(
    ("address", "tool"),
    [
        ("playwright-mcp --port PORT", "browser_navigate"),
        ("context7-mcp --transport http --port PORT", "query-docs"),
    ],
    indirect=["address"],
)
async def test_a_real_server_lists_its_tools_at_an_address(address: str, tool: str) -> None:
    """The one answers `localhost` and refuses 127.0.0.1; the other challenges with a 200."""
    with anyio.fail_after(PATIENCE):
        async with http_client(f"{address}/mcp") as server:
            await server.must_be_ready(PATIENCE)
            assert (server.state, tool in server.record.tools()) == ("ready", True)


@pytest.mark.parametrize(
    ("address", "transport", "path"),
    [
        ("mcp-server-everything streamableHttp", "http", "/mcp"),
        ("mcp-server-everything sse", "sse", "/sse"),
    ],
    indirect=["address"],
)
async def test_a_real_server_answers_at_an_address(address: str, transport: str, path: str) -> None:
    with anyio.fail_after(PATIENCE):
        async with http_client(f"{address}{path}", transport=transport) as server:
            outcome = await server_call(server, "get-sum", a=2, b=3)
            assert outcome.text.endswith("The sum of 2 and 3 is 5.")
            assert server.record.era == "2025-11-25"


async def test_what_server_filesystem_does_to_files_is_known_judged_and_undone(
    plain_world: World,
) -> None:
    prepare(plain_world)
    at = str(plain_world.project)
    edits = [{"oldText": "one", "newText": "two"}]
    results, touched = await told(
        plain_world,
        "mcp-server-filesystem",
        called("edit_file", path=f"{at}/a.txt", edits=edits),
        called("write_file", path=f"{at}/b.txt", content="b"),
        called("move_file", source=f"{at}/b.txt", destination=f"{at}/c.txt"),
        called("write_file", path=f"{at}/.git/hooks/post-checkout", content="evil"),
    )
    assert {"a.txt", "b.txt", "c.txt"} <= touched
    assert "read-only file system" in results[4].lower()
    assert plain_world.read("a.txt") == "one"
    assert sorted(os.listdir(at)) == [".git", "a.txt"]


@pytest.mark.parametrize("way", ["sandbox", "namespace", "keeper"])
def test_nothing_that_npx_starts_survives_a_kill_of_weft(way: str, tmp_path: Path) -> None:
    npx = shutil.which("npx")
    if npx is None or not (SERVERS_FOLDER / "node_modules").exists():
        pytest.skip("npx or the servers are not installed: `make oracles`")
    project = tmp_path / "project"
    project.mkdir()
    # The folder is one that only this server is given, so that its processes are found by it.
    word = str(project)
    words = ["--offline", "--no-install", "--prefix", str(SERVERS_FOLDER)]
    environ = {"PATH": f"{os.environ['PATH']}"}
    written: dict[str, object] = {
        "command": npx,
        "args": [*words, "mcp-server-filesystem", word],
        "env": environ,
        "sandbox": "on" if way == "sandbox" else "off",
    }
    about = {"protocolVersion": "2025-11-25", "capabilities": {}}
    about["clientInfo"] = {"name": "weft", "version": "1"}
    request = json.dumps({"method": "initialize", "params": about})
    path = str(tmp_path) if way == "keeper" else os.environ["PATH"]
    mode = "on" if way == "sandbox" else "auto"
    with keeper(project, mode, written, path, request) as pid:
        handles = bearing(word)
        # Weft's own process, npm's, and the server that npm has started.
        assert len(handles) >= 3
        os.kill(pid, signal.SIGKILL)
        assert all(map(has_ended, handles))
        assert are_gone(word)
    for handle in handles:
        os.close(handle)
