"""A wait for a port: until a program of this machine listens on it."""

from __future__ import annotations

import socket
from typing import Final

import anyio.to_thread

from weft.events import WaitSubject

PACE_SECONDS: Final = 1.0
"""Between two looks."""
_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS: Final = "0A"
"""The state of a socket that listens, in the kernel's tables."""
_CONNECT_SECONDS: Final = 1.0


def port_subject(port: int) -> WaitSubject:
    """What is waited for."""
    return WaitSubject(kind="port", text=f"port {port}", place=str(port))


async def port_look(subject: WaitSubject) -> bool:
    """Whether something listens there."""
    return await anyio.to_thread.run_sync(is_listened_on, int(subject.place))


def is_listened_on(port: int) -> bool:
    """By the kernel's tables: a program that is connected to would see a client that says
    nothing.  Where there are none, by a connection.
    """
    found = [_listening(table) for table in _TABLES]
    known = [ports for ports in found if ports is not None]
    return any(port in ports for ports in known) if known else _answers(port)


def _listening(table: str) -> set[int] | None:
    try:
        with open(table, encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
    except OSError:
        return None
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS}


def _answers(port: int) -> bool:
    for host in ("127.0.0.1", "::1"):
        try:
            socket.create_connection((host, port), _CONNECT_SECONDS).close()
        except OSError:
            continue
        return True
    return False
