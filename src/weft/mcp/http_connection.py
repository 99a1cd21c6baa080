"""Connections to MCP servers that are reached by an address.

`HttpConnection` is Streamable HTTP: each message is a POST, answered by JSON or by a stream of
events.  Servers before 2026-07-28 may give us a session, have a stream of their own for what they
tell unasked, and let a stream that broke be taken up again.  `SseConnection` is what came before
it: one stream for all that comes, and an address for what is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
import msgspec

from weft.errors import ProviderUnavailable
from weft.jsonrpc import TOO_LONG, ErrorAnswer, JsonRpcPeer, PeerClosed
from weft.mcp.connection import (
    LONGEST,
    MCP_CANCEL,
    AnswerLost,
    HeaderPairs,
    McpConnection,
    NeedsLogin,
    SessionGone,
)
from weft.mcp.http_exchange import MOST_BODY, HttpEndpoint, error_in, origin, whole_body
from weft.mcp.param_headers import header_value
from weft.transport import EventParser, HttpReply

logger = logging.getLogger(__name__)

NOTIFY_SECONDS: Final = 10.0
"""How long a notification may take: what is asked next waits for it."""
LISTEN_SECONDS: Final = 1.0
"""How long the first call waits for a server to open its own stream."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds between two looks at a stream that ends by itself."""
MOST_RESUMES: Final = 20
"""How often one answer is taken up again."""
_BOTH: Final = ("accept", "application/json, text/event-stream")
_EVENTS: Final = ("accept", "text/event-stream")
_JSON: Final = ("content-type", "application/json")
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By method, what else of a request stands in its head."""
_STATELESS: Final = "2026-07-28"

Handlers = Mapping[str, Callable[[msgspec.Raw], Any]]
StartTask = Callable[[Callable[[], Awaitable[None]]], None]


class _Message(msgspec.Struct):
    id: int | str | None = None
    method: str = ""
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: dict[str, Any] | None = None


class _WaitingRequest:
    """A request that is not answered yet."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.answer: _Message | None = None
        """That came by another stream than its own."""


class _WholeMessages:
    """Framing of messages that come one by one."""

    def feed(self, chunk: bytes) -> list[bytes]:
        return [chunk]


