"""One language server as a supervised program: started when it is first needed, stopped when it is
idle or too large, and never in a loop of restarts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.abc
import msgspec

from weft.actors import RestartBudget
from weft.clock import Clock
from weft.errors import ToolError, WeftError
from weft.jsonrpc import ErrorAnswer, PeerClosed
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
        must_leave: Callable[[LanguageServer], bool] = lambda server: False,
    ) -> None:
        """`launch` starts the program; it may hand back the spec with options that fit this
        machine.  `start_task` runs what must outlive the caller; `changed` is called when the state
        has, and `must_leave` asked whether it has to make room for others.
        """
        self._changed = changed
        self._must_leave = must_leave
        self.spec = spec
        self._root = root
        self._launch = launch
        self._start_task = start_task
        self._limits = limits
        self._clock = clock
        self._budget = RestartBudget(limits.restarts, 3600.0, clock)
        self.used_at = clock.monotonic()
        self._life: _ServerLife | None = None
        """The one that was started last."""
        self._must_pay = False
        """The last one ended by a fault of its own: another start takes from the budget."""
        self.silent_waits = 0
        """How often in a row an edit has waited for it in vain."""
        self.state: ServerState = "stopped"
        self.why = ""
        """Why it is stopped or has failed; empty before its first start."""
        self.client: LanguageClient | None = None

    @property
    def pid(self) -> int | None:
        """The number of its process, where it runs."""
        program = self._program
        return program.pid if program is not None else None

    def memory(self) -> int:
        """Bytes that it holds."""
        program = self._program
        return program.memory() if program is not None else 0

    @property
    def _program(self) -> PipedProgram | None:
        return self._life.program if self._life is not None else None

    def use(self) -> LanguageClient | None:
        """The client, for somebody who needs it now: starts the server where none runs.

        None when it has failed for good; `why` says so.
        """
        self.used_at = self._clock.monotonic()
        if self.state == "stopped":
            self._start()
        return self.client

    def _start(self) -> None:
        if self._must_pay and not self._budget.spend():
            self.state, self.why = "failed", f"ended again and again, last: {self.why}"
            return
        before, life = self._life, _ServerLife(self.spec.name, self._root)
        self._life, self.client = life, life.client
        self._must_pay = False
        self.state, self.why = "starting", ""
        self._start_task(lambda: self._run(life, before), f"language server {self.spec.name}")

    async def ready_within(self, seconds: float) -> bool:
        """Wait for the handshake; False when it takes longer, or fails."""
        if self._life is not None:
            with anyio.move_on_after(seconds):
                await self._life.ready.wait()
        return self.state == "ready"

    async def wait_end(self) -> None:
        """Wait until the one that was started last is gone."""
        if self._life is not None:
            await self._life.ended.wait()

    async def stop(self, why: str) -> None:
        """End it; the next use starts it again, also one that has failed."""
        life = self._life
        if life is not None and not life.ended.is_set():
            life.stopping = why
            life.scope.cancel()
            await life.ended.wait()
            if self._life is not life:
                return  # somebody needed it meanwhile, and has started it again
        self._must_pay = False
        self.state, self.why = "stopped", why

    # -- its life

    async def _run(self, life: _ServerLife, before: _ServerLife | None) -> None:
        try:
            if before is not None:
                # One at a time: the last one may still be on its way out.
                await before.ended.wait()
            with life.scope:
                await self._lived(life)
        finally:
            # Before the kill, which takes a moment, and before the waiters are woken: whoever asks
            # from now on must find it ended, and why.
            if self._life is life:
                self._settle(life)
            life.client.lost(f"{self.spec.name} has ended")
            if life.program is not None:
                await life.program.kill()
            life.program = None
            life.ready.set()
            life.ended.set()
        if self.state == "failed":
            logger.info("language server %s failed: %s", self.spec.name, self.why)
        self._changed()

    def _settle(self, life: _ServerLife) -> None:
        self.client = None
        if life.stopping:
            self.state, self.why = "stopped", life.stopping
        elif life.failure:
            self.state, self.why = "failed", life.failure
        else:
            # Whatever it was that ended it: only what is known to be no fault costs nothing.
            self.state, self.why, self._must_pay = "stopped", life.reason or _ENDED, True

    async def _lived(self, life: _ServerLife) -> None:
        """From start to end."""
        try:
            life.program, spec = await self._launch(self.spec)
        except ToolError as error:
            life.failure = str(error)
            return
        program, client, reasons = life.program, life.client, list[str]()
        self._changed()
        client.configure(spec.settings, spec.options)
        async with anyio.create_task_group() as group:
            life.group = group
            ending = _Ending(reasons, group.cancel_scope)
            group.start_soon(program.keep_errors)
            group.start_soon(ending.of, lambda: client.peer.write(program.send))
            group.start_soon(ending.of, lambda: self._heard(client, program))
            group.start_soon(ending.of, lambda: self._watched(life, program))
            group.start_soon(ending.of, lambda: self._greeted(life))
        life.group = None
        if not life.stopping:
            await program.ends_within(0.0 if reasons != [_ENDED] else STOP_SECONDS)
            life.explain(reasons[0] if reasons else _ENDED, program)

    async def _heard(self, client: LanguageClient, program: PipedProgram) -> str:
        while chunk := await program.receive():
            client.peer.feed(chunk)
        return _ENDED

    async def _greeted(self, life: _ServerLife) -> str:
        try:
            await life.client.initialize(START_SECONDS, life.parent)
        except TimeoutError:
            return f"did not answer within {START_SECONDS:g} seconds"
        except ErrorAnswer as error:
            return f"answered the handshake with error {error.code}: {error}"
        except msgspec.ValidationError as error:
            return f"its handshake is not understood: {error}"
        life.was_ready = True
        self.silent_waits = 0
        self.state = "ready"
        life.ready.set()
        self._changed()
        return ""

    async def _watched(self, life: _ServerLife, program: PipedProgram) -> str:
        while True:
            await anyio.sleep(self._limits.look_seconds)
            program.end_first()
            if why := life.client.peer.closed:
                return why
            if (held := program.memory()) > self._limits.max_memory:
                return f"used {held / 1e6:,.0f} MB of memory, more than lsp.max_memory allows"
            is_idle = self._clock.monotonic() - self.used_at > self._limits.idle_seconds
            if is_idle or self._must_leave(self):
                life.stopping = "idle" if is_idle else _CROWDED
                # Asked first: some remove temporary files.
                with suppress(WeftError, TimeoutError):
                    await life.client.shutdown(STOP_SECONDS)
                    await program.ends_within(STOP_SECONDS)
                return life.stopping


def least_used(servers: Iterable[LanguageServer]) -> LanguageServer | None:
    """The one that was used longest ago; None of none."""
    return min(servers, key=lambda server: server.used_at, default=None)


class _ServerLife:
    """One start of a server, up to its end."""

    def __init__(self, name: str, root: str) -> None:
        self._name = name
        self.client = LanguageClient(root, self._spawn)
        self.scope = anyio.CancelScope()
        self.group: anyio.abc.TaskGroup | None = None
        self.program: PipedProgram | None = None
        self.ready = anyio.Event()
        """Set after the handshake, and also at the end."""
        self.ended = anyio.Event()
        self.was_ready = False
        self.stopping = ""
        """Why we end it ourselves."""
        self.failure = ""
        """Why it is not to be started again."""
        self.reason = ""
        """Why it ended by itself."""

    @property
    def parent(self) -> int | None:
        """Our number, where the server can see us: it ends with us then.  Elsewhere it would not
        find us, take us for dead, and end at once."""
        shares = self.program is not None and self.program.shares_pids
        return os.getpid() if shares else None

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        async def contained() -> None:
            try:
                await work()
            except PeerClosed:
                pass  # it has ended, and that is said elsewhere
            except Exception:
                logger.exception("a question to %s failed", self._name)

        # Its tasks are over and its process is not yet: nobody would answer any more.
        if self.group is None:
            raise PeerClosed(f"{self._name} has ended")
        self.group.start_soon(contained)

    def explain(self, reason: str, program: PipedProgram) -> None:
        """Note why it ended by itself, and whether it may be started again."""
        last = _worst_line(program.errors)
        if reason == _ENDED:
            code = program.exit_code
            reason = f"ended with exit code {code}" + (f": {last}" if last else "")
        if self.was_ready:
            self.reason = reason
        elif any(word in program.errors.lower() for word in _ABSENT):
            # A proxy of rustup stands on PATH for every component, installed or not.  To start it
            # again would end the same way.
            self.failure = f"not installed: {last}"
        else:
            self.failure = f"did not start: {reason}"


_ENDED: Final = "ended"
_CROWDED: Final = "all language servers together used too much memory"


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
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            reason = _ENDED  # a pipe that breaks; the exit says more
        except WeftError as error:
            reason = str(error) or type(error).__name__
        except Exception as error:
            # Whatever a program can say that we have not thought of ends this program alone, and is
            # paid for as a crash.
            logger.exception("a language server is not understood")
            reason = f"is not understood ({type(error).__name__})"
        if reason:
            self._reasons.append(reason)
            self._scope.cancel()
