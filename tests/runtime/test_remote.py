"""A session of another process: what the socket tells and what the log tells may come in
any order.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.support.world import PATIENCE
from weft.actors import Supervisor
from weft.errors import Owned
from weft.events import (
    AnswerRestarted,
    AnyFact,
    Event,
    FactBase,
    NewMessage,
    SystemNote,
    TextDelta,
    ThinkingDelta,
    TurnFinished,
    TurnStarted,
    encode,
)
from weft.ids import NodeId, SessionId, TurnId
from weft.messages import Node, Text, Thinking
from weft.runtime.ports.remote import RemotePort
from weft.runtime.ports.socket_protocol import short_path
from weft.runtime.relay.wire_codec import DraftEvent
from weft.state import SessionState
from weft.store import Draft
from weft.store.address import unix_address
from weft.store.memory import MemoryStore

pytestmark = pytest.mark.anyio
NODE = NodeId("nod_1")
FACTS: list[AnyFact] = [
    SystemNote(text="before"),
    TurnStarted(turn_id=TurnId("trn_1")),
    TurnFinished(turn_id=TurnId("trn_1"), reason="aborted"),
]


def record(seq: int) -> bytes:
    return encode(msgspec.structs.replace(FACTS[seq - 1], seq=seq, session_id="ses_1"))


def remote_port() -> RemotePort:
    owner = Owned("ses_1", pid=1, host="here", address="", since=0.0)
    state = SessionState(session_id=SessionId("ses_1"))
    return RemotePort(state, MemoryStore(), owner, Supervisor())


def answer(text: str, thinking: str = "") -> bytes:
    before = (Thinking(text=thinking),) if thinking else ()
    node = Node(id=NODE, role="assistant", parts=(*before, Text(text=text)))
    return encode(NewMessage(node=node, seq=3, session_id=SessionId("ses_1")))


def delta(offset: int, text: str) -> bytes:
    return msgspec.json.encode(TextDelta(node_id=NODE, offset=offset, text=text, after_seq=2))


async def heard_by_a_subscriber(port: RemotePort, *arrivals: bytes) -> list[Event]:
    """What a subscriber gets when this arrives, in this order: facts by the log, the rest by the
    socket.
    """
    for seq in (1, 2):
        port._take_record(record(seq))
    async with port.subscribe() as events:
        for raw in arrivals:
            is_fact = b'"new_message"' in raw
            (port._take_record if is_fact else port._take_event)(raw)
        port._end()
        return [event async for event in events]


def texts(events: list[Event]) -> list[str]:
    return [event.text if isinstance(event, TextDelta) else "message" for event in events]


@pytest.mark.parametrize(
    ("arrivals", "heard"),
    [
        ([delta(0, "Hello "), delta(6, "there"), answer("Hello there")], ["Hello ", "there"]),
        ([delta(0, "Hello "), answer("Hello there"), delta(6, "there")], ["Hello ", "there"]),
        ([answer("Hello there"), delta(0, "Hello "), delta(6, "there")], ["Hello there"]),
        ([delta(0, "Hello "), answer("Hello there")], ["Hello ", "there"]),
    ],
    ids=["in order", "log ahead", "log far ahead", "socket lost a piece"],
)
async def test_text_is_whole_before_its_message_whichever_comes_first(
    arrivals: list[bytes], heard: list[str]
) -> None:
    assert texts(await heard_by_a_subscriber(remote_port(), *arrivals)) == [*heard, "message"]


async def test_thoughts_behind_their_message_are_dropped() -> None:
    late = ThinkingDelta(node_id=NODE, offset=0, text="hm", after_seq=2)
    arrivals = (delta(0, "Hello"), answer("Hello"), msgspec.json.encode(late))
    assert texts(await heard_by_a_subscriber(remote_port(), *arrivals)) == ["Hello", "message"]


async def test_text_in_flight_that_is_ahead_of_the_log_is_kept_until_its_turn_has_ended() -> None:
    port = remote_port()
    signal = TextDelta(node_id=NODE, offset=0, text="Hello", after_seq=2)
    port._take_event(msgspec.json.encode(signal))
    for seq in (1, 2):
        port._take_record(record(seq))
        assert port.drafts == (Draft(node=NODE, text="Hello"),)
    port._take_record(record(3))
    assert port.drafts == ()


async def test_an_answer_told_again_after_a_loss_is_handed_out_from_where_it_was_known() -> None:
    arrivals = (delta(0, "Hel"), delta(0, "Hello th"), delta(8, "ere"), answer("Hello there"))
    heard = texts(await heard_by_a_subscriber(remote_port(), *arrivals))
    assert heard == ["Hel", "lo th", "ere", "message"]


async def test_an_answer_that_began_again_unheard_takes_the_place_of_the_first_attempt() -> None:
    arrivals = (delta(0, "Good"), delta(0, "Hello"), answer("Hello"))
    events = await heard_by_a_subscriber(remote_port(), *arrivals)
    assert isinstance(events[1], AnswerRestarted)
    assert texts([events[0], *events[2:]]) == ["Good", "Hello", "message"]


def thought(offset: int, text: str) -> bytes:
    return msgspec.json.encode(ThinkingDelta(node_id=NODE, offset=offset, text=text, after_seq=2))


@pytest.mark.parametrize("heard", [[delta(0, "Good")], [thought(0, "hm"), delta(0, "Hel")]])
async def test_an_answer_that_began_again_is_whole_before_its_message_if_the_log_is_ahead(
    heard: list[bytes],
) -> None:
    late = msgspec.json.encode(AnswerRestarted(node_id=NODE, after_seq=2))
    rest = (late, thought(0, "oh"), delta(0, "Hello"))
    arrivals = (*heard, answer("Hello", thinking="oh"), *rest)
    events = (await heard_by_a_subscriber(remote_port(), *arrivals))[len(heard) :]
    assert [type(event).__name__ for event in events] == [
        *("AnswerRestarted", "ThinkingDelta", "TextDelta", "NewMessage")
    ]
    assert [(event.offset, event.text) for event in events[1:3]] == [(0, "oh"), (0, "Hello")]  # type: ignore[union-attr]  # they are pieces


async def test_pieces_of_an_answer_are_dropped_when_the_log_is_two_answers_ahead() -> None:
    port = remote_port()
    node = Node(id=NodeId("nod_2"), role="assistant", parent=NODE, parts=(Text(text="So."),))
    later = encode(NewMessage(node=node, seq=4, session_id=SessionId("ses_1")))
    arrivals = (answer("Hello there"), later, delta(6, "there"))
    heard = texts(await heard_by_a_subscriber(port, *arrivals))
    assert heard == ["Hello there", "message", "So.", "message"]


async def test_facts_of_the_socket_and_of_the_log_count_once_whichever_comes_first() -> None:
    port = remote_port()
    async with port.subscribe() as events:
        for take, seq in (
            (port._take_event, 2),  # ahead of the log: it comes from there
            (port._take_record, 1),
            (port._take_event, 2),
            (port._take_record, 2),
            (port._take_record, 3),
            (port._take_event, 3),
        ):
            take(record(seq))
        port._end()
        heard = [event.seq async for event in events if isinstance(event, FactBase)]
    assert heard == [1, 2, 3]


async def test_an_answer_in_flight_is_shown_from_where_it_is_known() -> None:
    draft = DraftEvent(session_id=SessionId("ses_1"), node_id=NODE, text="Hello th", after_seq=2)
    arrivals = (delta(0, "Hel"), msgspec.json.encode(draft), delta(8, "ere"), answer("Hello there"))
    heard = texts(await heard_by_a_subscriber(remote_port(), *arrivals))
    assert heard == ["Hel", "lo th", "ere", "message"]


async def test_an_owner_that_speaks_lines_is_said_to_be_of_another_version(tmp_path: Path) -> None:
    """As one of before there were frames: it answers what is no call by a line, and stays."""

    async def answer_lines(stream: ByteStream) -> None:
        lines = BufferedByteReceiveStream(stream)
        async with stream:
            with suppress(anyio.EndOfStream, anyio.IncompleteRead):
                while await lines.receive_until(b"\n", 1 << 20):
                    await stream.send(b'{"error":"not a call","kind":"UsageError"}\n')

    path = tmp_path / "o.sock"
    address = unix_address(str(path))
    owner = Owned("ses_1", pid=os.getpid(), host="here", address=address, since=0.0)
    state = SessionState(session_id=SessionId("ses_1"))
    port = RemotePort(state, MemoryStore(), owner, Supervisor())
    with short_path(str(path)) as short:
        listener = await anyio.create_unix_listener(short)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, answer_lines)
            assert not await port._drive_through(address)
            group.cancel_scope.cancel()
        await listener.aclose()
    assert "another version of Weft" in str(port._refusal())


@pytest.mark.process
def test_an_owner_suspended_before_it_opened_its_socket_is_said_to_be_suspended() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            owner = Owned("ses_1", pid=other.pid, host=os.uname().nodename, address="", since=0.0)
            state = SessionState(session_id=SessionId("ses_1"))
            port = RemotePort(state, MemoryStore(), owner, Supervisor())
            assert "suspended" not in str(port._refusal())
            other.send_signal(signal.SIGSTOP)
            os.waitpid(other.pid, os.WUNTRACED)
            assert "suspended" in str(port._refusal())
        finally:
            other.kill()
