"""Background commands of one session, which go on while its turns come and go: servers, watchers,
long builds.

Each runs in a task of the application, not of the turn that started it, so it outlives turns and
aborts; it ends by itself, because it is stopped, or with the session.  What it changed is found out
when it ends, and is never taken for certain: it ran for long, and the user was at work meanwhile.
The log names it in the result of the call that started it, and its end in a note; so after a crash
the process that goes on with the session knows what there was.

What it prints is masked as it comes, and held until the model looks: head and tail of it, however
much it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, Protocol, TypeAlias

import anyio
import msgspec

from weft.errors import FinalToolError, ToolError, WeftError
from weft.events import CommandEnd, CommandPrinted, FileTouched, InputQueued, SystemNote
from weft.ids import CallUid, EntryId, new_id
from weft.loop import Build, Commit, tip_after
from weft.messages import Text, clean_text
from weft.redact import Redactor
from weft.state import SessionState
from weft.tools import BackgroundCommands, BackgroundOutput, ToolOutcome
from weft.tools.builtin.shell import how_it_ended, outcome_of
from weft.workspace import ProcessCommand, Runner, RunResult
from weft.workspace.process.capture import OutputCapture

MOST: Final = 8
"""Commands of one session that may run at once."""
SETTLE_SECONDS: Final = 0.5
"""How long a command is looked at before its call returns."""
STOP_SECONDS: Final = 5.0
"""How long one may take to end when asked; then it is killed."""
TAIL: Final = 20_000
"""Characters of the output that a screen can ask for, and is sent at once."""
REMEMBERED: Final = 8
"""Commands that have ended and can still be looked at."""

By: TypeAlias = Literal["", "model", "user", "session"]


class CommandHost(Protocol):
    """The session, as its background commands see it."""

    @property
    def state(self) -> SessionState: ...

    def now(self) -> float: ...

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        """Run a task in the background of the turns."""
        ...

    def signal(self, signal: CommandPrinted) -> None:
        """Show something to those that watch."""
        ...

    async def append(self, build: Build, *, wake: bool = False) -> object:
        """Put something on record.

        With `wake`, what then waits starts a turn if the session is at rest.
        """
        ...

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        """Wait until something is true of the state, or the session's life in this process
        is over.
        """
        ...

    async def ended(self) -> None:
        """Wait until the session's life in this process is over."""
        ...