class HttpConnection(McpConnection):
    """A connection over Streamable HTTP."""

    mirrors_arguments = True
    takes_requests = True

    def __init__(self, endpoint: HttpEndpoint, handlers: Handlers, start_task: StartTask) -> None:
        self._endpoint = endpoint
        self._start_task = start_task
        self._version = ""
        self._failure: NeedsLogin | SessionGone | None = None
        self._over = anyio.Event()
        self._why = ""
        self._last_id = 0
        self._waiting: dict[int, _WaitingRequest] = {}
        self._is_listening = anyio.Event()
        """The server has said whether it has a stream for what it tells unasked."""
        # What we tell, and what we answer, goes out in the order in which it was said.
        self._peer = JsonRpcPeer(
            handlers,
            decoder=_WholeMessages(),
            encode=lambda data: data,
            cancel=MCP_CANCEL,
            start_task=start_task,
        )
        self._has_stream = False
        """It may have one, and is asked for it."""
        self._unsent = 0
        self._all_sent = anyio.Event()
        start_task(self._write)

    # -- what we say

    def use_version(self, version: str) -> None:
        self._version = version

    def notify(self, method: str, params: dict[str, Any]) -> None:
        if not self._peer.closed:
            self._unsent += 1
            self._all_sent = anyio.Event()
            self._peer.notify(method, params)
            if method == "notifications/initialized":
                self._has_stream = True
                self._start_task(self._listen)

    async def _write(self) -> None:
        await self._peer.write(self._tell)

    async def _tell(self, data: bytes) -> None:
        """Send a notification or an answer; what is not taken is lost."""
        message = msgspec.json.decode(data, type=_Message)
        try:
            with anyio.move_on_after(NOTIFY_SECONDS):
                headers = self._headers(message.method, {})
                async with self._endpoint.asked("POST", headers, data) as reply:
                    await whole_body(reply)
        except (PeerClosed, ErrorAnswer, NeedsLogin, SessionGone) as error:
            # A request that follows finds out the same, and someone waits for that.
            logger.info("an MCP server did not take %s: %s", message.method or "an answer", error)
        finally:
            if message.method:
                self._unsent -= 1
                if not self._unsent:
                    self._all_sent.set()

    def _headers(self, method: str, params: dict[str, Any]) -> HeaderPairs:
        found = [_BOTH, _JSON]
        if self._version:
            found.append(("mcp-protocol-version", self._version))
        if self._version == _STATELESS and method:
            found.append(("mcp-method", method))
            if (key := _NAMED.get(method)) and isinstance(params.get(key), str):
                found.append(("mcp-name", header_value(params[key])))
        return tuple(found)

    async def request(
        self, method: str, params: dict[str, Any], headers: HeaderPairs = ()
    ) -> msgspec.Raw:
        if self._over.is_set():
            raise PeerClosed(self._why)
        self._last_id += 1
        number = self._last_id
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        body = msgspec.json.encode(message)
        waiting = self._waiting[number] = _WaitingRequest()
        is_settled = False
        try:
            with waiting.scope:
                await self._prepared(method)
                found = await self._answered(
                    number, (*self._headers(method, params), *headers), body, method
                )
                is_settled = True
                return found
            is_settled = waiting.answer is not None
        except (ErrorAnswer, NeedsLogin, SessionGone, PeerClosed):
            is_settled = True
            raise
        finally:
            del self._waiting[number]
            if not is_settled:
                self._give_up(number)
        if waiting.answer is not None:
            return _result_of(waiting.answer)
        raise PeerClosed(self._why or "the connection is closed")

    async def _prepared(self, method: str) -> None:
        if self._unsent:
            # A server that was not told that we are ready may refuse what we ask.
            await self._all_sent.wait()
        if method == "tools/call" and self._has_stream and not self._is_listening.is_set():
            # What it asks us during the call may come by its own stream, and is lost before.
            with anyio.move_on_after(LISTEN_SECONDS):
                await self._is_listening.wait()
            self._is_listening.set()

    def _answer_elsewhere(self, message: _Message) -> None:
        """Take an answer that came by the stream of another request."""
        waiting = self._waiting.get(message.id) if isinstance(message.id, int) else None
        if waiting is not None and waiting.answer is None:
            waiting.answer = message
            waiting.scope.cancel()

    def _give_up(self, number: int) -> None:
        # A newer server takes the end of the stream for it; an older one goes on working.
        if self._version and self._version != _STATELESS and not self._over.is_set():
            told = MCP_CANCEL.of(number)
            self.notify(told["method"], told["params"])

    async def _answered(
        self, number: int, headers: HeaderPairs, body: bytes, method: str
    ) -> msgspec.Raw:
        stream = _AnswerStream(number, self._peer, self._answer_elsewhere)
        try:
            async with self._endpoint.asked("POST", headers, body) as reply:
                if reply.status // 100 != 2:
                    raise await self._refused(reply, method)
                if method == "initialize":
                    self._endpoint.session = _session_in(reply)
                kind = reply.headers.get("content-type", "").split(";")[0].strip().lower()
                if kind != "text/event-stream":
                    return stream.only(await whole_body(reply))
                found = await stream.read(reply)
            return found if found is not None else await self._resumed(stream)
        except AnswerLost:
            raise
        except PeerClosed as error:
            # The server is not there (any more), and whatever else waits learns it too: callers
            # wait for the end of a connection that is said to be closed.
            self._end(str(error))
            raise

    async def _refused(self, reply: HttpReply, method: str) -> ErrorAnswer:
        error = await error_in(reply)
        if method == "initialize" and error.code in (404, 405):
            hint = 'a server of the old kind needs `"type": "sse"`'
            return ErrorAnswer(error.code, f"{error} ({hint})")
        return error

    async def _resumed(self, stream: _AnswerStream) -> msgspec.Raw:
        """The answer, from a stream that ended too early and is taken up where it was."""
        for _ in range(MOST_RESUMES):
            if not stream.last_id or self._version == _STATELESS:
                break
            await anyio.sleep(stream.pause)
            headers = (_EVENTS, *self._versioned(), ("last-event-id", stream.last_id))
            async with self._endpoint.asked("GET", headers) as reply:
                if reply.status != 200:
                    break
                found = await stream.read(reply)
                if found is not None:
                    return found
        raise AnswerLost("the answer broke off")

    def _versioned(self) -> HeaderPairs:
        return (("mcp-protocol-version", self._version),) if self._version else ()

    # -- what comes unasked

    async def run(self) -> str:
        await self._over.wait()
        if self._failure is not None:
            raise self._failure
        return self._why

    async def _listen(self) -> None:
        """Take in what an older server tells by itself, as long as it has a stream for that."""
        stream = _AnswerStream(None, self._peer, self._answer_elsewhere)
        pause = FIRST_PAUSE
        if self._unsent:
            await self._all_sent.wait()
        while True:
            resume = (("last-event-id", stream.last_id),) if stream.last_id else ()
            try:
                async with self._endpoint.asked(
                    "GET", (_EVENTS, *self._versioned(), *resume)
                ) as reply:
                    self._is_listening.set()
                    kind = reply.headers.get("content-type", "")
                    if reply.status != 200 or not kind.startswith("text/event-stream"):
                        return  # most have none
                    events = stream.events
                    await stream.read(reply)
                    pause = FIRST_PAUSE if stream.events > events else pause
            except (NeedsLogin, SessionGone) as error:
                self._failure = error
                self._end(str(error))
                return
            except (PeerClosed, ErrorAnswer) as error:
                # Not the end: it may be back before anyone asks it for something.
                logger.debug("the stream of an MCP server broke: %s", error)
                self._is_listening.set()
            await anyio.sleep(max(pause, stream.pause))
            pause = min(2 * pause, LONGEST_PAUSE)

    # -- the end

    def _end(self, why: str) -> None:
        if not self._over.is_set():
            self._why = why
            self._over.set()

    def close(self, why: str) -> None:
        self._end(why)
        self._peer.close(why)
        for waiting in tuple(self._waiting.values()):
            waiting.scope.cancel()

    async def end(self) -> None:
        try:
            await self._end_session()
        finally:
            await self._endpoint.aclose()

    async def _end_session(self) -> None:
        if not self._endpoint.session or isinstance(self._failure, SessionGone):
            return
        try:
            async with self._endpoint.asked("DELETE", self._versioned()) as reply:
                await whole_body(reply)
        except (PeerClosed, ErrorAnswer, NeedsLogin, SessionGone):
            pass  # it is gone, or ends sessions by itself


