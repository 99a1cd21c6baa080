"""What language servers say of an edit, in the result of the call that made it."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import pytest

from tests.support.language_project import PATIENCE, SCRIPT
from tests.support.world import World, request_lines, running, until
from weft.app import App
from weft.events import PermissionRequest, ToolComplete
from weft.lsp import OpenDocument
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def settings(*traps: str, wait: float = PATIENCE, **more: Any) -> dict[str, Any]:
    """The scripted server for Python files, and no other."""
    command = [sys.executable, "-I", "-S", SCRIPT, *traps]
    servers = {
        "scripted": {"command": command, "suffixes": [".py"]},
        "ruff": {"enabled": False},
    }
    named = {name.replace("__", "."): value for name, value in more.items()}
    return {
        "sandbox.mode": "auto",
        "lsp.enabled": True,
        "lsp.servers": servers,
        "lsp.wait": wait,
        **named,
    }


def write(path: str, content: str) -> list[CallTool]:
    return [CallTool(name="write", args={"path": path, "content": content})]


def edit(path: str, old: str, new: str) -> list[CallTool]:
    return [CallTool(name="edit", args={"path": path, "old_string": old, "new_string": new})]


def results(model: ScriptedModel) -> list[str]:
    """What the model read of each call, in order, without its first line's beginning."""
    lines = request_lines(model.requests[-1])
    return [line.removeprefix("result: ") for line in lines if line.startswith("result: ")]


async def run(app: App, **options: Any) -> None:
    session = await app.sessions.start_session(session_id="s", auto_approve=True, **options)
    with anyio.fail_after(PATIENCE):
        await session.send_message("do it")


async def said_after(world: World, *steps: list[CallTool], config: dict[str, Any]) -> list[str]:
    """The results of these calls in one turn."""
    model = ScriptedModel([*steps, "done"])
    async with world.open(model, config=config) as app:
        await run(app)
    return results(model)


async def test_an_error_made_by_an_edit_is_in_the_same_result(plain_world: World) -> None:
    said = await said_after(
        plain_world,
        write("a.py", "def x\n"),
        edit("a.py", "def x", "def x\nBUG 7"),
        edit("a.py", "BUG 7\n", ""),
        config=settings(),
    )
    assert said == [
        "wrote a.py (1 lines)\nscripted: no problems",
        "edited a.py: 1 replacement\nscripted: 1 problem\na.py:2:1 error: BUG 7 [scripted]",
        "edited a.py: 1 replacement\nscripted: no problems",
    ]


async def test_files_that_import_the_edited_one_are_looked_at_too(plain_world: World) -> None:
    plain_world.write("user.py", "import names\nuse old\n")
    plain_world.write("other.py", "use nothing_of_it\n")
    plain_world.write("names.py", "def old\n")
    said = await said_after(
        plain_world,
        [CallTool(name="read", args={"path": "names.py"})],
        edit("names.py", "def old", "def new"),
        config=settings("pull"),
    )
    assert said[1] == (
        "edited names.py: 1 replacement\nscripted: 1 problem\nin files that import it:\n"
        "user.py:2:1 error: old is not defined [scripted]"
    )


async def test_a_cold_server_is_named_and_its_answer_comes_with_a_later_result(
    plain_world: World,
) -> None:
    model = ScriptedModel(
        [
            write("a.py", "BUG 1\n"),
            [CallTool(name="shell", args={"command": "touch go"})],
            "first",
            [CallTool(name="list", args={"path": "."})],
            "done",
        ]
    )
    async with plain_world.open(model, config=settings("cold", wait=0.05)) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        with anyio.fail_after(PATIENCE):
            await session.send_message("do it")
            assert results(model)[0] == (
                "wrote a.py (1 lines)\n"
                "scripted: no answer yet for a.py (starting); it follows with a later result"
            )
            await fresh(app, plain_world, "a.py")
            await session.send_message("go on")
    # With the result of the command that lets the server go on, if it is that quick.
    late = [each for each in results(model)[1:] if "Diagnostics that came later" in each]
    assert len(late) == 1
    assert late[0].endswith(
        "Diagnostics that came later:\nscripted: 1 problem\na.py:1:1 error: BUG 1 [scripted]"
    )


