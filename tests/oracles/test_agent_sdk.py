"""Programs of the Claude Agent SDK run on `weft` as on the CLI that the SDK brings: both are run
here, and what a program sees of them is compared.  Nothing that the CLI says is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_sdk.scripted_vendor import Step, scripted_vendor
from tests.support.free_port import free_port
from tests.support.mcp_servers import entry
from tests.support.real_servers import SERVERS
from tests.support.source_code import ROOT
from tests.support.weft_program import WeftProgram, call

pytestmark = [pytest.mark.process, pytest.mark.oracle]

PROGRAMS = ROOT / "tests" / "support" / "agent_sdk"
NODE_SDK = SERVERS / "node_modules" / "@anthropic-ai" / "claude-agent-sdk"
ACP = SERVERS / "node_modules" / "@agentclientprotocol" / "claude-agent-acp" / "dist" / "index.js"
PATIENCE = 180
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "ANTHROPIC_API_KEY": "sk-test",
}
OWN_FIELDS = {"initialize": set[str](), "context": {"mcpTools"}}
LANGUAGES = ("python", "typescript")


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


def bundled_cli() -> str:
    """The CLI of the SDK's wheel."""
    place = "lib/python*/site-packages/claude_agent_sdk/_bundled/claude"
    found = sorted(SERVERS.glob(place))
    if not found:
        pytest.skip("the Agent SDK is not installed: `make oracles`")
    return str(found[0])


def command(
    language: str, cli: str, model: str, folder: Path, environ: dict[str, str]
) -> list[str]:
    words = [cli, model, str(folder), json.dumps(environ)]
    if language == "python":
        return [str(SERVERS / "bin" / "python"), str(PROGRAMS / "python_program.py"), *words]
    if not NODE_SDK.exists():
        pytest.skip("the Agent SDK for TypeScript is not installed: `make oracles`")
    return ["node", str(PROGRAMS / "typescript_program.mjs"), str(NODE_SDK), *words]


