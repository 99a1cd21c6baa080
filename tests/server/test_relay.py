"""Events over the wire: each fact once and in order, whatever breaks; no reader slows another."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.page_socket import PageConnection, page_socket
from tests.support.served_world import ServedWorld, serving
from tests.support.world import PATIENCE, World, crash
from weft.api import Draft
from weft.errors import SessionNotFound
from weft.events import (
    AnswerRestarted,
    Event,
    FactBase,
    NewMessage,
    TextDelta,
    ToolOutput,
    UnknownFact,
)
from weft.ids import CallUid, NodeId, SessionId
from weft.messages import Node, Text
from weft.providers.script import CallTool, SayText, Stall
from weft.providers.scripted import ScriptedModel
from weft.runtime.relay.session_relay import (
    MOST_BYTES,
    MOST_TICKS,
    PendingEvents,
    RelayReader,
    SessionRelay,
)
from weft.runtime.relay.wire_codec import EncodedEvents, encoded_drafts
from weft.server.relay import SessionEvents
from weft.session.log.answer_in_flight import AnswersInFlight

pytestmark = pytest.mark.anyio

SESSION = SessionId("ses_1")
NODE = NodeId("nod_1")


def piece(offset: int, text: str, node: str = NODE) -> TextDelta:
    return TextDelta(
        session_id=SESSION, after_seq=1, node_id=NodeId(node), offset=offset, text=text
    )


def printed(call: str, chunk: str) -> ToolOutput:
    return ToolOutput(session_id=SESSION, after_seq=1, call_uid=CallUid(call), chunk=chunk)


def merged(*events: Event) -> list[Event]:
    pending = PendingEvents()
    for event in events:
        pending.add(event)
    assert bool(pending) == bool(events)
    return pending.take()


def test_pieces_that_continue_each_other_become_one() -> None:
    assert merged(piece(0, "a🧵"), piece(2, "b"), piece(3, "c")) == [piece(0, "a🧵bc")]
    assert merged(printed("1", "a"), printed("1", "b")) == [printed("1", "ab")]


def test_pieces_of_two_answers_or_with_a_gap_stay_apart() -> None:
    apart = [piece(0, "a"), piece(0, "b", "nod_2"), piece(1, "c"), piece(5, "d")]
    assert merged(*apart) == apart
    assert merged(printed("1", "a"), printed("2", "b")) == [printed("1", "a"), printed("2", "b")]
    assert merged() == []


def test_a_tick_is_encoded_once_for_all_its_readers() -> None:
    tick = EncodedEvents("ses_1", [(7, b'{"kind":"a"}'), (None, b'{"kind":"b"}')])
    assert tick.sse == b'id: 7\ndata: {"kind":"a"}\n\ndata: {"kind":"b"}\n\n'
    assert tick.frame_text == '{"s":"ses_1","e":[{"kind":"a"},{"kind":"b"}]}'
    assert tick.sse is tick.sse
    assert tick.after(7).frame_text == '{"s":"ses_1","e":[{"kind":"b"}]}'
    assert tick.after(6) is tick


def drafts_of(*events: Event, before: tuple[Draft, ...] = ()) -> list[bytes]:
    answers = AnswersInFlight()
    for draft in before:
        answers.put(draft, 1)
    for event in events:
        if isinstance(event, FactBase):
            answers.take_fact(event)
        elif not isinstance(event, UnknownFact):
            answers.take(event)
    return [body for _, body in encoded_drafts(SESSION, answers.drafts, 9)]


def test_an_answer_in_flight_is_told_with_all_that_came_of_it() -> None:
    (told,) = drafts_of(
        piece(2, "c"), before=(Draft(node=NODE, text="ab", thinking="hm", calls=()),)
    )
    assert b'"text":"abc"' in told
    assert b'"thinking":"hm"' in told
    assert b'"after_seq":9' in told


def test_an_answer_that_began_again_or_is_stored_is_told_no_more() -> None:
    stored = NewMessage(
        session_id=SESSION,
        seq=2,
        at=0.0,
        node=Node(id=NODE, parent=None, role="assistant", parts=(Text(text="ab"),)),
    )
    assert drafts_of(piece(0, "ab"), stored) == []
    again = AnswerRestarted(session_id=SESSION, after_seq=1, node_id=NODE)
    (told,) = drafts_of(piece(0, "ab"), again, piece(0, "x"))
    assert b'"text":"x"' in told


@pytest.mark.parametrize(
    ("count", "size"), [(MOST_TICKS + 1, 1), (3, MOST_BYTES // 2)], ids=["many", "heavy"]
)
async def test_a_reader_that_leaves_too_much_unread_is_lost_and_told_so_once(
    count: int, size: int
) -> None:
    told: list[str] = []
    reader = RelayReader(lambda: told.append("lost"))
    for _ in range(count + 3):
        reader.put(EncodedEvents("ses_1", [(None, b"x" * size)]))
    assert told == ["lost"]
    assert await reader.next() is None


async def started(served: ServedWorld) -> str:
    answer = await served.good("POST", "/sessions", {})
    return str(answer["id"])


async def stored_seqs(served: ServedWorld, session: str) -> list[int]:
    last = (await served.good("GET", f"/sessions/{session}"))["snapshot"]["seq"]
    return list(range(1, last + 1))


async def gathered(
    served: ServedWorld, session: str, until: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []
    async with page_socket(served) as page:
        await page.say(follow=session, after=0)
        with anyio.fail_after(PATIENCE):
            async for event in page.events(session):
                seen.append(event)
                if until(event):
                    break
    return seen


def ended(event: dict[str, Any]) -> bool:
    return bool(event["kind"] == "turn_finished")


async def test_a_page_gets_every_fact_once_and_the_text_whole(world: World) -> None:
    words = "Here is a thread 🧵 of words. " * 40
    model = ScriptedModel([SayText(text=words, chunk=7)])
    async with serving(world, model) as served:
        session = await started(served)
        await served.good("POST", f"/sessions/{session}/message", {"content": "Go."})
        seen = await gathered(served, session, ended)
        assert [event["seq"] for event in seen if "seq" in event] == list(
            range(1, seen[-1]["seq"] + 1)
        )


async def test_text_in_flight_is_handed_over_as_a_draft_and_goes_on_from_there(
    plain_world: World,
) -> None:
    gate = anyio.Event()
    model = ScriptedModel(
        [(SayText(text="one two "), Stall(gate="on"), SayText(text="three"))], gates={"on": gate}
    )
    async with serving(plain_world, model) as served:
        session = await started(served)
        async with page_socket(served) as first, page_socket(served) as second:
            await first.say(follow=session, after=0)
            await served.good("POST", f"/sessions/{session}/prompt", {"content": "Go."})
            with anyio.fail_after(PATIENCE):
                async for event in first.events(session):
                    if event["kind"] == "text_delta":
                        break
                seq = (await served.good("GET", f"/sessions/{session}"))["snapshot"]["seq"]
                await second.say(follow=session, after=seq)
                events = second.events(session)
                draft = await anext(events)
                assert (draft["kind"], draft["text"]) == ("draft", "one two ")
                gate.set()
                text = draft["text"]
                async for event in events:
                    if event["kind"] == "text_delta":
                        assert event["offset"] == len(text)
                        text += event["text"]
                    if event["kind"] == "new_message":
                        break
                assert text == "one two three"


async def test_a_page_follows_several_sessions_on_one_connection_and_drops_one(
    plain_world: World,
) -> None:
    async with serving(plain_world, ScriptedModel(["One.", "Two.", "Three."])) as served:
        first, second = await started(served), await started(served)
        async with page_socket(served) as page:
            await page.say(follow=first)
            await page.say(follow=second)
            await page.say(follow="sessions")
            await page.say(drop=second)
            await page.say(follow="ses_none")
            frames = page.frames()
            with anyio.fail_after(PATIENCE):
                async for frame in frames:
                    if frame["s"] == "ses_none":
                        break
                assert "no session" in frame["closed"]
                await served.good("POST", f"/sessions/{second}/message", {"content": "Go."})
                await served.good("POST", f"/sessions/{first}/message", {"content": "Go."})
                seen: set[str] = set()
                async for frame in frames:
                    seen.add(frame["s"])
                    if {first, "sessions"} <= seen and any(map(ended, frame["e"])):
                        break
            assert seen == {first, "sessions"}


async def test_a_reader_that_hangs_up_again_and_again_sees_each_fact_once(
    world: World,
) -> None:
    model = ScriptedModel(["a", "b", "c", "d"])
    async with serving(world, model) as served:
        session = await started(served)
        seen: list[int] = []

        async def talk() -> None:
            for _ in range(4):
                await served.good("POST", f"/sessions/{session}/message", {"content": "Go."})

        async with anyio.create_task_group() as group:
            group.start_soon(talk)
            with anyio.fail_after(PATIENCE):
                finished = 0
                while finished < 4:
                    # Three events to a connection, then it is gone.
                    headers = {"Last-Event-ID": str(seen[-1])} if seen else {}
                    async with served.follow(
                        f"/sessions/{session}/events?after=0", headers
                    ) as reader:
                        left = 3
                        async for event in reader.events():
                            if "seq" not in event:
                                continue
                            seen.append(event["seq"])
                            finished += ended(event)
                            left -= 1
                            if not left or finished == 4:
                                break
        assert seen == list(range(1, seen[-1] + 1))


async def test_a_server_that_was_stopped_and_started_again_goes_on_with_the_cursor(
    shared_world: World,
) -> None:
    world, seen = shared_world, list[int]()
    async with serving(world, ScriptedModel(["One."])) as served:
        port, session, token = served.port, await started(served), served.token
        await served.good("POST", f"/sessions/{session}/message", {"content": "Go."})
        async with served.follow(f"/sessions/{session}/events?after=0") as reader:
            with anyio.fail_after(PATIENCE):
                async for event in reader.events():
                    seen += [event["seq"]] if "seq" in event else []
                    if ended(event):
                        served.server.stop()
    async with serving(world, ScriptedModel(["Two."]), port=port) as served:
        assert served.token == token
        await served.good("POST", f"/sessions/{session}/message", {"content": "Go on."})
        headers = {"Last-Event-ID": str(seen[-1])}
        async with served.follow(f"/sessions/{session}/events", headers) as reader:
            with anyio.fail_after(PATIENCE):
                async for event in reader.events():
                    seen += [event["seq"]] if "seq" in event else []
                    if ended(event):
                        break
    assert seen == list(range(1, seen[-1] + 1))


@pytest.mark.requirement("event:RequestOffered")
@pytest.mark.parametrize("wire", ["sse", "socket"])
async def test_a_request_that_was_open_when_the_server_went_is_offered_again_under_its_id(
    shared_world: World, wire: str
) -> None:
    world = shared_world
    write = CallTool(name="write", args={"path": "a.txt", "content": "x"})
    async with serving(world, ScriptedModel([write])) as served:
        port, session = served.port, await started(served)
        await served.good("POST", f"/sessions/{session}/prompt", {"content": "Write it."})
        asked = await _asked(served, session)
    async with serving(world, ScriptedModel(["Written."]), port=port) as served:
        offered = await _offered(served, session, wire, after=asked["seq"])
        assert (offered["request"], "seq" in offered) == (asked, False)
        # One that comes from before it is told by the fact itself, once.
        assert (await _asked(served, session))["request_id"] == asked["request_id"]
        answer = f"/sessions/{session}/requests/{asked['request_id']}"
        await served.good("POST", answer, {"action": "allow_once"})
        await served.good("POST", f"/sessions/{session}/continue", {})
        async with served.follow(f"/sessions/{session}/events?after={asked['seq']}") as reader:
            with anyio.fail_after(PATIENCE):
                kinds = []
                async for event in reader.events():
                    kinds.append(event["kind"])
                    if ended(event):
                        break
        assert "request_offered" not in kinds
    assert world.read("a.txt") == "x"


async def _asked(served: ServedWorld, session: str) -> dict[str, Any]:
    """The request of a session, as its log has it; an offer before it is a fault."""
    async with served.follow(f"/sessions/{session}/events?after=0") as reader:
        with anyio.fail_after(PATIENCE):
            async for event in reader.events():
                assert event["kind"] != "request_offered"
                if event["kind"] == "permission_request":
                    return event
    raise AssertionError("it does not ask")


async def _offered(served: ServedWorld, session: str, wire: str, after: int) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE):
        if wire == "sse":
            async with served.follow(f"/sessions/{session}/events?after={after}") as reader:
                return await anext(reader.events())
        async with page_socket(served) as page:
            await page.say(follow=session, after=after)
            return await anext(page.events(session))


async def test_a_reader_learns_that_the_process_of_its_session_is_gone(shared_world: World) -> None:
    """Its connection stands, and the last that it heard was that a turn is at work."""
    dying = ScriptedModel([(SayText(text="half"), Stall(gate="g"))])
    owner = await shared_world.open(dying).__aenter__()
    session = await owner.sessions.start_session(session_id="s")
    async with (
        serving(shared_world, ScriptedModel([])) as served,
        served.follow("/sessions/s/events?after=0") as reader,
    ):
        await session.send_prompt("Go.")
        with anyio.fail_after(PATIENCE):
            await dying.gate("g").reached.wait()
            await crash(owner)
            async for event in reader.events():
                if event.get("status") == "interrupted":
                    break


def narrow_socket(port: int) -> socket.socket:
    """A connection whose side of the kernel's buffers is small."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", port))
    made.setblocking(False)
    return made