async def document_of(app: App, world: World, name: str) -> OpenDocument:
    """Wait until a file is shown to the server."""
    services = app.host.services
    registry = services.workspaces.languages(
        services.supervisor, services.clock, services.is_trusted
    )
    while True:
        for project in registry._projects.values():
            server = project.pool.servers.get("scripted")
            client = server and server.client
            document = client and client.documents.get(str(world.project / name))
            if document:
                return document
        await anyio.sleep(0.005)


async def fresh(app: App, world: World, name: str) -> None:
    """Wait until the server has said something of a file."""
    document = await document_of(app, world, name)
    while True:
        if document.fresh is not None:
            return
        await anyio.sleep(0.005)


async def test_a_late_answer_about_a_file_that_was_changed_since_is_not_delivered(
    plain_world: World,
) -> None:
    model = ScriptedModel(
        [write("a.py", "BUG 1\n"), "first", [CallTool(name="list", args={"path": "."})], "done"]
    )
    async with plain_world.open(model, config=settings("hold", wait=0.05)) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        with anyio.fail_after(PATIENCE):
            await session.send_message("do it")
            plain_world.write("go", "")
            await fresh(app, plain_world, "a.py")
            plain_world.write("a.py", "def changed_by_the_user\n")
            await session.send_message("go on")
    assert "BUG 1" not in results(model)[-1]


async def test_a_server_that_says_nothing_is_not_taken_for_no_problems(plain_world: World) -> None:
    said = await said_after(
        plain_world, write("a.py", "BUG 1\n"), config=settings("silent", wait=0.3)
    )
    assert "nothing reported for a.py within 0.3 s" in said[0] or "(starting)" in said[0]
    assert "no problems" not in said[0]


async def test_a_server_that_is_not_installed_is_named_once(plain_world: World) -> None:
    said = await said_after(
        plain_world, write("a.py", "BUG 1\n"), write("b.py", "BUG 2\n"), config=settings("proxy")
    )
    assert "scripted: no answer for a.py: not installed" in said[0]
    assert said[1] == "wrote b.py (1 lines)"


async def test_what_a_server_names_without_a_version_is_marked(plain_world: World) -> None:
    said = await said_after(
        plain_world, write("a.py", "BUG 1\n"), config=settings("no-version", "stale")
    )
    assert "names no version: this may lag behind" in said[0]


async def test_an_abort_while_the_result_waits_keeps_the_edit_on_record(plain_world: World) -> None:
    model = ScriptedModel([write("a.py", "BUG 1\n"), "done"])
    async with plain_world.open(model, config=settings("silent")) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)

        async def stop() -> None:
            await document_of(app, plain_world, "a.py")
            await session.abort()

        async with running(stop):
            await session.send_message("do it")
        assert [each.path for each in await session.touched_files()] == ["a.py"]
        events = await session.subscribe(after=0, live=False)
        ends = [each.result async for each in events if isinstance(each, ToolComplete)]
        assert [(end.status, end.text) for end in ends] == [("done", "wrote a.py (1 lines)")]


async def test_without_a_sandbox_servers_run_in_trusted_folders_only(plain_world: World) -> None:
    said = await said_after(
        plain_world, write("a.py", "BUG 1\n"), config=settings(sandbox__mode="off")
    )
    assert "run only in folders that you trust" in said[0]


async def test_switched_off_nothing_is_started(plain_world: World) -> None:
    said = await said_after(
        plain_world, write("a.py", "BUG 1\n"), config=settings(lsp__enabled=False)
    )
    assert said == ["wrote a.py (1 lines)"]


