"""The server side of MCP: both eras, what is offered, and the questions of a turn."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from typing import Any

import anyio
import pytest

from tests.support.world import World, until_idle
from weft.app import App
from weft.jsonrpc import LineDecoder
from weft.mcp_server import McpDispatcher, serve_stdio, weft_offer
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ERAS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN]
WRITE = [CallTool(name="write", args={"path": "a.txt", "content": "one"})]


class Client:
    """A client at the other end of the pipes."""

    def __init__(self, era: str, app: App, *, elicits: bool = True) -> None:
        self.era = era
        self._app = app
        self._elicits = elicits
        self._in, self._server_in = anyio.create_memory_object_stream[bytes](100)
        self._decoder = LineDecoder()
        self._last = 0
        self._waiting: dict[int, anyio.Event] = {}
        self._found: dict[int, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.answer: dict[str, Any] | None = {"action": "decline"}
        self.progress: list[str] = []
        self.question = anyio.Event()

    async def serve(self) -> None:
        async def receive() -> bytes:
            try:
                return await self._server_in.receive()
            except anyio.EndOfStream:
                return b""

        with self._server_in:
            await serve_stdio(McpDispatcher(weft_offer(self._app)), receive, self._take)

    async def _take(self, data: bytes) -> None:
        for line in self._decoder.feed(data):
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("method") == "elicitation/create":
                self.asked.append(message["params"])
                self.question.set()
                if self.answer is not None:
                    self.send({"id": message["id"], "result": self.answer})
            elif message.get("method") == "notifications/progress":
                self.progress.append(message["params"]["message"])
            elif message.get("id") in self._waiting:
                self._found[message["id"]] = message
                self._waiting[message["id"]].set()

    def send(self, message: dict[str, Any]) -> None:
        self._in.send_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def close(self) -> None:
        self._in.close()

    def begin(self, method: str, **params: Any) -> int:
        """Send a request; returns its number."""
        self._last += 1
        if self.era == MODERN:
            forms: dict[str, Any] = {"elicitation": {"form": {}}} if self._elicits else {}
            about = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": forms}
            params["_meta"] = {**about, **params.get("_meta", {})}
        self._waiting[self._last] = anyio.Event()
        self.send({"id": self._last, "method": method, "params": params})
        return self._last

    async def asks(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole answer to a request."""
        number = self.begin(method, **params)
        await self._waiting[number].wait()
        return self._found[number]

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.asks(method, **params)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    async def call(self, tool: str, /, **args: Any) -> str:
        """The text of a call; newer clients answer what they are asked and make it again."""
        more: dict[str, Any] = {}
        while True:
            found = await self.result("tools/call", name=tool, arguments=args, **more)
            if found.get("resultType") != "input_required":
                self.is_error = found["isError"]
                text: str = found["content"][0]["text"]
                return text
            (question,) = found["inputRequests"].values()
            self.asked.append(question["params"])
            answers = dict.fromkeys(found["inputRequests"], self.answer)
            more = {"inputResponses": answers, "requestState": found["requestState"]}


@asynccontextmanager
async def connected(
    world: World, *says: Any, era: str = MODERN, elicits: bool = True
) -> AsyncGenerator[tuple[Client, App, ScriptedModel]]:
    model = ScriptedModel(list(says))
    async with world.open(model) as app, anyio.create_task_group() as group:
        client = Client(era, app, elicits=elicits)
        group.start_soon(client.serve)
        with closing(client), anyio.fail_after(60):
            if era != MODERN:
                forms: dict[str, Any] = {"elicitation": {}} if elicits else {}
                about = {"name": "test", "version": "1"}
                found = await client.result(
                    "initialize", protocolVersion=era, capabilities=forms, clientInfo=about
                )
                assert found["protocolVersion"] == era
                client.send({"method": "notifications/initialized"})
            yield client, app, model
        group.cancel_scope.cancel()


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_every_era_lists_asks_and_reads(plain_world: World, era: str) -> None:
    async with connected(plain_world, "forty-two", era=era) as (client, _, _):
        listed = await client.result("tools/list")
        names = [tool["name"] for tool in listed["tools"]]
        assert names[:5] == ["weft_ask", "weft_sessions", "weft_read", "weft_fork", "weft_rewind"]
        assert (listed.get("resultType"), listed.get("ttlMs")) == (
            ("complete", 0) if era == MODERN else (None, None)
        )
        said = await client.call("weft_ask", prompt="the answer?")
        assert said.startswith("forty-two\n")
        (row,) = json.loads(await client.call("weft_sessions"))
        assert row["id"] in said
        assert "forty-two" in await client.call("weft_read", session_id=row["id"])
        found = await client.result("resources/list")
        (resource,) = found["resources"]
        assert resource["uri"] == f"weft://session/{row['id']}"
        read = await client.result("resources/read", uri=resource["uri"])
        assert "forty-two" in read["contents"][0]["text"]
        templates = await client.result("resources/templates/list")
        assert templates["resourceTemplates"][0]["uriTemplate"] == "weft://session/{id}"


