"""The first message of a TLS connection, as far as it says which server is meant."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 16 * 1024
"""A longer one is refused; those of programs have 2 KB."""
_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0


class NoHello(ValueError):
    """It is no such message."""


class IncompleteHello(Exception):
    """More of it has to come."""


class _Bytes:
    """Fields of a message, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise NoHello
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> _Bytes:
        """A field whose length stands before it."""
        return _Bytes(self.take(self.number(size)))


def looks_like_hello(data: bytes) -> bool:
    """Whether a connection that begins so is one of TLS."""
    return data[:1] == bytes([_HANDSHAKE])


def server_name(data: bytes) -> str:
    """The server that a client means (SNI); empty where it does not say.

    Raises:
        IncompleteHello: more has to come.
        NoHello: it is none, or names several servers.
    """
    return named_server(HelloRecords().message(data))


def named_server(message: bytes) -> str:
    """The same, of a message that was put together.

    Raises:
        NoHello: it is none, or names several servers.
    """
    hello = _Bytes(message)
    hello.take(2 + 32)  # version, random
    hello.vector(1)  # session
    hello.vector(2)  # ciphers
    hello.vector(1)  # compression
    if not hello.left:
        return ""
    names: list[str] = []
    extensions = hello.vector(2)
    while extensions.left:
        kind, body = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            names += _names(body.vector(2))
    if len(names) > 1 or hello.left:
        raise NoHello
    return names[0] if names else ""


def _names(listed: _Bytes) -> list[str]:
    found = []
    while listed.left:
        kind, name = listed.number(1), listed.vector(2)
        if kind != _HOST_NAME:
            raise NoHello
        found.append(name.take(name.left).decode("ascii", "replace"))
    return found


class HelloRecords:
    """The records that the message comes in.  Each is read once, however small the pieces are in
    which a client sends them."""

    def __init__(self) -> None:
        self._at = 0
        self._message = bytearray()

    def message(self, data: bytes | bytearray) -> bytes:
        """The message; `data` begins with what was given before.

        Raises:
            IncompleteHello: more has to come.
            NoHello: it is none.
        """
        while not self._is_whole:
            head = data[self._at : self._at + 5]
            if head[:1] not in (b"", bytes([_HANDSHAKE])) or head[1:2] not in (b"", b"\x03"):
                raise NoHello
            size = int.from_bytes(head[3:5])
            if len(head) == 5 and not size:
                raise NoHello
            if len(head) < 5 or len(data) < self._at + 5 + size:
                raise IncompleteHello
            self._message += data[self._at + 5 : self._at + 5 + size]
            self._at += 5 + size
            if self._message[0] != _CLIENT_HELLO:
                raise NoHello
        return bytes(self._message[4 : 4 + int.from_bytes(self._message[1:4])])

    @property
    def _is_whole(self) -> bool:
        size = len(self._message)
        return size >= 4 and size >= 4 + int.from_bytes(self._message[1:4])