def ran(argv: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def weft_cli(weft: WeftProgram) -> tuple[str, dict[str, str]]:
    """`weft` as one program, and its environment."""
    path = weft.home / "weft"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m weft "$@"\n')
    path.chmod(0o755)
    return str(path), weft.environment


def theirs(folder: Path) -> list[list[Step]]:
    """What the model does, in the names of the CLI."""
    return [
        [("mcp__calc__add", {"a": 1, "b": 2})],
        ["It is 3."],
        [("Write", {"file_path": str(folder / "a.txt"), "content": "original\n"})],
        ["Written."],
        [("Bash", {"command": "touch made"})],
        ["I could not."],
        [("Bash", {"command": "echo stop > stopped"})],
        ["Not reached."],
    ]


OURS = (
    [call("mcp__calc__add", a=1, b=2)],
    "It is 3.",
    [call("write", path="a.txt", content="original\n")],
    "Written.",
    [call("shell", command="touch made")],
    "I could not.",
    [call("shell", command="echo stop > stopped")],
    "Not reached.",
)


def on_weft(weft: WeftProgram, language: str) -> dict[str, Any]:
    cli, environ = weft_cli(weft)
    return ran(command(language, cli, weft.script(*OURS), weft.project, environ))


def on_theirs(language: str, folder: Path) -> dict[str, Any]:
    home, project = folder / "their-home", folder / "their-project"
    home.mkdir()
    project.mkdir()
    with scripted_vendor(theirs(project)) as (address, _):
        environ = {**QUIET, "HOME": str(home), "ANTHROPIC_BASE_URL": address}
        environ["PATH"] = os.environ["PATH"]
        found = ran(command(language, bundled_cli(), "claude-sonnet-4-5", project, environ))
    assert (project / "a.txt").read_text() == "changed\n"
    return found


def told(found: dict[str, Any], kind: Callable[[list[Any]], bool]) -> list[Any]:
    return [each for each in found["seen"] if kind(each)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_sees_the_same_of_weft_as_of_the_cli_of_its_sdk(
    language: str, weft: WeftProgram, tmp_path: Path
) -> None:
    expected, found = on_theirs(language, tmp_path), on_weft(weft, language)
    # What guards are asked, in order, and what came of the turns.
    asked = ("permission", "in-process", "turn")
    assert told(found, lambda each: each[0] in asked) == told(
        expected, lambda each: each[0] in asked
    )
    # An input that was rewritten is judged again, by hooks too: theirs is not.
    ours, their = (told(run, lambda each: each[0] == "hook") for run in (found, expected))
    assert [hook for hook, _ in groupby(ours)] == their
    results = ("UserMessage", "user")
    assert told(found, lambda each: each[0] in results) == told(
        expected, lambda each: each[0] in results
    )
    ends = ("ResultMessage", "result")
    assert [each[1:3] for each in told(found, lambda each: each[0] in ends)] == [
        each[1:3] for each in told(expected, lambda each: each[0] in ends)
    ]
    words = ("AssistantMessage", "assistant")
    assert told(found, lambda each: each[0] in words) == told(
        expected, lambda each: each[0] in words
    )
    assert (weft.project / "a.txt").read_text() == "changed\n"
    assert not (weft.project / "made").exists()
    assert not (weft.project / "stopped").exists()
    # Every field that we answer with is one of theirs.
    for name in ("initialize", "context"):
        assert set(found[name]) <= set(expected[name]) | OWN_FIELDS[name], name
    assert found["agents"] == expected["agents"] == ["reviewer"]
    assert found["off"] == expected["off"] == "disabled"
    assert set(found.get("once", ())) <= set(expected.get("once", ()))


def test_an_adapter_for_editors_makes_an_edit_on_weft(weft: WeftProgram) -> None:
    if not ACP.exists():
        pytest.skip("claude-agent-acp is not installed: `make oracles`")
    cli, environ = weft_cli(weft)
    script = weft.script([call("write", path="a.txt", content="by an editor\n")], "Edited.")
    running = subprocess.Popen(
        ["node", str(ACP)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=weft.project,
        env={**environ, "CLAUDE_CODE_EXECUTABLE": cli, "WEFT_MODEL_DEFAULT": script},
    )
    try:
        client = _EditorClient(running)
        client.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        begun = client.ask("session/new", {"cwd": str(weft.project), "mcpServers": []})
        prompt = [{"type": "text", "text": "edit"}]
        ended = client.ask("session/prompt", {"sessionId": begun["sessionId"], "prompt": prompt})
        assert ended["stopReason"] == "end_turn"
        assert client.asked == ["Write"]
        # No call is announced that has no id: it would stay on the screen for ever.
        calls = [each for each in client.updates if each["sessionUpdate"] == "tool_call"]
        assert calls
        assert all(each.get("toolCallId") for each in calls)
    finally:
        running.kill()
        running.communicate()
    assert (weft.project / "a.txt").read_text() == "by an editor\n"


class _EditorClient:
    """An editor that allows what it is asked about."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self._running = running
        self._last = 0
        self.asked: list[str] = []
        self.updates: list[dict[str, Any]] = []

    def _send(self, **message: Any) -> None:
        assert self._running.stdin is not None
        self._running.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._running.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send(id=self._last, method=method, params=params)
        assert self._running.stdout is not None
        while line := self._running.stdout.readline():
            message = json.loads(line)
            if "method" not in message:
                assert message.get("id") == self._last
                assert "result" in message, message
                answer: dict[str, Any] = message["result"]
                return answer
            self._take(message)
        raise AssertionError("the adapter has ended")

    def _take(self, message: dict[str, Any]) -> None:
        if message["method"] == "session/update":
            self.updates.append(message["params"]["update"])
        elif message["method"] == "session/request_permission":
            options = message["params"]["options"]
            once = next(each["optionId"] for each in options if each["kind"] == "allow_once")
            meta = message["params"]["toolCall"]
            self.asked.append("Write" if "a.txt" in json.dumps(meta) else "?")
            outcome = {"outcome": "selected", "optionId": once}
            self._send(id=message["id"], result={"outcome": outcome})


# --- another agent uses Weft -------------------------------------------------------------------

TASK = ("mcp__weft__weft_ask", {"prompt": "write it"})


def as_agent(folder: Path, server: dict[str, Any], *answers: list[Step]) -> tuple[str, list[Any]]:
    """What the CLI says at the end of a task for which it uses a server, and the requests of its
    model."""
    home = folder / "their-home"
    home.mkdir()
    with scripted_vendor(answers) as (address, seen):
        environ = {**QUIET, "HOME": str(home), "ANTHROPIC_BASE_URL": address}
        done = subprocess.run(
            [
                *(bundled_cli(), "-p", "have it written", "--model", "claude-sonnet-4-5"),
                *("--mcp-config", json.dumps({"mcpServers": {"weft": server}})),
                *("--strict-mcp-config", "--allowedTools", "mcp__weft__weft_ask"),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            cwd=folder,
            env={**environ, "PATH": os.environ["PATH"], "ENABLE_TOOL_SEARCH": "false"},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, seen


def told_of_task(seen: list[Any]) -> str:
    """What its model was told of the call."""
    return json.dumps(seen[-1]["messages"][-1])


@pytest.mark.parametrize("mode", ["accept_edits", "default"])
def test_another_agent_has_a_task_done_over_pipes(
    weft: WeftProgram, tmp_path: Path, mode: str
) -> None:
    cli, environ = weft_cli(weft)
    script = weft.script([call("write", path="a.txt", content="one")], "It is written.")
    words = ["mcp", "serve", "-C", str(weft.project), "--set", f"model.default={script}"]
    words += ["--set", f"permissions.mode={mode}"]
    server = {"command": cli, "args": words, "env": environ}
    said, seen = as_agent(tmp_path, server, [TASK], ["All done."])
    assert "All done." in said
    if mode == "accept_edits":
        assert "It is written." in told_of_task(seen)
        assert (weft.project / "a.txt").read_text() == "one"
    else:
        # Its user cannot be asked in this mode, so that the call is denied.
        assert not (weft.project / "a.txt").exists()


def test_another_agent_has_a_task_done_over_http(weft: WeftProgram, tmp_path: Path) -> None:
    script = weft.script([call("write", path="a.txt", content="one")], "It is written.")
    settings = ("--set", f"model.default={script}", "--set", "permissions.mode=accept_edits")
    port = free_port()
    running = weft.start("serve", "--port", str(port), *settings, stderr=subprocess.STDOUT)
    try:
        server: dict[str, Any] = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
        server["headers"] = {"Authorization": f"Bearer {_token_of(running)}"}
        said, seen = as_agent(tmp_path, server, [TASK], ["All done."])
    finally:
        running.terminate()
        running.wait(30)
    assert "All done." in said
    assert "It is written." in told_of_task(seen)
    assert (weft.project / "a.txt").read_text() == "one"


@contextmanager
def offered(weft: WeftProgram, transport: str) -> Iterator[dict[str, Any]]:
    """Weft as a server of another agent, whose model writes a file."""
    cli, environ = weft_cli(weft)
    script = weft.script([call("write", path="a.txt", content="one")], "That was it.")
    settings = ["--set", f"model.default={script}", "--set", "permissions.mode=default"]
    if transport == "stdio":
        words = ["mcp", "serve", "-C", str(weft.project), *settings]
        yield {"type": "stdio", "command": cli, "args": words, "env": environ}
        return
    port = free_port()
    running = weft.start("serve", "--port", str(port), *settings, stderr=subprocess.STDOUT)
    try:
        key = {"Authorization": f"Bearer {_token_of(running)}"}
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/mcp", "headers": key}
    finally:
        running.terminate()
        running.wait(30)


@pytest.mark.parametrize("answer", ["allow", "deny", "decline", ""])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_user_of_another_agent_is_asked(
    weft: WeftProgram, tmp_path: Path, transport: str, answer: str
) -> None:
    """The agent is the CLI of the SDK, and its user a callback; without one nobody is asked."""
    if not NODE_SDK.exists():
        pytest.skip("the Agent SDK for TypeScript is not installed: `make oracles`")
    home = tmp_path / "their-home"
    home.mkdir()
    action = {"action": "accept", "content": {"decision": answer}}
    given = json.dumps({"action": "decline"} if answer == "decline" else action) if answer else ""
    with (
        scripted_vendor([[TASK], ["All done."]]) as (address, seen),
        offered(weft, transport) as server,
    ):
        environ = {**QUIET, "HOME": str(home), "ANTHROPIC_BASE_URL": address}
        environ |= {"PATH": os.environ["PATH"], "ENABLE_TOOL_SEARCH": "false"}
        words = [str(NODE_SDK), bundled_cli(), "claude-sonnet-4-5", str(tmp_path)]
        words += [json.dumps(environ), json.dumps(server), given]
        found = ran(["node", str(PROGRAMS / "asked_program.mjs"), *words])
    assert found["said"] == "All done."
    assert len(found["asked"]) == bool(answer)
    for name, message, schema in found["asked"]:
        assert (name, list(schema["properties"])) == ("weft", ["decision"])
        assert "allow write?" in message
        assert "a.txt" in message
    assert (weft.project / "a.txt").exists() == (answer == "allow")
    assert "That was it." in told_of_task(seen)


@pytest.mark.parametrize("said", [{"action": "accept", "content": {"color": "green"}}, None])
def test_what_a_server_asks_reaches_the_program_as_from_the_cli_of_its_sdk(
    weft: WeftProgram, tmp_path: Path, said: dict[str, Any] | None
) -> None:
    if not NODE_SDK.exists():
        pytest.skip("the Agent SDK for TypeScript is not installed: `make oracles`")
    given = json.dumps(said) if said else ""
    server = {"type": "stdio", **entry()}
    tool = "mcp__weft__ask"

    def as_program(cli: str, model: str, folder: Path, environ: dict[str, str]) -> Any:
        words = [str(NODE_SDK), cli, model, str(folder), json.dumps(environ), json.dumps(server)]
        return ran(["node", str(PROGRAMS / "asked_program.mjs"), *words, given, tool])

    home = tmp_path / "their-home"
    home.mkdir()
    with scripted_vendor([[(tool, {})], ["All done."]]) as (address, seen):
        environ = {**QUIET, "HOME": str(home), "ANTHROPIC_BASE_URL": address}
        environ |= {"PATH": os.environ["PATH"], "ENABLE_TOOL_SEARCH": "false"}
        expected = as_program(bundled_cli(), "claude-sonnet-4-5", tmp_path, environ)
    cli, environ = weft_cli(weft)
    made = {"do": "call", "name": "tool_call", "args": {"name": tool, "arguments": {}}}
    model = weft.script([call("tool_search", query="ask")], [made], "All done.")
    found = as_program(cli, model, weft.project, environ)
    assert (found["asked"], found["said"]) == (expected["asked"], "All done.")
    assert len(found["asked"]) == bool(said)
    assert ("green" if said else "decline") in told_of_task(seen)


def _token_of(running: subprocess.Popen[bytes]) -> str:
    """The token of a server that has begun."""
    assert running.stdout is not None
    for line in running.stdout:
        if b"token for programs: " in line:
            return Path(line.decode().partition(": ")[2].strip()).read_text().strip()
    raise AssertionError("the server has ended")