class _AnswerStream:
    """A stream of events that has the answer to one request among others."""

    def __init__(
        self, number: int | None, peer: JsonRpcPeer, elsewhere: Callable[[_Message], None]
    ) -> None:
        """`elsewhere` is given answers to other requests: some servers mix their streams up."""
        self._number = number
        self._peer = peer
        self._elsewhere = elsewhere
        self.last_id = ""
        self.pause = 0.0
        """Seconds that the server asked to wait before the stream is taken up again."""
        self.events = 0

    def only(self, body: bytes) -> msgspec.Raw:
        """The answer that is the whole body of a reply.

        Raises:
            ErrorAnswer: it is an error, or none came.
        """
        # Servers of 2025-03-26 may put several messages into a list.
        for each in _messages_in(body):
            found = self._take(each)
            if found is not None:
                return found
        raise ErrorAnswer(_NO_ANSWER, "its reply holds no answer to what was asked")

    async def read(self, reply: HttpReply) -> msgspec.Raw | None:
        """Take in events until the answer is among them; None where the stream ends before.

        Raises:
            ErrorAnswer: the answer is an error, or too long.
        """
        parser = EventParser(MOST_BODY)
        while True:
            try:
                data = await reply.read()
            except ProviderUnavailable:
                data = b""  # cut off: as if it had ended
            try:
                events = parser.feed(data) if data else parser.finish()
            except ProviderUnavailable as error:
                said = f"the answer has more than {MOST_BODY / 1e6:,.0f} MB, which is the limit"
                raise ErrorAnswer(TOO_LONG, said) from error
            self.last_id = parser.last_id or self.last_id
            if parser.retry_ms is not None:
                self.pause = min(parser.retry_ms / 1000, LONGEST_PAUSE)
            for name, text in events:
                self.events += 1
                if text and name in (b"", b"message"):
                    found = self._take(text)
                    if found is not None:
                        return found
            if not data:
                return None

    def _take(self, data: bytes) -> msgspec.Raw | None:
        try:
            message = msgspec.json.decode(data, type=_Message)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            logger.warning("a message of an MCP server is left out: %s", type(error).__name__)
            return None
        if message.method:
            self._peer.feed(data)
            return None
        if message.id is not None and message.id != self._number:
            self._elsewhere(message)
            return None
        if self._number is None or (message.id is None and message.error is None):
            return None
        return _result_of(message)


_NO_ANSWER: Final = -32603


