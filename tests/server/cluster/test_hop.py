"""The answer to a request that was handed on: whole, or seen to be cut off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from starlette.types import Message

from weft.clock import SystemClock
from weft.errors import ProviderUnavailable
from weft.ids import SessionId
from weft.server.cluster.cluster_secret import ClusterSecret
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


@pytest.mark.parametrize(
    ("kind", "is_ended"), [("application/json", False), ("text/event-stream; charset=utf-8", True)]
)
async def test_only_a_stream_of_events_ends_well_where_it_is_cut_off(
    kind: str, is_ended: bool
) -> None:
    routes: Any = None
    hop = ServerHop(ClusterSecret(b"s" * 32), lambda: "", routes, SystemClock())
    there: Any = DyingServer(kind)
    hop._http = there
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    request = HopRequest(
        method="GET", target="/api/x", headers=(), body=b"", role="driver", client="", hops=0
    )
    place = SessionPlace(SessionId("ses_far"), "http://far:1", "prc_far")
    await hop.relay(request, place, receive, send)
    assert sent[1]["body"] == b"the first half"
    # Without the last message the connection is cut, and the caller keeps no half for a whole.
    assert [each["more_body"] for each in sent[1:]] == [True, False][: 1 + is_ended]
