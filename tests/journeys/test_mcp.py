"""MCP servers in a session: their tools go the ways of ours, and what they change is known."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from tests.support.loopback_server import serving
from tests.support.mcp_http_server import ScriptedHttpServer
from tests.support.mcp_servers import PATIENCE, SCRIPT, entry
from tests.support.world import World, facts, request_lines, running, until
from weft.api.session import Session
from weft.app import App
from weft.errors import NoPendingRequest
from weft.events import (
    PermissionRequest,
    QuestionAnswered,
    QuestionAsked,
    SystemNote,
    ToolExecuting,
)
from weft.providers import ModelRequest
from weft.providers.schema import as_object
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]

SANDBOX = {"sandbox.mode": "on"}


def configure(world: World, **servers: dict[str, Any]) -> Path:
    """Write servers into the user's own file."""
    path = world.base / ".config" / "weft" / "mcp.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def call(tool: str, **args: Any) -> list[CallTool]:
    return [CallTool(name=f"mcp__scripted__{tool}", args=args)]


def found(tool: str, **args: Any) -> list[CallTool]:
    """A call by way of the tool that calls what a search has found."""
    name = f"mcp__scripted__{tool}"
    return [CallTool(name="tool_call", args={"name": name, "arguments": args})]


def results(model: ScriptedModel) -> list[str]:
    lines = request_lines(model.requests[-1])
    return [line.removeprefix("result: ") for line in lines if line.startswith("result: ")]


def tool_names(model: ScriptedModel, at: int = 0) -> list[str]:
    return [tool.name for tool in model.requests[at].tools]


async def said_to(app: App, model: ScriptedModel, **options: Any) -> Session:
    session = await app.sessions.start_session(**options)
    await session.send_message("do it")
    return session


