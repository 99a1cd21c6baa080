"""One language server as a supervised program: started when it is first needed, stopped when it is
idle or too large, and never in a loop of restarts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.abc
import msgspec

from weft.actors import RestartBudget
from weft.clock import Clock
from weft.errors import ToolError, WeftError
from weft.jsonrpc import PeerClosed
from weft.lsp.client import LanguageClient
from weft.lsp.server_specs import ServerSpec
from weft.workspace import PipedProgram

logger = logging.getLogger(__name__)

ServerState: TypeAlias = Literal["stopped", "starting", "ready", "failed"]

START_SECONDS: Final = 60.0
"""How long a server may take to answer the handshake."""
STOP_SECONDS: Final = 1.0
"""How long it may take to end when asked; then it is killed."""
_ABSENT: Final = ("rustup", "toolchain", "unknown proxy", "not installed", "command not found")
"""Words of stand-ins on `PATH` that say that what they stand for is not there."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a server is allowed."""

    idle_seconds: float = 600.0
    """After so long without use it is stopped."""
    max_memory: int = 2 * 1024 * 1024 * 1024
    """Bytes of it and its children."""
    restarts: int = 2
    """How often one that crashed is started again, within an hour."""
    look_seconds: float = 2.0
    """Between two looks at its memory."""


