"""One message a line: found wherever the stream is cut, and one that is too long hurts itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.abc
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.jsonrpc import TOO_LONG, ErrorAnswer, JsonRpcPeer, LineDecoder, line_framed

pytestmark = pytest.mark.anyio


@given(st.lists(st.integers(0, 10**9), max_size=6), st.lists(st.integers(1, 40), min_size=1))
def test_lines_come_out_as_they_went_in_wherever_the_stream_is_cut(
    numbers: list[int], sizes: list[int]
) -> None:
    messages = [msgspec.json.encode({"id": number}) for number in numbers]
    stream = b"".join(map(line_framed, messages))
    decoder, found, at, turn = LineDecoder(), list[bytes](), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += decoder.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert found == messages


def test_what_is_printed_between_messages_is_left_out() -> None:
    found = LineDecoder().feed(b'starting\n\n  {"id":1}\r\n[1]\n\x1b[2Jhello\n{"id":2}\n')
    assert found == [b'{"id":1}', b'{"id":2}']


@pytest.mark.parametrize("piece", [1, 7, 100, 100_000])
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b'{"jsonrpc":"2.0","id":12,"result":"', b'"}'),
        (b'{"id": 12, "result":"', b'"}'),
        (b'{"result":"', b'","jsonrpc":"2.0","id":12}'),
        (b'{"result":"', b'", "id" : 12, "jsonrpc":"2.0"}'),
    ],
)
def test_a_line_that_is_too_long_becomes_the_error_of_its_request(
    head: bytes, tail: bytes, piece: int
) -> None:
    decoder = LineDecoder(most=2_000)
    stream = head + b"x" * 5_000 + tail + b'\n{"id":13}\n'
    found = [
        message
        for at in range(0, len(stream), piece)
        for message in decoder.feed(stream[at : at + piece])
    ]
    assert [msgspec.json.decode(each)["id"] for each in found] == [12, 13]
    assert msgspec.json.decode(found[0])["error"]["code"] == TOO_LONG


async def test_an_error_that_names_no_request_fails_all_that_wait() -> None:
    peer = JsonRpcPeer({}, decoder=LineDecoder(most=100), encode=line_framed)

    async def ask() -> None:
        with pytest.raises(ErrorAnswer) as failed:
            await peer.request("x", {}, lambda raw: raw, 5)
        assert failed.value.code == TOO_LONG

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            peer.feed(b"{" + b"x" * 300 + b"}\n")


def start(group: anyio.abc.TaskGroup, work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    group.start_soon(run)


async def test_a_handler_may_take_its_time_and_others_are_answered_meanwhile() -> None:
    go_on, sent = anyio.Event(), list[bytes]()

    async def slow() -> str:
        await go_on.wait()
        return "late"

    async def send(data: bytes) -> None:
        sent.append(data)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            peer = JsonRpcPeer(
                {"slow": lambda params: slow(), "ping": lambda params: {}},
                decoder=LineDecoder(),
                encode=line_framed,
                start_task=lambda work: start(group, work),
            )
            group.start_soon(peer.write, send)
            peer.feed(b'{"id":1,"method":"slow"}\n{"id":2,"method":"ping"}\n')
            await anyio.wait_all_tasks_blocked()
            go_on.set()
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
    assert [msgspec.json.decode(each)["id"] for each in sent] == [2, 1]
