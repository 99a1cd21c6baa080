"""Requests of those who mean harm, or are confused: refused in a sentence, and nothing held."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import anyio
import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.exceptions import ConnectionClosed

import weft
from tests.support.page_socket import page_socket
from tests.support.served_world import ServedWorld, parsed, serving
from tests.support.world import PATIENCE, World
from weft.errors import UsageError
from weft.providers.scripted import ScriptedModel
from weft.server import RecordLock, ServerAddress, ServerRecord
from weft.server.http_protocol import WHOLE_SECONDS, StrictHttpProtocol
from weft.server.serve import bound_socket
from weft.server.web_socket import NOT_ALLOWED

pytestmark = pytest.mark.anyio


async def _viewer(served: ServedWorld) -> str:
    code = (await served.good("POST", "/pair/codes", {"role": "viewer"}))["code"]
    return str((await served.good("POST", "/pair", {"code": code}))["token"])


async def _driven(served: ServedWorld) -> tuple[str, str]:
    """A session, and the client that drives it."""
    session = (await served.good("POST", "/sessions", {}))["id"]
    path = f"/sessions/{session}/clients"
    return session, (await served.good("POST", path, {"role": "driver"}))["client"]


async def _still_drives(served: ServedWorld, session: str, client: str) -> bool:
    path, headers = f"/sessions/{session}/status", {"Weft-Client": client}
    return (await served.call("GET", path, headers=headers)).status == 200


async def test_a_token_that_only_reads_ends_no_client_over_the_socket(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session, client = await _driven(served)
        async with page_socket(served, token=await _viewer(served)) as page:
            await page.say(client=client)
            with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(PATIENCE):
                await page.socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == NOT_ALLOWED
        assert await _still_drives(served, session, client)


async def test_a_token_that_only_reads_speaks_for_no_client(plain_world: World) -> None:
    """A stream that it follows as another's would detach that one when it ends."""
    async with serving(plain_world, ScriptedModel([])) as served:
        session, client = await _driven(served)
        token = await _viewer(served)
        for path in ("events", "status"):
            headers = {"Authorization": f"Bearer {token}", "Weft-Client": client}
            answer = await served.call("GET", f"/sessions/{session}/{path}", headers=headers)
            assert (answer.status, answer.kind) == (403, "viewer")