async def test_a_newer_client_needs_no_handshake_and_finds_out_what_there_is(
    plain_world: World,
) -> None:
    async with connected(plain_world) as (client, _, _):
        found = await client.result("server/discover")
        assert found["supportedVersions"] == [MODERN]
        assert set(found["capabilities"]) == {"tools", "resources", "prompts"}
        wrong = {"_meta": {f"{META}protocolVersion": "2099-01-01"}}
        refused = await client.asks("tools/list", **wrong)
        assert refused["error"]["code"] == -32022
        assert refused["error"]["data"]["supported"] == [MODERN]
        assert (await client.asks("initialize"))["error"]["code"] == -32601


@pytest.mark.parametrize(("era", "code"), [("2025-11-25", -32002), (MODERN, -32602)])
async def test_what_is_not_there_is_an_error(plain_world: World, era: str, code: int) -> None:
    async with connected(plain_world, era=era) as (client, _, _):
        for uri in ("weft://session/nothing", "file:///etc/passwd"):
            assert (await client.asks("resources/read", uri=uri))["error"]["code"] == code
        assert (await client.asks("tools/call", name="shell"))["error"]["code"] == -32602
        assert (await client.asks("sampling/x"))["error"]["code"] == -32601
        assert (await client.asks("prompts/get", name="none"))["error"]["code"] == -32602


