"""Sessions whose commands reach hosts: asked about, allowed by rule, refused and told."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.allowed_hosts import file_server
from tests.support.rewind_project import open_world, shell, start, turns
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World, until
from weft.cli.chat.approval_text import (
    ApprovalPlace,
    always_question,
    answer_actions,
    permission_question,
)
from weft.cli.chat.rule_keeper import RuleKeeper
from weft.events import PermissionRequest, TurnFinished
from weft.providers.script import CallTool
from weft.workspace.sandbox.machine import PROXY_PORT

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl"),
]


def reaching(command: str, *hosts: str) -> CallTool:
    return CallTool(name="shell", args={"command": command, "hosts": list(hosts)})


async def test_a_host_is_asked_about_and_always_proposes_the_rule_for_it(
    plain_world: World, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("content")
    with file_server(tmp_path) as port:
        host = f"localhost:{port}"
        line = f"curl -s http://{host}/file"
        model = turns([reaching(line, host), shell(line)])
        async with open_world(plain_world, model, sandbox="auto") as app:
            await skip_without_sandbox(app, plain_world)
            session = await app.sessions.start_session(permission_mode="auto")
            await session.send_prompt("go")
            request = await until(session, PermissionRequest)
            assert request.reason == f"it would reach {host}"
            question = permission_question(request, ApprovalPlace(str(plain_world.project)))
            assert question.rule == f"Run a command ─ in the sandbox, may reach {host}"
            assert "allow_always" in answer_actions(request)
            keeper = RuleKeeper(app)
            args = {"command": line, "hosts": [host]}
            rules = keeper.proposed(request, args)
            assert [f"{each.tool}({each.pattern})" for each in rules] == [f"fetch(domain:{host})"]
            history = await keeper.history_of(rules)
            assert history == f"domain:{host}: 1 of 2 past calls"
            assert f"fetch(domain:{host})" in str(always_question(request, rules, history))
            await keeper.keep(rules)
            await session.respond_to_permission("allow_once", request_id=request.request_id)
            await until(session, TurnFinished)
        # By its name the first time, by the rule the second.
        assert [result.endswith("content") for result in tool_results(model)] == [True, True]


async def test_what_a_rule_allows_is_reached_and_what_none_does_is_refused_and_named(
    plain_world: World, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("content")
    with file_server(tmp_path) as port:
        lines = (f"curl -s http://localhost:{port}/file", "curl -s http://other.example/")
        model = turns([shell(line) for line in lines])
        rules = [f"fetch(domain:localhost:{port})"]
        settings = {"permissions__allow": rules}
        async with open_world(plain_world, model, sandbox="auto", **settings) as app:
            await skip_without_sandbox(app, plain_world)
            await (await start(app)).send_message("go")
        good, bad = tool_results(model)
        assert good.endswith("content")
        assert "fetch(domain:other.example)" in bad
        assert "name the host in `hosts`" in bad
        told = str(model.requests[0])
        assert f"no network but localhost:{port}" in told


async def test_a_command_that_only_reads_reaches_nothing(plain_world: World) -> None:
    """Git runs what the repository configures, and that has no way out."""
    spy = 'echo "the way out: $HTTPS_PROXY" >&2; false'
    git = ("git", "-C", str(plain_world.project))
    for words in (("init", "-q"), ("config", "core.fsmonitor", spy)):
        await anyio.run_process([*git, *words])
    model = turns([shell("git status"), shell("git status; touch new")])
    settings = {"permissions__allow": ["fetch(domain:localhost)"]}
    async with open_world(plain_world, model, sandbox="auto", **settings) as app:
        await skip_without_sandbox(app, plain_world)
        await (await start(app)).send_message("go")
    reads, runs = tool_results(model)
    assert "the way out: \n" in reads
    assert f"the way out: http://127.0.0.1:{PROXY_PORT}" in runs


async def test_where_nobody_is_asked_a_host_needs_a_rule(plain_world: World) -> None:
    model = turns([reaching("curl -s http://other.example/", "other.example")])
    async with open_world(plain_world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, plain_world)
        await (await start(app)).send_message("go")
    assert "only the user can allow it" in tool_results(model)[0]


async def test_a_host_that_is_none_is_refused_with_its_right_form(plain_world: World) -> None:
    model = turns([reaching("curl x", "https://other.example/x"), reaching("curl x", "127.1")])
    async with open_world(plain_world, model, sandbox="auto") as app:
        await skip_without_sandbox(app, plain_world)
        await (await start(app)).send_message("go")
    assert all("is no host; name each as pypi.org" in each for each in tool_results(model))


PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.support.allowed_hosts import judge
from tests.support.sandboxed_project import sandboxed_project

async def main():
    rules = judge("allow localhost")
    async with sandboxed_project(Path(sys.argv[1]), egress=lambda command: rules) as there:
        await there.shell(f"touch /tmp/x; echo begun; exec sleep {sys.argv[2]}", print)

asyncio.run(main())
"""


@pytest.mark.process
async def test_killing_us_leaves_no_proxy_and_no_command(tmp_path: Path) -> None:
    seconds = str(2_000_000 + os.getpid())
    command = [sys.executable, "-u", "-c", PROGRAM, str(tmp_path), seconds]
    running = await anyio.open_process(command, cwd=Path(__file__).parents[2], stderr=None)
    assert running.stdout is not None
    with anyio.fail_after(60):
        async with running:
            said = b""
            while b"begun" not in said:
                try:
                    said += await running.stdout.receive()
                except anyio.EndOfStream:
                    pytest.skip("this machine has no sandbox")
            left = processes_of(seconds)
            assert left
            running.send_signal(signal.SIGKILL)
        for handle in left:
            await anyio.wait_readable(handle)  # it has ended
            os.close(handle)


def processes_of(word: str) -> list[int]:
    """Handles of the processes with a word in their command line, and of all in their groups."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in line and b"PROGRAM" not in line:
            found.append(os.pidfd_open(int(name)))
    return found