class BackgroundShells(BackgroundCommands):
    """All of one session."""

    def __init__(
        self,
        host: CommandHost,
        redact: Redactor,
        changed: Callable[[CallUid, ToolOutcome | None], Commit],
    ) -> None:
        """`changed` makes the facts of what a command has changed."""
        self._host = host
        self._redact = redact
        self._changed = changed
        self._known: dict[str, _Shell] = {}
        self._last = 0
        self._is_closed = False

    @property
    def is_running(self) -> bool:
        """True while one runs, or its end is not on record yet."""
        untold = self._host.state.background.running
        return any(self.has(name) or name in untold for name in self._known)

    def has(self, name: str) -> bool:
        """True while one of this name runs here."""
        shell = self._known.get(name)
        return shell is not None and not shell.ended.is_set()

    def printed(self, name: str) -> tuple[str, int]:
        """The end of what one has printed, masked, and how many characters that was in all."""
        shell = self._known.get(name)
        return ("", 0) if shell is None else (shell.tail, shell.printed)

    # -- what the tools ask

    def refuse_more(self) -> None:
        running = [name for name in self._known if self.has(name)]
        if self._is_closed:
            raise FinalToolError("the session is being stopped, so nothing more is started")
        if len(running) >= MOST:
            raise FinalToolError(
                f"{MOST} commands run in the background already ({', '.join(running)}), "
                "and no more may; stop one with shell_stop"
            )

    async def start(self, command: ProcessCommand, title: str, runner: Runner) -> BackgroundOutput:
        self.refuse_more()
        # Counted on from the log: after a restart, an old name must not mean a new command.
        self._last = max(self._last, self._host.state.background.started) + 1
        shell = _Shell(f"bg_{self._last}", title, command, self._redact, self._host.signal)
        self._known[shell.name] = shell
        self._host.start(lambda: self._run(shell, runner), f"background command {shell.name}")
        try:
            with anyio.move_on_after(SETTLE_SECONDS):
                await shell.ended.wait()
        except BaseException:
            # The call was cancelled before it could name the command. Nothing in the log would lead
            # to it, so it must not go on.
            await self._kill(shell)
            del self._known[shell.name]
            raise
        if not shell.ended.is_set():
            shell.announced.set()
            return shell.look()
        del self._known[shell.name]
        if shell.error is not None:
            raise shell.error
        if shell.result is None:
            raise FinalToolError("it was stopped")
        return shell.look()

    def title_of(self, name: str) -> str | None:
        return self._known[name].title if self.has(name) else None

    async def look(self, name: str, wait_seconds: float) -> BackgroundOutput:
        shell = self._named(name)
        await shell.news_within(wait_seconds)
        return shell.look()

    async def stop(self, name: str) -> BackgroundOutput:
        shell = self._named(name)
        shell.ask_to_end("model")
        if not await shell.ends_within(STOP_SECONDS):
            await self._kill(shell)
        return shell.look()

    def _named(self, name: str) -> _Shell:
        if name in self._known:
            return self._known[name]
        known = ", ".join(self._known) or "none"
        if name in self._host.state.background.known:
            raise FinalToolError(f"{name} has ended, and what it printed is not kept any more")
        raise FinalToolError(f"there is no background command {name!r}; there are: {known}")

    # -- what others ask

    def stop_soon(self, name: str) -> None:
        """The user wants one to end; its end is put on record when it has."""
        if name in self._known:
            self._known[name].ask_to_end("user")

    async def aclose(self) -> None:
        """End all of them with the session, and wait until their ends are on record; bounded."""
        self._is_closed = True
        for shell in self._known.values():
            shell.ask_to_end("session")
        async with anyio.create_task_group() as group:
            for shell in list(self._known.values()):
                group.start_soon(self._end, shell)

    async def _end(self, shell: _Shell) -> None:
        if not await shell.ends_within(STOP_SECONDS):
            await self._kill(shell)
        with anyio.move_on_after(STOP_SECONDS):
            await shell.is_over.wait()

    async def _kill(self, shell: _Shell) -> None:
        shell.scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_SECONDS):
            await shell.ended.wait()

    # -- one of them

    async def _run(self, shell: _Shell, runner: Runner) -> None:
        """Run it to its end, and see that the end is on record."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._guard, shell)
                await shell.run(runner)
                group.cancel_scope.cancel()
            if shell.announced.is_set():
                await self._tell(shell)
        finally:
            shell.is_over.set()

    async def _guard(self, shell: _Shell) -> None:
        """End it when the log does not lead to it any more: its call was settled without it, or the
        session has gone to another process.
        """
        await shell.announced.wait()
        with suppress(WeftError):  # the session is gone: that is what is waited for
            await self._settled(shell)
            if shell.name in self._host.state.background.known:
                await self._host.ended()
        shell.ask_to_end("session")

    async def _settled(self, shell: _Shell) -> None:
        """Wait until the call that started it is settled in the log: its end must not stand before
        its beginning.
        """
        await self._host.until(lambda state: shell.command.label not in state.turn.intents)

    async def _tell(self, shell: _Shell) -> None:
        """Put its end on record, with what it changed.

        The model gets a message, unless it has ended it itself.
        """
        try:
            await self._settled(shell)
            await self._host.append(lambda state: self._end_of(shell, state), wake=not shell.by)
        except WeftError:
            return  # the session is gone from here; the process that goes on with it finds no end
        self._forget_old()

    def _end_of(self, shell: _Shell, state: SessionState) -> Commit:
        known = state.background.known.get(shell.name)
        # Its start is on record with the result of its call; one that is not, or has an end
        # already, has nothing to add.
        if known is None or known.end is not None:
            return Commit(facts=())
        outcome = shell.outcome()
        changed = _uncertain(self._changed(shell.call_uid, outcome))
        text = (
            f"The background command {shell.name} ({shell.title}) is over: "
            f"{how_it_ended(shell.peek())}."
        )
        note = SystemNote(
            text=text,
            level="info" if shell.by or shell.has_worked else "warning",
            node=tip_after(state, ()),
            background=CommandEnd(
                id=shell.name,
                exit_code=None if shell.result is None else shell.result.exit_code,
                why="stopped" if shell.by else "exited",
                tree=None if shell.result is None else shell.result.tree,
            ),
        )
        # The model has ended it, or waits for it, and reads of it in the result of that call; a
        # message would say it twice.
        wait = state.turn.asleep
        if shell.by == "model" or (wait is not None and wait.on.name == shell.name):
            return msgspec.structs.replace(changed, facts=(*changed.facts, note))
        message = InputQueued(
            entry_id=EntryId(new_id("ent", self._host.now())),
            delivery="steering",
            parts=(Text(text=clean_text(shell.news_of_end(text))),),
        )
        return msgspec.structs.replace(changed, facts=(*changed.facts, note, message))

    def _forget_old(self) -> None:
        over = [name for name, shell in self._known.items() if shell.ended.is_set()]
        # Held output is memory; the last few stay, because the model tends to look once more after
        # the end.
        for name in over[:-REMEMBERED]:
            del self._known[name]


def _uncertain(changed: Commit) -> Commit:
    """The changes, none of them certain: the user was at work, too, while it ran."""
    facts = tuple(
        msgspec.structs.replace(fact, is_certain=False) if isinstance(fact, FileTouched) else fact
        for fact in changed.facts
    )
    return msgspec.structs.replace(changed, facts=facts)


class _Shell:
    """One command, and what it printed."""

    def __init__(
        self,
        name: str,
        title: str,
        command: ProcessCommand,
        redact: Redactor,
        show: Callable[[CommandPrinted], None],
    ) -> None:
        self.name = name
        self._show = show
        self.tail = ""
        """The end of what it has printed, for screens."""
        self.printed = 0
        """How many characters it has printed."""
        self.title = " ".join(title.split())[:80]
        self.call_uid = CallUid(command.label)
        self.by: By = ""
        """Who ended it; empty if it ended by itself."""
        self.result: RunResult | None = None
        self.error: ToolError | None = None
        self.announced = anyio.Event()
        """The call that started it has returned."""
        self.ended = anyio.Event()
        self.is_over = anyio.Event()
        """Its end is on record, or never will be."""
        self.scope = anyio.CancelScope()
        self._stop = anyio.Event()
        self.command = msgspec.structs.replace(command, stop=self._stop)
        self._redact = redact
        self._masked = redact.live()
        self._unseen = OutputCapture(is_endless=True)
        self._news = anyio.Event()

    async def run(self, runner: Runner) -> None:
        """Run it to its end."""
        try:
            with self.scope:
                self.result = await runner.run(self.command, self._take)
        except ToolError as error:
            self.error = error
        finally:
            self._keep(self._masked.finish())
            self.ended.set()
            self._news.set()

    def ask_to_end(self, by: By) -> None:
        """Have it end; the first who asks has ended it."""
        if not self.ended.is_set():
            self.by = self.by or by
            self._stop.set()

    async def ends_within(self, seconds: float) -> bool:
        """Wait for its end; False when it takes longer."""
        with anyio.move_on_after(seconds):
            await self.ended.wait()
        return self.ended.is_set()

    async def news_within(self, seconds: float) -> None:
        """Wait so long for new output or the end."""
        with anyio.move_on_after(seconds):
            await self._news.wait()

    def look(self) -> BackgroundOutput:
        """What it printed since the last look."""
        if not self._unseen.total:
            # The line is not complete; still it is all that there is to see.
            self._keep(self._masked.finish())
        look = msgspec.structs.replace(self.peek(), output=self._unseen.text())
        self._unseen = OutputCapture(is_endless=True)
        if not self.ended.is_set():
            self._news = anyio.Event()
        return look

    def peek(self) -> BackgroundOutput:
        """How it stands."""
        return BackgroundOutput(
            id=self.name,
            result=self.result,
            is_running=not self.ended.is_set(),
            was_stopped=bool(self.by),
        )

    def outcome(self) -> ToolOutcome | None:
        """What it has come to, for the log; None when it was killed before it could report."""
        if self.result is None:
            return None
        return outcome_of(self.result, self.command.timeout_seconds)

    @property
    def has_worked(self) -> bool:
        """It ended by itself, and well."""
        return self.result is not None and self.result.exit_code == 0

    def news_of_end(self, text: str) -> str:
        """The message about its end.  The model reads it in the user's place, so nothing that the
        command printed may be in it.
        """
        hint = "`shell_output` shows what it printed last." if self._unseen.total else ""
        remarks = () if self.result is None else self.result.remarks
        return "\n".join(part for part in (f"[{text}]", hint, *remarks) if part)

    def _take(self, chunk: str) -> None:
        self._keep(self._masked.feed(chunk))
        self._news.set()

    def _keep(self, text: str) -> None:
        if text:
            self.printed += len(text)
            chunk = text[-TAIL:]
            self._show(CommandPrinted(id=self.name, offset=self.printed - len(chunk), chunk=chunk))
            self.tail = (self.tail + text)[-TAIL:]
        self._unseen.feed(text.encode(errors="replace"))
