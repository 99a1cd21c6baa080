"""Several servers on one Postgres: any of them answers for any session, and outlives the others."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from websockets.asyncio.client import connect as connect_page
from websockets.typing import Origin, Subprotocol

from tests.support.postgres_server import PostgresServer
from tests.support.server_cluster import ClusterServer, server_cluster
from tests.support.tmux_terminal import wait_until
from tests.support.weft_program import call
from tests.support.world import PATIENCE
from weft.events import FactBase, NewMessage, TurnFinished, TurnStarted
from weft.server.client.remote_events import RemoteEvents

pytestmark = [pytest.mark.anyio, pytest.mark.process]


def script(folder: Path, *answers: Any) -> str:
    """A model that gives these answers, whichever server asks."""
    path = folder / "script.json"
    path.write_text(json.dumps({"by": "content", "answers": answers}))
    return f"scripted:{path}"


async def seen(holds: Callable[[], bool]) -> None:
    await anyio.to_thread.run_sync(wait_until, holds)


async def until_finished(events: RemoteEvents) -> list[FactBase]:
    """The facts up to the end of the turn."""
    facts: list[FactBase] = []
    with anyio.fail_after(PATIENCE):
        async for event in events:
            if isinstance(event, FactBase):
                facts.append(event)
            if isinstance(event, TurnFinished):
                break
    return facts


async def frames_until_finished(server: ClusterServer, session_id: str) -> list[int]:
    """The numbers of the facts that a page sees on its WebSocket."""
    found: list[int] = []
    with anyio.fail_after(PATIENCE):
        async with connect_page(
            f"ws://127.0.0.1:{server.port}/api/ws",
            origin=Origin(server.url),
            subprotocols=[Subprotocol("weft.v1"), Subprotocol(f"bearer.{server.token}")],
            compression=None,
            proxy=None,
        ) as socket:
            await socket.send(msgspec.json.encode({"follow": session_id, "after": 0}).decode())
            async for text in socket:
                for event in msgspec.json.decode(text).get("e", ()):
                    found += [event["seq"]] if "seq" in event else []
                    if event["kind"] == "turn_finished":
                        return found
    raise AssertionError("the socket ended")


WAITING = "echo $$ > started; exec sleep 1000"


async def test_a_turn_goes_on_at_another_server_when_its_own_is_killed(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command=WAITING)], "Done.")
    with server_cluster(postgres_server, tmp_path, model=model) as (one, two):
        async with one.connect() as first, two.connect() as second:
            made = await first.sessions.start_session(auto_approve=True)
            session = await second.sessions.get(made.id)
            events = await session.subscribe(after=0)
            await session.send_prompt("Go.")
            await seen((one.project / "started").exists)
            page: list[int] = []

            async def watch() -> None:
                page.extend(await frames_until_finished(two, made.id))

            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                one.kill()
                facts = await until_finished(events)
        assert two.errors == ""
    assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
    assert page == [fact.seq for fact in facts]
    assert sum(isinstance(fact, TurnStarted) for fact in facts) >= 1
    said = [fact.node for fact in facts if isinstance(fact, NewMessage)]
    assert "Done." in str(said[-1])