async def test_the_head_of_a_stream_is_answered_and_the_answer_ends(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        for path in (f"/sessions/{session}/events", "/events"):
            answer = await served.call("HEAD", path)
            assert (answer.status, answer.body) == (200, b"")
            assert answer.headers["content-type"].startswith("text/event-stream")


async def test_a_cursor_that_the_session_has_not_come_to_is_refused(plain_world: World) -> None:
    """It is another session's, or of a store that was put back: to wait for it would hide what
    happens until then.
    """
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        path = f"/sessions/{session}/events"
        for ahead in (100_000, 2**63 - 1):
            answer = await served.call("GET", f"{path}?after={ahead}")
            assert (answer.status, answer.kind) == (400, "UsageError")
            assert "no event" in answer.json["error"]["message"]
        async with page_socket(served) as page:
            for ahead in (100_000, 2**70):
                await page.say(follow=session, after=ahead)
                with anyio.fail_after(PATIENCE):
                    frame = await anext(page.frames())
                assert "no event" in frame["closed"]
        seq = (await served.good("GET", f"/sessions/{session}"))["snapshot"]["seq"]
        assert (await served.call("HEAD", f"{path}?after={seq}")).status == 200


async def test_a_reader_that_has_no_cursor_yet_may_say_so(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        path = f"/sessions/{session}/events"
        assert (await served.call("HEAD", path, headers={"Last-Event-ID": ""})).status == 200
        assert (await served.call("HEAD", path, headers={"Last-Event-ID": "x"})).status == 400


@pytest.mark.parametrize("name", ["a" * 5_000, "%ff", "..", "%00", "."])
async def test_a_name_of_no_file_of_the_page_is_not_found(plain_world: World, name: str) -> None:
    """Anybody may ask for these: they need no token."""
    async with serving(plain_world, ScriptedModel([])) as served:
        answer = await served.exchange(
            served.head("GET", f"/assets/{name}", {"Connection": "close"}, b"")
        )
        assert answer.status == 404


@pytest.mark.parametrize("path", ["/", "/icon.svg", "/assets/a.js"])
async def test_a_method_that_a_page_does_not_take_is_refused_as_everywhere(
    plain_world: World, path: str
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        answer = await served.exchange(served.head("POST", path, {"Connection": "close"}, b"{}"))
        assert (answer.status, answer.kind) == (405, "method")
        assert answer.headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Encoding": "gzip"}, 415),
        ({"Transfer-Encoding": "gzip, chunked", "Content-Length": None}, 501),
    ],
)
async def test_a_body_that_is_packed_is_refused_and_not_unpacked(
    plain_world: World, headers: dict[str, str | None], status: int
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        body = b"2\r\n{}\r\n0\r\n\r\n" if status == 501 else b"{}"
        head = {"Connection": "close", **headers}
        answer = await served.exchange(served.head("POST", "/api/sessions", head, body))
        assert answer.status == status


class _Listener:
    """The protocol alone, without a server around it: its deadlines are its own."""

    def __init__(self) -> None:
        self.protocols: list[StrictHttpProtocol] = []

    def made(self) -> StrictHttpProtocol:
        config = uvicorn.Config(_answers, lifespan="off", log_config=None)
        self.protocols.append(StrictHttpProtocol(config, ServerState(), {}))
        return self.protocols[-1]


async def _answers(scope: object, receive: object, send: object) -> None:
    del scope, receive
    assert callable(send)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


async def test_a_body_that_never_ends_is_not_waited_for_after_its_answer() -> None:
    loop = asyncio.get_running_loop()
    listener = _Listener()
    server = await loop.create_server(listener.made, "127.0.0.1", 0)
    async with server, await anyio.connect_tcp(*server.sockets[0].getsockname()) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nsome")
        with anyio.fail_after(PATIENCE):
            while b"ok" not in await stream.receive():
                pass
            deadline = listener.protocols[0]._deadline
            assert deadline is not None
            assert 0 < deadline.when() - loop.time() <= WHOLE_SECONDS
            await stream.send(b"more")  # which does not give it more time
            assert listener.protocols[0]._deadline is deadline
            deadline._run()  # now, and not in a minute
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()


async def test_a_request_that_is_whole_has_no_deadline() -> None:
    loop = asyncio.get_running_loop()
    listener = _Listener()
    server = await loop.create_server(listener.made, "127.0.0.1", 0)
    async with server, await anyio.connect_tcp(*server.sockets[0].getsockname()) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nsome")
        with anyio.fail_after(PATIENCE):
            while b"ok" not in await stream.receive():
                pass
        assert listener.protocols[0]._deadline is None


# -- sockets and tokens of this machine


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_a_path_that_is_no_socket_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "notes"
    (tmp_path / "real").write_text("important")
    if kind == "file":
        path.write_text("important")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "real")
    with pytest.raises(UsageError, match="cannot listen"):
        bound_socket(ServerAddress(unix=str(path)))
    assert os.path.lexists(path)
    assert (tmp_path / "real").read_text() == "important"


async def test_two_servers_on_two_unix_sockets_have_tokens_of_their_own(
    plain_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(plain_world.base))
    first, second = (str(tmp_path / name) for name in ("a", "b"))
    async with (
        serving(plain_world, ScriptedModel([]), address=ServerAddress(unix=first)) as one,
        serving(plain_world, ScriptedModel([]), address=ServerAddress(unix=second)) as two,
    ):
        assert one.server.name != two.server.name
        assert one.token != two.token
        for path in (first, second):
            async with weft.connect(f"unix:{path}") as app:  # each with its own, found by the path
                assert await app.sessions.list_active() == []


def test_a_token_of_this_machine_goes_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    monkeypatch.delenv("WEFT_SERVER_TOKEN", raising=False)
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "7717.token").write_text("secret")
    for url in ("http://127.0.0.1:7717", "http://localhost:7717", "http://[::1]:7717"):
        weft.connect(url)
    for url in ("http://other.example:7717", "https://10.0.0.1:7717", "http://localhost.evil:7717"):
        with pytest.raises(UsageError, match="token"):
            weft.connect(url)
    # One's own public server goes by its name.
    lock = RecordLock(folder, "7717")
    lock.hold(
        ServerRecord(
            pid=os.getpid(),
            url="https://agents.example:7717",
            project_path="/",
            started=0.0,
            token_file="",
        )
    )
    weft.connect("https://agents.example:7717")
    lock.release()


async def test_an_answer_of_another_kind_of_request_is_parsed(plain_world: World) -> None:
    """Three requests at once on one connection are answered in their order."""
    async with serving(plain_world, ScriptedModel([])) as served:
        paths = ("/api/health", "/api/sessions/active", "/api/health")
        asked = [served.head("GET", path, {}, b"") for path in paths[:2]]
        asked.append(served.head("GET", paths[2], {"Connection": "close"}, b""))
        with anyio.fail_after(PATIENCE):
            async with await served.connect() as stream:
                await stream.send(b"".join(asked))
                received = b""
                try:
                    while True:
                        received += await stream.receive()
                except anyio.EndOfStream:
                    pass
        answers = [parsed(b"HTTP" + each) for each in received.split(b"HTTP")[1:]]
        assert [each.status for each in answers] == [200, 200, 200]
        assert [each.body for each in answers] == [b'{"status":"ok"}', b"[]", b'{"status":"ok"}']
