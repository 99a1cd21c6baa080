"""Bytes from one socket to another in one buffer: a slow reader holds its sender up."""

from __future__ import annotations

import socket
from contextlib import suppress

import anyio
import anyio.lowlevel

from weft.workspace.egress.read_pace import ReadPace

CHUNK = 64 * 1024


async def received(
    source: socket.socket, most: int = CHUNK, *, pace: ReadPace | None = None
) -> bytes:
    """What comes next; nothing at the end."""
    # A socket that always has more to give must not keep the rest of the program waiting.
    await anyio.lowlevel.checkpoint()
    while True:
        try:
            data = source.recv(most)
            break
        except BlockingIOError:
            await anyio.wait_readable(source)
    if pace is not None:
        await pace.read(len(data))
    return data


async def sent(target: socket.socket, data: bytes) -> None:
    """Send all of it."""
    await anyio.lowlevel.checkpoint()
    left = memoryview(data)
    while left:
        try:
            left = left[target.send(left) :]
        except BlockingIOError:
            await anyio.wait_writable(target)


async def accepted(listener: socket.socket) -> socket.socket:
    """The next connection."""
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            await anyio.wait_readable(listener)
        else:
            connection.setblocking(False)
            return connection


async def pour(source: socket.socket, target: socket.socket, pace: ReadPace | None = None) -> None:
    """Send on what comes, to its end, and end the other side as well."""
    while data := await received(source, pace=pace):
        await sent(target, data)
    with suppress(OSError):  # the other side has ended by itself
        target.shutdown(socket.SHUT_WR)


async def pour_or_cut(
    source: socket.socket, target: socket.socket, pace: ReadPace | None = None
) -> None:
    """The same; where one of the two breaks off, both end."""
    try:
        await pour(source, target, pace)
    except OSError:
        cut(source, target)


def cut(*sockets: socket.socket) -> None:
    """End connections at once; what waits for them goes on."""
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


async def connected(number: str, port: int) -> socket.socket:
    """A connection to an address, which is not looked up again.

    Raises:
        OSError: there is none.
    """
    family = socket.AF_INET6 if ":" in number else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        with suppress(BlockingIOError):
            opened.connect((number, port))
        await anyio.wait_writable(opened)
        if code := opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, "cannot connect")
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        opened.close()
        raise
    return opened
