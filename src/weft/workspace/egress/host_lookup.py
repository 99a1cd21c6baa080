"""Names to addresses, once for each command: what a name led to when it was judged is where it
leads as long as the command runs (DNS rebinding)."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import anyio

LookUp: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]
SECONDS: Final = 20.0
_LOOPBACK: Final = ("127.0.0.1", "::1")
_MOST: Final = 512
"""Names that are remembered; a command that asks for more has them looked up again."""


class HostLookup:
    """The addresses of hosts, for one command."""

    def __init__(self, look_up: LookUp | None = None) -> None:
        self._look_up = look_up or looked_up
        self._known: dict[str, Sequence[str]] = {}
        self._locks: dict[str, anyio.Lock] = {}

    async def numbers(self, host: str) -> Sequence[str]:
        """The addresses of a host, as text.

        Raises:
            OSError: the name is not known, or no server answers.
        """
        if host == "localhost":
            return _LOOPBACK  # never asked for: a name server may say otherwise
        if host.startswith("[") or host.rpartition(".")[2].isdigit():
            return (host.strip("[]"),)
        if host in self._known:
            return self._known[host]
        # Fifty connections at once ask once.
        lock = self._locks.setdefault(host, anyio.Lock())
        try:
            return await self._asked_once(host, lock)
        finally:
            if not lock.locked():
                self._locks.pop(host, None)

    async def _asked_once(self, host: str, lock: anyio.Lock) -> Sequence[str]:
        async with lock:
            if host in self._known:
                return self._known[host]
            with anyio.move_on_after(SECONDS):
                found = await self._look_up(host)
                if len(self._known) < _MOST:
                    self._known[host] = found
                return found
        raise OSError(f"{host} is not found: no name server answers")


async def looked_up(host: str) -> Sequence[str]:
    """What the name servers of this machine say.

    In a thread of its own that is not waited for at the end: a lookup cannot be ended, and one that
    no server answers takes half a minute.
    """
    answers: queue.SimpleQueue[Sequence[str] | OSError] = queue.SimpleQueue()
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            answers.put(list(dict.fromkeys(str(each[4][0]) for each in found)))
        except OSError as error:
            answers.put(error)
        except UnicodeError as error:
            answers.put(OSError(str(error)))
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=ask, name="host lookup", daemon=True).start()
    await done.wait()
    answer = answers.get_nowait()
    if isinstance(answer, OSError):
        raise answer
    return answer
