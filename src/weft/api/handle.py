"""The base of `Session`: from an id to the port of the session that has it.

A handle is an id and the way to wherever the session lives.  If the session was unloaded it comes
back with the next call, and if another process owns it, that process is asked.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from weft.api.options import MessageOptions, refuse_unknown
from weft.errors import (
    Owned,
    OwnerLost,
    SessionInterrupted,
    SessionStopped,
    StoreError,
    UsageError,
    WeftError,
)
from weft.ids import InputId, SessionId, new_id
from weft.runtime.ports.local import UNLOADED
from weft.runtime.session_host import SessionHost
from weft.session import (
    AbortTurn,
    AttachClient,
    ChangeSetting,
    Command,
    ContinueTurn,
    DetachClient,
    SendPrompt,
    SessionPort,
    Subscription,
)

LARGEST_NUMBER: Final = 2**63 - 1
"""What a database takes for a number."""

T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Command[Any])

_NOT_REMEMBERED = (AttachClient, DetachClient, AbortTurn)
"""Commands that may be sent twice as they are: they are about who is there, or about one turn."""


class CarriedCommand(msgspec.Struct, Generic[CommandT, T], frozen=True):
    """A command that was carried out."""

    port: SessionPort
    """By whom."""
    command: CommandT
    """As it was sent, to be sent again under the same id."""
    answer: T


def resumed(command: CommandT) -> CommandT:
    """The command as it is sent again after the owner was lost: a turn that it began goes on."""
    if isinstance(command, SendPrompt | ContinueTurn):
        return msgspec.structs.replace(command, resume=True)
    return command


async def _call(port: SessionPort, command: Command[T]) -> T:
    return await port.call(command)


class SessionBase:
    """What the sections of `Session` share: an id, and the port of the session that has it."""

    def __init__(
        self, session_id: SessionId, host: SessionHost, port: SessionPort | None = None
    ) -> None:
        self.id = session_id
        self._host = host
        self._port_now = port
        self._client = ""
        self._role: Literal["viewer", "driver"] = "viewer"
        self.driver = ""
        """The client that drove when this handle attached; empty when none did."""
        # Weak, so that leaving a loop is enough to end its subscription: only the loop holds it.
        self._subscriptions: list[weakref.ref[Subscription]] = []

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    async def _set(self, name: str, value: Any, input_id: str | None = None) -> None:
        await self._call(ChangeSetting(name=name, value=value, **self._by(input_id)))

    def _by(self, input_id: str | None) -> dict[str, Any]:
        """The client that sends a command, and the id under which a repeat is carried out once."""
        return {"client": self._client, "input_id": input_id_of(input_id)}

    async def _port(self) -> SessionPort:
        if self._port_now is None or not self._port_now.is_open:
            port = await self._host.port(self.id)
            if self._client:
                # The session has come back without its clients: who watched before, watches again.
                await port.call(AttachClient(role=self._role, client=self._client))
            self._port_now = port
        # A session that got hooks while it was open is reached through another port from then on.
        return self._host.running(self.id) or self._port_now

    async def _call(self, command: Command[T]) -> T:
        return (await self._carry(command, _call)).answer

    async def _carry(
        self, command: CommandT, way: Callable[[SessionPort, CommandT], Awaitable[T]]
    ) -> CarriedCommand[CommandT, T]:
        """Have a command carried out, wherever the session lives by then.

        Raises:
            SessionInterrupted: a process that does not answer any more may have started the turn,
                or may yet.
        """
        may_have_begun = False
        while True:
            try:
                port = await self._port()
            except WeftError as error:
                # Of any kind: an owner that was suspended in the middle of a commit has the whole
                # store locked.
                self._interrupt(command, error, may_have_begun)
                raise
            if not port.lives_here:
                command = self._repeatable(command)
            try:
                return CarriedCommand(port, command, await way(port, command))
            except (Owned, StoreError) as error:
                self._interrupt(command, error, may_have_begun)
                raise
            except SessionStopped:
                # A session that is unloaded just now has not taken the command, and comes back for
                # it.
                if port.is_open or await port.ended() != UNLOADED:
                    raise
            except OwnerLost as error:
                # Whether it was carried out is not known; under its id it is so once at most.
                if port.is_open:
                    raise
                may_have_begun = may_have_begun or error.was_sent
                command = resumed(command)

    def _interrupt(self, command: Command[Any], error: WeftError, may_have_begun: bool) -> None:
        """Raise what is true of a message that lies in the socket of a suspended process: it was
        sent, and will be read when that goes on.
        """
        if may_have_begun and isinstance(command, SendPrompt | ContinueTurn):
            raise SessionInterrupted(self.id, str(error)) from error

    def _repeatable(self, command: CommandT) -> CommandT:
        """The command with an id, so that it can be sent again when its answer is lost."""
        if command.input_id is not None or isinstance(command, _NOT_REMEMBERED):
            return command
        made = InputId(new_id("inp", self._host.now()))
        return msgspec.structs.replace(command, input_id=made)

    def _options(self, options: MessageOptions) -> dict[str, Any]:
        """Options as the log stores them."""
        # First, and for None too: a name that is wrong would otherwise be dropped in silence.
        refuse_unknown(options, MessageOptions, "a message")
        kept: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        for name in kept.keys() & {"plan_model", "edit_model"}:
            kept[name] = str(self._host.model_named(kept[name]))
        if "model" in kept:
            named = self._host.model_named(kept["model"])
            kept["model"] = named.name
            if named.effort is not None:
                kept.setdefault("thinking", named.effort)
        if "tools" in kept:
            kept["tools"] = self._host.lend_tools(self.id, kept["tools"])
        if "schema" in kept:
            kept["schema"] = self._host.output_schema(kept["schema"]).schema
        return kept


# --- what callers give -------------------------------------------------------------------
#
# Types are no guard: what a caller hands over comes from a request or a file of theirs.  What could
# not be meant is refused here, before anything is done, with the name of what is wrong.


def input_id_of(given: str | None) -> InputId | None:
    """An id that a caller gave; None when it gave none.

    Raises:
        UsageError: it is none.
    """
    return InputId(text_of("input_id", given)) if given not in (None, "") else None


def text_of(what: str, given: object) -> str:
    """A text that a caller gave.

    Raises:
        UsageError: it is none, or cannot be stored.
    """
    if not isinstance(given, str):
        raise UsageError(f"{what} is a text, not {given!r:.80}")
    if given.isascii():
        return given
    from weft.store.text import is_storable  # few ids are of other letters: start-up time

    if not is_storable(given):
        raise UsageError(f"{what} is no text that has a UTF-8: {given!r:.80}")
    return given


def path_of(what: str, given: object) -> str:
    """A path that a caller gave.

    Raises:
        UsageError: no file could have it.
    """
    path = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(path, str):
        raise UsageError(f"a {what} is named by a path, not {given!r:.80}")
    try:
        is_name = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_name = False
    if not path or not is_name:
        raise UsageError(f"there is no {what} {path!r:.80}: nothing can be called so")
    return path


def number_of(what: str, given: object, *, least: int) -> int:
    """A whole number that a caller gave, as small as `least`.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(given, int) or isinstance(given, bool):
        raise UsageError(f"{what} is a whole number, not {given!r:.80}")
    if not least <= given <= LARGEST_NUMBER:
        raise UsageError(f"{what} is a number from {least} on, not {given!s:.40}")
    return given


def cursor_of(given: object) -> int | None:
    """The place in a log that a caller reads on from; None for its end.

    Raises:
        UsageError: it is none.
    """
    return None if given is None else number_of("a cursor, the `seq` of an event,", given, least=0)
