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
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.ports import command_socket
from weft.runtime.ports.command_socket import CommandSocket
from weft.runtime.ports.socket_protocol import FRAME_LIMIT, GREETING, short_path
from weft.store.address import unix_path

pytestmark = pytest.mark.anyio


class RawClient:
    """A connection without a line of our own client code."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._received = BufferedByteReceiveStream(stream)
        self._last = 0

    async def ask(self, **call: Any) -> dict[str, Any]:
        """The answer to a call."""
        self._last += 1
        await self.send({"id": self._last, "session": "s", **call})
        while (frame := await self.frame()).get("id") != self._last:
            pass
        return frame

    async def send(self, frame: dict[str, Any]) -> None:
        await self.stream.send(framed(json.dumps(frame).encode()))

    async def frame(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            length = int.from_bytes(await self._received.receive_exactly(4), "big")
            found: dict[str, Any] = json.loads(await self._received.receive_exactly(length))
        return found

    async def line(self) -> dict[str, Any]:
        with anyio.fail_after(10):
            found: dict[str, Any] = json.loads(await self._received.receive_until(b"\n", 1 << 16))
        return found

    async def until_hung_up(self) -> None:
        """Read to the end of the connection."""
        with anyio.fail_after(10):
            try:
                while True:
                    await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@asynccontextmanager
async def connected(path: str, greeting: bytes = GREETING) -> AsyncGenerator[RawClient]:
    with short_path(path) as short:
        stream = await anyio.connect_unix(short)
    async with stream:
        await stream.send(greeting)
        yield RawClient(stream)


@asynccontextmanager
async def owned(world: World, *answers: Any) -> AsyncGenerator[tuple[App, Session, str]]:
    """An application with a session "s", and where it takes commands."""
    async with world.open(ScriptedModel(list(answers))) as app:
        session = await app.sessions.start_session(session_id="s")
        yield app, session, unix_path(app.store.owner.address)


def note(text: str = "hi", **fields: Any) -> dict[str, Any]:
    return {"command": "add_note", "text": text, **fields}


BAD_FRAMES = {
    "a bad byte": b'{"id": 9, "session": "s", "call": {"command": "add_note", "text": "\xff"}}',
    "deep nesting": b'{"id": 9, "session": "s", "call": {"command": "change_setting", "value": '
    + b"[" * 200_000,
    "a lone surrogate": b'{"id": 9, "session": "\xed\xa0\x80"}',
    "no JSON": b"GET / HTTP/1.1",
    "a null": b"\0",
    "nothing": b"",
}


@pytest.mark.parametrize("name", BAD_FRAMES)
async def test_a_frame_that_cannot_be_read_ends_one_connection_alone(
    shared_world: World, name: str
) -> None:
    async with owned(shared_world) as (_, _, path), connected(path) as other:
        assert "error" not in await other.ask(call=note())
        async with connected(path) as bad:
            await bad.stream.send(framed(BAD_FRAMES[name]))
            await bad.until_hung_up()
        assert "error" not in await other.ask(call=note("still here"))
        async with connected(path) as late:
            assert "error" not in await late.ask(call=note("and for others"))


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\n", b"\n", b"x" * 100_000])
async def test_what_does_not_begin_as_our_clients_do_is_hung_up_on(
    shared_world: World, greeting: bytes
) -> None:
    async with owned(shared_world) as (_, _, path):
        with suppress(anyio.BrokenResourceError):
            async with connected(path, greeting) as stranger:
                await stranger.until_hung_up()
        async with connected(path) as other:
            assert "error" not in await other.ask(call=note())


async def test_a_frame_beyond_the_limit_ends_the_connection(shared_world: World) -> None:
    async with owned(shared_world) as (_, _, path), connected(path) as bad:
        await bad.stream.send((FRAME_LIMIT + 1).to_bytes(4, "big"))
        await bad.until_hung_up()


async def test_a_client_that_speaks_lines_is_told_that_it_is_of_another_version(
    shared_world: World,
) -> None:
    async with owned(shared_world) as (_, _, path):
        first = b'{"id":7,"session":"s","watch":true}\n'
        async with connected(path, first) as old:
            answer = await old.line()
            assert (answer["id"], answer["kind"]) == (7, "UsageError")
            assert "another version of Weft" in answer["error"]
            await old.until_hung_up()


async def test_a_follower_gets_the_frames_that_every_wire_has(shared_world: World) -> None:
    """Facts and pieces of one tick in one frame; what is in flight first, as a draft."""
    script = (SayText("Hello "), Stall(gate="g"), SayText("there"))
    model = ScriptedModel([script])
    async with shared_world.open(model) as app:
        session = await app.sessions.start_session(session_id="s")
        await session.send_prompt("go")
        await model.gate("g").reached.wait()
        path = unix_path(app.store.owner.address)
        async with connected(path) as client:
            answer = await client.ask(follow="s")
            assert (answer["answer"], answer["owner"]["status"]) == ("thinking", "thinking")
            first = await client.frame()
            assert (first["s"], first["e"][0]["kind"]) == ("s", "draft")
            assert first["e"][0]["text"] == "Hello "
            model.gate("g").opened.set()
            seen: list[dict[str, Any]] = []
            while not any(each["kind"] == "turn_finished" for each in seen):
                seen += (await client.frame()).get("e", [])
            assert [each["text"] for each in seen if each["kind"] == "text_delta"] == ["there"]
            stored = [each["seq"] for each in seen if "seq" in each]
            assert stored == list(range(stored[0], stored[0] + len(stored)))
            await session.stop()
            while (last := await client.frame()).get("closed") is None:
                pass
            assert last["s"] == "s"


async def test_an_unknown_command_is_answered_under_its_own_number(shared_world: World) -> None:
    async with owned(shared_world) as (_, _, path), connected(path) as client:
        answer = await client.ask(call={"command": "of_tomorrow"})
        assert "not a call" in answer["error"]["message"]
        assert "error" not in await client.ask(call=note())


async def test_many_calls_at_once_get_whole_frames(shared_world: World) -> None:
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
            answers = [await client.frame() for _ in range(8)]
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
        await greedy.stream.send(framed(b'{"id": 1, "follow": "s"}') * 9)
        await greedy.until_hung_up()
        async with connected(path) as other:
            assert "error" not in await other.ask(call=note())


async def test_a_client_that_reads_no_refusal_is_hung_up_on(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_socket, "CALLS_AT_ONCE", 3)
    async with owned(shared_world) as (_, _, path), connected(path) as greedy:
        with suppress(anyio.BrokenResourceError):
            unknown = framed(b'{"id": 1, "session": "s", "call": {"command": "x"}}')
            await greedy.stream.send(unknown * 9000)
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
                assert "another client's" in (await client.ask(call=claimed))["error"]["message"]
            attach = {"command": "attach", "role": "driver", "client": "cli_y"}
            assert "error" not in await other.ask(call=attach)
            claimed = {**answer, "client": "cli_y"}
            assert "another client's" in (await client.ask(call=claimed))["error"]["message"]
            attach = {"command": "attach", "role": "driver", "client": "weft"}
            assert "no name" in (await client.ask(call=attach))["error"]["message"]
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
        assert "only for the process" in (await client.ask(call=command))["error"]["message"]
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