@pytest.mark.parametrize("era", ["2025-06-18", "2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("answer", "is_written"),
    [
        ({"action": "accept", "content": {"decision": "allow"}}, True),
        ({"action": "accept", "content": {"decision": "allow for the rest of this turn"}}, True),
        ({"action": "accept", "content": {"decision": "deny"}}, False),
        ({"action": "accept", "content": {}}, False),
        ({"action": "accept"}, False),
        ({"action": "decline", "content": {"decision": "allow"}}, False),
        ({"action": "cancel"}, False),
        ({}, False),
        ("allow", False),
    ],
)
async def test_a_permission_request_is_a_question_of_the_clients_user(
    plain_world: World, era: str, answer: Any, is_written: bool
) -> None:
    async with connected(plain_world, WRITE, "done", era=era) as (client, _, _):
        client.answer = answer
        assert (await client.call("weft_ask", prompt="write it")).startswith("done")
        (asked,) = client.asked
        assert "allow write?" in asked["message"]
        assert asked["requestedSchema"]["required"] == ["decision"]
    assert (plain_world.project / "a.txt").exists() == is_written


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
async def test_a_client_that_cannot_ask_gets_a_denial_with_its_reason(
    plain_world: World, era: str
) -> None:
    async with connected(plain_world, WRITE, "done", era=era, elicits=False) as (client, _, model):
        told = await client.call("weft_ask", prompt="write it")
        assert client.asked == []
    assert told.startswith("done")
    # Its own model has to know, too: the session's may have told something else.
    assert "[not allowed: write a.txt: the program that asked cannot ask its user" in told
    assert "cannot ask its user" in str(model.requests[-1])
    assert not (plain_world.project / "a.txt").exists()


async def test_a_call_can_only_be_made_again_with_the_state_that_it_ended_with(
    plain_world: World,
) -> None:
    async with connected(plain_world, WRITE, "done") as (client, _, _):
        args = {"prompt": "write it"}
        first = await client.result("tools/call", name="weft_ask", arguments=args)
        yes = {"question": {"action": "accept", "content": {"decision": "allow"}}}
        for state in ("", "guessed", first["requestState"] + "x"):
            again = {"inputResponses": yes, "requestState": state} if state else {}
            if state:
                refused = await client.result(
                    "tools/call", name="weft_ask", arguments=args, **again
                )
                assert refused["isError"]
        assert not (plain_world.project / "a.txt").exists()
        again = {"inputResponses": yes, "requestState": first["requestState"]}
        done = await client.result("tools/call", name="weft_ask", arguments=args, **again)
        assert done["content"][0]["text"].startswith("done")
        # Good for one use.
        spent = await client.result("tools/call", name="weft_ask", arguments=args, **again)
        assert spent["isError"]
    assert (plain_world.project / "a.txt").exists()


async def test_progress_is_told_to_those_who_want_it(plain_world: World) -> None:
    async with connected(plain_world, WRITE, "done", "more") as (client, _, _):
        client.answer = {"action": "accept", "content": {"decision": "allow"}}
        args = {"prompt": "write it"}
        meta = {"progressToken": "t"}
        first = await client.result("tools/call", name="weft_ask", arguments=args, _meta=meta)
        answers = {"question": client.answer}
        again = {"inputResponses": answers, "requestState": first["requestState"]}
        await client.result("tools/call", name="weft_ask", arguments=args, _meta=meta, **again)
        assert any("write" in each for each in client.progress)


async def test_a_call_that_is_cancelled_gets_no_answer_and_the_turn_goes_on(
    plain_world: World,
) -> None:
    async with connected(plain_world, WRITE, "done", era="2025-11-25") as (client, app, _):
        client.answer = None
        number = client.begin("tools/call", name="weft_ask", arguments={"prompt": "write it"})
        await client.question.wait()
        client.send({"method": "notifications/cancelled", "params": {"requestId": number}})
        assert (await client.result("ping")) == {}
        (row,) = json.loads(await client.call("weft_sessions"))
        session = await app.sessions.get(row["id"])
        await session.respond_to_permission("allow_once")
        await until_idle(session)
    assert (plain_world.project / "a.txt").exists()


async def test_a_session_is_gone_on_with_forked_and_a_rewind_is_only_shown(
    plain_world: World,
) -> None:
    async with connected(plain_world, WRITE, "done", "second") as (client, _, _):
        client.answer = {"action": "accept", "content": {"decision": "allow"}}
        await client.call("weft_ask", prompt="write it")
        (row,) = json.loads(await client.call("weft_sessions"))
        said = await client.call("weft_ask", prompt="and now?", session_id=row["id"])
        assert said.startswith("second")
        assert "a.txt" in await client.call("weft_rewind", session_id=row["id"])
        assert (plain_world.project / "a.txt").exists()
        forked = await client.call("weft_fork", session_id=row["id"], title="other")
        assert row["id"] not in forked
        assert not client.is_error


async def test_files_are_read_by_the_rules_of_the_project(plain_world: World) -> None:
    plain_world.write("src/a.py", "key = 'sk-ant-api03-" + "a" * 60 + "'\n")
    async with connected(plain_world) as (client, _, _):
        text = await client.call("weft_read_file", path="src/a.py")
        assert "key = " in text
        assert "a" * 60 not in text
        for path in ("../secret.txt", "/etc/passwd", "nothing.txt", "~/.ssh/id_rsa"):
            await client.call("weft_read_file", path=path)
            assert client.is_error, path


@pytest.mark.parametrize(
    "args",
    [{}, {"prompt": 7}, {"prompt": "x", "permission_mode": "bypass"}, {"prompt": None}],
)
async def test_arguments_that_a_tool_does_not_have_are_refused(
    plain_world: World, args: dict[str, Any]
) -> None:
    async with connected(plain_world) as (client, _, model):
        await client.call("weft_ask", **args)
        assert client.is_error
        assert model.requests == []


async def test_commands_of_the_project_are_prompts(plain_world: World) -> None:
    plain_world.write(".weft/commands/greet.md", "---\ndescription: greets\n---\nSay hi to $1.")
    async with connected(plain_world) as (client, _, _):
        found = await client.result("prompts/list")
        assert [(each["name"], each["description"]) for each in found["prompts"]] == [
            ("greet", "greets")
        ]
        made = await client.result("prompts/get", name="greet", arguments={"arguments": "Ada"})
        assert made["messages"][0]["content"]["text"] == "Say hi to Ada."
        assert json.loads(await client.call("weft_sessions")) == []


async def test_junk_is_answered_and_hurts_nothing(plain_world: World) -> None:
    async with connected(plain_world, era="2025-11-25") as (client, _, _):
        client.send({"id": 1.5, "method": "ping"})
        client.send({"id": {}, "method": 7})
        assert await client.result("ping") == {}