async def listed(world: World, *, config: dict[str, Any] | None = None) -> None:
    """Let a session get to know the servers, so that the next one has their tools by name."""
    model = ScriptedModel([[CallTool(name="tool_search", args={"query": "echo"})], "done"])
    async with world.open(model, config=config or SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")


async def test_the_tool_of_a_server_that_was_never_started_is_found_in_the_first_turn(
    world: World,
) -> None:
    configure(world, scripted=entry())
    model = ScriptedModel(
        [
            [CallTool(name="tool_search", args={"query": "echo something"})],
            found("echo", text="hello"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    assert {"tool_search", "tool_call"} <= set(tool_names(model))
    assert "whose tools are not known yet (tool_search waits for them): scripted" in str(
        model.requests[0].messages
    )
    assert "mcp__scripted__echo\ndoes echo\nParameters: {" in str(results(model)[0]).replace(
        "\\n", "\n"
    )
    assert results(model)[1].endswith("echo: hello")


async def test_servers_are_started_when_the_first_request_is_on_its_way(world: World) -> None:
    configure(world, scripted=entry())
    states: list[str] = []

    def state() -> str:
        servers = app.mcp_servers
        assert servers is not None
        return servers.status()[0].state

    class Watched(ScriptedModel):
        def stream(self, request: ModelRequest) -> Any:
            states.append(state())
            return super().stream(request)

    model = Watched([Stall(gate="g")])
    async with world.open(model, config=SANDBOX) as app:
        session = await app.sessions.start_session()
        async with running(lambda: session.send_message("go")):
            await model.gate("g").reached.wait()
            with anyio.fail_after(PATIENCE):
                while state() != "ready":
                    await anyio.lowlevel.checkpoint()
            assert states == ["not started"]
            await session.abort()


async def allow_all(session: Session, wanted: int) -> list[PermissionRequest]:
    """Allow so many requests, one after the other."""
    seen: list[PermissionRequest] = []
    after = 0
    while len(seen) < wanted:
        request = await until(session, PermissionRequest, after=after)
        after = request.seq
        seen.append(request)
        await session.respond_to_permission("allow_once", request_id=request.request_id)
    return seen


async def test_tools_that_are_known_are_offered_by_name_and_asked_about(world: World) -> None:
    configure(world, scripted=entry())
    await listed(world)
    model = ScriptedModel([call("echo", text="one"), call("echo", text="two"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        session = await app.sessions.start_session()
        async with running(lambda: session.send_message("do it")):
            requests = await allow_all(session, 2)
    assert requests[0].tool_name == "mcp__scripted__echo"
    assert "echo of the MCP server scripted (user scope, with the network)" in requests[0].preview
    assert "The server says that it only reads." in requests[0].preview
    assert "mcp__scripted__echo" in tool_names(model)
    assert "tool_search" not in tool_names(model)
    assert [line[-3:] for line in results(model)] == ["one", "two"]


async def test_a_tool_that_no_vendor_takes_is_called_by_way_of_a_search(world: World) -> None:
    configure(world, scripted=entry("odd_names", "odd_schemas"))
    await listed(world)
    model = ScriptedModel([found("query", **{"$filter": "x"}), "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    offered = tool_names(model)
    assert {"mcp__scripted__echo", "mcp__scripted__loop", "tool_search"} <= set(offered)
    assert "mcp__scripted__query" not in offered
    assert "called with tool_call: mcp__scripted__query" in str(model.requests[0].messages)
    assert results(model)[0].endswith("echo: ")
    for tool in model.requests[0].tools:
        as_object(tool.schema)


# --- what a call changes -------------------------------------------------------------------


async def test_what_a_call_writes_is_touched_and_goes_back_with_a_rewind(world: World) -> None:
    configure(world, scripted=entry())
    await listed(world)
    world.write("a.txt", "before")
    model = ScriptedModel(
        [
            call("write", path="a.txt", text="after"),
            call("write", path="new/b.txt", text="b"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        session = await said_to(app, model, permission_mode="bypass")
        touched = {file.path for file in await session.touched_files()}
        assert {"a.txt", "new/b.txt"} <= touched
        assert (world.read("a.txt"), world.read("new/b.txt")) == ("after", "b")
        await session.rewind(0)
        assert world.read("a.txt") == "before"
        assert not (world.project / "new").exists()


async def test_a_call_cannot_change_what_programs_obey(world: World) -> None:
    configure(world, scripted=entry())
    (world.project / ".git" / "hooks").mkdir(parents=True)
    world.write("CLAUDE.md", "old")
    await listed(world)
    model = ScriptedModel(
        [
            call("write", path=".git/hooks/post-checkout", text="evil"),
            call("write", path="CLAUDE.md", text="evil"),
            call("write", path=".vscode/tasks.json", text="evil"),
            call("write", path="plain.txt", text="fine"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        session = await said_to(app, model, permission_mode="accept_edits", asking="yes")
        assert [file.path for file in await session.touched_files()] == ["plain.txt"]
        notes = [note.text for note in await facts(session, SystemNote)]
    assert world.read("CLAUDE.md") == "old"
    assert world.read("plain.txt") == "fine"
    assert not (world.project / ".vscode").exists()
    assert not (world.project / ".git" / "hooks" / "post-checkout").exists()
    told = results(model)
    assert "Read-only file system" in told[0]
    assert "Read-only file system" in told[1]
    assert "These changes are not allowed and were put back" in told[2]
    assert any(".vscode/tasks.json" in note for note in notes)
    assert [path.read_text() for path in (world.base / "mcp" / "refused").iterdir()] == ["evil"]


async def test_no_call_changes_a_repository_in_the_project_and_a_new_one_is_told(
    plain_world: World,
) -> None:
    world = plain_world
    configure(world, scripted=entry())
    world.write("vendor/lib/.git/hooks/sample", "x")
    world.write("vendor/tree/.git", "gitdir: ../../.git/worktrees/tree")
    await listed(world)
    hook = "hooks/post-checkout"
    model = ScriptedModel(
        [
            call("write", path=f"vendor/lib/.git/{hook}", text="evil"),
            call("write", path="vendor/tree/.git", text="gitdir: /evil"),
            call("write", path=f"new/lib/.git/{hook}", text="evil"),
            call("write", path="new/plain.txt", text="fine"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        session = await said_to(app, model, permission_mode="bypass")
        notes = [note.text for note in await facts(session, SystemNote)]
    assert [("Read-only" in each) for each in results(model)] == [True, True, False, False]
    assert not (world.project / "vendor/lib/.git" / hook).exists()
    (told,) = [note for note in notes if "git repository" in note]
    assert "made a git repository in new/lib; look at its hooks" in told


async def test_a_call_that_ends_in_an_error_is_judged_as_well(world: World) -> None:
    configure(world, scripted=entry("write_and_fail"))
    await listed(world)
    model = ScriptedModel([call("write", path=".vscode/tasks.json", text="evil"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="default", asking="yes")
    assert not (world.project / ".vscode").exists()
    assert "error -32000: not written at all" in results(model)[0]
    assert "were put back" in results(model)[0]


async def test_a_call_is_held_to_the_boundaries_of_the_session(world: World) -> None:
    configure(world, scripted=entry())
    await listed(world)
    world.write("code.py", "one\ntwo\nthree\n")
    model = ScriptedModel(
        [
            call("write", path="code.py", text="one\nTWO\nthree\n"),
            call("write", path="code.py", text="ONE\nTWO\nthree\n"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        await session.set_boundary("code.py", 1, 1)
        await session.send_message("do it")
    assert world.read("code.py") == "one\nTWO\nthree\n"
    assert "were put back" not in results(model)[0]
    assert "were put back" in results(model)[1]


async def test_a_call_writes_nowhere_but_in_the_project(world: World) -> None:
    outside = world.base / "outside"
    outside.mkdir()
    configure(world, scripted=entry())
    await listed(world)
    settings = world.base / ".config" / "weft" / "mcp.json"
    model = ScriptedModel(
        [
            call("write", path=str(outside / "x"), text="evil"),
            call("write", path=str(settings), text="evil"),
            call("write", path="/etc/evil", text="evil"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    assert not list(outside.iterdir())
    assert "scripted" in settings.read_text()
    assert not Path("/etc/evil").exists()


# --- what a server sees --------------------------------------------------------------------


async def test_a_server_gets_little_of_the_environment_and_what_its_entry_names(
    world: World,
) -> None:
    own = {"OWN": "x-${LENT}-${ABSENT:-default}"}
    configure(world, scripted=entry(env=own))
    search = [CallTool(name="tool_search", args={"query": "env"})]
    model = ScriptedModel([search, found("env"), "done"])
    environ = {**world.environ, "LENT": "lent", "OPENAI_API_KEY": "sk-123456789", "ELSE": "1"}
    async with world.open(model, config=SANDBOX) as app:
        app._environ.update(environ)
        await said_to(app, model, permission_mode="bypass")
    seen = json.loads(results(model)[1].split("]", 1)[1])
    assert seen["OWN"] == "x-lent-default"
    assert {"HOME", "PATH"} <= set(seen)
    assert not {"OPENAI_API_KEY", "ELSE", "LENT", "WEFT_HOME"} & set(seen)


async def test_a_variable_of_an_entry_takes_effect_in_the_sandbox_alone(world: World) -> None:
    """The loader of every program obeys these, also that of the one which makes the sandbox."""
    outside = world.base / "outside"
    outside.mkdir()
    loader = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(outside / "log"), "OWN": "one\ntwo=3"}
    configure(world, scripted=entry(env=loader))
    search = [CallTool(name="tool_search", args={"query": "env"})]
    model = ScriptedModel([search, found("env"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    seen = json.loads(results(model)[1].split("]", 1)[1])
    assert {name: seen[name] for name in loader} == loader
    assert not list(outside.iterdir())


WAYS = ("text", "structured", "is_error", "error", "progress", "end", "list")


@pytest.mark.parametrize("by", WAYS)
async def test_a_key_that_a_server_was_lent_comes_back_nowhere(world: World, by: str) -> None:
    key = "hunter2-hunter2-hunter2"
    traps = ("leaks", "leak_list") if by == "list" else ("leaks",)
    configure(world, scripted=entry(*traps, env={"API_TOKEN": "${MY_TOKEN}"}))
    search = [CallTool(name="tool_search", args={"query": "echo leak"})]
    model = ScriptedModel([search, found("leak", by=by), search, "done", "done"])
    async with world.open(model, config=SANDBOX) as app:
        app._environ["MY_TOKEN"] = key
        session = await app.sessions.start_session(permission_mode="bypass")
        async with await session.subscribe() as live:
            await session.send_message("do it")
            await session.send_message("again")
            shown = str(app.mcp.status())
            end = (await session.editor_snapshot()).seq
            told = [await anext(live)]
            while live.cursor < end:
                told.append(await anext(live))
    async with world.open(direct := ScriptedModel(["done"]), config=SANDBOX) as app:
        await said_to(app, direct)
    assert "mcp__scripted__echo" in tool_names(direct)
    assert key not in str(direct.requests)
    assert "mcp__scripted__leak" in results(model)[0]
    assert key not in str(model.requests)
    assert not [each for each in told if key in str(each)]
    assert key not in shown


async def test_a_variable_that_is_not_set_is_named(world: World) -> None:
    configure(world, scripted=entry(env={"TOKEN": "${NOT_THERE}"}))
    model = ScriptedModel([[CallTool(name="tool_search", args={"query": "echo"})], "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    assert "it needs variables that are not set: NOT_THERE" in results(model)[0]


@pytest.mark.parametrize("way", ["sandbox", "namespace", "keeper"])
async def test_a_server_that_does_not_end_with_its_input_is_asked_to_end_before_it_is_killed(
    plain_world: World, way: str
) -> None:
    is_sandboxed = way == "sandbox"
    place = plain_world.project / "tidied"
    configure(
        plain_world, scripted=entry(f"tidies={place}", sandbox="on" if is_sandboxed else "off")
    )
    search = [CallTool(name="tool_search", args={"query": "echo"})]
    model = ScriptedModel([search, "done"])
    async with plain_world.open(model, config=SANDBOX if is_sandboxed else {}) as app:
        if way == "keeper":
            app._environ["PATH"] = str(plain_world.base)  # without bubblewrap
        await said_to(app, model, permission_mode="bypass")
        assert "mcp__scripted__echo" in results(model)[0]
        assert not place.exists()
    assert place.read_text() == "tidy"


# --- limits of the environment ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "own", "shown"),
    [
        ({"MCP_TOOL_TIMEOUT": "50"}, {}, "it said nothing for 0.05 seconds"),
        ({"MCP_TOOL_TIMEOUT": "50000"}, {"timeout": 40}, "it said nothing for 0.04 seconds"),
        ({"MCP_TOOL_TIMEOUT": "soon"}, {"timeout": 30}, "it said nothing for 0.03 seconds"),
    ],
)
async def test_how_long_a_call_may_be_silent_is_said_by_the_entry_or_the_environment(
    plain_world: World, environ: dict[str, str], own: dict[str, Any], shown: str
) -> None:
    configure(plain_world, scripted=entry("hang_call", **own))
    search = [CallTool(name="tool_search", args={"query": "echo"})]
    model = ScriptedModel([search, found("echo"), "done"])
    async with plain_world.open(model, config=SANDBOX) as app:
        app._environ.update(environ)
        await said_to(app, model, permission_mode="bypass")
    assert shown in results(model)[1]


@pytest.mark.parametrize(
    ("environ", "own", "shown"),
    [
        ({"MCP_TIMEOUT": "50"}, {}, "still starting after 0.05 seconds"),
        ({"MCP_TIMEOUT": "50000"}, {"startupTimeout": 40}, "still starting after 0.04 seconds"),
    ],
)
async def test_how_long_a_server_may_take_to_start_is_said_by_the_entry_or_the_environment(
    plain_world: World, environ: dict[str, str], own: dict[str, Any], shown: str
) -> None:
    configure(plain_world, scripted=entry("hang", **own))
    search = [CallTool(name="tool_search", args={"query": "echo"})]
    model = ScriptedModel([search, "done"])
    async with plain_world.open(model, config=SANDBOX) as app:
        app._environ.update(environ)
        await said_to(app, model, permission_mode="bypass")
    assert shown in results(model)[0]


async def test_how_long_a_server_may_take_holds_for_calls_of_known_tools_too(
    plain_world: World,
) -> None:
    """Its tools are known from before, so that the first to wait for it is a call."""
    script = plain_world.base / "server.py"
    for trap in ("version=2025-11-25", "hang"):
        script.write_text(
            f"import runpy, sys\nsys.argv = ['x', {trap!r}]\n"
            f"runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
        )
        configure(
            plain_world,
            scripted={"command": sys.executable, "args": ["-I", str(script)], "sandbox": "off"},
        )
        if trap != "hang":
            await listed(plain_world)
    model = ScriptedModel([call("echo"), "done"])
    async with plain_world.open(model, config=SANDBOX) as app:
        app._environ["MCP_TIMEOUT"] = "50"
        await said_to(app, model, permission_mode="bypass")
    assert "still starting after 0.05 seconds" in results(model)[0]


@pytest.mark.parametrize(("most", "kept"), [("100", 400), ("0", 5_000), ("many", 5_000)])
async def test_how_long_a_result_may_be_is_said_by_the_environment(
    plain_world: World, most: str, kept: int
) -> None:
    configure(plain_world, scripted=entry())
    search = [CallTool(name="tool_search", args={"query": "echo"})]
    model = ScriptedModel([search, found("echo", text="x" * 5_000), "done"])
    async with plain_world.open(model, config=SANDBOX) as app:
        app._environ["MAX_MCP_OUTPUT_TOKENS"] = most
        await said_to(app, model, permission_mode="bypass")
    told = results(model)[1]
    assert told.count("x") in range(kept - len("echo: "), kept + 20)
    assert ("and the first 400 are shown" in told) == (most == "100")


# --- rules ---------------------------------------------------------------------------------


async def test_rules_hold_for_servers_tools_and_arguments(world: World) -> None:
    configure(world, scripted=entry())
    await listed(world)
    rules = {
        "permissions.allow": ["mcp__scripted__echo(text:ok*)", "mcp__scripted__image"],
        "permissions.deny": ["mcp__scripted__write(path:*secret*)", "mcp__scripted__spawn"],
    }
    model = ScriptedModel(
        [
            call("echo", text="okay"),
            call("echo", text="no"),
            call("write", path="a/secret.txt", text="x"),
            call("spawn"),
            call("image"),
            "done",
        ]
    )
    async with world.open(model, config={**SANDBOX, **rules}) as app:
        await said_to(app, model, asking="no")
    told = results(model)
    assert told[0].endswith("echo: okay")
    assert "there is no one to ask" in told[1]
    assert "the rule `deny mcp__scripted__write(path:*secret*)` says so" in told[2]
    assert "the rule `deny mcp__scripted__spawn` says so" in told[3]
    assert "no text" in told[4]


async def test_a_rule_holds_for_a_tool_that_was_found_by_a_search_as_well(world: World) -> None:
    configure(world, scripted=entry("many=30"))
    await listed(world)
    rules = {"permissions.deny": ["mcp__scripted"]}
    model = ScriptedModel([found("echo", text="x"), "done"])
    async with world.open(model, config={**SANDBOX, **rules}) as app:
        await said_to(app, model, permission_mode="bypass")
    assert "the rule `deny mcp__scripted` says so" in results(model)[0]
    assert "mcp__scripted__echo" not in tool_names(model)


async def test_hooks_and_requests_see_the_tool_that_is_meant(world: World) -> None:
    configure(world, scripted=entry("many=30"))
    await listed(world)
    hook = {"type": "command", "command": "echo not this one >&2; exit 2"}
    hooks = {"PreToolUse": [{"matcher": "mcp__scripted__write", "hooks": [hook]}]}
    model = ScriptedModel([found("write", text="x"), found("echo", text="x"), "done"])
    async with world.open(model, config={**SANDBOX, "hooks": hooks}) as app:
        session = await app.sessions.start_session()
        async with running(lambda: session.send_message("do it")):
            (request,) = await allow_all(session, 1)
        executed = [fact.tool_name for fact in await facts(session, ToolExecuting)]
    assert (request.tool_name, request.args) == ("mcp__scripted__echo", {"text": "x"})
    assert executed == ["mcp__scripted__echo"]
    assert "not this one" in results(model)[0]
    assert results(model)[1].endswith("echo: x")


async def test_plan_mode_leaves_what_the_user_says_only_reads_and_asks_for_it(
    world: World,
) -> None:
    configure(world, scripted=entry(trustHints=True))
    await listed(world)
    model = ScriptedModel([call("echo", text="x"), call("write", text="x"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        session = await app.sessions.start_session(permission_mode="plan")
        async with running(lambda: session.send_message("do it")):
            (request,) = await allow_all(session, 1)
    assert request.tool_name == "mcp__scripted__echo"
    assert [name for name in tool_names(model) if "mcp__" in name] == ["mcp__scripted__echo"]
    assert results(model)[0].endswith("echo: x")
    assert "plan mode changes nothing" in results(model)[1]


# --- pins ----------------------------------------------------------------------------------


async def pinned_then(world: World, *traps: str) -> None:
    """A server that the user knows, and that says something else from now on."""
    configure(world, scripted=entry("x"))
    await listed(world)
    record = next((world.base / "mcp").glob("*.json"))
    content = json.loads(record.read_text())
    # As if the program behind the same command line had been replaced.
    for tool in content["pinned"].values():
        if tool["name"] == "echo":
            tool["description"] = "did echo before"
    record.write_text(json.dumps(content))


async def test_a_tool_that_says_something_else_is_asked_about_with_the_difference(
    world: World,
) -> None:
    await pinned_then(world)
    rules = {"permissions.allow": ["mcp__scripted"]}
    model = ScriptedModel([call("echo", text="1"), call("echo", text="2"), "done"])
    async with world.open(model, config={**SANDBOX, **rules}) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        async with running(lambda: session.send_message("do it")):
            (request,) = await allow_all(session, 1)
    assert "describes 'echo' in another way now" in request.reason
    assert '-  "description": "did echo before",' in request.preview
    assert '+  "description": "does echo",' in request.preview
    assert request.always_pattern == ""
    # The first answer is the user's word for it: the second call needs none.
    assert [line[-1] for line in results(model)] == ["1", "2"]
    # What the model was told is what the user knew.
    described = {tool.name: tool.description for tool in model.requests[0].tools}
    assert described["mcp__scripted__echo"] == "did echo before"


async def test_a_changed_tool_is_not_called_where_nobody_can_be_asked(world: World) -> None:
    await pinned_then(world)
    model = ScriptedModel([call("echo", text="1"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass", asking="yes")
    assert "only the user can allow it" in results(model)[0]


# --- questions -----------------------------------------------------------------------------


async def test_what_a_server_asks_is_a_question_of_the_session(world: World) -> None:
    configure(world, scripted=entry())
    await listed(world)
    model = ScriptedModel([call("ask"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        async with running(lambda: session.send_message("do it")):
            question = await until(session, QuestionAsked)
            assert question.question == "The MCP server scripted asks: Which one?\ncolor"
            await session.answer_question(question.request_id, "green")
    assert '"content": {"color": "green"}' in results(model)[0]


async def test_a_question_that_the_server_takes_back_waits_for_the_user_no_longer(
    world: World,
) -> None:
    sign = world.base / "sign"
    os.mkfifo(sign)
    configure(world, scripted=entry(f"takes_back={sign}", sandbox="off"))
    await listed(world)
    model = ScriptedModel([call("ask"), "done"])
    async with world.open(model) as app:
        session = await app.sessions.start_session(permission_mode="bypass")
        async with running(lambda: session.send_message("do it")):
            first = await until(session, QuestionAsked)
            await anyio.to_thread.run_sync(sign.write_text, "now")
            second = await until(session, QuestionAsked, after=first.seq)
            with pytest.raises(NoPendingRequest):
                await session.answer_question(first.request_id, "too late")
            await session.answer_question(second.request_id, "green")
        told = [each.answer for each in await facts(session, QuestionAnswered)]
    assert told == ["", "green"]
    assert "too late" not in results(model)[0]
    assert '"content": {"color": "green"}' in results(model)[0]


# --- the project's own servers -------------------------------------------------------------


async def test_a_server_of_the_project_counts_only_after_the_users_yes(world: World) -> None:
    world.write(".mcp.json", json.dumps({"mcpServers": {"scripted": entry()}}))
    model = ScriptedModel(["hello"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model)
        servers = app.mcp_servers
        assert servers is not None
        assert [each.state for each in servers.status()] == ["needs_trust"]
        (question,) = servers.questions()
        assert "hostile_mcp_server.py" in question.shown
        servers.answer("scripted", "yes")
    assert "tool_search" not in tool_names(model)
    await listed(world)
    model = ScriptedModel([call("echo", text="hi"), "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    assert results(model)[0].endswith("echo: hi")
    # Any change of the entry, and the answer counts no more.
    world.write(".mcp.json", json.dumps({"mcpServers": {"scripted": entry("other")}}))
    async with world.open(ScriptedModel(["x"]), config=SANDBOX) as app:
        servers = app.mcp_servers
        assert servers is not None
        assert [each.state for each in servers.status()] == ["needs_trust"]


async def test_the_prefix_is_the_same_before_and_after_a_list_changes(world: World) -> None:
    configure(world, scripted=entry("changes", "grows"))
    await listed(world)
    model = ScriptedModel([call("echo", text="1"), "one", "two"])
    async with world.open(model, config=SANDBOX) as app:
        session = await said_to(app, model, permission_mode="bypass")
        await session.send_message("again")
    first, *others = [(request.system, request.tools) for request in model.requests]
    assert all(each == first for each in others)


async def test_many_tools_are_named_in_a_note_and_found_by_a_search(world: World) -> None:
    configure(world, scripted=entry("many=100"))
    await listed(world)
    model = ScriptedModel(
        [
            [CallTool(name="tool_search", args={"query": "select:mcp__scripted__tool_77"})],
            found("tool_77", text="x"),
            "done",
        ]
    )
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    assert not any(name.startswith("mcp__") for name in tool_names(model))
    assert "mcp__scripted__tool_99" in str(model.requests[0].messages)
    assert results(model)[1].endswith("echo: x")


async def test_the_names_of_many_tools_leave_room_for_those_of_other_servers(world: World) -> None:
    configure(world, alone=entry(), many=entry("many=900"))
    model = ScriptedModel([[CallTool(name="tool_search", args={"query": "tool_899"})], "done"])
    async with world.open(model, config=SANDBOX) as app:
        await said_to(app, model, permission_mode="bypass")
    async with world.open(known := ScriptedModel(["done"]), config=SANDBOX) as app:
        await said_to(app, known)
    (note,) = re.findall(r"Tools of MCP servers, [^\n]*?more of many", str(known.requests))
    assert len(note) < 9_000
    assert "mcp__alone__write, mcp__many__ask" in note
    assert "mcp__many__tool_899" in results(model)[0]


async def test_a_server_at_an_address_is_used_like_any_other_and_its_key_is_masked(
    world: World,
) -> None:
    scripted = ScriptedHttpServer("login")
    search = [CallTool(name="tool_search", args={"query": "echo"})]
    said = found("echo", text="the key is secret-1234-good")
    async with serving(scripted.handle) as listening:
        at = {"type": "http", "url": f"{listening.url}/mcp"}
        configure(world, scripted={**at, "headers": {"Authorization": "Bearer ${MY_KEY}"}})
        scripted.key = "secret-1234-good"
        model = ScriptedModel([search, said, "done"])
        async with world.open(model) as app:
            app._environ["MY_KEY"] = scripted.key
            await said_to(app, model, permission_mode="bypass")
            (row,) = app.mcp.status()
            assert (row.state, row.tools, row.era) == ("ready", 2, "2025-11-25")
            shown = app.mcp.described("scripted")
    assert "echo: the key is" in results(model)[1]
    assert "secret-1234-good" not in results(model)[1]
    assert "secret-1234-good" not in str(shown)
    assert scripted.sessions == set()


async def test_a_server_that_wants_a_login_is_told_with_the_command_that_logs_in(
    world: World,
) -> None:
    scripted = ScriptedHttpServer("login")
    search = [CallTool(name="tool_search", args={"query": "echo"})]
    async with serving(scripted.handle) as listening:
        configure(world, scripted={"url": f"{listening.url}/mcp"})
        model = ScriptedModel([search, "done"])
        async with world.open(model) as app:
            await said_to(app, model, permission_mode="bypass")
            (row,) = app.mcp.status()
    assert (row.state, row.why) == ("needs_login", "`weft mcp login scripted` logs in")
    assert "weft mcp login scripted" in results(model)[0]
