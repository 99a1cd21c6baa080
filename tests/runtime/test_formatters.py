"""Formatters: what is shown, written, recorded and taken back is what they made."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.world import PATIENCE, World, request_lines, running, until
from weft.clock import ManualClock
from weft.errors import UsageError
from weft.events import PermissionRequest
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.runtime.workspaces.formatters import ProjectFormatters, SlowFormatters, formatters_of
from weft.runtime.workspaces.language_servers import ServerLauncher
from weft.workspace.sandbox.read_only import ReadOnlySandbox

TIDY = ["sed", "s/[ ]*$//; s/\\t/  /g"]
"""A formatter: no blanks at the end of lines, and no tabs."""


def settings(command: list[str], **more: Any) -> dict[str, Any]:
    table = {"tidy": {"command": command, "suffixes": ["txt"]}}
    return {"sandbox.mode": "auto", "formatters": table, **more}


def call(name: str, **args: str) -> list[CallTool]:
    return [CallTool(name=name, args=args)]


def results(model: ScriptedModel) -> list[str]:
    lines = request_lines(model.requests[-1])
    return [line.removeprefix("result: ") for line in lines if line.startswith("result: ")]


async def results_of(world: World, config: dict[str, Any], *steps: list[CallTool]) -> list[str]:
    model = ScriptedModel([*steps, "done"])
    async with world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        with anyio.fail_after(PATIENCE):
            await session.send_message("do it")
    return results(model)


@pytest.mark.anyio
@pytest.mark.process
async def test_the_user_approves_the_formatted_content_and_a_rewind_takes_it_back(
    plain_world: World,
) -> None:
    plain_world.write("a.txt", "one\n")
    model = ScriptedModel(
        [
            call("read", path="a.txt"),
            call("edit", path="a.txt", old_string="one", new_string="one  \n\ttwo"),
            "done",
        ]
    )
    async with plain_world.open(model, config=settings(TIDY)) as app:
        session = await app.sessions.start_session(session_id="s")

        async def answer() -> None:
            request = await until(session, PermissionRequest)
            assert request.preview.endswith(" one\n+  two")
            await session.respond_to_permission("allow_once", request_id=request.request_id)

        async with running(answer):
            await session.send_message("do it")
        assert plain_world.read("a.txt") == "one\n  two\n"
        assert [each.path for each in await session.touched_files()] == ["a.txt"]
        await session.rewind(None)
    assert plain_world.read("a.txt") == "one\n"
    assert results(model)[1] == (
        "edited a.txt: 1 replacement\nformatted by tidy:\n"
        "@@ -1,2 +1,2 @@\n-one  \n-\ttwo\n+one\n+  two"
    )


@pytest.mark.anyio
@pytest.mark.process
async def test_every_tool_that_writes_goes_through_it(plain_world: World) -> None:
    patch = "*** Begin Patch\n*** Add File: p.txt\n+p \n*** End Patch"
    said = await results_of(
        plain_world,
        settings(TIDY),
        call("write", path="w.txt", content="w \n"),
        call("apply_patch", patch=patch),
        call("write", path="other.md", content="o \n"),
        call("write", path="clean.txt", content="c\n"),
    )
    assert plain_world.read("w.txt") == "w\n"
    assert plain_world.read("p.txt") == "p\n"
    assert plain_world.read("other.md") == "o \n"
    assert "formatted by tidy" in said[0]
    assert said[1].startswith("added p.txt\np.txt: formatted by tidy:")
    assert "format" not in said[2]
    assert "format" not in said[3]


@pytest.mark.anyio
@pytest.mark.process
async def test_the_model_may_edit_again_what_was_formatted(plain_world: World) -> None:
    said = await results_of(
        plain_world,
        settings(TIDY),
        call("write", path="w.txt", content="one \n"),
        call("edit", path="w.txt", old_string="one\n", new_string="two\n"),
    )
    assert said[1] == "edited w.txt: 1 replacement"
    assert plain_world.read("w.txt") == "two\n"


@pytest.mark.anyio
@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["sh", "-c", "echo no such option >&2; exit 3"], "exit code 3: no such option"),
        (["true"], "it printed nothing"),
        (["no-such-formatter"], "no-such-formatter is not on PATH"),
        (["printf", "\\377"], "not UTF-8"),
        (["sh", "-c", "touch touched; exit 1"], "exit code 1"),
    ],
)
async def test_one_that_fails_leaves_the_content_as_it_was_written(
    plain_world: World, command: list[str], why: str
) -> None:
    said = await results_of(
        plain_world, settings(command), call("write", path="a.txt", content="a \n")
    )
    assert plain_world.read("a.txt") == "a \n"
    assert "not formatted by tidy: " in said[0]
    assert why in said[0]
    assert sorted(path.name for path in plain_world.project.iterdir()) == ["a.txt"]


@pytest.mark.anyio
@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "before", "said"),
    [
        ("s/$/\\r/", b"one\ntwo\n", "(line ends change)"),
        ("s/\\r$//", b"one\r\ntwo\r\n", "(line ends change)"),
        ("1s/^/\\xef\\xbb\\xbf/", b"one\ntwo\n", "(a byte-order mark is added)"),
        ("1s/^\\xef\\xbb\\xbf//", b"\xef\xbb\xbfone\ntwo\n", "(the byte-order mark is removed)"),
    ],
)
async def test_what_a_diff_in_lines_does_not_show_is_said_in_the_preview(
    plain_world: World, command: str, before: bytes, said: str
) -> None:
    (plain_world.project / "a.txt").write_bytes(before)
    model = ScriptedModel(
        [
            call("read", path="a.txt"),
            call("edit", path="a.txt", old_string="one", new_string="1"),
            "done",
        ]
    )
    async with plain_world.open(model, config=settings(["sed", command])) as app:
        session = await app.sessions.start_session(session_id="s")

        async def answer() -> None:
            request = await until(session, PermissionRequest)
            assert "-one\n+1\n two" in request.preview
            assert request.preview.splitlines()[-1] == said
            await session.respond_to_permission("allow_once", request_id=request.request_id)

        async with running(answer):
            await session.send_message("do it")
    assert results(model)[1].splitlines()[-1] == said


@pytest.mark.anyio
@pytest.mark.process
async def test_what_a_formatter_makes_of_a_new_file_is_said_in_the_preview(
    plain_world: World,
) -> None:
    model = ScriptedModel([call("write", path="a.txt", content="one\n"), "done"])
    config = settings(["sed", "s/$/\\r/; 1s/^/\\xef\\xbb\\xbf/"])
    async with plain_world.open(model, config=config) as app:
        session = await app.sessions.start_session(session_id="s")

        async def answer() -> None:
            request = await until(session, PermissionRequest)
            said = ["(a byte-order mark is added)", "(lines end in CRLF)"]
            assert request.preview.splitlines()[-2:] == said
            await session.respond_to_permission("allow_once", request_id=request.request_id)

        async with running(answer):
            await session.send_message("do it")
    assert (plain_world.project / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\n"


@pytest.mark.anyio
@pytest.mark.process
async def test_a_formatter_reaches_no_unix_socket(plain_world: World) -> None:
    """The sandbox shows the disk, and with it the sockets of the servers that listen there."""
    ask = "import socket; socket.socket(socket.AF_UNIX); print('reached')"
    said = await results_of(
        plain_world,
        settings([sys.executable, "-I", "-S", "-c", ask]),
        call("write", path="a.txt", content="a \n"),
    )
    assert plain_world.read("a.txt") == "a \n"
    assert "Operation not permitted" in said[0]


@pytest.mark.anyio
@pytest.mark.process
@pytest.mark.parametrize("printed", [rb"\xff", rb"a\xe2\x82b", rb"\xf0\x9f\x8eb"])
async def test_what_is_no_text_is_not_written(plain_world: World, printed: bytes) -> None:
    """Also where what stands for the wrong bytes is as long as they are."""
    command = ["printf", printed.decode()]
    said = await results_of(
        plain_world, settings(command), call("write", path="a.txt", content="a \n")
    )
    assert plain_world.read("a.txt") == "a \n"
    assert "not formatted by tidy: what it printed is not UTF-8" in said[0]


@pytest.mark.anyio
@pytest.mark.process
async def test_lines_outside_a_boundary_are_not_formatted(plain_world: World) -> None:
    plain_world.write("a.txt", "keep \nchange\n")
    model = ScriptedModel(
        [
            call("read", path="a.txt"),
            call("edit", path="a.txt", old_string="change", new_string="changed "),
            "done",
        ]
    )
    async with plain_world.open(model, config=settings(TIDY)) as app:
        session = await app.sessions.start_session(session_id="s", auto_approve=True)
        await session.set_boundary("a.txt", 1, 1)
        await session.send_message("do it")
    assert plain_world.read("a.txt") == "keep \nchanged \n"
    assert "not formatted: that would change lines outside the boundary" in results(model)[1]


@pytest.mark.anyio
@pytest.mark.process
async def test_without_a_sandbox_formatters_run_in_trusted_folders_only(
    plain_world: World,
) -> None:
    config = settings(TIDY, **{"sandbox.mode": "off"})
    said = await results_of(plain_world, config, call("write", path="a.txt", content="a \n"))
    assert "formatters run only in folders that you trust" in said[0]
    assert plain_world.read("a.txt") == "a \n"


@pytest.mark.anyio
@pytest.mark.process
async def test_a_program_of_the_project_is_not_run_unless_the_folder_is_trusted(
    plain_world: World,
) -> None:
    own = Path(plain_world.write("node_modules/.bin/prettier", "#!/bin/sh\necho hacked\n"))
    own.chmod(0o755)
    said = await results_of(
        plain_world, settings(["prettier"]), call("write", path="a.txt", content="a\n")
    )
    assert "prettier is not on PATH" in said[0]


@pytest.mark.anyio
@pytest.mark.process
async def test_a_formatter_that_hangs_is_left_out_for_a_while(tmp_path: Path) -> None:
    clock = ManualClock()
    slow = SlowFormatters(clock)
    box = ReadOnlySandbox(environ={"PATH": "/usr/bin:/bin"})
    launcher = ServerLauncher(str(tmp_path), box, mode="auto", is_trusted=False)
    table = {"command": ["sleep", "600"], "suffixes": [".x"]}
    formatters = ProjectFormatters(formatters_of({"slow": table}), launcher, slow, seconds=0.2)
    first = await formatters.format("a.x", b"a")
    second = await formatters.format("b.x", b"b")
    clock.advance(301.0)
    third = await formatters.format("a.x", b"a")
    assert first.note == third.note == "not formatted by slow: it took longer than 0.2 s"
    assert second.note == (
        "not formatted by slow: it took longer than 0.2 s the last time, and is left out for 5 min"
    )


@pytest.mark.parametrize(
    "table", [{"command": ["x"]}, {"suffixes": [".x"]}, {"command": [], "suffixes": [".x"]}]
)
def test_a_table_that_is_not_right_is_named(table: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"formatters\.mine"):
        formatters_of({"mine": table})


def test_one_that_is_switched_off_is_left_out() -> None:
    table = {"command": ["x"], "suffixes": [".x"], "enabled": False}
    assert formatters_of({"mine": table}) == {}