def _messages_in(body: bytes) -> list[bytes]:
    if not body.lstrip().startswith(b"["):
        return [body]
    try:
        return [bytes(each) for each in msgspec.json.decode(body, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return []


def _result_of(message: _Message) -> msgspec.Raw:
    """What an answer brings.

    Raises:
        ErrorAnswer: it is an error.
    """
    if message.error is not None:
        raise _error_of(message.error)
    result = message.result
    return msgspec.Raw(b"null") if isinstance(result, msgspec.UnsetType) else result


def _error_of(error: dict[str, Any]) -> ErrorAnswer:
    code = error.get("code")
    message = error.get("message")
    return ErrorAnswer(
        code if isinstance(code, int) else _NO_ANSWER,
        message if isinstance(message, str) else "",
        error.get("data"),
    )


def _session_in(reply: HttpReply) -> str:
    """The id of our session; what cannot stand in a header is none."""
    found = reply.headers.get("mcp-session-id", "")
    return found if found.isascii() and found.isprintable() and len(found) <= 4096 else ""


class SseConnection(McpConnection):
    """A connection over HTTP as it was in 2024-11-05: a stream that tells where to send."""

    mirrors_arguments = False
    takes_requests = True

    def __init__(self, endpoint: HttpEndpoint, handlers: Handlers, start_task: StartTask) -> None:
        self._endpoint = endpoint
        self._address = ""
        self._is_known = anyio.Event()
        self._over = anyio.Event()
        self._why = ""
        self._failure: NeedsLogin | None = None
        self._peer = JsonRpcPeer(
            handlers,
            decoder=_WholeMessages(),
            encode=lambda data: data,
            cancel=MCP_CANCEL,
            start_task=start_task,
        )
        start_task(self._write)

    async def run(self) -> str:
        async with anyio.create_task_group() as group:

            async def carry() -> None:
                self._end(await self._carried())

            group.start_soon(carry)
            await self._over.wait()
            group.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        return self._why

    async def _carried(self) -> str:
        """Take in what comes; returns why it ended."""
        try:
            async with self._endpoint.asked("GET", (_EVENTS,)) as reply:
                if reply.status != 200:
                    error = await error_in(reply)
                    return f"answered with error {error.code}: {error}"
                parser = EventParser(MOST_BODY)
                while data := await reply.read():
                    for name, text in parser.feed(data):
                        self._take_event(name, text)
            return "its stream has ended"
        except NeedsLogin as error:
            self._failure = error
            return str(error)
        except (PeerClosed, ProviderUnavailable) as error:
            return str(error)

    def _take_event(self, name: bytes, text: bytes) -> None:
        if name == b"endpoint":
            self._point_to(text.decode(errors="replace").strip())
        elif text:
            self._peer.feed(text)

    def _point_to(self, address: str) -> None:
        from urllib.parse import urljoin  # with the first one

        there = urljoin(self._endpoint.url, address)
        if origin(there) != origin(self._endpoint.url):
            # Our headers would go to another.
            raise PeerClosed(f"it wants to be sent to at {there[:200]}, which is another server")
        self._address = there
        self._is_known.set()

    async def _write(self) -> None:
        await self._is_known.wait()
        await self._peer.write(self._tell)

    async def _tell(self, data: bytes) -> None:
        try:
            async with self._endpoint.asked("POST", (_JSON,), data, url=self._address) as reply:
                if reply.status // 100 != 2:
                    error = await error_in(reply)
                    self._peer.feed(_as_answer(data, error))
                else:
                    await whole_body(reply)
        except NeedsLogin as error:
            self._failure = error
            self._end(str(error))
        except AnswerLost:
            pass  # the answer comes by the stream
        except (PeerClosed, ErrorAnswer, SessionGone) as error:
            self._end(str(error))

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._over.set()

    async def request(
        self, method: str, params: dict[str, Any], headers: HeaderPairs = ()
    ) -> msgspec.Raw:
        try:
            return await self._peer.request(method, params, msgspec.Raw, LONGEST)
        except PeerClosed:
            if self._failure is not None:
                raise self._failure from None
            raise

    def notify(self, method: str, params: dict[str, Any]) -> None:
        if not self._peer.closed:
            self._peer.notify(method, params)

    def use_version(self, version: str) -> None:
        pass  # nothing on the wire says it

    def close(self, why: str) -> None:
        self._peer.close(why)

    async def end(self) -> None:
        # The end of the stream has said it.
        await self._endpoint.aclose()


def _as_answer(request: bytes, error: ErrorAnswer) -> bytes:
    """The refusal of a POST as the answer to what it carried."""
    number = msgspec.json.decode(request, type=_Message).id
    said = {"code": error.code, "message": str(error)}
    return msgspec.json.encode({"id": number, "error": said})