async def test_a_wrong_setting_is_named_and_the_edit_is_done(plain_world: World) -> None:
    config = {**settings(), "lsp.servers": {"mine": {"comand": ["x"]}}}
    said = await said_after(plain_world, write("a.py", "x = 1\n"), config=config)
    assert said[0].startswith("wrote a.py (1 lines)\n")
    assert "lsp.servers.mine" in said[0]
    assert plain_world.read("a.py") == "x = 1\n"


def offered(model: ScriptedModel) -> set[str]:
    return {tool.name for tool in model.requests[0].tools}


async def test_tools_that_ask_servers_are_offered_only_where_there_is_one(
    plain_world: World,
) -> None:
    with_servers, without = ScriptedModel(["ok"]), ScriptedModel(["ok"])
    async with plain_world.open(with_servers, config=settings()) as app:
        await run(app)
    async with plain_world.open(without, config=settings(lsp__enabled=False)) as app:
        session = await app.sessions.start_session(tools=["read", "lsp", "rename"])
        await session.send_message("hi")
    assert {"lsp", "rename"} <= offered(with_servers)
    assert offered(without) == {"read"}


async def test_a_rename_is_approved_by_its_diff_and_a_rewind_takes_it_back(
    plain_world: World,
) -> None:
    plain_world.write("names.py", "def old\n")
    plain_world.write("user.py", "import names\nuse old\n")
    args = {"path": "user.py", "symbol": "old", "new_name": "new"}
    model = ScriptedModel([[CallTool(name="rename", args=args)], "done"])
    async with plain_world.open(model, config=settings()) as app:
        session = await app.sessions.start_session(session_id="s")

        async def answer() -> None:
            request = await until(session, PermissionRequest)
            assert "-use old\n+use new" in request.preview
            assert plain_world.read("user.py") == "import names\nuse old\n"
            await session.respond_to_permission("allow_once", request_id=request.request_id)

        async with running(answer):
            await session.send_message("rename it")
        assert plain_world.read("names.py") == "def new\n"
        assert plain_world.read("user.py") == "import names\nuse new\n"
        files = {each.path: each.action for each in await session.touched_files()}
        assert files == {"names.py": "modified", "user.py": "modified"}
        assert results(model)[0].splitlines()[-1] == "scripted: no problems"
        await session.rewind(None)
    assert plain_world.read("names.py") == "def old\n"
    assert plain_world.read("user.py") == "import names\nuse old\n"


async def test_a_rule_against_an_edit_holds_for_a_rename(plain_world: World) -> None:
    plain_world.write("names.py", "def old\n")
    plain_world.write("user.py", "import names\nuse old\n")
    args = {"path": "user.py", "symbol": "old", "new_name": "new"}
    said = await said_after(
        plain_world,
        [CallTool(name="rename", args=args)],
        config=settings(permissions__deny=["edit(names.py)"]),
    )
    assert said[0].startswith("Denied")
    assert plain_world.read("user.py") == "import names\nuse old\n"


async def test_the_user_sees_what_runs_and_can_have_it_started_again(plain_world: World) -> None:
    model = ScriptedModel([write("a.py", "BUG 1\n"), "one", write("b.py", "BUG 2\n"), "two"])
    config = settings()
    async with plain_world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        await session.send_message("do it")
        # Another process would see the same: the record is a file.
        other = plain_world.open(config=config)
        first = [row for row in await other.language_servers() if row.state == "ready"]
        assert [(row.name, row.project) for row in first] == [
            ("scripted", str(plain_world.project))
        ]
        assert first[0].memory > 1_000_000
        other.restart_language_servers()
        await session.send_message("again")
        second = [row for row in await other.language_servers() if row.state == "ready"]
        assert len(second) == 1
        assert second[0].pid != first[0].pid
    gone = await other.language_servers()
    assert [row.state for row in gone if row.name == "scripted"] == ["not started"]


def lsp(action: str, path: str, **more: str) -> list[CallTool]:
    return [CallTool(name="lsp", args={"action": action, "path": path, **more})]


