"""Parser for server-sent events, wherever the bytes happen to be cut."""

from __future__ import annotations

from weft.errors import ProviderUnavailable

MAX_EVENT = 32 * 1024 * 1024
"""The longest event that is waited for, in bytes."""
MAX_ID = 4096
"""Bytes of the id of an event; it comes back as a header."""


class EventParser:
    """Feed it bytes, get events: pairs of name and data.

    Comments and events without data are left out.
    """

    def __init__(self, max_event: int = MAX_EVENT) -> None:
        self.last_id = ""
        """Of the last event that had one: where a stream goes on that can be resumed."""
        self.retry_ms: int | None = None
        """What the server asked to wait before that, in milliseconds."""
        self._buffer = bytearray()
        self._held_return = False
        self._max_event = max_event
        self._at_start = True

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The events that these bytes complete.

        Raises:
            ProviderUnavailable: an event does not end.
        """
        if self._at_start and data:
            self._at_start = False
            # The standard (WHATWG HTML, server-sent events) allows one byte order mark at the
            # start.
            data = data.removeprefix(b"\xef\xbb\xbf")
        if self._held_return or b"\r" in data:
            data = self._only_newlines(data)
        buffer = self._buffer
        # The blank line may be cut in two: its first newline is then the last byte of the buffer.
        scan = max(0, len(buffer) - 1)
        buffer += data
        events: list[tuple[bytes, bytes]] = []
        begin = 0
        while (end := buffer.find(b"\n\n", scan)) >= 0:
            self._add_event(bytes(buffer[begin:end]), events)
            begin = scan = end + 2
        del buffer[:begin]
        # The only bound on what a server without a blank line can make us hold.
        if len(buffer) > self._max_event:
            raise ProviderUnavailable(f"the stream sent an event of over {self._max_event} bytes")
        return events

    def finish(self) -> list[tuple[bytes, bytes]]:
        """The event that the end of the stream completes, for servers that forget the last blank
        line.
        """
        events: list[tuple[bytes, bytes]] = []
        # Against the standard, which drops an event without its blank line: several servers close
        # right after the last one.
        self._add_event(bytes(self._buffer), events)
        self._buffer.clear()
        return events

    def _only_newlines(self, data: bytes) -> bytes:
        """Line ends as `\\n`.  A return at the very end is held back: a newline may follow it."""
        if self._held_return:
            data = b"\r" + data
        self._held_return = data.endswith(b"\r")
        if self._held_return:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _add_event(self, block: bytes, events: list[tuple[bytes, bytes]]) -> None:
        if block.startswith(b"data: ") and b"\n" not in block:  # by far the most common
            events.append((b"", block[6:]))
            return
        name = b""
        data: bytes | None = None
        for line in block.split(b"\n"):
            if line.startswith(b"data:"):
                # One space after the colon is syntax; a second one is content.
                value = line[6:] if line[5:6] == b" " else line[5:]
                data = value if data is None else data + b"\n" + value
            elif line.startswith(b"event:"):
                name = line[6:].strip()
            else:
                self._take_field(line)
        if data is not None:
            events.append((name, data))

    def _take_field(self, line: bytes) -> None:
        """What serves reconnecting."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        # A NUL in an id makes it none (WHATWG HTML); what is not ASCII cannot stand in a header.
        if field == b"id" and value.isascii() and b"\0" not in value and len(value) <= MAX_ID:
            self.last_id = value.decode("ascii")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
