"""The process that has a session closes, dies, falls silent or has no socket yet, while others wait
for it: what was accepted is answered once, by whoever has the session then.
"""

from __future__ import annotations

import anyio
import pytest

from tests.support.idle_loop import all_tasks_blocked
from tests.support.world import (
    World,
    crash,
    facts,
    message_lines,
    running,
    until_idle,
    until_queued,
    until_status,
)
from weft.api.session import Session
from weft.app import App
from weft.errors import Owned, SessionInterrupted, StoreUnavailable
from weft.events import NewMessage, TurnFinished
from weft.ids import SessionId
from weft.providers.script import SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.ports import remote, socket_client
from weft.runtime.ports.command_socket import CommandSocket
from weft.runtime.ports.local import LocalPort
from weft.runtime.ports.remote import RemotePort
from weft.session import AbortTurn
from weft.store import RecordStream, Store
from weft.store.sqlite import SqliteStore, open_sqlite

pytestmark = pytest.mark.anyio
LISTENING_LATE = 0.3


async def opened(app: App) -> App:
    """The application, open until it is closed by hand."""
    return await app.__aenter__()


class Asking:
    """A message that is on its way, and the answer to it."""

    def __init__(self, session: Session, text: str) -> None:
        self._session = session
        self._text = text
        self.answer = ""

    async def run(self) -> None:
        self.answer = (await self._session.send_message(self._text)).text


async def test_a_message_waits_for_the_owner_to_open_its_socket(shared_world: World) -> None:
    late = shared_world.open(ScriptedModel(["one"]), listen_after_seconds=LISTENING_LATE)
    async with late as owner, shared_world.open(ScriptedModel([])) as guest:
        await owner.sessions.start_session(session_id="s")
        there = await guest.sessions.get("s")
        with anyio.fail_after(10):
            assert (await there.send_message("hi")).text == "one"


async def test_a_turn_of_a_guest_goes_on_where_the_guest_is_when_the_owner_dies(
    shared_world: World,
) -> None:
    dying = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    owner = await opened(shared_world.open(dying))
    await owner.sessions.start_session(session_id="s")
    async with shared_world.open(ScriptedModel(["whole"])) as guest:
        there = await guest.sessions.get("s")
        asking = Asking(there, "a")
        async with running(asking.run):
            await dying.gate("g").reached.wait()
            await crash(owner)
        assert asking.answer == "whole"
        said = [fact.node.role for fact in await facts(there, NewMessage)]
        assert said.count("user") == 1
        assert len(await facts(there, TurnFinished)) == 1


async def test_a_message_that_waits_behind_the_turn_of_a_dead_owner_is_answered_after_it(
    shared_world: World,
) -> None:
    dying = ScriptedModel([Stall(gate="g")])
    owner = await opened(shared_world.open(dying))
    here = await owner.sessions.start_session(session_id="s")
    await here.send_prompt("of the owner")
    await dying.gate("g").reached.wait()
    async with shared_world.open(ScriptedModel(["to the owner", "to the guest"])) as guest:
        there = await guest.sessions.get("s")
        asking = Asking(there, "of the guest")
        async with running(asking.run):
            await until_queued(there)
            await crash(owner)
        assert asking.answer == "to the guest"
        assert await message_lines(there) == [
            "user: of the owner",
            "assistant: to the owner",
            "user: of the guest",
            "assistant: to the guest",
        ]


async def test_five_guests_of_an_owner_that_dies_are_each_answered_once(
    shared_world: World,
) -> None:
    dying = ScriptedModel([Stall(gate="g")])
    owner = await opened(shared_world.open(dying))
    here = await owner.sessions.start_session(session_id="s")
    await here.send_prompt("of the owner")
    await dying.gate("g").reached.wait()
    answers = ["to the owner", *(f"answer {number}" for number in range(5))]
    model = ScriptedModel(answers)
    guests = [await opened(shared_world.open(model)) for _ in range(5)]
    asked = [Asking(await app.sessions.get("s"), "of a guest") for app in guests]
    async with running(*(each.run for each in asked)):
        await until_queued(here, 5)
        await crash(owner)
    assert sorted(each.answer for each in asked) == answers[1:]
    for app in guests:
        await app.aclose()
    async with shared_world.open(ScriptedModel([])) as later:
        lines = await message_lines(await later.sessions.get("s"))
    assert lines.count("user: of a guest") == 5
    assert len(lines) == 12


async def test_a_turn_of_a_guest_is_finished_before_the_owner_goes_and_the_next_by_its_guest(
    shared_world: World,
) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one"))])
    owner = await opened(shared_world.open(model))
    await owner.sessions.start_session(session_id="s")
    # Either guest may have the session afterwards.
    after = ScriptedModel(["two"])
    async with shared_world.open(after) as first, shared_world.open(after) as second:
        asking = Asking(await first.sessions.get("s"), "a")
        behind = Asking(await second.sessions.get("s"), "b")

        async def leave() -> None:
            await owner.host.finish_for_guests(SessionId("s"))
            await owner.aclose()

        async with running(asking.run):
            await model.gate("g").reached.wait()
            async with running(behind.run):
                await until_queued(await second.sessions.get("s"))
                async with running(leave):
                    await all_tasks_blocked()
                    model.gate("g").opened.set()
        assert (asking.answer, behind.answer) == ("one", "two")


