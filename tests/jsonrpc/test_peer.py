"""Requests, answers and notifications between two ends."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.jsonrpc import (
    ErrorAnswer,
    FrameDecoder,
    FramingError,
    JsonRpcPeer,
    PeerClosed,
    UnknownMethod,
    framed,
)

pytestmark = pytest.mark.anyio


@given(st.lists(st.binary(max_size=200), max_size=6), st.lists(st.integers(1, 40), min_size=1))
def test_messages_come_out_as_they_went_in_wherever_the_stream_is_cut(
    messages: list[bytes], sizes: list[int]
) -> None:
    stream = b"".join(map(framed, messages))
    decoder, found, at, turn = FrameDecoder(), list[bytes](), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        found += decoder.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert found == messages


@pytest.mark.parametrize(
    "stream",
    [
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Length: 1_0\r\n\r\n",
        b"Content-Type: text\r\n\r\n",
        b"starting up\n" * 1000,
    ],
)
def test_what_is_no_message_is_refused_and_not_collected(stream: bytes) -> None:
    with pytest.raises(FramingError):
        FrameDecoder().feed(stream)


def test_a_header_may_have_other_fields_and_any_case() -> None:
    stream = b"Content-Type: x; charset=utf-8\r\ncontent-length: 2\r\n\r\n{}"
    assert FrameDecoder().feed(stream) == [b"{}"]


class Ends:
    """Two peers, each of which hears at once what the other says."""

    def __init__(self) -> None:
        self.told: list[int] = []
        handlers = {"double": self._double, "fail": self._fail, "tell": self._tell}
        self.here = JsonRpcPeer({})
        self.there = JsonRpcPeer(handlers)

    def _double(self, params: msgspec.Raw) -> int:
        return 2 * msgspec.json.decode(params, type=int)

    def _fail(self, params: msgspec.Raw) -> int:
        if msgspec.json.decode(params):
            raise UnknownMethod("not here")
        raise ValueError("secret detail")

    def _tell(self, params: msgspec.Raw) -> None:
        self.told.append(msgspec.json.decode(params, type=int))

    async def __aenter__(self) -> Ends:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self.here.write, self._to(self.there))
        self._group.start_soon(self.there.write, self._to(self.here))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._group.cancel_scope.cancel()
        await self._group.__aexit__(None, None, None)

    def _to(self, peer: JsonRpcPeer):  # type: ignore[no-untyped-def]
        async def send(data: bytes) -> None:
            peer.feed(data)

        return send


def as_int(raw: msgspec.Raw) -> int:
    return msgspec.json.decode(raw, type=int)


async def test_a_request_gets_its_own_answer_among_many() -> None:
    async with Ends() as ends:
        found: dict[int, int] = {}

        async def ask(number: int) -> None:
            found[number] = await ends.here.request("double", number, as_int, 5.0)

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(ask, number)
        assert found == {number: 2 * number for number in range(50)}


async def test_a_request_never_overtakes_the_notification_before_it() -> None:
    async with Ends() as ends:
        for number in range(20):
            ends.here.notify("tell", number)
        await ends.here.request("double", 1, as_int, 5.0)
        assert ends.told == list(range(20))


async def test_every_request_is_answered_also_one_that_is_not_known_or_fails() -> None:
    async with Ends() as ends:
        codes = []
        for method, params in (("nothing", 1), ("fail", 1), ("fail", 0)):
            with pytest.raises(ErrorAnswer) as caught:
                await ends.here.request(method, params, as_int, 5.0)
            codes.append((caught.value.code, str(caught.value)))
        assert codes == [
            (-32601, "nothing is not known here"),
            (-32601, "not here"),
            (-32603, "ValueError"),
        ]


async def test_an_answer_of_another_shape_is_an_error_of_the_request_alone() -> None:
    async with Ends() as ends:
        with pytest.raises(msgspec.ValidationError):
            await ends.here.request(
                "double", 2, lambda raw: msgspec.json.decode(raw, type=str), 5.0
            )
        assert await ends.here.request("double", 2, as_int, 5.0) == 4


async def test_what_waits_when_the_connection_ends_fails_with_the_reason() -> None:
    peer = JsonRpcPeer({})
    async with anyio.create_task_group() as group:

        async def ask() -> None:
            with pytest.raises(PeerClosed, match="it has ended"):
                await peer.request("double", 1, as_int, 5.0)

        group.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        peer.close("it has ended")
    with pytest.raises(PeerClosed, match="it has ended"):
        peer.notify("tell", 1)


async def test_a_request_that_nobody_waits_for_any_more_is_cancelled() -> None:
    peer = JsonRpcPeer({})
    sent = []

    async def send(data: bytes) -> None:
        sent.append(data)

    async with anyio.create_task_group() as group:
        group.start_soon(peer.write, send)
        with pytest.raises(TimeoutError):
            await peer.request("double", 1, as_int, 0.0)
        await anyio.lowlevel.checkpoint()
        peer.feed(framed(b'{"jsonrpc":"2.0","id":1,"result":2}'))  # too late, and no error
        group.cancel_scope.cancel()
    assert b"$/cancelRequest" in sent[-1]


async def test_a_message_that_is_not_understood_does_not_end_the_connection() -> None:
    async with Ends() as ends:
        ends.there.feed(framed(b"[1, 2"))
        ends.there.feed(framed(b'{"id": {}, "method": 3}'))
        assert await ends.here.request("double", 2, as_int, 5.0) == 4


NESTED = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "params", [b'{"text":"\xff\xfe"}', b'{"text":"\xed\xa0\x80"}', NESTED], ids=len
)
async def test_a_message_that_cannot_be_read_is_left_out_alone(params: bytes) -> None:
    heard: list[str] = []
    peer = JsonRpcPeer({"good": lambda raw: heard.append("good"), "bad": msgspec.json.decode})
    for method in (b"bad", b"good"):
        peer.feed(framed(b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method, params)))
    peer.feed(framed(b'{"jsonrpc":"2.0","method":"good","params":[]}'))
    assert heard[-1:] == ["good"]


@pytest.mark.parametrize("result", [b'"\xff"', NESTED], ids=len)
async def test_an_answer_that_cannot_be_read_is_one_of_another_shape(result: bytes) -> None:
    peer = JsonRpcPeer({})

    async def answer() -> None:
        await anyio.lowlevel.checkpoint()
        peer.feed(framed(b'{"jsonrpc":"2.0","id":1,"result":%b}' % result))
        # Where the message as a whole could not be read, nothing will come.
        peer.feed(framed(b'{"jsonrpc":"2.0","id":1,"result":{}}'))

    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        with pytest.raises(msgspec.ValidationError):
            await peer.request("x", None, msgspec.json.Decoder(list[list[str]]).decode, 5.0)
