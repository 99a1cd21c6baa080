"""`/mcp` of a server: Weft for other agents over HTTP, behind the gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest

from tests.support.mcp_http_server import http_client
from tests.support.mcp_servers import PATIENCE, terms
from tests.support.served_world import HttpAnswer, ServedWorld, serving
from tests.support.world import World
from weft.mcp import McpServer, ServerRecord, outcome_of
from weft.mcp.elicitation import AskUser
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.server import serve
from weft.tools import UserQuestion

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
WRITE = [CallTool(name="write", args={"path": "a.txt", "content": "one"})]
ABOUT = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
HEAD = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ABOUT}}
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}},
}


@asynccontextmanager
async def used(served: ServedWorld, era: str) -> AsyncGenerator[McpServer]:
    """Our own client of it; older ones begin with a greeting."""
    headers = (("authorization", f"Bearer {served.token}"),)
    record = ServerRecord(era="" if era == MODERN else era)
    async with http_client(f"{served.origin}/mcp", headers=headers, record=record) as server:
        yield server


async def called(
    server: McpServer,
    tool: str,
    ask: AskUser | None = None,
    said: list[str] | None = None,
    **args: Any,
) -> str:
    raw = await server.call(tool, args, terms(ask=ask, said=said), start_seconds=PATIENCE)
    return (await outcome_of(raw, "weft")).text


async def post(
    served: ServedWorld, body: Any, method: str = "POST", /, **headers: str | None
) -> HttpAnswer:
    """One request, with the headers of a newer client."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    given = {"Connection": "close", **HEAD, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return await served.exchange(served.head(method, "/mcp", given, raw))


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_a_task_over_http_asks_the_clients_user(
    plain_world: World, era: str, decision: str
) -> None:
    asked: list[str] = []

    async def ask(question: UserQuestion) -> str | None:
        asked.append(question.text)
        return decision

    model = ScriptedModel([WRITE, "done"])
    async with serving(plain_world, model) as served, used(served, era) as server:
        text = await called(server, "weft_ask", ask, prompt="write it")
        assert "done" in text
        assert server.record.era == era
    assert "allow write?" in asked[0]
    assert (plain_world.project / "a.txt").exists() == (decision == "allow")


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
async def test_two_calls_run_side_by_side(plain_world: World, era: str) -> None:
    async with serving(plain_world, ScriptedModel(["one"])) as served, used(served, era) as server:
        assert "one" in await called(server, "weft_ask", prompt="x")
        assert '"id"' in await called(server, "weft_sessions")


async def test_the_gate_stands_before_it(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        assert (await post(served, LIST)).status == 200
        for wrong, status in (
            ({"Authorization": None}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Host": "evil.example"}, 421),
            ({"Host": f"127.0.0.1:{served.port}:evil.example"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Content_Type": "text/plain"}, 415),
            ({"Content_Length": "999999999999"}, 413),
        ):
            assert (await post(served, LIST, **wrong)).status == status, wrong
        assert (await post(served, b"", "GET")).status == 405


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, -32700),
        (b"[]", {}, 400, -32600),
        ({"id": 1, "method": "tools/list"}, {}, 400, -32600),
        (LIST, {"Mcp_Method": "tools/call"}, 400, -32020),
        (LIST, {"Mcp_Method": None}, 400, -32020),
        (LIST, {"MCP_Protocol_Version": "2025-11-25"}, 400, -32020),
        ({**LIST, "params": {}}, {}, 400, -32602),
        ({**LIST, "method": "nothing"}, {"Mcp_Method": "nothing"}, 404, -32601),
        (
            {**LIST, "params": {"_meta": {**ABOUT, f"{META}protocolVersion": "2099-01-01"}}},
            {"MCP_Protocol_Version": "2099-01-01"},
            400,
            -32022,
        ),
    ],
)
async def test_what_is_wrong_is_refused_with_a_status_and_an_error(
    plain_world: World, body: Any, headers: dict[str, str | None], status: int, code: int
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        answer = await post(served, body, **headers)
        assert (answer.status, answer.json["error"]["code"]) == (status, code)


async def test_a_name_in_the_head_is_the_name_in_the_body(plain_world: World) -> None:
    params = {"name": "weft_sessions", "arguments": {}, "_meta": ABOUT}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    head: dict[str, str | None] = {"Mcp_Method": "tools/call"}
    async with serving(plain_world, ScriptedModel([])) as served:
        for name, status in (
            ("weft_sessions", 200),
            ("  weft_sessions \t", 200),
            ("=?base64?d2VmdF9zZXNzaW9ucw==?=", 200),
            ("weft_read", 400),
            ("=?base64?!!?=", 400),
            (None, 400),
        ):
            assert (await post(served, call, Mcp_Name=name, **head)).status == status, name


async def test_a_session_of_an_older_client_is_its_own(plain_world: World) -> None:
    older: dict[str, str | None] = {"MCP_Protocol_Version": "2025-11-25", "Mcp_Method": None}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with serving(plain_world, ScriptedModel([])) as served:
        greeted = await post(served, GREETING, **{**older, "MCP_Protocol_Version": None})
        name = greeted.headers["mcp-session-id"]
        assert greeted.json["result"]["protocolVersion"] == "2025-11-25"
        assert (await post(served, listing, Mcp_Session_Id=name, **older)).status == 200
        assert (await post(served, listing, Mcp_Session_Id="guessed", **older)).status == 404
        assert (await post(served, listing, **older)).status == 400
        ended = await post(served, b"", "DELETE", Mcp_Session_Id=name, **older)
        assert ended.status == 200
        assert (await post(served, listing, Mcp_Session_Id=name, **older)).status == 404


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
async def test_a_client_that_listens_does_not_hold_the_servers_end(
    plain_world: World, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without an end of their own the streams would be waited for as long as this.
    monkeypatch.setattr(serve, "GRACE_SECONDS", 3600)
    params: dict[str, Any] = {"_meta": ABOUT, "notifications": {"resourcesListChanged": True}}
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    head = {**HEAD, "Mcp-Method": "subscriptions/listen"}
    async with serving(plain_world, ScriptedModel([])) as served:
        if era == MODERN:
            asked = served.head("POST", "/mcp", dict(head), msgspec.json.encode(listen))
        else:
            greeted = await post(served, GREETING, MCP_Protocol_Version=None, Mcp_Method=None)
            name = {"Mcp-Session-Id": greeted.headers["mcp-session-id"]}
            asked = served.head("GET", "/mcp", dict(name), b"")
        async with await served.connect() as stream:
            await stream.send(asked)
            assert b"text/event-stream" in await stream.receive()
            served.server.stop()
            with anyio.fail_after(PATIENCE):
                await served.has_ended.wait()
