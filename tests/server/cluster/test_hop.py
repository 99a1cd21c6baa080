"""The answer to a request that was handed on: whole, or seen to be cut off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from starlette.types import Message

from weft.clock import SystemClock
from weft.errors import ProviderUnavailable, UsageError
from weft.ids import SessionId
from weft.server.cluster.cluster_secret import ClusterSecret
from weft.server.cluster.gateway import SessionGateway
from weft.server.cluster.server_hop import HopRequest, ServerHop
from weft.server.cluster.session_routes import SessionPlace

pytestmark = pytest.mark.anyio


class DyingServer:
    """A server that dies in the middle of its answer."""

    status = 200

    def __init__(self, kind: str) -> None:
        self.headers = {"content-type": kind}
        self._pieces = [b"the first half"]

    @asynccontextmanager
    async def send(self, request: object) -> AsyncIterator[DyingServer]:
        del request
        yield self

    async def read(self) -> bytes:
        if self._pieces:
            return self._pieces.pop()
        raise ProviderUnavailable("the connection was reset")


async def never() -> Message:
    await anyio.sleep_forever()
    raise AssertionError


def made_hop() -> ServerHop:
    routes: Any = None
    return ServerHop(ClusterSecret(b"s" * 32), lambda: "", routes, SystemClock())


PLACE = SessionPlace(SessionId("ses_far"), "http://far:1", "prc_far")


@pytest.mark.parametrize(
    ("kind", "is_ended"), [("application/json", False), ("text/event-stream; charset=utf-8", True)]
)
async def test_only_a_stream_of_events_ends_well_where_it_is_cut_off(
    kind: str, is_ended: bool
) -> None:
    hop = made_hop()
    there: Any = DyingServer(kind)
    hop._http = there
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    request = HopRequest(
        method="GET", target="/api/x", headers=(), body=b"", role="driver", client="", hops=0
    )
    await hop.relay(request, PLACE, never, send)
    assert sent[1]["body"] == b"the first half"
    # Without the last message the connection is cut, and the caller keeps no half for a whole.
    assert [each["more_body"] for each in sent[1:]] == [True, False][: 1 + is_ended]


async def test_a_client_that_no_header_can_name_is_told_so() -> None:
    async def send(message: Message) -> None:
        raise AssertionError(message)

    request = HopRequest(
        method="GET", target="/api/x", headers=(), body=b"", role="driver", client="é", hops=0
    )
    with pytest.raises(UsageError, match="not ASCII"):
        await made_hop().relay(request, PLACE, never, send)


@pytest.mark.parametrize("body", [b'{"input_id": 5}', b"[]", b'"', b'{"input_id": "\xff"}'])
async def test_a_start_that_is_not_right_is_answered_where_it_came(body: bytes) -> None:
    given: Any = None
    inside: Any = None
    gateway = SessionGateway(inside, (), given, made_hop(), given, SystemClock())
    assert await gateway._start_place(body, was_sent=False) is None
