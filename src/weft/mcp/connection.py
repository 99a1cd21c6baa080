"""A connection to an MCP server: requests with their answers, and notifications.

`StdioConnection` speaks to a program through its pipes; `http_connection` to an address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

import anyio
import msgspec

from weft.errors import WeftError
from weft.jsonrpc import CancelNotice, JsonRpcPeer, LineDecoder, PeerClosed, line_framed
from weft.workspace import PipedProgram

HeaderPairs: TypeAlias = tuple[tuple[str, str], ...]
LONGEST: Final = 86_400.0
"""Seconds after which a request is given up by the connection; callers have limits of their own."""


class NeedsLogin(WeftError):
    """The server wants to know who we are."""


class SessionGone(WeftError):
    """The server does not know our session any more; what was asked was not carried out."""


class AnswerLost(PeerClosed):
    """The answer to one request broke off; the connection goes on."""


class McpConnection(Protocol):
    """One connection; whoever made it runs `run` as a task, and waits for its end."""

    mirrors_arguments: bool
    """Whether what a schema asks for is repeated in headers."""
    takes_requests: bool
    """Whether the server may ask us something of its own."""

    async def run(self) -> str:
        """Carry what comes until the other end is gone; returns why it ended.

        Raises:
            NeedsLogin: it wants a login.
            SessionGone: it has forgotten us.
        """
        ...

    async def request(
        self, method: str, params: dict[str, Any], headers: HeaderPairs = ()
    ) -> msgspec.Raw:
        """The answer.  A cancel tells the other end that nobody waits any more.

        Raises:
            ErrorAnswer: it is an error.
            PeerClosed: the connection ends first.
            NeedsLogin: it wants a login.
            SessionGone: it has forgotten us.
        """
        ...

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Tell something; what cannot be sent is dropped."""
        ...

    def use_version(self, version: str) -> None:
        """The version of the protocol that was agreed on."""
        ...

    def close(self, why: str) -> None:
        """Fail what waits, and what is asked from now on."""
        ...

    async def end(self) -> None:
        """Take leave of the other end, after `close`; the caller has a limit for it."""
        ...


MCP_CANCEL: Final = CancelNotice(
    "notifications/cancelled", "requestId", "the caller does not wait any more"
)
"""How either end tells the other that nobody waits for an answer any more."""


class StdioConnection(McpConnection):
    """A connection through the pipes of a program."""

    mirrors_arguments = False
    takes_requests = True

    def __init__(
        self,
        program: PipedProgram,
        handlers: Mapping[str, Callable[[msgspec.Raw], Any]],
        start_task: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._program = program
        self._peer = JsonRpcPeer(
            handlers,
            decoder=LineDecoder(),
            encode=line_framed,
            cancel=MCP_CANCEL,
            start_task=start_task,
        )
        start_task(self._write)

    async def _write(self) -> None:
        try:
            await self._peer.write(self._program.send)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            # It may go on saying something; what it is asked would wait for its whole time.
            self._peer.close("it does not take what it is sent")

    async def run(self) -> str:
        while chunk := await self._program.receive():
            self._peer.feed(chunk)
        return "ended"

    async def request(
        self, method: str, params: dict[str, Any], headers: HeaderPairs = ()
    ) -> msgspec.Raw:
        return await self._peer.request(method, params, msgspec.Raw, LONGEST)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        if not self._peer.closed:
            self._peer.notify(method, params)

    def use_version(self, version: str) -> None:
        pass  # only HTTP repeats it

    def close(self, why: str) -> None:
        self._peer.close(why)

    async def end(self) -> None:
        pass  # its program is ended by whoever started it