class LanguageServer:
    """A server of one project."""

    def __init__(
        self,
        spec: ServerSpec,
        root: str,
        launch: Callable[[ServerSpec], Awaitable[tuple[PipedProgram, ServerSpec]]],
        start_task: Callable[[Callable[[], Awaitable[None]], str], None],
        *,
        limits: ServerLimits,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`launch` starts the program; it may hand back the spec with options that fit this
        machine.  `start_task` runs what must outlive the caller; `changed` is called when the state
        has.
        """
        self._changed = changed
        self.spec = spec
        self._root = root
        self._launch = launch
        self._start_task = start_task
        self._limits = limits
        self._clock = clock
        self._budget = RestartBudget(limits.restarts, 3600.0, clock)
        self._used_at = clock.monotonic()
        self._ended = anyio.Event()
        self._ready = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._program: PipedProgram | None = None
        self._stopping = ""
        self._must_pay = False
        """The last one ended by a fault of its own: another start takes from the budget."""
        self.state: ServerState = "stopped"
        self.why = ""
        """Why it is stopped or has failed; empty before its first start."""
        self.client: LanguageClient | None = None

    @property
    def pid(self) -> int | None:
        """The number of its process, where it runs."""
        return self._program.pid if self._program is not None else None

    def memory(self) -> int:
        """Bytes that it holds."""
        return self._program.memory() if self._program is not None else 0

    def use(self) -> LanguageClient | None:
        """The client, for somebody who needs it now: starts the server where none runs.

        None when it has failed for good; `why` says so.
        """
        self._used_at = self._clock.monotonic()
        if self.state == "stopped":
            self._start()
        return self.client

    def _start(self) -> None:
        if self._must_pay and not self._budget.spend():
            self._fail(f"ended again and again, last: {self.why}")
            return
        self._must_pay = False
        self.state, self.why, self._stopping = "starting", "", ""
        self._ended, self._ready = anyio.Event(), anyio.Event()
        self.client = LanguageClient(self._root, self._spawn)
        self._start_task(self._run, f"language server {self.spec.name}")

    async def ready_within(self, seconds: float) -> bool:
        """Wait for the handshake; False when it takes longer, or fails."""
        with anyio.move_on_after(seconds):
            await self._ready.wait()
        return self.state == "ready"

    async def wait_end(self) -> None:
        """Wait until the one that was started last is gone."""
        await self._ended.wait()

    async def stop(self, why: str) -> None:
        """End it; the next use starts it again, also one that has failed."""
        self._stopping = why
        if self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()
        self._must_pay = False
        self.state, self.why = "stopped", why

    # -- its life

    async def _run(self) -> None:
        client = self.client
        assert client is not None
        try:
            reason = await self._lived(client)
        finally:
            client.lost(f"{self.spec.name} has ended")
            program, self._program = self._program, None
            self._scope = None
            if program is not None:
                await program.kill()
            if self.state != "failed":
                self.state = "stopped"
            self.client = None
            self._ready.set()
            self._ended.set()
        if self.state == "failed":
            logger.info("language server %s failed: %s", self.spec.name, self.why)
        else:
            self.why = self._stopping or reason
        self._changed()

    async def _lived(self, client: LanguageClient) -> str:
        """From start to end; says why it ended."""
        try:
            self._program, spec = await self._launch(self.spec)
        except ToolError as error:
            self._fail(str(error))
            return ""
        program, reasons = self._program, list[str]()
        self._changed()
        client.configure(spec.settings, spec.options)
        async with anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            self._group = group
            ending = _Ending(reasons, group.cancel_scope)
            group.start_soon(program.keep_errors)
            group.start_soon(ending.of, lambda: client.peer.write(program.send))
            group.start_soon(ending.of, lambda: self._heard(client, program))
            group.start_soon(ending.of, lambda: self._watched(client, program))
            group.start_soon(ending.of, lambda: self._greeted(client))
        if not self._stopping:
            await program.ends_within(0.0 if reasons != [_ENDED] else STOP_SECONDS)
            self._explain(reasons[0] if reasons else _ENDED, program)
        return self.why

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        async def contained() -> None:
            try:
                await work()
            except PeerClosed:
                pass  # it has ended, and that is said elsewhere
            except Exception:
                logger.exception("a question to %s failed", self.spec.name)

        self._group.start_soon(contained)

    async def _heard(self, client: LanguageClient, program: PipedProgram) -> str:
        while chunk := await program.receive():
            client.peer.feed(chunk)
        return _ENDED

    async def _greeted(self, client: LanguageClient) -> str:
        try:
            await client.initialize(START_SECONDS)
        except TimeoutError:
            return f"did not answer within {START_SECONDS:g} seconds"
        except msgspec.ValidationError as error:
            return f"its handshake is not understood: {error}"
        self.state = "ready"
        self._ready.set()
        self._changed()
        return ""

    async def _watched(self, client: LanguageClient, program: PipedProgram) -> str:
        while True:
            await anyio.sleep(self._limits.look_seconds)
            if (held := program.memory()) > self._limits.max_memory:
                return f"used {held / 1e6:,.0f} MB of memory, more than lsp.max_memory allows"
            if self._clock.monotonic() - self._used_at > self._limits.idle_seconds:
                self._stopping = "idle"
                # Asked first: some remove temporary files.
                with suppress(WeftError, TimeoutError):
                    await client.shutdown(STOP_SECONDS)
                    await program.ends_within(STOP_SECONDS)
                return "idle"

    def _explain(self, reason: str, program: PipedProgram) -> None:
        """Why it ended by itself, and whether it may be started again."""
        last = _worst_line(program.errors)
        if reason == _ENDED:
            code = program.exit_code
            reason = f"ended with exit code {code}" + (f": {last}" if last else "")
        if self.state == "ready":
            self._must_pay = True
            self.why = reason
        elif any(word in program.errors.lower() for word in _ABSENT):
            # A proxy of rustup stands on PATH for every component, installed or not.  To start it
            # again would end the same way.
            self._fail(f"not installed: {last}")
        else:
            self._fail(f"did not start: {reason}")

    def _fail(self, why: str) -> None:
        self.state, self.why = "failed", why
        self.client = None


_ENDED: Final = "ended"


def _worst_line(errors: str) -> str:
    """The line that says what is wrong: the first that names an error, for a backtrace may follow;
    else the last."""
    lines = [line.strip()[:300] for line in errors.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower()]
    return (named or lines[-1:] or [""])[0]


class _Ending:
    """Runs the tasks of a server; the first that is over with a reason ends all."""

    def __init__(self, reasons: list[str], scope: anyio.CancelScope) -> None:
        self._reasons = reasons
        self._scope = scope

    async def of(self, work: Callable[[], Awaitable[Any]]) -> None:
        try:
            reason = await work()
        except (WeftError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            # A pipe that breaks means that it has ended; its exit says more.
            reason = str(error) if isinstance(error, WeftError) else _ENDED
        if reason:
            self._reasons.append(reason)
            self._scope.cancel()
