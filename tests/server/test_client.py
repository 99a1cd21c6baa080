"""`weft.connect`: a program elsewhere drives sessions as one that holds them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import weft
from tests.support.served_world import serving
from tests.support.world import PATIENCE, World
from weft.clock import ManualClock
from weft.errors import NoPendingRequest, SessionNotFound, StoreUnavailable, UsageError, WeftError
from weft.events import FactBase, PermissionRequest, TextDelta, TurnFinished
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.server import ServerAddress, gate
from weft.server.client import server_link

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("entry:connect")
async def test_a_program_starts_prompts_follows_approves_and_rewinds(world: World) -> None:
    model = ScriptedModel(
        [CallTool(name="write", args={"path": "new.txt", "content": "x"}), "It is written."]
    )
    async with (
        serving(world, model) as served,
        weft.connect(served.server.url, served.token) as app,
    ):
        session = await app.sessions.start_session(title="Far away")
        async with await session.subscribe(after=0) as events:
            accepted = await session.send_prompt("Write it.")
            assert accepted.status == "started"
            with anyio.fail_after(PATIENCE):
                async for event in events:
                    if isinstance(event, PermissionRequest):
                        assert await session.get_status() == "awaiting_permission"
                        await session.respond_to_permission("allow_once")
                    if isinstance(event, TurnFinished):
                        break
            assert events.cursor == (await session.editor_snapshot()).seq
        assert [message.role for message in await session.messages()][-1] == "assistant"
        assert world.read("new.txt") == "x"
        plan = await session.rewind(None)
        assert plan.is_done
        assert not (world.project / "new.txt").exists()
        assert (await session.undo_rewind()).is_done
        with pytest.raises(NoPendingRequest):
            await session.respond_to_permission("deny", request_id="req_1")
        assert (await session.metadata()).title == "Far away"
        assert (await session.usage()).total is not None
        rows = await app.sessions.list_saved()
        assert [row.id for row in rows] == [session.id]


async def test_errors_are_those_of_the_api(plain_world: World) -> None:
    async with (
        serving(plain_world, ScriptedModel([])) as served,
        weft.connect(served.server.url, served.token) as app,
    ):
        with pytest.raises(SessionNotFound) as gone:
            await app.sessions.get("ses_none")
        assert gone.value.session_id == "ses_none"
        async with weft.connect(served.server.url, "wrong") as other:
            with pytest.raises(WeftError, match="token"):
                await other.sessions.list_saved()
        url = served.server.url
    async with weft.connect(url, "token") as app:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await app.sessions.list_saved()


async def test_a_reader_goes_on_when_the_server_was_started_again(shared_world: World) -> None:
    seen: list[int] = []
    async with serving(shared_world, ScriptedModel(["One."])) as served:
        port, url, token = served.port, served.server.url, served.token
        app = weft.connect(url, token)
        session = await app.sessions.start_session()
        events = await session.subscribe(after=0)
        await session.send_message("Go.")
        with anyio.fail_after(PATIENCE):
            async for event in events:
                seen += [event.seq] if isinstance(event, FactBase) else []
                if isinstance(event, TurnFinished):
                    break
    async with serving(shared_world, ScriptedModel(["Two."]), port=port), app, events:
        await session.send_message("Go on.")
        with anyio.fail_after(PATIENCE):
            async for event in events:
                seen += [event.seq] if isinstance(event, FactBase) else []
                if isinstance(event, TurnFinished):
                    break
    assert seen == list(range(1, seen[-1] + 1))


async def test_a_text_in_flight_comes_as_one_piece_from_its_beginning(plain_world: World) -> None:
    model = ScriptedModel([(SayText(text="one two "), Stall(), SayText(text="three"))])
    async with (
        serving(plain_world, model) as served,
        weft.connect(served.server.url, served.token) as app,
    ):
        session = await app.sessions.start_session()
        await session.send_prompt("Go.")
        with anyio.fail_after(PATIENCE):
            await model.gate().reached.wait()
            async with await session.subscribe() as events:
                # What is in flight reaches the server's reader a tick later at most.
                text = ""
                async for event in events:
                    if isinstance(event, TextDelta):
                        text = text[: event.offset] + event.text
                        model.gate().opened.set()
                    if isinstance(event, TurnFinished):
                        break
        assert text == "one two three"


async def test_a_server_is_reached_through_a_unix_socket(
    plain_world: World, tmp_path: Path
) -> None:
    path = str(tmp_path / "s")
    async with (
        serving(plain_world, ScriptedModel([]), address=ServerAddress(unix=path)) as served,
        weft.connect(f"unix:{path}", served.token) as app,
    ):
        assert await app.sessions.list_active() == []
        assert (await app.call("health")).status == "ok"


@pytest.mark.parametrize("url", ["", "ftp://x", "127.0.0.1:7717"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        weft.connect(url, "token")


def test_a_server_that_there_is_no_token_for_is_named() -> None:
    with pytest.raises(UsageError, match="weft serve"):
        weft.connect("http://127.0.0.1:1")


async def test_a_call_that_is_one_too_many_is_made_again_a_moment_later(
    plain_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "CALLS_A_MINUTE", 6)
    monkeypatch.setattr(server_link, "BUSY_SECONDS", 0.0)
    clock = ManualClock()
    async with (
        serving(plain_world, ScriptedModel([]), clock=clock) as served,
        weft.connect(served.server.url, served.token) as app,
    ):
        for _ in range(6):
            assert await app.sessions.list_active() == []
        with pytest.raises(StoreUnavailable, match="too many calls"):
            await app.sessions.list_active()
        clock.advance(60)
        session = await app.sessions.start_session()
        events = await session.subscribe()
        assert events.is_open
        await events.aclose()
