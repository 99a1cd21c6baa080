"""One MCP server as it lives: started when it is first needed, listed, called, and started again
when it crashed, but never in a loop.

A server that is slow is late and not failed: whoever waits for it gets a sentence after a while,
and its tools come when it is there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from weft.actors import RestartBudget
from weft.clock import Clock
from weft.errors import FinalToolError, RetryableToolError, ToolError, UsageError, WeftError
from weft.jsonrpc import ErrorAnswer, PeerClosed
from weft.mcp.client import CallTerms, CallTimeout, McpClient, WrongAnswer
from weft.mcp.connection import AnswerLost, McpConnection, NeedsLogin, SessionGone
from weft.mcp.tool_pins import ServerRecord, read_list, without_hidden
from weft.workspace import PipedProgram

logger = logging.getLogger(__name__)

ServerState: TypeAlias = Literal["idle", "starting", "late", "ready", "failed", "needs_login"]
Handlers: TypeAlias = Mapping[str, Callable[[msgspec.Raw], Any]]
StartTask: TypeAlias = Callable[[Callable[[], Awaitable[None]]], None]

GIVE_UP_SECONDS: Final = 300.0
"""How long a server may take to start at all: the first time it may be downloaded."""
STOP_SECONDS: Final = 2.0
"""How long it may take to end when its input ends, and again when it is asked to by a signal; then
it is killed."""
LEAVE_SECONDS: Final = 1.0
"""How long a server that is reached by an address may take to end our session."""
SETTLE_SECONDS: Final = 3.0
"""How long the end of a connection may take to be known; longer than a program may take to end."""
RESTARTS: Final = 3
RESTART_SECONDS: Final = 300.0
PAUSES: Final = (0.0, 0.0, 1.0, 4.0)
"""Seconds before each start in a row that follows a crash."""
LIST_EVERY_SECONDS: Final = 1.0
"""Between two lists that were asked for because the server said that its list is another."""
MOST_SAID: Final = 2_000


class ServerLink(msgspec.Struct, frozen=True):
    """An open connection, and the program behind it where we started one."""

    connection: McpConnection
    program: PipedProgram | None = None


LinkOpener: TypeAlias = Callable[[Handlers, StartTask], Awaitable[ServerLink]]


class McpServer:
    """A server that sessions share."""

    def __init__(
        self,
        name: str,
        root: str,
        record: ServerRecord,
        open_link: LinkOpener,
        start_task: Callable[[Callable[[], Awaitable[None]], str], None],
        *,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
        mask: Callable[[str], str] = lambda text: text,
        give_up_seconds: float = GIVE_UP_SECONDS,
    ) -> None:
        """`open_link` starts or reaches it.  `start_task` runs what must outlive the caller;
        `changed` is called when its record has; `mask` takes secrets out of what it says."""
        self.name = name
        self.record = record
        self._root = root
        self._open_link = open_link
        self._start_task = start_task
        self._changed = changed
        self._mask = mask
        self._give_up_seconds = give_up_seconds
        self._budget = RestartBudget(RESTARTS, RESTART_SECONDS, clock)
        self._crashes = 0
        self._life: _Life | None = None
        self.state: ServerState = "idle"
        self.why = ""
        """Why it is not ready; empty before its first start."""
        self.left_out: list[str] = []
        """Tools of its list that cannot be offered, and why."""

    @property
    def pid(self) -> int | None:
        """The number of its process, where it runs."""
        program = self._life.program if self._life is not None else None
        return program.pid if program is not None else None

    def start(self) -> None:
        """Have it started, unless it runs or has used up its restarts."""
        if self._life is not None and not self._life.ended.is_set():
            return
        if self._crashes and not self._budget.spend():
            self.state = "failed"
            return
        life = self._life = _Life(McpClient(self.name, self._root, self._list_is_other))
        self.state, self.why = "starting", ""
        self._start_task(lambda: self._run(life), f"MCP server {self.name}")

    async def ready_within(self, seconds: float) -> bool:
        """Start it where it does not run, and wait until it is ready; False when it takes longer,
        or fails."""
        life = self._life
        if life is not None and life.settled.is_set():
            # It is being ended: a moment later it can be started anew.
            with anyio.move_on_after(seconds):
                await life.ended.wait()
        self.start()
        life = self._life
        if life is not None:
            with anyio.move_on_after(seconds):
                await life.ready.wait()
        if self.state == "starting":
            self.state = "late"
        return self.state == "ready"

    async def call(
        self, tool: str, args: dict[str, Any], terms: CallTerms, *, start_seconds: float
    ) -> msgspec.Raw:
        """The result of a call, as it came.

        Raises:
            ToolError: the server is not there, refuses, breaks off or takes too long.
        """
        try:
            return await self._called(tool, args, terms, start_seconds)
        except ErrorAnswer as error:
            raise FinalToolError(
                f"The MCP server {self.name} answered with error {error.code}: {_said(error)}"
            ) from error
        except PeerClosed as error:
            raise FinalToolError(
                f"The MCP server {self.name} ended while the call ran ({_said(error)}); "
                "whether the call took effect is not known."
            ) from error
        except NeedsLogin as error:
            raise FinalToolError(f"The MCP server {self.name} wants a login: {self.why}") from error
        except SessionGone as error:
            raise FinalToolError(
                f"The MCP server {self.name} forgets us again and again; nothing was called."
            ) from error
        except (CallTimeout, WrongAnswer) as error:
            raise FinalToolError(
                f"The call of the MCP server {self.name} was given up: {error}; whether it took "
                "effect is not known."
            ) from error

    async def _called(
        self, tool: str, args: dict[str, Any], terms: CallTerms, start_seconds: float
    ) -> msgspec.Raw:
        for is_last in (False, True):
            await self.must_be_ready(start_seconds)
            life = self._life
            assert life is not None
            try:
                return await life.client.call_tool(tool, args, terms)
            except NeedsLogin:
                # The next call begins anew: with what a login has brought meanwhile.
                life.fail(_LOGIN)
                await life.ended.wait()
                raise
            except SessionGone:
                life.forget()
                await life.ended.wait()
                # It did not take the call, so that it can be made once more.
                if is_last:
                    raise
            except AnswerLost:
                raise
            except PeerClosed as error:
                # Until that is known to all, the next call would be one of the same connection.
                with anyio.move_on_after(SETTLE_SECONDS) as patience:
                    await life.settled.wait()
                if patience.cancelled_caught:
                    # The program itself has not ended, and would not.
                    life.fail(_said(error))
                    await life.settled.wait()
                raise
        raise AssertionError("not reached")

    async def must_be_ready(self, seconds: float) -> None:
        """Wait until it is ready.

        Raises:
            ToolError: it is not, and why.
        """
        if await self.ready_within(seconds):
            return
        if self.state == "late":
            raise RetryableToolError(
                f"The MCP server {self.name} is still starting after {seconds:g} seconds; try "
                "again later."
            )
        is_login = self.state == "needs_login"
        problem = "wants a login" if is_login else "is not there"
        raise FinalToolError(f"The MCP server {self.name} {problem}: {self.why}")

    async def stop(self, why: str) -> None:
        """End it; the next use starts it again, also one that has failed."""
        life = self._life
        if life is not None and not life.ended.is_set():
            life.stopping = why
            life.scope.cancel()
            await life.ended.wait()
        self._crashes = 0
        self._budget = RestartBudget(RESTARTS, RESTART_SECONDS)
        self.state, self.why = "idle", why

    # -- its life

    async def _run(self, life: _Life) -> None:
        try:
            with life.scope:
                await anyio.sleep(PAUSES[min(self._crashes, len(PAUSES) - 1)])
                await self._lived(life)
        finally:
            # Before the end of the program, which takes a moment: whoever asks from now on must
            # find it ended, and why.
            self._settle(life)
            life.settled.set()
            if life.connection is not None:
                life.connection.close(f"{self.name} has ended")
            life.ready.set()
            try:
                await life.end_connection()
                await life.end_program()
            finally:
                life.ended.set()

    def _settle(self, life: _Life) -> None:
        if life.stopping:
            self.state, self.why = "idle", life.stopping
            return
        if life.failure == _FORGOTTEN:
            self.state, self.why = "idle", ""
            return
        if life.failure == _LOGIN:
            # No crash: it may be asked again at any time.
            self._crashes = 0
            self.state, self.why = "needs_login", f"`weft mcp login {self.name}` logs in"
            return
        self._crashes = 1 if life.was_ready else self._crashes + 1
        self.state, self.why = "failed", self._mask(_shown(life.failure))
        logger.info("MCP server %s ended: %s", self.name, self.why)

    async def _lived(self, life: _Life) -> None:
        """From start to end."""
        async with anyio.create_task_group() as group:
            life.group = group
            try:
                link = await self._open_link(life.client.handlers, life.spawn)
            except (ToolError, UsageError) as error:
                life.failure = str(error)
                return
            life.connection, life.program = link.connection, link.program
            life.client.use(link.connection)
            if link.program is not None:
                group.start_soon(link.program.keep_errors)
            life.spawn(lambda: self._serve(life))
            reason = await self._carried(link)
            life.group = None
            group.cancel_scope.cancel()
        life.failure = life.failure or await self._explained(life, reason)

    async def _carried(self, link: ServerLink) -> str:
        try:
            return await link.connection.run()
        except NeedsLogin:
            return _LOGIN
        except SessionGone:
            return _FORGOTTEN
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return _ENDED
        except WeftError as error:
            return str(error) or type(error).__name__
        except Exception as error:
            # Whatever a stranger can say that we have not thought of ends this server alone.
            logger.exception("an MCP server is not understood")
            return f"is not understood ({type(error).__name__})"

    async def _serve(self, life: _Life) -> None:
        """Greet it, list its tools, and list them again whenever it says so."""
        with anyio.move_on_after(self._give_up_seconds) as patience:
            failure = await self._greeted(life)
        if patience.cancelled_caught:
            failure = f"did not start within {self._give_up_seconds:g} seconds"
        if failure:
            life.fail(failure)
            return
        life.was_ready = True
        self._crashes = 0
        self.state, self.why = "ready", ""
        life.ready.set()
        life.spawn(life.client.listen)
        while True:
            await life.is_stale.wait()
            await anyio.sleep(LIST_EVERY_SECONDS)
            # Before the list is asked for: what changes while it is on its way is asked for again.
            life.is_stale = anyio.Event()
            try:
                listed = await life.client.list_tools()
                await self._take_list(life.client, listed, self.record.instructions)
            except (ErrorAnswer, WrongAnswer) as error:
                logger.info("MCP server %s does not list its tools: %s", self.name, error)

    async def _greeted(self, life: _Life) -> str:
        """Why it cannot be used; empty when it can."""
        try:
            greeting = await life.client.greet(self.record.era)
            listed = await life.client.list_tools() if greeting.has_tools else []
        except ErrorAnswer as error:
            return f"answered the handshake with error {error.code}: {_said(error)}"
        except WrongAnswer as error:
            return _said(error)
        except NeedsLogin:
            return _LOGIN
        self.record.era = greeting.era
        self.record.title = self._mask(without_hidden(greeting.title))
        await self._take_list(life.client, listed, without_hidden(greeting.instructions))
        return ""

    async def _take_list(self, client: McpClient, listed: list[Any], instructions: str) -> None:
        listed = self._masked(listed)
        # In a thread: a stranger can say what takes long to read, and all sessions would stand
        # still meanwhile.
        found = await anyio.to_thread.run_sync(read_list, listed)
        self.left_out = [*client.refused, *found.problems]
        self.record.take(found, self._mask(instructions))
        self._changed()

    def _masked(self, listed: list[Any]) -> list[Any]:
        """The list without keys that the server was lent: models read it, and it is kept."""
        written = msgspec.json.encode(listed).decode()
        masked = self._mask(written)
        if masked == written:
            return listed
        try:
            return msgspec.json.decode(masked, type=list[Any])
        except msgspec.MsgspecError:
            return []

    def _list_is_other(self) -> None:
        if self._life is not None:
            self._life.is_stale.set()

    async def _explained(self, life: _Life, reason: str) -> str:
        program = life.program
        if program is None or reason != _ENDED:
            return reason
        await program.ends_within(STOP_SECONDS)
        last = _last_line(program.errors)
        code = program.exit_code
        said = f": {last}" if last else ", without a word"
        when = "ended" if life.was_ready else "ended before it answered"
        return f"{when}, with exit code {code}{said}"


class _Life:
    """One start of a server, up to its end."""

    def __init__(self, client: McpClient) -> None:
        self.client = client
        self.scope = anyio.CancelScope()
        self.group: anyio.abc.TaskGroup | None = None
        self.connection: McpConnection | None = None
        self.program: PipedProgram | None = None
        self.ready = anyio.Event()
        """Set when it can be called, and also at the end."""
        self.settled = anyio.Event()
        """Its end is known, and its reason."""
        self.ended = anyio.Event()
        self.is_stale = anyio.Event()
        self.was_ready = False
        self.stopping = ""
        """Why we end it ourselves."""
        self.failure = ""
        """Why it ended by itself, or was given up."""

    def spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run something as long as it lives."""

        async def contained() -> None:
            try:
                await work()
            except (PeerClosed, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # it has ended, and that is said elsewhere
            except NeedsLogin:
                self.fail(_LOGIN)
            except SessionGone:
                self.forget()
            except UsageError as error:
                self.fail(_said(error))  # its entry is not right, which is found out late
            except Exception as error:
                logger.exception("an MCP server could not be served")
                self.fail(f"is not understood ({type(error).__name__})")

        if self.group is not None:
            self.group.start_soon(contained)

    def fail(self, why: str) -> None:
        """Give it up."""
        self.failure = self.failure or why
        self.scope.cancel()

    def forget(self) -> None:
        """Give it up because it does not know us any more; the next use greets it again."""
        self.fail(_FORGOTTEN)

    async def end_connection(self) -> None:
        """Take leave of a server that we did not start.  Shielded."""
        if self.connection is not None:
            with anyio.move_on_after(LEAVE_SECONDS, shield=True):
                await self.connection.end()

    async def end_program(self) -> None:
        """End the program: its input first, for many remove temporary files then.  Shielded.

        One that never was ready has none, and looks at its input only when it is: a short run would
        have to wait for its start.
        """
        program, self.program = self.program, None
        if program is None:
            return
        with anyio.CancelScope(shield=True):
            if self.was_ready:
                with anyio.move_on_after(STOP_SECONDS):
                    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await program.end_input()
                    await program.wait()
            if program.exit_code is None:
                program.ask_to_end()
                await program.ends_within(STOP_SECONDS)
            await program.kill()


_ENDED: Final = "ended"
_LOGIN: Final = "login"
_FORGOTTEN: Final = "forgotten"


def _said(error: Exception) -> str:
    """What a stranger says, in a line that can be shown."""
    return _shown(str(error))


def _shown(text: str) -> str:
    return " ".join(without_hidden(text).split())[:MOST_SAID]


def _last_line(errors: str) -> str:
    """The line that says what is wrong: the last that names an error, else the last."""
    lines = [" ".join(without_hidden(line).split())[:300] for line in errors.splitlines()]
    lines = [line for line in lines if line]
    named = [line for line in lines if "error" in line.lower()]
    return (named or lines or [""])[-1]
