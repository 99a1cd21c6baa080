"""Several servers on one Postgres: any of them answers for any session, and outlives the others."""

from __future__ import annotations

import shutil
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest
from websockets.asyncio.client import connect as connect_page
from websockets.typing import Origin, Subprotocol

from tests.support.postgres_proxy import cuttable
from tests.support.postgres_server import PostgresServer
from tests.support.server_cluster import SECRET, ClusterServer, script, seen, server_cluster
from tests.support.weft_program import call
from tests.support.world import PATIENCE
from weft.events import FactBase, NewMessage, ToolExecuting, TurnFinished, TurnStarted
from weft.server.client.remote_events import RemoteEvents
from weft.server.cluster.cluster_secret import ClusterSecret, HopToken

pytestmark = [pytest.mark.anyio, pytest.mark.process]


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


GRACE = "0.3,3,8"
"""Times of leases: a server has time to end its commands before the grace is over."""
WAITING = "echo $$ > started; exec sleep 1000"


async def test_a_turn_goes_on_at_another_server_when_its_own_is_killed(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command=WAITING)], "Done.")
    async with server_cluster(postgres_server, tmp_path, model=model) as (one, two):
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


async def test_a_drained_server_hands_its_turns_and_its_clients_to_the_other(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command=WAITING)], "Done.")
    async with server_cluster(postgres_server, tmp_path, model=model) as (one, two):
        async with one.connect() as first, two.connect() as second:
            session = await first.sessions.start_session(auto_approve=True)
            events = await (await second.sessions.get(session.id)).subscribe(after=0)
            await session.send_prompt("Go.")
            started = one.project / "started"
            await seen(lambda: started.exists() and started.read_text().endswith("\n"))
            command = int(started.read_text())
            one.signal(signal.SIGTERM)
            facts = await until_finished(events)
            assert not Path(f"/proc/{command}").exists(), "it ended with the lease"
            rows = await second.sessions.list_saved()
            assert [row.id for row in rows] == [session.id]
        assert one.process is not None
        await anyio.to_thread.run_sync(one.process.wait)
        assert (one.errors, two.errors) == ("", "")
    assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
    kinds = [type(fact).__name__ for fact in facts]
    assert kinds.count("TurnFinished") == 1
    assert "aborted" not in str(facts[-1])


async def test_a_stopped_server_is_replaced_and_cannot_write_when_it_wakes(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command=WAITING)], "Done.", "More.")
    async with server_cluster(postgres_server, tmp_path, model=model) as (one, two):
        async with one.connect() as first, two.connect() as second:
            made = await first.sessions.start_session(auto_approve=True)
            session = await second.sessions.get(made.id)
            events = await session.subscribe(after=0)
            await session.send_prompt("Go.")
            await seen((one.project / "started").exists)
            one.signal(signal.SIGSTOP)
            facts = await until_finished(events)
            one.signal(signal.SIGCONT)
            # It asks the one that has the session now.
            await (await first.sessions.get(made.id)).send_prompt("More?")
            facts += await until_finished(events)
        assert two.errors == ""
    assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
    assert sum(isinstance(fact, TurnFinished) for fact in facts) == 2


async def test_a_server_that_lost_its_database_stops_its_commands_before_another_takes_over(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    ticking = "while :; do date +%s.%N > ticks.new; mv ticks.new ticks; sleep 0.05; done"
    model = script(tmp_path, [call("shell", command=ticking)], "Done.")
    async with cuttable(postgres_server.folder / ".s.PGSQL.5432") as proxy:
        dsns = [postgres_server.tcp_dsn(proxy.port), postgres_server.dsn()]
        async with server_cluster(
            postgres_server, tmp_path, model=model, dsns=dsns, lease=GRACE
        ) as (one, two):
            async with one.connect() as first, two.connect() as second:
                made = await first.sessions.start_session(auto_approve=True)
                events = await (await second.sessions.get(made.id)).subscribe(after=0)
                await made.send_prompt("Go.")
                await seen((one.project / "ticks").exists)
                proxy.is_down = True
                proxy.break_all()
                facts = await until_finished(events)
                last_tick = float((one.project / "ticks").read_text())
            proxy.is_down = False
    started = next(fact for fact in facts if isinstance(fact, ToolExecuting))
    taken = next(fact for fact in facts if fact.seq == started.seq + 1)
    assert last_tick < taken.at, "the command ran while another server had the session"


async def test_a_request_is_handed_on_by_a_server_of_the_cluster_alone(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    async with server_cluster(postgres_server, tmp_path, model=script(tmp_path, "Hi.")) as (
        one,
        two,
    ):
        async with one.connect() as first:
            session = await first.sessions.start_session()
        target = f"/api/sessions/{session.id}/status"
        good = HopToken(
            tenant=tmp_path.name,
            role="driver",
            client="",
            to=one.url,
            method="GET",
            target=target,
            hops=1,
            expires=time.time() + 30,
        )
        ours, theirs = ClusterSecret(SECRET.encode()), ClusterSecret(b"another secret" * 5)

        def asked(token: HopToken, secret: ClusterSecret = ours, to: ClusterServer = one) -> int:
            return status_of(to, target, {"Weft-Hop": secret.sign_hop(token)})

        replace = msgspec.structs.replace
        assert asked(good) == 200
        assert asked(good, theirs) == 401
        assert asked(replace(good, expires=time.time() - 1)) == 401
        assert asked(replace(good, tenant="another")) == 401
        assert asked(replace(good, to=two.url)) == 401
        assert asked(replace(good, method="POST")) == 401
        assert asked(replace(good, target="/api/sessions")) == 401
        assert asked(replace(good, client="cli_other")) == 401
        # The user's own token is not enough where a hop is claimed.
        claimed = {"Weft-Hop": "no.token", "Authorization": f"Bearer {one.token}"}
        assert status_of(one, target, claimed) == 401
        # It has come through enough of them: another server has the session.
        far = replace(good, to=two.url)
        assert asked(far, to=two) == 200
        assert asked(replace(far, hops=3), to=two) == 503


def status_of(server: ClusterServer, target: str, headers: dict[str, str]) -> int:
    return answered(urllib.request.Request(f"{server.url}{target}", headers=headers))


def answered(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def test_a_page_that_paired_at_one_server_is_known_to_all(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    async with server_cluster(postgres_server, tmp_path, model=script(tmp_path, "Hi.")) as (
        one,
        two,
    ):
        assert one.token == two.token
        token = ClusterSecret(SECRET.encode()).new_page("viewer", time.time() + 60)
        bearer = {"Authorization": f"Bearer {token}"}
        assert [status_of(each, "/api/sessions", bearer) for each in (one, two)] == [200, 200]
        changed = {**bearer, "Content-Type": "application/json"}
        request = urllib.request.Request(
            f"{two.url}/api/sessions", data=b"{}", headers=changed, method="POST"
        )
        assert answered(request) == 403


async def test_a_turn_does_not_go_on_where_its_folder_is_missing(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command=WAITING)], "Done.")
    async with (
        server_cluster(postgres_server, tmp_path, model=model, shared=False) as (one, two),
        one.connect() as first,
        two.connect() as second,
    ):
        made = await first.sessions.start_session(auto_approve=True)
        await made.send_prompt("Go.")
        await seen((one.project / "started").exists)
        one.kill()
        shutil.rmtree(one.project)
        with anyio.fail_after(PATIENCE):
            session = await second.sessions.get(made.id)
            assert await session.get_status() == "interrupted"
