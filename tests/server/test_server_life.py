"""The life of a server: where it listens, whom it lets in, how it ends and is found."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import stat
from pathlib import Path

import anyio
import pytest
import trustme
import uvicorn
from uvicorn.server import ServerState

from tests.support.served_world import ServedWorld, parsed, serving
from tests.support.world import PATIENCE, World
from weft.errors import UsageError
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.server import RecordLock, ServerAddress, ServerRecord, running_servers, server_record
from weft.server.http_protocol import HEAD_SECONDS, StrictHttpProtocol
from weft.server.serve import bound_socket, check_address

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org"])
def test_another_host_needs_tls_and_a_password(host: str) -> None:
    with pytest.raises(UsageError, match="TLS"):
        check_address(ServerAddress(host=host), "secret")


def test_a_public_server_needs_a_password_and_a_certificate_that_is_one(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    named = ("agents.test",)
    public = ServerAddress(host="0.0.0.0", names=named, certificate=cert, key=key)
    with pytest.raises(UsageError, match="password"):
        check_address(public, "")
    check_address(public, "secret")
    with pytest.raises(UsageError, match="certificate"):
        check_address(
            ServerAddress(host="0.0.0.0", names=named, certificate=key, key=key), "secret"
        )
    with pytest.raises(UsageError, match="--name"):
        check_address(ServerAddress(host="0.0.0.0", certificate=cert, key=key), "secret")


def certificate(folder: Path) -> tuple[str, str]:
    made = trustme.CA().issue_cert("localhost", "127.0.0.1")
    cert, key = folder / "cert.pem", folder / "key.pem"
    made.cert_chain_pems[0].write_to_path(cert)
    made.private_key_pem.write_to_path(key)
    return str(cert), str(key)


async def test_a_password_pairs_a_page_of_a_public_server(
    plain_world: World, tmp_path: Path
) -> None:
    cert, key = certificate(tmp_path)
    address = ServerAddress(certificate=cert, key=key)
    async with serving(plain_world, ScriptedModel([]), address=address, password="much") as served:
        assert served.server.url == f"https://127.0.0.1:{served.port}"
        stream = await anyio.connect_tcp(
            "127.0.0.1",
            served.port,
            tls=True,
            ssl_context=_trusting(),
            tls_standard_compatible=False,
        )
        body = b'{"code":"much"}'
        async with stream:
            await stream.send(
                served.head(
                    "POST", "/api/pair", {"Authorization": None, "Connection": "close"}, body
                )
            )
            received = b""
            try:
                while True:
                    received += await stream.receive()
            except anyio.EndOfStream:
                pass
        assert parsed(received).status == 200
        assert served.server.tokens.role_of(parsed(received).json["token"]) == "driver"


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_a_server_that_is_about_to_listen_keeps_its_unix_socket(tmp_path: Path) -> None:
    """Another one must not take it for what a dead server left."""
    address = ServerAddress(unix=str(tmp_path / "s"))
    with bound_socket(address), pytest.raises(UsageError, match="in use"):
        bound_socket(address)


async def test_a_unix_socket_is_the_users_alone(plain_world: World, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    address = ServerAddress(unix=path)
    async with serving(plain_world, ScriptedModel([]), address=address) as served:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        async with await anyio.connect_unix(path) as stream:
            headers = {"Host": "localhost", "Connection": "close"}
            await stream.send(served.head("GET", "/api/sessions", headers, b""))
            received = b""
            try:
                while True:
                    received += await stream.receive()
            except anyio.EndOfStream:
                pass
        assert parsed(received).status == 200
    assert not os.path.exists(path)


async def test_a_socket_that_a_dead_server_left_is_taken_over(
    plain_world: World, tmp_path: Path
) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    async with serving(plain_world, ScriptedModel([]), address=ServerAddress(unix=path)):
        with pytest.raises(UsageError, match="cannot listen"):
            bound_socket(ServerAddress(unix=path))


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f":{port}: Address already in use"):
            bound_socket(ServerAddress(port=port))


async def test_closing_suspends_the_turn_and_answers_those_that_wait_for_it(
    shared_world: World,
) -> None:
    model = ScriptedModel([(SayText(text="So "), Stall())])
    async with serving(shared_world, model) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        answers: list[int] = []

        async def wait_for_it() -> None:
            answer = await served.call("POST", f"/sessions/{session}/message", {"content": "Go."})
            answers.append(answer.status)

        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_it)
            with anyio.fail_after(PATIENCE):
                await model.gate().reached.wait()
            served.server.stop()
        assert answers == [409]
    async with serving(shared_world, ScriptedModel(["then on."])) as served:
        snapshot = (await served.good("GET", f"/sessions/{session}"))["snapshot"]
        assert snapshot["status"] == "interrupted"
        await served.good("POST", f"/sessions/{session}/continue", {})


async def test_the_page_is_served_from_its_folder_and_nothing_else_is(
    plain_world: World, tmp_path: Path
) -> None:
    page = tmp_path / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html>")
    (page / "assets" / "main-1.js").write_text("1")
    (tmp_path / "secret").write_text("secret")
    async with serving(plain_world, ScriptedModel([]), page=page) as served:
        index = await served.exchange(_get(served, "/"))
        assert (index.status, index.headers["content-type"]) == (200, "text/html; charset=utf-8")
        asset = await served.exchange(_get(served, "/assets/main-1.js"))
        assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
        assert "immutable" in asset.headers["cache-control"]
        for path in (
            "/assets/..%2f..%2fsecret",
            "/assets/../../secret",
            "/%2e%2e/secret",
            "/assets/",
            "/assets/none.js",
            "/secret",
        ):
            found = await served.exchange(_get(served, path))
            assert found.status in (401, 404), path
            assert b"secret" not in found.body


def _get(served: ServedWorld, path: str) -> bytes:
    headers = {"Authorization": None, "Connection": "close"}
    return served.head("GET", path, headers, b"")


async def test_a_page_that_is_not_built_is_said_to_be_missing(
    plain_world: World, tmp_path: Path
) -> None:
    async with serving(plain_world, ScriptedModel([]), page=tmp_path / "none") as served:
        answer = await served.exchange(_get(served, "/"))
        assert (answer.status, answer.kind) == (404, "page")
        assert "make web" in answer.json["error"]["message"]


def test_the_record_of_a_dead_server_is_taken_away(tmp_path: Path) -> None:
    record = ServerRecord(
        pid=os.getpid(), url="http://127.0.0.1:1", project_path="/", started=0.0, token_file="t"
    )
    lock = RecordLock(tmp_path, "1")
    lock.hold(record)
    assert running_servers(tmp_path) == [record]
    with pytest.raises(UsageError, match="is running"):
        RecordLock(tmp_path, "1").hold(record)
    lock.release()
    (tmp_path / "2.json").write_text("{}")
    assert running_servers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("looks", ["holds the lock", "takes the record away"])
def test_a_server_that_starts_while_another_process_looks_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    """Who looks takes the lock for an instant, to see whether a server lives."""
    real, looked = server_record._locked, list[int]()

    def beside(descriptor: int) -> bool:
        looked.append(descriptor)
        if len(looked) == 1 and looks == "holds the lock":
            return False
        if len(looked) == 1:
            (tmp_path / "1.json").unlink()
        return real(descriptor)

    record = ServerRecord(pid=1, url="http://x", project_path="/", started=0.0, token_file="")
    lock = RecordLock(tmp_path, "1")
    monkeypatch.setattr(server_record, "_locked", beside)
    lock.hold(record)
    monkeypatch.undo()
    assert running_servers(tmp_path) == [record]
    lock.release()


async def test_a_client_that_never_finishes_its_request_is_let_go() -> None:
    """Without a server around it: the deadline is the protocol's own."""
    loop = asyncio.get_running_loop()
    protocols: list[StrictHttpProtocol] = []

    async def nothing(scope: object, receive: object, send: object) -> None:
        raise AssertionError("no request was made")

    def made() -> StrictHttpProtocol:
        config = uvicorn.Config(nothing, lifespan="off", log_config=None)
        protocols.append(StrictHttpProtocol(config, ServerState(), {}))
        return protocols[-1]

    server = await loop.create_server(made, "127.0.0.1", 0)
    async with server, await anyio.connect_tcp(*server.sockets[0].getsockname()) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nHost:")
        with anyio.fail_after(PATIENCE):
            while not protocols:
                await anyio.lowlevel.checkpoint()
        deadline = protocols[0]._deadline
        assert deadline is not None
        assert deadline.when() - loop.time() <= HEAD_SECONDS
        deadline._run()  # now, and not in twenty seconds
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()


def test_answers_in_two_parts_do_not_wait_for_each_other() -> None:
    """Connections are sent without delay, which asyncio only does for sockets that say they are
    TCP: an answer's body would otherwise wait until its head was acknowledged, 40 ms later.
    """
    with bound_socket(ServerAddress(port=0)) as made:
        assert made.proto == socket.IPPROTO_TCP
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
