"""Readers of one session's events, all in a process of their own that does next to nothing besides:
what is measured is the server, not its clients.

`python -m bench.event_readers`, told on its input what to read, says `ready` when all have joined,
and what they saw when each has seen the end of a turn.
"""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
AT = re.compile(rb'"kind":"text_delta"[^}]*?"at":([0-9.]+)')
END = b'"kind":"turn_finished"'
NAP_SECONDS = 0.002
"""A pause after each look: else the process is woken for each single reader."""


class ReaderOrder(NamedTuple):
    """What to read, and by how many."""

    port: int
    token: str
    session: str
    streams: int = 0
    """Over server-sent events."""
    sockets: int = 0
    """Over WebSockets, as pages do."""
    stalled: int = 0
    """Streams that are joined and never read."""
    nap_seconds: float = NAP_SECONDS
    """Longer where it does not matter when they read."""


class Seen(NamedTuple):
    """What the readers of one kind saw: how late pieces were, in milliseconds."""

    chunks: int = 0
    p50: float = 0.0
    p99: float = 0.0


class ReaderReport(NamedTuple):
    """What all of them saw."""

    streams: Seen
    sockets: Seen


class ReaderProcess:
    """The process while it reads."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def report(self) -> ReaderReport:
        """Wait until each reader has seen the end of the turn."""
        assert self._process.stdout is not None
        found = json.loads(self._process.stdout.readline())
        return ReaderReport(Seen(*found["streams"]), Seen(*found["sockets"]))


@contextmanager
def event_readers(order: ReaderOrder) -> Iterator[ReaderProcess]:
    """The readers in a process, all of them joined."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.event_readers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ready\n"
            yield ReaderProcess(process)
        finally:
            process.kill()


def main() -> None:
    """Join, read, and tell."""
    order = ReaderOrder(*json.loads(sys.stdin.readline()))
    streams = [_stream(order) for _ in range(order.streams)]
    sockets = [_socket(order) for _ in range(order.sockets)]
    stalled = [_stream(order, after=0) for _ in range(order.stalled)]
    print("ready", flush=True)
    links = dict.fromkeys(streams, "streams") | dict.fromkeys(sockets, "sockets")
    late, chunks = _read(links, order.nap_seconds)
    report = {kind: _seen(late[kind], chunks[kind]) for kind in late}
    print(json.dumps(report), flush=True)
    for link in (*streams, *sockets, *stalled):
        link.close()


def _stream(order: ReaderOrder, after: int | None = None) -> socket.socket:
    query = "" if after is None else f"?after={after}"
    head = (
        f"GET /api/sessions/{order.session}/events{query} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{order.port}\r\nAuthorization: Bearer {order.token}\r\n\r\n"
    )
    link = socket.create_connection(("127.0.0.1", order.port))
    link.sendall(head.encode())
    assert b" 200 " in link.recv(4096)
    return link


def _socket(order: ReaderOrder) -> socket.socket:
    here = f"127.0.0.1:{order.port}"
    head = (
        f"GET /api/ws HTTP/1.1\r\nHost: {here}\r\nOrigin: http://{here}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n"
        f"Sec-WebSocket-Protocol: weft.v1, bearer.{order.token}\r\n\r\n"
    )
    link = socket.create_connection(("127.0.0.1", order.port))
    link.sendall(head.encode())
    assert b" 101 " in link.recv(4096)
    wish = json.dumps({"follow": order.session}).encode()
    link.sendall(bytes((0x81, 0x80 | len(wish), 0, 0, 0, 0)) + wish)
    return link


def _read(
    links: dict[socket.socket, str], nap_seconds: float
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """How late the first piece of each chunk was, and how many chunks there were."""
    late: dict[str, list[float]] = {"streams": [], "sockets": []}
    chunks = {"streams": 0, "sockets": 0}
    poll = select.epoll()
    known = {link.fileno(): (link, kind) for link, kind in links.items()}
    for number in known:
        poll.register(number, select.EPOLLIN)
    while known:
        for number, _ in poll.poll():
            link, kind = known[number]
            chunk, now = link.recv(1 << 18), time.time()
            chunks[kind] += 1
            if found := AT.search(chunk):
                late[kind].append(1000 * (now - float(found[1])))
            if not chunk or END in chunk:
                poll.unregister(number)
                del known[number]
        time.sleep(nap_seconds)
    return late, chunks


def _seen(late: list[float], chunks: int) -> Seen:
    ordered = sorted(late)
    if not ordered:
        return Seen(chunks)
    return Seen(chunks, ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)])


if __name__ == "__main__":
    main()
