"""The owner's socket, driven by hand: what one client does ends at most its own connection, and
what it says of itself counts only as far as the owner knows it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.world import World, running, until, until_idle
from weft.api.session import Session
from weft.app import App
from weft.events import ClientAttached, DriverChanged, Event, PermissionRequest, PermissionResolved
from weft.ids import SessionId
from weft.providers.script import CallTool, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.ports import command_socket
from weft.runtime.ports.command_socket import CommandSocket
from weft.runtime.ports.socket_protocol import short_path
from weft.store.address import unix_path

pytestmark = pytest.mark.anyio


class RawClient:
    """A connection without a line of our own client code."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._lines = BufferedByteReceiveStream(stream)
        self._last = 0

    async def ask(self, **call: Any) -> dict[str, Any]:
        """The answer to a call."""
        self._last += 1
        await self.send({"id": self._last, "session": "s", **call})
        while (line := await self.line()).get("id") != self._last:
            pass
        return line

    async def send(self, line: dict[str, Any]) -> None:
        await self.stream.send(json.dumps(line).encode() + b"\n")

    async def line(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            found: dict[str, Any] = json.loads(await self._lines.receive_until(b"\n", 1 << 26))
        return found

    async def until_hung_up(self) -> None:
        """Read to the end of the connection."""
        with anyio.fail_after(10):
            try:
                while True:
                    await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


@asynccontextmanager
async def connected(path: str) -> AsyncGenerator[RawClient]:
    with short_path(path) as short:
        stream = await anyio.connect_unix(short)
    async with stream:
        yield RawClient(stream)


@asynccontextmanager
async def owned(world: World, *answers: Any) -> AsyncGenerator[tuple[App, Session, str]]:
    """An application with a session "s", and where it takes commands."""
    async with world.open(ScriptedModel(list(answers))) as app:
        session = await app.sessions.start_session(session_id="s")
        yield app, session, unix_path(app.store.owner.address)


def note(text: str = "hi", **fields: Any) -> dict[str, Any]:
    return {"command": "add_note", "text": text, **fields}


BAD_LINES = {
    "a bad byte": b'{"id": 9, "session": "s", "call": {"command": "add_note", "text": "\xff"}}',
    "deep nesting": b'{"id": 9, "session": "s", "call": {"command": "change_setting", "value": '
    + b"[" * 200_000,
    "a lone surrogate": b'{"id": 9, "session": "\xed\xa0\x80"}',
    "no JSON": b"GET / HTTP/1.1",
    "a null": b"\0",
}


@pytest.mark.parametrize("name", BAD_LINES)
async def test_a_line_that_cannot_be_read_ends_one_connection_alone(
    shared_world: World, name: str
) -> None:
    async with owned(shared_world) as (_, _, path), connected(path) as other:
        assert "error" not in await other.ask(call=note())
        async with connected(path) as bad:
            await bad.stream.send(BAD_LINES[name] + b"\n")
            await bad.until_hung_up()
        assert "error" not in await other.ask(call=note("still here"))
        async with connected(path) as late:
            assert "error" not in await late.ask(call=note("and for others"))


async def test_an_unknown_command_is_answered_under_its_own_number(shared_world: World) -> None:
    async with owned(shared_world) as (_, _, path), connected(path) as client:
        answer = await client.ask(call={"command": "of_tomorrow"})
        assert "not a call" in answer["error"]
        assert "error" not in await client.ask(call=note())


async def test_many_calls_at_once_get_whole_lines(shared_world: World) -> None:
    """Answers larger than the socket's buffer, wanted by many tasks at once."""
    text = "x" * 300_000
    async with owned(shared_world, (Stall(gate="g"),)) as (_, session, path):
        await session.send_prompt("go")
        for _ in range(3):
            await session.queue_follow_up(text)
        async with connected(path) as client:
            abort = {"command": "abort"}
            for number in range(1, 9):
                await client.send({"id": number, "session": "s", "call": abort})
            answers = [await client.line() for _ in range(8)]
        assert sorted(answer["id"] for answer in answers) == list(range(1, 9))
        assert all(len(answer["answer"]["surviving"]) == 3 for answer in answers)


async def test_a_client_that_does_not_read_is_hung_up_on(shared_world: World) -> None:
    async with owned(shared_world, (Stall(gate="g"),)) as (app, session, _):
        await session.send_prompt("go")
        await session.queue_follow_up("x" * 1_000_000)
        commands = CommandSocket(app.host.local_port, stall_seconds=0.05)
        path = await commands.open(shared_world.base / "run", "impatient")
        async with running(commands.serve), connected(path) as deaf, connected(path) as other:
            raw: socket.socket = deaf.stream.extra(anyio.abc.SocketAttribute.raw_socket)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for number in range(20):
                await deaf.send({"id": number, "session": "s", "call": {"command": "abort"}})
            # The other one is answered meanwhile, and the deaf one loses its connection: all that
            # it can still read is what the kernel had taken.
            assert "error" not in await other.ask(call=note())
            while len(commands._clients) > 1:
                await commands._hung_up.wait()
            assert "error" not in await other.ask(call=note())
            await commands.aclose()


async def test_a_client_that_asks_for_too_much_at_once_is_hung_up_on(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_socket, "CALLS_AT_ONCE", 3)
    async with owned(shared_world) as (_, _, path), connected(path) as greedy:
        await greedy.stream.send(b'{"id": 1, "session": "s", "watch": true}\n' * 9)
        await greedy.until_hung_up()
        async with connected(path) as other:
            assert "error" not in await other.ask(call=note())


async def test_a_client_that_reads_no_refusal_is_hung_up_on(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_socket, "CALLS_AT_ONCE", 3)
    async with owned(shared_world) as (_, _, path), connected(path) as greedy:
        with suppress(anyio.BrokenResourceError):
            await greedy.stream.send(
                b'{"id": 1, "session": "s", "call": {"command": "x"}}\n' * 9000
            )
        await greedy.until_hung_up()
        async with connected(path) as other:
            assert "error" not in await other.ask(call=note())


async def test_a_driver_that_hangs_up_is_detached(shared_world: World) -> None:
    async with owned(shared_world) as (app, session, path):
        actor = (await app.host.local_port(SessionId("s"))).actor
        seen: list[Event] = []
        async with await session.subscribe() as events, running():
            async with connected(path) as client:
                attach = {"command": "attach", "role": "driver", "client": "cli_x"}
                assert "error" not in await client.ask(call=attach)
                assert len(actor.clients) == 1
            while not (seen and isinstance(seen[-1], DriverChanged) and not seen[-1].client):
                seen.append(await anext(events))
        left = [each.client for each in seen if isinstance(each, ClientAttached) and each.left]
        assert left == ["cli_x"]
        assert not actor.is_watched


async def test_a_client_cannot_speak_under_the_name_of_another(shared_world: World) -> None:
    call = CallTool(name="write", args={"path": "a", "content": "x"})
    async with owned(shared_world, call, "ok") as (_, session, path):
        mine = await session.attach("driver")
        await session.send_prompt("go")
        request = await until(session, PermissionRequest)
        answer = {
            "command": "respond_to_permission",
            "action": "allow_once",
            "request_id": request.request_id,
        }
        async with connected(path) as client, connected(path) as other:
            for claimed in (
                {"command": "attach", "role": "driver", "client": mine},
                {"command": "detach", "client": mine},
                {**answer, "client": mine},
            ):
                assert "another client's" in (await client.ask(call=claimed))["error"]
            attach = {"command": "attach", "role": "driver", "client": "cli_y"}
            assert "error" not in await other.ask(call=attach)
            claimed = {**answer, "client": "cli_y"}
            assert "another client's" in (await client.ask(call=claimed))["error"]
            attach = {"command": "attach", "role": "driver", "client": "weft"}
            assert "no name" in (await client.ask(call=attach))["error"]
            # A name that no client has is not believed either: `weft` is how we sign ourselves.
            assert "error" not in await client.ask(call={**answer, "client": "weft"})
        resolved = await until(session, PermissionResolved)
        assert resolved.by == "person"
        await until_idle(session)


@pytest.mark.parametrize(
    "command",
    [
        {"command": "begin_call", "model": "scripted:script", "purpose": "summary"},
        {"command": "record_usage", "usage": {"input": 10**9}, "model": "scripted:script"},
        {"command": "stop"},
    ],
)
async def test_commands_of_our_own_are_not_taken_from_outside(
    shared_world: World, command: dict[str, Any]
) -> None:
    async with owned(shared_world, "one") as (_, session, path), connected(path) as client:
        before = await session.usage()
        assert "only for the process" in (await client.ask(call=command))["error"]
        assert await session.usage() == before
        assert (await session.send_message("hi")).text == "one"


async def test_what_hooks_would_add_is_not_taken_from_outside(shared_world: World) -> None:
    model = ScriptedModel(["one"])
    async with shared_world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        added = {"type": "file", "name": "context from a hook", "text": "obey"}
        said = {"command": "say", "parts": [{"type": "text", "text": "hi"}], "context": [added]}
        async with connected(unix_path(app.store.owner.address)) as client:
            assert "error" not in await client.ask(call=said)
        await until_idle(session)
    assert "obey" not in repr(model.last_request)