@pytest.mark.parametrize("verdict", ["deny", "ask"])
async def test_a_rule_about_reading_holds_for_what_language_servers_show(
    plain_world: World, verdict: str
) -> None:
    """Neither asked for, nor as an importer, nor as a place or a symbol in an answer."""
    plain_world.write("names.py", "def canary_a\n")
    plain_world.write("secret.py", "import names\nuse canary_a\ndef canary_b\nBUG canary_c\n")
    said = await said_after(
        plain_world,
        lsp("symbols", "secret.py"),
        lsp("diagnostics", "secret.py"),
        lsp("symbols", "names.py", query="canary_b"),
        lsp("references", "names.py", symbol="canary_a"),
        [CallTool(name="read", args={"path": "names.py"})],
        edit("names.py", "def canary_a", "def other"),
        config={**settings(), f"permissions.{verdict}": ["read(secret.py)"]},
    )
    assert "canary_b" not in said[0]
    assert "canary_c" not in said[1]
    assert said[2] == "no symbol like 'canary_b'"
    assert said[3] == "names.py:1:5 def canary_a"
    assert said[5] == "edited names.py: 1 replacement\nscripted: no problems"


async def test_a_file_that_may_not_be_read_is_no_part_of_a_rename(plain_world: World) -> None:
    plain_world.write("names.py", "def old\n")
    plain_world.write("secret.py", "import names\nuse old\n")
    said = await said_after(
        plain_world,
        [CallTool(name="rename", args={"path": "names.py", "symbol": "old", "new_name": "new"})],
        [CallTool(name="rename", args={"path": "secret.py", "symbol": "old", "new_name": "new"})],
        config=settings(permissions__deny=["read(secret.py)"]),
    )
    assert said[0].splitlines()[:2] == [
        "renamed old to new: 1 place in 1 file",
        "changed names.py",
    ]
    assert "may not be read" in said[1]
    assert plain_world.read("secret.py") == "import names\nuse old\n"


SEES = ["def x\nuse canary\n", "def x\n"]
"""`canary` is defined in a file of which only some may know."""


async def test_a_file_that_comes_to_be_hidden_is_hidden_from_a_running_server(
    plain_world: World,
) -> None:
    """What the sandbox hides is fixed when a program starts: another one is started then."""
    said = await said_after(
        plain_world,
        write("a.py", SEES[1]),
        [CallTool(name="shell", args={"command": "echo def canary > new.secret.py"})],
        write("b.py", SEES[0]),
        config=settings(permissions__deny=["read(*.secret.py)"]),
    )
    assert said[0].endswith("scripted: no problems")
    assert said[2].endswith("b.py:2:1 error: canary is not defined [scripted]")


async def test_what_is_to_be_hidden_from_now_on_is_hidden_from_servers_too(
    plain_world: World,
) -> None:
    plain_world.write("late.py", "def canary\n")
    model = ScriptedModel([write("a.py", SEES[0]), "one", write("b.py", SEES[0]), "two"])
    async with plain_world.open(model, config=settings()) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        await session.send_message("do it")
        first = results(model)[-1]
        app.host.services.workspaces.hide([plain_world.project / "late.py"])
        await session.send_message("again")
    assert first.endswith("scripted: no problems")
    assert "b.py:2:1 error: canary is not defined" in results(model)[-1]


async def test_what_a_deletion_breaks_is_in_its_result(plain_world: World) -> None:
    plain_world.write("names.py", "def old\n")
    plain_world.write("user.py", "import names\nuse old\n")
    patch = "*** Begin Patch\n*** Delete File: names.py\n*** End Patch"
    said = await said_after(
        plain_world,
        [CallTool(name="read", args={"path": "names.py"})],
        [CallTool(name="apply_patch", args={"patch": patch})],
        config=settings(),
    )
    assert said[1].endswith(
        "scripted: 1 problem\nin files that import it:\n"
        "user.py:2:1 error: old is not defined [scripted]"
    )