async def read_to_the_end(page: PageConnection) -> None:
    while True:
        await page.socket.recv()


async def test_a_stalled_reader_is_let_go_and_no_other_waits_for_it(plain_world: World) -> None:
    block = "x" * 200_000
    model = ScriptedModel([SayText(text=block) for _ in range(40)])
    async with serving(plain_world, model) as served:
        session = await started(served)
        async with (
            page_socket(served, sock=narrow_socket(served.port)) as stalled,
            page_socket(served) as page,
            served.follow(f"/sessions/{session}/events?after=0"),
        ):
            stalled.socket.transport.pause_reading()
            await stalled.say(follow=session, after=0)
            await page.say(follow=session, after=0)
            events = page.events(session)
            with anyio.fail_after(2 * PATIENCE):  # megabytes, through three readers
                for _ in range(40):
                    await served.good("POST", f"/sessions/{session}/message", {"content": "Go."})
                    async for event in events:
                        if ended(event):
                            break
                stalled.socket.transport.resume_reading()
                with pytest.raises(ConnectionClosed):
                    await read_to_the_end(stalled)
        assert await stored_seqs(served, session)


async def test_the_session_is_read_no_more_when_its_last_reader_has_gone(
    plain_world: World,
) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session = await started(served)
        async with served.follow(f"/sessions/{session}/events?after=0") as reader:
            with anyio.fail_after(PATIENCE):
                async for _ in reader.events():
                    break
            assert len(served.server.parts.relays) == 1
        with anyio.fail_after(PATIENCE):
            while len(served.server.parts.relays):
                await anyio.lowlevel.checkpoint()


