"""An MCP server over HTTP on loopback whose behavior is set by words, most of them bad."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.support.loopback_server import (
    LoopbackConnection,
    LoopbackServer,
    ReceivedRequest,
    serving,
)
from tests.support.mcp_servers import PATIENCE
from weft.actors import Supervisor
from weft.clock import SystemClock
from weft.mcp import McpServer, ServerLink, ServerRecord
from weft.mcp.http_connection import HttpConnection, SseConnection
from weft.mcp.http_exchange import HttpEndpoint, ServerAuthorization
from weft.mcp.server import Handlers, StartTask
from weft.transport import HttpClient, ProxySettings

_JSON = "content-type: application/json\r\n"
MODERN = "2026-07-28"


class ScriptedHttpServer:
    """What one server answers; `traps` say what it does wrong."""

    def __init__(self, *traps: str, version: str = "2025-11-25", tools: Any = None) -> None:
        self.traps = set(traps)
        self.version = version
        self.key = "good"
        self.sessions: set[str] = set()
        self.made = 0
        self.tools = tools or [tool("echo"), tool("ask")]
        self.calls: list[ReceivedRequest] = []
        self.told: list[str] = []
        """Methods of notifications that came."""
        self.answers: list[Any] = []
        self.answered = anyio.Event()
        self.cancelled = anyio.Event()
        self.is_listened = anyio.Event()
        self.release = anyio.Event()

    # -- HTTP

    async def handle(self, line: LoopbackConnection) -> None:
        while asked := await line.request():
            if "login" in self.traps and asked.headers.get("authorization") != f"Bearer {self.key}":
                await line.reply(b"", status=401, headers='www-authenticate: Bearer realm="x"\r\n')
            elif "scope" in self.traps and b"tools/call" in asked.body:
                head = 'www-authenticate: Bearer error="insufficient_scope"\r\n'
                await line.reply(b"", status=403, headers=head)
            elif "moved" in self.traps and asked.path == "/mcp":
                await line.reply(b"", status=307, headers="location: /there\r\n")
            elif "moved_nowhere" in self.traps:
                await line.reply(b"", status=307, headers="location: http://[\r\n")
            elif "moved_away" in self.traps:
                await line.reply(b"", status=307, headers="location: http://evil.example/\r\n")
            else:
                await self.answer(line, asked)

    async def answer(self, line: LoopbackConnection, asked: ReceivedRequest) -> None:
        """Answer a request that is let in."""
        if asked.method == "GET":
            await self._get(line, asked)
        elif asked.method == "DELETE":
            self.sessions.discard(asked.headers.get("mcp-session-id", ""))
            await line.reply(b"", status=200)
        else:
            await self._post(line, asked)

    async def _get(self, line: LoopbackConnection, asked: ReceivedRequest) -> None:
        place = asked.headers.get("last-event-id")
        if place and "resets_resume" in self.traps:
            await line.reset()
        elif place:
            await line.start_events()
            message = result(int(place), text("resumed"))
            await line.chunk(b"id: z\ndata: " + message + b"\n\n")
            await line.end_chunks()
        elif "by_own_stream" in self.traps:
            await line.start_events()
            self.stream = line
            await line.until_gone()
        elif "listens" in self.traps:
            await line.start_events()
            self.is_listened.set()
            await self.release.wait()
            await line.chunk(b"data: " + notification("notifications/tools/list_changed") + b"\n\n")
            await line.until_gone()
        else:
            await line.reply(b"", status=405)

    async def _post(self, line: LoopbackConnection, asked: ReceivedRequest) -> None:
        message = json.loads(asked.body)
        method, number = message.get("method"), message.get("id")
        session = asked.headers.get("mcp-session-id", "")
        is_greeting = method in ("initialize", "server/discover")
        if self.sessions and not is_greeting and session not in self.sessions:
            await line.reply(b"", status=404)
        elif method is None:
            self.answers.append(message)
            self.answered.set()
            await line.reply(b"", status=202)
        elif number is None:
            self.told.append(method)
            if method == "notifications/cancelled":
                self.cancelled.set()
            await line.reply(b"", status=202)
        else:
            await self._answer(line, asked, message)

    # -- MCP

    async def _answer(
        self, line: LoopbackConnection, asked: ReceivedRequest, message: dict[str, Any]
    ) -> None:
        number = message["id"]
        match message["method"]:
            case "server/discover":
                await self._discover(line, number)
            case "initialize":
                await self._initialize(line, number)
            case "tools/list":
                found = {"tools": self.tools}
                if self.version == MODERN:
                    found |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                await line.reply(result(number, found), headers=_JSON)
            case "subscriptions/listen":
                await line.start_events()
                self.is_listened.set()
                await self.release.wait()
                told = notification("notifications/tools/list_changed")
                await line.chunk(b"data: " + told + b"\n\n")
                if "cuts_listening" in self.traps:
                    self.traps.discard("cuts_listening")
                    await line.end_chunks()
                else:
                    await line.until_gone()
            case "tools/call":
                self.calls.append(asked)
                await self._call(line, number, message["params"])
            case _:
                await line.reply(error(number, -32601, "Method not found"), headers=_JSON)

    async def _discover(self, line: LoopbackConnection, number: int) -> None:
        if self.version == MODERN:
            about = {
                "supportedVersions": [MODERN],
                "capabilities": {"tools": {}},
                "resultType": "complete",
            }
            await line.reply(result(number, about), headers=_JSON)
        elif "plain_errors" in self.traps:
            await line.reply(b"Bad Request", status=400, headers="content-type: text/plain\r\n")
        else:
            refusal = {"code": -32000, "message": "Server not initialized"}
            body = json.dumps({"jsonrpc": "2.0", "id": None, "error": refusal}).encode()
            await line.reply(body, status=400, headers=_JSON)

    async def _initialize(self, line: LoopbackConnection, number: int) -> None:
        head = _JSON
        if "old_kind" in self.traps:
            await line.reply(b"", status=405)
            return
        if "no_session" not in self.traps:
            self.made += 1
            self.sessions.add(f"session-{self.made}")
            head += f"mcp-session-id: session-{self.made}\r\n"
        about = {
            "protocolVersion": self.version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        await line.reply(result(number, about), headers=head)

    async def _call(self, line: LoopbackConnection, number: int, params: dict[str, Any]) -> None:
        traps = self.traps
        done = result(number, text(f"echo: {params['arguments'].get('text', '')}"))
        if params["name"] == "ask":
            await self._ask(line, number)
        elif "forgets" in traps:
            traps.discard("forgets")
            self.sessions = {"another"}
            await line.reply(b"", status=404)
        elif "huge" in traps:
            head = f"HTTP/1.1 200 X\r\n{_JSON}content-length: 100000000\r\n\r\n"
            await line.send(head.encode())
            for _ in range(100):
                await line.send(b"x" * 1_000_000)
        elif "huge_event" in traps:
            await line.start_events()
            await line.chunk(b"data: ")
            for _ in range(100):
                await line.chunk(b"x" * 1_000_000)
        elif "hangs" in traps:
            await line.start_events()
            await line.until_gone()
        elif "by_own_stream" in traps:
            await line.start_events()
            await self.stream.chunk(b"data: " + done + b"\n\n")
            await line.until_gone()
        elif "resumes" in traps:
            await line.start_events()
            await line.chunk(b"retry: 1\nid: %d\ndata: \n\n" % number)
            await line.end_chunks()
        elif "cuts" in traps:
            await line.start_events()
            await line.chunk(b": nothing yet\n\n")
            await line.close()
        elif "resets" in traps:
            await line.reset()
        elif "junk" in traps:
            await line.reply(b"<html>", headers="content-type: text/html\r\n")
        elif "batch" in traps:
            body = b"[" + notification("notifications/message") + b"," + done + b"]"
            await line.reply(body, headers=_JSON)
        elif "events" in traps:
            await line.start_events()
            told = {"progressToken": params["_meta"]["progressToken"], "progress": 1, "total": 2}
            await line.chunk(b"data: " + notification("notifications/progress", told) + b"\n\n")
            await line.chunk(b"event: message\ndata: " + done + b"\n\n")
            await line.end_chunks()
        else:
            # Some send the challenge with answers that are none of a refusal.
            head = 'www-authenticate: Bearer realm="x"\r\n'
            await line.reply(done, headers=_JSON + head)

    async def _ask(self, line: LoopbackConnection, number: int) -> None:
        schema = {"type": "object", "properties": {"color": {"type": "string"}}}
        asked = {
            "jsonrpc": "2.0",
            "id": 77,
            "method": "elicitation/create",
            "params": {"message": "Which color?", "requestedSchema": schema},
        }
        await line.start_events()
        sent = [json.dumps(asked).encode()]
        if "takes_back" in self.traps:
            sent.append(notification("notifications/cancelled", {"requestId": 77}))
            sent.append(json.dumps({**asked, "id": 78}).encode())
        # At once, so that the first is taken back before anyone answers it.
        await line.chunk(b"".join(b"data: %b\n\n" % each for each in sent))
        await self.answered.wait()
        said = text(json.dumps(self.answers[-1]["result"]))
        await line.chunk(b"data: " + result(number, said) + b"\n\n")
        await line.end_chunks()


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool as it is listed."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}, **properties}}
    return {"name": name, "description": f"does {name}", "inputSchema": schema}


def text(said: str) -> dict[str, Any]:
    """The result of a call."""
    return {"content": [{"type": "text", "text": said}], "resultType": "complete"}


def result(number: int, value: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": value}).encode()


def error(number: int, code: int, message: str) -> bytes:
    said = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": said}).encode()


def notification(method: str, params: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode()


async def old_kind(line: LoopbackConnection, streams: list[LoopbackConnection]) -> None:
    """A server of 2024-11-05: a stream, and an address for what is sent."""
    while asked := await line.request():
        if asked.method == "GET":
            streams.append(line)
            await line.start_events()
            await line.chunk(b"event: endpoint\ndata: /messages?session=1\n\n")
            await line.until_gone()
            return
        message = json.loads(asked.body)
        number = message.get("id")
        assert asked.path == "/messages?session=1"
        await line.reply(b"Accepted", status=202)
        if number is None:
            continue
        match message["method"]:
            case "initialize":
                info = {"name": "old", "version": "1"}
                about = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}
                answer = result(number, about)
            case "tools/list":
                answer = result(number, {"tools": [tool("echo")]})
            case "tools/call":
                answer = result(number, text(f"old: {message['params']['arguments']['text']}"))
            case _:
                answer = error(number, -32601, "Method not found")
        await streams[-1].chunk(b"event: message\ndata: " + answer + b"\n\n")


@asynccontextmanager
async def http_served(
    server: ScriptedHttpServer,
    *,
    record: ServerRecord | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    authorization: ServerAuthorization | None = None,
) -> AsyncGenerator[tuple[McpServer, LoopbackServer]]:
    """The server, and a client of it."""
    async with (
        serving(server.handle) as listening,
        http_client(
            f"{listening.url}/mcp", record=record, headers=headers, authorization=authorization
        ) as client,
    ):
        yield client, listening


@asynccontextmanager
async def http_client(
    url: str,
    *,
    transport: str = "http",
    record: ServerRecord | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    authorization: ServerAuthorization | None = None,
    proxies: ProxySettings | None = None,
) -> AsyncGenerator[McpServer]:
    """A client of the server at an address, supervised."""
    supervisor = Supervisor()
    await supervisor.open()

    async def open_link(handlers: Handlers, start_task: StartTask) -> ServerLink:
        client = HttpClient(proxies=proxies)
        endpoint = HttpEndpoint(url, client, headers=headers, authorization=authorization)
        kind = SseConnection if transport == "sse" else HttpConnection
        return ServerLink(kind(endpoint, handlers, start_task))

    try:
        with anyio.fail_after(2 * PATIENCE):
            yield McpServer(
                "scripted",
                "/project",
                record or ServerRecord(),
                open_link,
                supervisor.start,
                clock=SystemClock(),
                give_up_seconds=PATIENCE,
            )
    finally:
        await supervisor.aclose()
