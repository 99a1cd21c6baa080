"""The gateway: requests about a session are answered here, or handed on to the server that has it.

It stands behind the gate, which has checked who asks, and before the routes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any, Final

import anyio
import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.clock import Clock
from weft.errors import SessionNotFound, StoreUnavailable, WeftError
from weft.ids import derived_id, new_id
from weft.server.cluster.cluster_secret import HopToken
from weft.server.cluster.server_hop import MOST_HOPS, HopLost, ServerHop, hop_request
from weft.server.cluster.session_routes import NEW, SessionPlace, SessionRoutes
from weft.server.cluster.takeover import SessionTakeover
from weft.server.errors import RequestRefusal, answer_of
from weft.server.operation import ApiOperation

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 25.0
"""How long a session is looked for whose server does not answer: longer than a dead one's lease."""
AGAIN_SECONDS: Final = (0.05, 1.0)
"""How long to wait before the lease is looked at again: at first, and at most."""
START: Final = "start_session"
_OPENS_NOTHING: Final = frozenset({"read_session", "export_session", "delete_session"})
"""What needs no open session: where none is open, the store has it all."""


class SessionGateway:
    """An ASGI application before another one."""

    def __init__(
        self,
        inside: ASGIApp,
        operations: Iterable[ApiOperation],
        routes: SessionRoutes,
        hop: ServerHop,
        takeover: SessionTakeover,
        clock: Clock,
    ) -> None:
        self._takeover = takeover
        self._inside = inside
        self._routes = routes
        self._hop = hop
        self._clock = clock
        listed = list(operations)
        self._named_paths = {f"/api{each.path}" for each in listed if "{" not in each.path}
        """Where a word stands in the place of a session's id."""
        self._paths = [
            (_pattern(each), each)
            for each in listed
            if each.path.startswith("/sessions/{id}") or each.name == START
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, wherever its session is."""
        operation, given = self._named(scope)
        if operation is None or scope.get("weft.role") is None:
            await self._inside(scope, receive, send)
            return
        try:
            await self._answer(GatewayCall(scope, receive, operation, given, self._clock), send)
        except (RequestRefusal, WeftError) as error:
            await answer_of(error)(scope, receive, send)

    def _named(self, scope: Scope) -> tuple[ApiOperation | None, str]:
        """The operation of a request, if it is about a session, and that session."""
        if scope["type"] != "http":
            return None, ""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        is_named = scope["path"] in self._named_paths
        for pattern, operation in self._paths:
            if is_named and operation.name != START:
                continue
            if operation.method == method and (found := pattern.fullmatch(scope["path"])):
                return operation, found.groupdict().get("id", "")
        return None, ""

    async def _answer(self, call: GatewayCall, send: Send) -> None:
        pause, most = AGAIN_SECONDS
        with anyio.move_on_after(PATIENCE_SECONDS) as patience:
            while True:
                place = await self._place(call)
                if place is None or (place.is_here and await self._is_open(call, place)):
                    # From here on it takes as long as it takes.
                    patience.deadline = float("inf")
                    await self._inside(call.scope, call.replay, send)
                    return
                if not place.is_here and await self._handed_on(call, place, patience, send):
                    return
                await anyio.sleep(pause)
                pause = min(2 * pause, most)
        if patience.cancelled_caught:
            raise StoreUnavailable("the server that has this session does not answer; try again")

    async def _place(self, call: GatewayCall) -> SessionPlace | None:
        """Where a call goes; None where it is answered here with what is wrong with it."""
        # One that was sent here because none had it stays here.
        was_sent = "weft.hop" in call.scope
        try:
            if call.operation.name == START:
                return await self._start_place(await call.body(), was_sent=was_sent)
            return await self._routes.place_of(call.given, was_sent=was_sent)
        except SessionNotFound:
            return None

    async def _start_place(self, body: bytes, *, was_sent: bool) -> SessionPlace | None:
        try:
            given: Any = msgspec.json.decode(body or b"{}")
            chosen = given.get("session_id")
            if chosen is None and given.get("input_id"):
                chosen = derived_id("ses", "start", given["input_id"])
            named = str(chosen or "")
        except (ValueError, AttributeError, TypeError, RecursionError):
            return None
        try:
            if named:
                return await self._routes.place_of(named, was_sent=was_sent)
        except SessionNotFound:
            pass  # a new one, under an id that the caller chose
        return self._routes.place_for_new(NEW, was_sent=was_sent)

    async def _is_open(self, call: GatewayCall, place: SessionPlace) -> bool:
        """Open the session of a call here; False where another server was quicker."""
        if not place.session_id or call.operation.name in _OPENS_NOTHING:
            return True
        return await self._takeover.open_here(place)

    async def _handed_on(
        self, call: GatewayCall, place: SessionPlace, patience: anyio.CancelScope, send: Send
    ) -> bool:
        """Hand a call on; False where it must be looked for again."""
        hop: HopToken | None = call.scope.get("weft.hop")
        if hop is not None and hop.hops >= MOST_HOPS:
            raise RequestRefusal(503, "hops", "the session moves; try again", retry_after="1")
        request = hop_request(call.scope, await call.body())
        left, patience.deadline = patience.deadline, float("inf")
        try:
            await self._hop.relay(request, place, call.receive, send)
        except HopLost:
            patience.deadline = left
            logger.info("a server does not answer for a session", extra={"host": place.address})
            return False
        return True


class GatewayCall:
    """A request whose body is read once, however often it is handed on."""

    def __init__(
        self, scope: Scope, receive: Receive, operation: ApiOperation, given: str, clock: Clock
    ) -> None:
        self.scope = scope
        self.receive = receive
        self.operation = operation
        self.given = given
        self._clock = clock
        self._body: bytes | None = None
        self._was_replayed = False

    async def body(self) -> bytes:
        """The body, under an input id: so that it is carried out once, though it is sent again.

        Raises:
            RequestRefusal: it is too large.
        """
        if self._body is None:
            self._body = self._with_input_id(await self._read())
        return self._body

    async def _read(self) -> bytes:
        if not self.operation.changes:
            return b""
        parts: list[bytes] = []
        size, is_more = 0, True
        while is_more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise RequestRefusal(499, "gone", "the caller has gone")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            is_more = message.get("more_body", False)
            if size > self.operation.most_bytes:
                most = f"{self.operation.most_bytes:,}"
                raise RequestRefusal(413, "too_large", f"this takes at most {most} bytes")
        return b"".join(parts)

    def _with_input_id(self, body: bytes) -> bytes:
        if not self.operation.changes:
            return body
        try:
            given: Any = msgspec.json.decode(body or b"{}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return body  # the server that has the session says what is wrong with it
        if not isinstance(given, dict) or given.get("input_id") is not None:
            return body
        return msgspec.json.encode({**given, "input_id": new_id("inp", self._clock.now())})

    async def replay(self) -> Message:
        """What the caller sends, from the beginning, for those inside."""
        if self._body is None or self._was_replayed:
            return await self.receive()
        self._was_replayed = True
        return {"type": "http.request", "body": self._body, "more_body": False}


def _pattern(operation: ApiOperation) -> re.Pattern[str]:
    """The paths of an operation."""
    parts = re.split(r"(\{\w+(?::path)?\})", f"/api{operation.path}")
    return re.compile(
        "".join(
            re.escape(part)
            if not part.startswith("{")
            else f"(?P<{part[1:-6]}>.+)"
            if part.endswith(":path}")
            else f"(?P<{part[1:-1]}>[^/]+)"
            for part in parts
        )
    )
