"""Background commands without a session around them: what journeys cannot bring about at will."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from weft.errors import FinalToolError, SessionStopped
from weft.events import CommandPrinted, Fact, ToolComplete
from weft.ids import CallUid, NodeId, SessionId
from weft.loop import Build, Commit
from weft.messages import ToolResult
from weft.redact import Redactor
from weft.runtime.background_commands import BackgroundShells, CommandHost
from weft.state import SessionState
from weft.workspace import LocalRunner, ProcessCommand

pytestmark = [pytest.mark.anyio, pytest.mark.process]

CALL = CallUid("cal_1")


class Quarters(CommandHost):
    """A session that is no more than its state and a list of what was put on record."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._state = SessionState(session_id=SessionId("s"))
        self.over = anyio.Event()
        self.stored: list[Fact] = []
        self.shown: list[CommandPrinted] = []
        self.is_gone = False

    @property
    def state(self) -> SessionState:
        return self._state

    def now(self) -> float:
        return 0.0

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        async def call() -> None:
            await run()

        self._group.start_soon(call)

    def signal(self, signal: CommandPrinted) -> None:
        self.shown.append(signal)

    async def append(self, build: Build, *, wake: bool = False) -> None:
        if self.is_gone:
            raise SessionStopped("s", "another process has it")
        self.stored += build(self._state).facts

    async def until(self, holds: Callable[[SessionState], bool]) -> None:
        assert holds(self._state), "every call of these tests is settled"

    async def ended(self) -> None:
        await self.over.wait()

    def knows(self, name: str) -> None:
        """The call that started it is settled, and names it."""
        result = ToolResult(call_uid=CALL, data={"background": {"id": name, "command": "x"}})
        fact = ToolComplete(call_uid=CALL, node=NodeId("n"), result=result)
        self._state.background.apply(fact)


def serve(folder: Path) -> ProcessCommand:
    return ProcessCommand(
        argv=("/bin/sh", "-c", "echo up; exec sleep 1000"),
        cwd=str(folder),
        timeout_seconds=1_000,
        label=CALL,
    )


def shells_of(home: CommandHost) -> BackgroundShells:
    return BackgroundShells(home, Redactor(), lambda call, outcome: Commit(facts=()))


async def test_one_whose_call_was_settled_without_it_is_ended(tmp_path: Path) -> None:
    """An abort may come between the start and the record of it: then nobody would ever
    know of it.
    """
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            home = Quarters(group)
            shells = shells_of(home)
            look = await shells.start(serve(tmp_path), "serve", LocalRunner(os.environ))
            assert look.is_running
            look = await shells.look("bg_1", 10)
            while look.is_running:
                look = await shells.look("bg_1", 10)
            assert look.was_stopped
        assert home.stored == []


async def test_one_ends_when_another_process_has_taken_the_session(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            home = Quarters(group)
            home.knows("bg_1")
            home.state.background.started = 0
            shells = shells_of(home)
            await shells.start(serve(tmp_path), "serve", LocalRunner(os.environ))
            assert shells.has("bg_1")
            home.is_gone = True
            home.over.set()
        assert not shells.has("bg_1")
        assert home.stored == []


async def test_nothing_is_started_while_the_session_is_being_stopped(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        shells = shells_of(Quarters(group))
        await shells.aclose()
        with pytest.raises(FinalToolError, match="being stopped"):
            await shells.start(serve(tmp_path), "serve", LocalRunner(os.environ))


async def test_a_program_that_cannot_be_started_is_reported_at_once(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        shells = shells_of(Quarters(group))
        command = ProcessCommand(argv=("/no/such/program",), cwd=str(tmp_path), label=CALL)
        with pytest.raises(FinalToolError, match="there is no program"):
            await shells.start(command, "serve", LocalRunner(os.environ))
        assert not shells.has("bg_1")


async def test_what_one_prints_is_shown_masked_and_its_end_is_kept(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    script = f"printf 'one\\n{secret}\\n'; exec sleep 1000"
    command = ProcessCommand(
        argv=("/bin/sh", "-c", script), cwd=str(tmp_path), timeout_seconds=1_000, label=CALL
    )
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            home = Quarters(group)
            home.knows("bg_1")
            home.state.background.started = 0
            shells = shells_of(home)
            await shells.start(command, "print", LocalRunner(os.environ))
            while "one" not in shells.printed("bg_1")[0]:
                await shells.look("bg_1", 10)
            home.is_gone = True
            home.over.set()
    text, printed = shells.printed("bg_1")
    assert "".join(each.chunk for each in home.shown) == text
    assert home.shown[0].offset == 0
    assert printed == len(text)
    assert text.startswith("one\n")
    assert secret not in text
    assert shells.printed("bg_9") == ("", 0)
