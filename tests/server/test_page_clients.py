"""Pages as clients of a session: one drives, and one that is gone drives no more."""

from __future__ import annotations

import socket
import sys

import anyio
import pytest
from websockets.exceptions import InvalidStatus

import weft
from tests.support.page_socket import page_socket
from tests.support.served_world import ServedWorld, serving
from tests.support.world import PATIENCE, World
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_page_whose_connection_ends_is_detached_however_it_went(
    plain_world: World,
) -> None:
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        path = f"/sessions/{session}/clients"
        client = (await served.good("POST", path, {"role": "driver", "name": "page"}))["client"]
        with anyio.fail_after(PATIENCE):
            async with page_socket(served) as watcher:
                await watcher.say(follow=session, after=0)
                await anext(watcher.frames())
                async with page_socket(served) as page:
                    await page.say(client=client)
                async for event in watcher.events(session):
                    if event["kind"] == "driver_changed":
                        break
        assert event.get("client", "") == ""
        answer = await served.call(
            "GET", f"/sessions/{session}/usage", headers={"Weft-Client": client}
        )
        assert (answer.status, answer.kind) == (404, "client")


async def test_a_server_that_closes_takes_no_page(plain_world: World) -> None:
    """The page took it for back again, and sent what was refused."""
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        served.server.parts.relays.close()
        with pytest.raises(InvalidStatus) as refused:
            async with page_socket(served):
                pass
        assert refused.value.response.status_code == 403


async def test_a_page_names_one_client_and_not_those_of_others(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        path = f"/sessions/{session}/clients"
        first = (await served.good("POST", path, {"role": "driver", "name": "page"}))["client"]
        second = (await served.good("POST", path, {"role": "viewer", "name": "page"}))["client"]
        assert first != second
        prompt = await served.call(
            "POST", f"/sessions/{session}/prompt", {"content": "x"}, {"Weft-Client": second}
        )
        assert prompt.status == 403
        await served.good("POST", f"{path}/{second}/drive", {})
        prompt = await served.call(
            "POST", f"/sessions/{session}/prompt", {"content": "x"}, {"Weft-Client": first}
        )
        assert prompt.status == 403


async def driver_changes(
    served: ServedWorld,
    session: str,
    name: str,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> str:
    """Wait until another client, or none, drives; it has started when it is told who does now."""
    async with served.follow(f"/sessions/{session}/events?after=0") as reader:
        await reader.more()
        task_status.started()
        async for event in reader.events():
            if event["kind"] == "driver_changed" and event.get("client", "").endswith(name):
                return str(event.get("client", ""))
    raise AssertionError("the session ended")


async def test_a_client_whose_events_end_is_detached_unless_it_comes_back(
    plain_world: World,
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        clients = served.server.parts.clients
        session = (await served.good("POST", "/sessions", {}))["id"]
        path, events = f"/sessions/{session}/clients", f"/sessions/{session}/events"
        client = (await served.good("POST", path, {"role": "driver"}))["client"]
        name = {"Weft-Client": client}
        with anyio.fail_after(PATIENCE):
            async with served.follow(events, name) as first:
                await first.more()
                async with served.follow(events, name) as second:
                    await second.more()
                # The other stream is there: it has not gone.
                while clients._streams[client] > 1:
                    await anyio.lowlevel.checkpoint()
                assert clients.get(client) is not None
                clients.return_seconds = 0.0
                async with anyio.create_task_group() as group:
                    await group.start(driver_changes, served, session, "")
                    await first._stream.aclose()
        answer = await served.call("GET", f"/sessions/{session}/usage", headers=name)
        assert (answer.status, answer.kind) == (404, "client")
        # It is told so when it follows again, and attaches anew.
        answer = await served.call("GET", events, headers=name)
        assert (answer.status, answer.kind) == (404, "client")


CHAT = """
import anyio, sys, weft

async def drive():
    async with weft.connect(sys.argv[1], token=sys.argv[2]) as app:
        session = await app.sessions.get(sys.argv[3])
        await session.attach("driver", "killed")
        async with await session.subscribe(after=0) as events:
            async for event in events:
                print("follows", flush=True)

anyio.run(drive)
"""


@pytest.mark.process
async def test_a_driver_that_is_killed_drives_no_more_and_another_may(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        served.server.parts.clients.return_seconds = 0.0
        session = (await served.good("POST", "/sessions", {}))["id"]
        arguments = [sys.executable, "-c", CHAT, served.origin, served.token, session]
        with anyio.fail_after(PATIENCE):
            async with (
                await anyio.open_process(arguments, stderr=None) as chat,
                weft.connect(served.origin, token=served.token) as app,
            ):
                assert chat.stdout is not None
                assert b"follows" in await chat.stdout.receive()
                other = await app.sessions.get(session)
                await other.attach("viewer")
                assert other.driver.endswith("killed")
                async with anyio.create_task_group() as group:
                    await group.start(driver_changes, served, session, "")
                    chat.kill()
                await other.attach("viewer")
                assert other.driver == ""
                await other.claim_driver()
                assert (await other.send_message("Are you there?")).text == "Yes."


async def test_a_driver_that_was_forgotten_drives_again_unless_another_does(
    plain_world: World,
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        async with weft.connect(served.origin, token=served.token) as app:
            first, second = [await app.sessions.get(session) for _ in range(2)]
            await first.attach("driver", "first")
            held = served.server.parts.clients.get(first.client)
            assert held is not None
            await held.detach()
            served.server.parts.clients.drop(first.client)
            await first.usage()
            assert first.driver == first.client
            held = served.server.parts.clients.get(first.client)
            assert held is not None
            await held.detach()
            served.server.parts.clients.drop(first.client)
            await second.attach("driver", "second")
            await first.usage()
            assert first.driver == second.client


async def test_a_connection_to_a_machine_that_is_gone_ends_within_a_minute(
    plain_world: World,
) -> None:
    """The kernel looks for it; what accepted connections have comes from the listening socket."""
    async with serving(plain_world, ScriptedModel([])) as served:
        listening = served.server._socket
        timeout = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert timeout == 60_000
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
