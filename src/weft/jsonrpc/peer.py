"""One end of a JSON-RPC connection: requests with their answers, notifications, and what the other
end asks.

What is sent goes into one queue in the order of the calls, so that a request never overtakes the
notification that it relies on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import anyio
import msgspec

from weft.errors import WeftError
from weft.jsonrpc.frames import FrameDecoder, framed

logger = logging.getLogger(__name__)

T = TypeVar("T")
Handler: TypeAlias = Callable[[msgspec.Raw], Any]
StartTask: TypeAlias = Callable[[Callable[[], Awaitable[None]]], None]
"""Runs what takes longer than taking in a message."""

METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
MOST_WAITING: Final = 64 * 1024 * 1024
"""Bytes that wait to be sent; an end that does not read any more is lost."""


class PeerClosed(WeftError):
    """The other end is gone, or is not understood any more."""


class UnknownMethod(WeftError):
    """Raised by a handler that does not know what is asked."""


class ErrorAnswer(WeftError):
    """A request was answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class _Error(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class _Message(msgspec.Struct):
    """Any message; which fields it has says what it is."""

    id: int | str | None = None
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _Error | None = None


class MessageDecoder(Protocol):
    """Finds the messages in what comes."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that this chunk completes."""
        ...


class CancelNotice(msgspec.Struct, frozen=True):
    """How either end tells the other that nobody waits for an answer any more."""

    method: str
    key: str
    """Of its parameters, the one that names the request."""
    reason: str = ""

    def of(self, number: int) -> dict[str, Any]:
        """The message that gives up a request of ours."""
        params: dict[str, Any] = {self.key: number}
        if self.reason:
            params["reason"] = self.reason
        return {"method": self.method, "params": params}


LSP_CANCEL: Final = CancelNotice("$/cancelRequest", "id")


class JsonRpcPeer:
    """Sends and takes messages; who reads and writes the streams is up to the caller."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        decoder: MessageDecoder | None = None,
        encode: Callable[[bytes], bytes] = framed,
        cancel: CancelNotice = LSP_CANCEL,
        start_task: StartTask | None = None,
    ) -> None:
        """`handlers` answer what the other end asks or tells, by method.

        They run as the message comes in and must not take long; where there is a `start_task`, they
        may return an awaitable, whose result is the answer.  `decoder` and `encode` are the
        framing, by headers where none is given; `cancel` is how either end says that nobody waits:
        what is awaited for an answer then ends, and no answer is sent.
        """
        self._handlers = handlers
        self._decoder = decoder or FrameDecoder()
        self._encode = encode
        self._cancel = cancel
        self._start_task = start_task
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._answering: dict[int | str | None, anyio.CancelScope] = {}
        """By the number that the other end gave its request, what is awaited for the answer."""
        self._last_id = 0
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._outbox_bytes = 0
        self._closed = ""

    @property
    def closed(self) -> str:
        """Why the connection has ended; empty while it has not."""
        return self._closed

    # -- what we say

    async def request(
        self, method: str, params: Any, kind: Callable[[msgspec.Raw], T], seconds: float
    ) -> T:
        """The answer, read by `kind`.

        Raises:
            ErrorAnswer: it is an error.
            PeerClosed: the connection ends first.
            TimeoutError: it takes longer; the other end is told that nobody waits any more.
            msgspec.ValidationError: the answer is of another shape.
        """
        self._last_id += 1
        number = self._last_id
        # Made before it is sent: the answer may be there before this task runs again.
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, "method": method, "params": params})
            async with asyncio.timeout(seconds):
                raw = await answer
            return _read_by(kind, raw)
        except BaseException:
            if not answer.done() or answer.cancelled():
                self._give_up(number)
            raise
        finally:
            self._waiting.pop(number, None)

    def notify(self, method: str, params: Any) -> None:
        """Tell something.

        Raises:
            PeerClosed: the connection has ended.
        """
        self._send({"method": method, "params": params})

    def _give_up(self, number: int) -> None:
        if not self._closed:
            self._send(self._cancel.of(number))

    def _send(self, message: dict[str, Any]) -> None:
        if self._closed:
            raise PeerClosed(self._closed)
        data = self._encode(msgspec.json.encode({"jsonrpc": "2.0", **message}))
        self._outbox_bytes += len(data)
        if self._outbox_bytes > MOST_WAITING:
            self.close("it does not read what it is sent")
            raise PeerClosed(self._closed)
        self._outbox.put_nowait(data)

    async def write(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send what is to be sent, for ever; run it as a task."""
        while True:
            data = await self._outbox.get()
            await send(data)
            self._outbox_bytes -= len(data)

    # -- what we hear

    def feed(self, chunk: bytes) -> None:
        """Take in what came.

        Raises:
            FramingError: the other end does not speak JSON-RPC.
            PeerClosed: it does not read.
        """
        for data in self._decoder.feed(chunk):
            try:
                message = msgspec.json.decode(data, type=_Message)
            except Exception as error:
                # One message alone: the frame says where the next one begins.  Any error, for one
                # that is nested deeply enough is a `RecursionError`, and wrong UTF-8 yet another.
                logger.warning("a JSON-RPC message is left out: %s", error)
                continue
            self._take(message)

    def _take(self, message: _Message) -> None:
        if not message.method:
            self._take_answer(message)
        elif message.id is None:
            self._take_notification(message)
        else:
            self._take_request(message)

    def _take_answer(self, message: _Message) -> None:
        if message.id is None and message.error is not None:
            self._fail_all(message.error)
            return
        answer = self._waiting.get(message.id) if isinstance(message.id, int) else None
        # None: an answer to what was given up, or to nothing that we asked.
        if answer is None or answer.done():
            return
        if (error := message.error) is not None:
            answer.set_exception(ErrorAnswer(error.code, error.message, error.data))
        else:
            has_result = message.result is not msgspec.UNSET
            answer.set_result(message.result if has_result else msgspec.Raw(b"null"))  # type: ignore[arg-type]

    def _fail_all(self, error: _Error) -> None:
        """Take an error that names no request: the other end did not understand one of ours, and
        cannot say which."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ErrorAnswer(error.code, error.message, error.data))

    def _take_notification(self, message: _Message) -> None:
        if message.method == self._cancel.method:
            self._take_back(message.params)
        handler = self._handlers.get(message.method)
        if handler is None:
            return
        try:
            handler(message.params)
        except Exception as error:
            logger.warning("%s could not be taken in: %s", message.method, error)

    def _take_back(self, params: msgspec.Raw) -> None:
        try:
            named = msgspec.json.decode(params, type=dict[str, Any]).get(self._cancel.key)
        except Exception as error:  # as in `feed`
            logger.warning("%s could not be taken in: %s", self._cancel.method, error)
            return
        scope = self._answering.get(named) if isinstance(named, int | str) else None
        if scope is not None:
            scope.cancel()

    def _take_request(self, message: _Message) -> None:
        # Every request gets an answer: a server may wait for one before it does anything else.
        try:
            handler = self._handlers.get(message.method)
            if handler is None:
                raise UnknownMethod(f"{message.method} is not known here")
            result = handler(message.params)
        except Exception as error:
            self._send({"id": message.id, **_error_of(message.method, error)})
            return
        if not isinstance(result, Awaitable):
            self._send({"id": message.id, "result": result})
            return
        assert self._start_task is not None, "a handler that waits needs a task"
        # Here, because it may be taken back before the task runs.
        scope = self._answering[message.id] = anyio.CancelScope()
        self._start_task(lambda: self._answer_later(message, result, scope))

    async def _answer_later(
        self, message: _Message, result: Awaitable[Any], scope: anyio.CancelScope
    ) -> None:
        answer: dict[str, Any] | None = None
        try:
            with scope:
                answer = {"result": await result}
        except Exception as error:
            answer = _error_of(message.method, error)
        finally:
            if self._answering.get(message.id) is scope:
                del self._answering[message.id]
        # None: it was taken back, and the other end wants no answer any more.
        if answer is not None and not self._closed:
            self._send({"id": message.id, **answer})

    # -- the end

    def close(self, why: str) -> None:
        """Fail what waits, and what is asked from now on; the first reason stays."""
        if self._closed:
            return
        self._closed = why or "the connection is closed"
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(PeerClosed(self._closed))
                # Whoever waited may be gone by now; then no one else asks for it.
                answer.exception()


def _read_by(kind: Callable[[msgspec.Raw], T], raw: msgspec.Raw) -> T:
    try:
        return kind(raw)
    except msgspec.ValidationError:
        raise
    except Exception as error:
        # As in `feed`: wrong UTF-8, or nested too deeply.
        raise msgspec.ValidationError(f"it cannot be read ({type(error).__name__})") from error


def _error_of(method: str, error: Exception) -> dict[str, Any]:
    if isinstance(error, UnknownMethod):
        return {"error": {"code": METHOD_NOT_FOUND, "message": str(error)}}
    logger.warning("%s could not be answered: %s", method, error)
    return {"error": {"code": INTERNAL_ERROR, "message": type(error).__name__}}
