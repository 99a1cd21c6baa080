"""One HTTP/1.1 connection: bytes out, one reply at a time in.

An `asyncio.Protocol` over llhttp, because this is the cheapest way there is to read a stream in
Python.  Everything here runs on the loop's thread.  What the body brings is buffered until it is
read; when a reader is slow the socket is not read on, so that the buffer stays bounded.  One timer
a reply watches for silence.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httptools

from weft.errors import ProviderUnavailable
from weft.transport.base import HttpReply, HttpTimeouts

if TYPE_CHECKING:  # few servers compress, and it costs start-up time
    import zlib

MAX_BUFFERED = 1024 * 1024
"""Bytes of a body that wait for a reader before the socket is no longer read."""
MAX_HEAD = 256 * 1024
"""Bytes that a reply's head may have."""

_FIRST = b"HTTP/"
"""How every reply begins."""


class HttpConnection(asyncio.Protocol):
    """A connection that can be asked again and again, one request at a time."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reply: StreamedReply | None = None
        self.is_open = False
        self.requests = 0
        self.idle_since = 0.0

    # --- what asyncio tells us ---------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._reply is None:
            self.close()  # unasked bytes could be taken for the next request's answer
            return
        self._reply.feed(data)

    def eof_received(self) -> bool:
        if self._reply is not None:
            self._reply.ended()
        # False lets asyncio close our side too: HTTP/1.1 has no use for a connection that is half
        # closed.
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._reply is not None:
            self._reply.lost(exc)

    # --- what the client does ----------------------------------------------------------

    def send(self, head: bytes, body: bytes, timeouts: HttpTimeouts) -> StreamedReply:
        """Write a request; what comes back is the reply's."""
        assert self._transport is not None
        self.requests += 1
        if body:
            # One call: a head that is written alone leaves as a packet of its own.
            self._transport.writelines((head, body))
        else:
            self._transport.write(head)
        # After that: the first reply loads the parser, while the server is at work.
        self._reply = StreamedReply(self, self._host, self._loop, timeouts)
        return self._reply

    def release(self) -> bool:
        """The reader is done.  Says whether the connection can be used again; closes it if not."""
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.stop_watching()
            # Only after the last byte of the reply: a rest in the socket would be read as the
            # beginning of the next one.
            if reply.is_complete and reply.keeps_alive and self.is_open:
                # A slow reader may have left the socket paused; asyncio would then not notice that
                # the server closes it while it is idle.
                self.resume()
                self.idle_since = self._loop.time()
                return True
        self.close()
        return False

    def close(self) -> None:
        """Close at once, without waiting for anything that is still to be sent."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Stop reading the socket until `resume`."""
        if self._transport is not None and self.is_open:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read the socket again."""
        if self._transport is not None and self.is_open:
            self._transport.resume_reading()


class StreamedReply(HttpReply):
    """One reply in the making.  Also what the parser calls back."""

    def __init__(
        self,
        connection: HttpConnection,
        host: str,
        loop: asyncio.AbstractEventLoop,
        timeouts: HttpTimeouts,
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_complete = False
        self.keeps_alive = False
        self.got_bytes = False
        self.fell_silent = False
        self._connection = connection
        self._host = host
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._has_head = False
        self._head_bytes = 0
        self._first = b""
        # Framed: the body has an end of its own. Over: what arrives now is a second reply, which
        # was not asked for.
        self._is_framed = False
        self._is_over = False
        self._unzip: zlib._Decompress | None = None
        self._has_packed = False
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._is_paused = False
        self._error: ProviderUnavailable | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timeouts = timeouts
        self._has_body = False
        self._last = loop.time()
        # By the shorter one: which of the two holds is known only when the timer fires.
        first = min(timeouts.first_byte, timeouts.idle)
        self._timer: asyncio.TimerHandle | None = loop.call_later(first, self._watch)

    # --- reading -----------------------------------------------------------------------

    async def head(self) -> None:
        """Wait until status and headers are there."""
        while not self._has_head:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def read(self) -> bytes:
        """The next bytes of the body, or none at its end."""
        # The buffer before the error: text that came before a break belongs to the caller.
        while not self._buffer:
            if self._error is not None:
                raise self._error
            if self.is_complete:
                return b""
            await self._wait()
        data = self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer)
        self._buffer.clear()
        self._buffered = 0
        if self._is_paused:
            self._is_paused = False
            # While the socket was paused the silence was ours, not the server's.
            self._last = self._loop.time()
            self._connection.resume()
        return data

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        # A reader that was cancelled in this very step leaves a future that is done already; to set
        # its result again would raise.
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- bytes arrive ------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take bytes from the socket."""
        self.got_bytes = True
        if self.is_complete:
            self.keeps_alive = False  # more bytes than announced: do not reuse the connection
            return
        if not self._has_head:
            self._head_bytes += len(data)
            self._first += data[: len(_FIRST) - len(self._first)]
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._garbled(error)
        # Bytes of the head are no sign of life: a server that sends it byte by byte would otherwise
        # hold the request for ever.
        if self._has_head:
            self._last = self._loop.time()
        elif self._head_bytes > MAX_HEAD:
            self.fail(f"{self._host} sent over {MAX_HEAD} bytes of headers", None)
        self._wake()

    def _garbled(self, error: httptools.HttpParserError) -> None:
        if self.is_complete:
            self.keeps_alive = (
                False  # what follows the answer is nonsense; the answer itself was sound
            )
        elif self._first.startswith(_FIRST[: len(self._first)]):
            self.fail(f"{self._host} sent something that is not HTTP", error)
        else:
            self.fail(f"{self._host} does not speak HTTP; is the base URL right?", error)
            # Another kind of server listens there, and will on the next try.
            if self._error is not None:
                self._error.retryable = False

    def ended(self) -> None:
        """The server has closed its side."""
        if self._has_head and not self._is_framed:
            # without a length, the end of the connection is the end of the body
            self.is_complete = self._is_unpacked()
            self.keeps_alive = False
            self._wake()
            return
        self.lost(None)

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self.is_complete:
            self.keeps_alive = False
            return
        if not self._has_head:
            self.fail(f"{self._host} closed the connection without an answer", error)
        elif self._is_framed or error is not None:
            self.fail(
                f"the connection to {self._host} broke off in the middle of the answer", error
            )
        else:
            self.ended()

    def fail(self, message: str, cause: Exception | None) -> None:
        """Give up; the reader gets what came before, then the error."""
        if self._error is None:
            self._error = ProviderUnavailable(message)
            self._error.timed_out = self.fell_silent
            self._error.__cause__ = cause
        self.keeps_alive = False
        self._connection.close()
        self._wake()

    def stop_watching(self) -> None:
        """The reader is gone: stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Fail if nothing came for too long; bytes that wait for a slow reader are no silence."""
        if self.is_complete or self._error is not None:
            self._timer = None
            return
        # Checked only when the timer fires: to move a timer at every chunk would be a heap
        # operation for every chunk of a stream.
        if self._is_paused or self._buffer:
            self._last = self._loop.time()
        quiet = self._loop.time() - self._last
        limit = self._timeouts.idle if self._has_body else self._timeouts.first_byte
        if quiet >= limit:
            self._timer = None
            self.fell_silent = True
            has_begun = self.got_bytes and not self._has_head
            what = "gave no answer within" if has_begun else "sent nothing for"
            self.fail(f"{self._host} {what} {limit:g} seconds", None)
            return
        # The shorter limit may begin at any moment before the longer one is reached.
        wait = min(limit - quiet, self._timeouts.idle)
        self._timer = self._loop.call_later(wait, self._watch)

    # --- what the parser tells us ------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.is_complete:
            self._is_over = True
            self.keeps_alive = False  # an answer to nothing that was asked

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_over:
            return
        # RFC 9110 leaves bytes above ASCII in a value to the application; Latin-1 takes every byte
        # and so cannot fail on a hostile header.
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._is_over:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self.headers.clear()  # "continue" and hints; the answer is still to come
            self._last = self._loop.time()
            return
        self.status = status
        headers = self.headers
        # RFC 9112, 6.3: chunks, a length, or a status that has no body. Everything else ends with
        # the connection, and then one that is closed too early cannot be told from the end.
        chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._is_framed = chunked or "content-length" in headers or status in (204, 304)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding in ("gzip", "deflate", "x-gzip"):
            # We ask for identity, but some proxies compress all the same. 32 + 15: zlib tells gzip
            # from deflate by the header.
            import zlib  # as above

            self._unzip = zlib.decompressobj(wbits=47)
        elif encoding not in ("identity", ""):
            self.fail(
                f"{self._host} answered in the encoding {encoding!r}, which was not asked for", None
            )
            return
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        if self._is_over:
            return
        self._has_body = True
        if self._unzip is not None:
            self._inflate(body)
            return
        self._keep(body)

    def on_message_complete(self) -> None:
        if not self._has_head or self._is_over:
            return  # of an informational reply
        self.is_complete = self._is_unpacked()
        self.keeps_alive = self.is_complete and self._parser.should_keep_alive()

    def _keep(self, body: bytes) -> None:
        self._buffer.append(body)
        self._buffered += len(body)
        if self._buffered > MAX_BUFFERED and not self._is_paused:
            self._is_paused = True
            self._connection.pause()

    def _is_unpacked(self) -> bool:
        """Whether nothing is missing of what was compressed; fails the reply if it is."""
        # A body of no bytes at all is whole: servers name an encoding for empty bodies too.
        if self._unzip is None or self._unzip.eof or not self._has_packed:
            return True
        self.fail(f"{self._host} sent a damaged compressed body", None)
        return False

    def _inflate(self, body: bytes) -> None:
        """Decompress, but never more at once than twenty times the buffer: a bomb ends the
        reply.
        """
        import zlib  # as above

        assert self._unzip is not None
        self._has_packed = True
        try:
            # With a limit, zlib keeps what it did not decompress in `unconsumed_tail`.
            plain = self._unzip.decompress(body, 20 * MAX_BUFFERED)
        except zlib.error as error:
            self.fail(f"{self._host} sent a damaged compressed body", error)
            return
        if self._unzip.unconsumed_tail:
            self.fail(f"{self._host} sent a compressed body that expands beyond all limits", None)
        if plain:
            self._keep(plain)