async def test_an_owner_that_falls_silent_is_named(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a suspended process, which would stop this test as well: an owner whose socket takes
    connections and answers nothing.
    """
    monkeypatch.setattr(socket_client, "ASK_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(socket_client, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.2)
    model = ScriptedModel([Stall(gate="g")])
    async with shared_world.open(model) as owner, shared_world.open(ScriptedModel([])) as guest:
        await owner.sessions.start_session(session_id="s")
        there = await guest.sessions.get("s")

        async def ask() -> None:
            # It was accepted: the error is about a turn that is under way, not about a message that
            # was never sent.
            with pytest.raises(SessionInterrupted, match="does not answer"):
                await there.send_message("a")

        async def never(_: SessionId) -> LocalPort:
            await anyio.sleep_forever()
            raise AssertionError("it does not come back")

        async with running(ask):
            await model.gate("g").reached.wait()
            listening = owner._socket
            assert isinstance(listening, CommandSocket)
            listening._find = never
            for client in listening._clients:
                client._find = never
        with pytest.raises(Owned, match="does not answer"):
            await there.add_system_message("hello?")


async def locked(*given: object, **more: object) -> None:
    raise StoreUnavailable("the database is locked by a process that is suspended")


@pytest.mark.parametrize("is_in_commit", [False, True])
async def test_what_a_silent_owner_may_have_taken_is_not_said_to_have_never_begun(
    shared_world: World, monkeypatch: pytest.MonkeyPatch, is_in_commit: bool
) -> None:
    """It lies in the socket of a suspended process, which reads it when it is woken up; that
    process may have been suspended in the middle of a commit, so that the store is locked.
    """
    monkeypatch.setattr(socket_client, "ASK_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(socket_client, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(remote, "PATIENCE_SECONDS", 0.2)
    async with shared_world.open(ScriptedModel([])) as owner:
        await owner.sessions.start_session(session_id="s")
        async with shared_world.open(ScriptedModel([])) as guest:
            there = await guest.sessions.get("s")
            await there.get_status()

            async def never(_: SessionId) -> LocalPort:
                await anyio.sleep_forever()
                raise AssertionError("it does not come back")

            listening = owner._socket
            assert isinstance(listening, CommandSocket)
            listening._find = never
            for client in listening._clients:
                client._find = never
            if is_in_commit:
                monkeypatch.setattr(SqliteStore, "lease_of", locked)
                monkeypatch.setattr(SqliteStore, "take_lease", locked)
                monkeypatch.setattr(SqliteStore, "take_leases", locked)
            why = "is locked" if is_in_commit else "does not answer"
            with pytest.raises(SessionInterrupted, match=why):
                await there.send_message("a")
            # Nobody took this one: there is no way to the owner any more.
            with pytest.raises(StoreUnavailable if is_in_commit else Owned, match=why):
                await there.send_message("b")


async def test_an_abort_of_a_guest_stops_the_turn_that_it_saw_and_no_other(
    shared_world: World,
) -> None:
    model = ScriptedModel([(Stall(gate="g"), SayText(text="one")), Stall(gate="h")])
    async with shared_world.open(model) as owner, shared_world.open(ScriptedModel([])) as guest:
        here = await owner.sessions.start_session(session_id="s")
        there = await guest.sessions.get("s")
        seen = (await here.send_prompt("a")).turn_id
        await model.gate("g").reached.wait()
        await here.queue_follow_up("b")
        await until_status(there, "thinking")
        model.gate("g").opened.set()
        await model.gate("h").reached.wait()
        # As when the abort was on its way while the first turn ended.
        port = await guest.host.port(SessionId("s"))
        receipt = await port.abort(AbortTurn(turn_id=seen))
        assert receipt.turn_id is None
        assert await here.get_status() == "thinking"
        assert (await there.abort()).turn_id not in (None, seen)
        await until_idle(here)


class FailingFollow:
    """A store whose followers fail, a few times."""

    def __init__(self, store: SqliteStore, failures: int) -> None:
        self._store = store
        self.failures = failures

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def follow(self, stream: str, *, after: int = 0) -> RecordStream:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the file is locked")
        return self._store.follow(stream, after=after)


async def test_a_guest_follows_the_log_past_errors_of_the_store(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "READ_AGAIN_SECONDS", (0.001, 0.01))
    store: Store = FailingFollow(  # type: ignore[assignment]  # it has all that it needs, by name
        await open_sqlite(shared_world.base / "weft.db"), 5
    )
    async with shared_world.open(ScriptedModel(["one"])) as owner:
        here = await owner.sessions.start_session(session_id="s")
        async with shared_world.open(ScriptedModel([]), store=store) as guest:
            port = await guest.host.port(SessionId("s"))
            assert isinstance(port, RemotePort)
            async with port.subscribe(after=0, live="status") as events, running():
                await here.send_message("hi")
                while not isinstance(await anext(events), TurnFinished):
                    pass
        await store.aclose()