async def test_a_session_that_is_stopped_ends_its_readers_with_a_word(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        session = await started(served)
        async with served.follow(f"/sessions/{session}/events?after=0") as reader:
            with anyio.fail_after(PATIENCE):
                async for event in reader.events():
                    if event.get("kind") == "session_created":
                        await served.good("POST", f"/sessions/{session}/stop")
        wanted = {"event": "closed", "kind": "closed", "session_id": session, "why": "stopped"}
        assert event == wanted


class UnreadableRelay(SessionRelay):
    """A session whose events make the relay fail."""

    async def run(self) -> None:
        raise ValueError("what no one thought of")


async def test_a_session_whose_events_cannot_be_read_takes_no_other_along(
    plain_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(plain_world, ScriptedModel([], choose=lambda request: "Fine.")) as served:
        bad, good = await started(served), await started(served)
        parts = served.server.parts
        relay = UnreadableRelay(SessionEvents(served.app, await served.app.sessions.get(bad)))
        assert parts.relays._group is not None
        # In the group that all relays of the server run in.
        parts.relays._group.start_soon(parts.relays._run, SessionId(bad), relay)
        await served.good("POST", f"/sessions/{good}/message", {"content": "Go."})
        assert (await gathered(served, good, ended))[-1]["kind"] == "turn_finished"
        assert "could not be relayed" in caplog.text


async def test_a_session_that_goes_while_a_reader_comes_ends_the_stream_and_is_no_fault_of_ours(
    plain_world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(self: SessionEvents, after: int | None = None) -> None:
        raise SessionNotFound(self.session_id)

    async with serving(plain_world, ScriptedModel([])) as served:
        session = await started(served)
        monkeypatch.setattr(SessionEvents, "join", gone)
        async with served.follow(f"/sessions/{session}/events") as reader:
            with anyio.fail_after(PATIENCE):
                assert [event async for event in reader.events()] == []
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


async def test_a_cursor_that_is_ahead_of_the_relay_gets_no_fact_again(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([], choose=lambda request: "Fine.")) as served:
        session = await served.app.sessions.get(await started(served))
        hub = served.server.parts.relays
        relay = SessionRelay(SessionEvents(served.app, session))
        await relay.open()
        # It has joined and reads nothing yet, as one that the loop has not come to.
        hub._relays[session.id] = relay
        await session.send_message("One.")
        after = (await session.editor_snapshot()).seq
        assert relay.seq < after
        ticks = hub.follow_session(served.app, session, after, lambda: None)
        seen: list[int] = []
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:

                async def read() -> None:
                    async with aclosing(ticks):
                        async for tick in ticks:
                            seen.extend(seq for seq, _ in tick.events if seq is not None)
                            if any(b'"turn_finished"' in body for _, body in tick.events):
                                return

                group.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                group.start_soon(hub._run, session.id, relay)
                await session.send_message("Two.")
        assert seen[0] == after + 1
        assert seen == list(range(after + 1, seen[-1] + 1))
