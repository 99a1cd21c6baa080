"""The client that the official conformance suite drives: Weft's own, and `weft mcp login`.

    python conformance_client.py URL

The suite names the scenario in the environment.  Weft is set up in an empty home with the server at
the address; its tools are listed and called, and a server that wants a login gets one by the
command, whose address is opened as a browser would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import anyio

import weft
from weft.errors import ToolError
from weft.mcp import CallTerms, McpServer
from weft.tools import UserQuestion

NAME = "conformance"
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
MOST_LOGINS = 3
SECONDS = 20.0
DESCRIBED_AT = "https://conformance-test.local/client-metadata.json"
VALUES: dict[str, Any] = {"number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}


async def main(url: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        config = Path(home) / ".config" / "weft"
        config.mkdir(parents=True)
        (config / "mcp.json").write_text(json.dumps({"mcpServers": {NAME: {"url": url}}}))
        project = Path(home) / "project"
        project.mkdir()
        environ = {**os.environ, "HOME": home, "WEFT_HOME": home, "WEFT_REPO_INDEX": "off"}
        environ.pop("XDG_CONFIG_HOME", None)
        async with weft.open(project, "memory", {"lsp.enabled": False}, environ=environ) as app:
            servers = app.mcp_servers
            assert servers is not None
            server = servers.running(servers.configured.servers[NAME])
            await use(server, environ, str(project))


async def use(server: McpServer, environ: dict[str, str], project: str) -> None:
    """List the tools and call them, with as many logins as that takes."""
    logins = 0
    done: set[int] = set()
    while True:
        try:
            await server.must_be_ready(SECONDS)
            for number, (name, args) in enumerate(calls(server)):
                if number not in done:
                    terms = CallTerms(idle_seconds=SECONDS, total_seconds=SECONDS, ask=answer)
                    await server.call(name, args, terms, start_seconds=SECONDS)
                    done.add(number)
            return
        except ToolError as error:
            print(error, file=sys.stderr)
            if server.state != "needs_login" or logins == MOST_LOGINS:
                raise SystemExit(f"not done: {error}") from error
        logins += 1
        await anyio.to_thread.run_sync(log_in, environ, project)


def calls(server: McpServer) -> list[tuple[str, dict[str, Any]]]:
    """What is called: what the scenario names, or every tool with something for its arguments."""
    tools = server.record.tools()
    if SCENARIO == "json-schema-ref-no-deref":
        return []  # it lists tools, and has none that could be called
    if given := CONTEXT.get("toolCalls"):
        return [(each["name"], each["arguments"]) for each in given if each["name"] in tools]
    if SCENARIO == "json-schema-2020-12-preservation":
        schema = tools["json_schema_2020_12_tool"].now.raw["inputSchema"]
        return [("json_schema_echo", {"schema": schema})]
    return [(name, filled(tool.now.raw.get("inputSchema", {}))) for name, tool in tools.items()]


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    return {name: VALUES.get(each.get("type"), "x") for name, each in properties.items()}


async def answer(question: UserQuestion) -> str | None:
    """The user agrees to everything, and to what is suggested."""
    return question.options[0] if question.options else ""


# --- the login -------------------------------------------------------------------------------


class StayHere(urllib.request.HTTPRedirectHandler):
    """Where the browser is sent is opened by hand."""

    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


def log_in(environ: dict[str, str], project: str) -> None:
    """`weft mcp login`, and what the user does in the browser."""
    words = ["mcp", "login", NAME]
    if SCENARIO == "auth/pre-registration":
        words += ["--client-id", CONTEXT["client_id"]]
        environ = {**environ, "MCP_CLIENT_SECRET": CONTEXT["client_secret"]}
    elif SCENARIO == "auth/basic-cimd":
        words += ["--client-id", DESCRIBED_AT]
    argv = [sys.executable, "-m", "weft", *words]
    with subprocess.Popen(
        argv, env=environ, cwd=project, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as login:
        assert login.stderr is not None
        for line in login.stderr:
            print(line, end="", file=sys.stderr)
            if line.startswith("http"):
                back = sent_to(line.strip())
                urllib.request.urlopen(back).read()
        if login.wait():
            raise SystemExit("the login failed")


def sent_to(address: str) -> str:
    """Where a page sends the browser."""
    opener = urllib.request.build_opener(StayHere)
    try:
        with opener.open(address) as page:
            return str(page.headers["location"])
    except urllib.error.HTTPError as error:
        return str(error.headers["location"])


if __name__ == "__main__":
    anyio.run(main, sys.argv[-1])
