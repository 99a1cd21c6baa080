"""The runner of one session: commands that can do nothing but what is judged.

It runs a command in a box over the project (`machine` makes those), and when the command is over,
what it changed is judged (boundaries, protected paths, rules) and only then put into the project,
path by path.  What is refused is named, and stays out.

Where this machine has no sandbox, commands run as they would without it, by the runner that is
handed in; what they changed is then reported, never put back.

A cancelled command leaves nothing behind: what it wrote is thrown away.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.workspace.base import ChangeReview, ProcessCommand, Runner, RunResult
from weft.workspace.boundaries.workspace import SessionBoundaries
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.paths import WorkspaceRoots
from weft.workspace.process.capture import OutputCapture
from weft.workspace.process.command_process import REAP_SECONDS
from weft.workspace.process.disk_guard import DiskGuard, full_sentence
from weft.workspace.process.runner import GRACE_SECONDS, OutputPipe, stdin_file
from weft.workspace.sandbox.client import Cell, CellRun, ExecRequest
from weft.workspace.sandbox.machine import CommandCell, ProcessSandbox
from weft.workspace.sandbox.overlay_commit import (
    ASIDE_BYTES,
    ChangeJudge,
    CommittedChanges,
    OverlayCommit,
)
from weft.workspace.sandbox.overlay_plan import KEPT_BYTES, started_now
from weft.workspace.sandbox.scratch import ScratchJob, ScratchPlace

if TYPE_CHECKING:  # loaded with the first change of a repository, and where hosts are allowed
    from weft.workspace.egress.judge import EgressJudge
    from weft.workspace.sandbox.git_guard import GitGuard

_SANDBOX_SYMPTOMS = (
    "Read-only file system",
    "Operation not permitted",
    "Permission denied",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "t connect to server",
    "EROFS",
    "ENETUNREACH",
    "EAI_AGAIN",
)
SANDBOX_HINT = (
    "(It ran in a sandbox: only the project and /tmp can be written, files with secrets cannot be "
    "read, and there is no network{network}{sockets}.)"
)
NO_HOSTS = " (name the hosts that it needs in `hosts`)"
NO_RULES = " (your rules name the hosts that it may reach: `fetch(domain:HOST)`)"
# An overlay copies a file before it is changed, and then only the old name keeps the old inode; it
# cannot move a folder of the layer below at all.  Neither can be switched on without being root.
OVERLAY_LIMITS: Final = {
    "hardlink different from source": "(In the sandbox git takes a hard link to a file of the "
    "project for another file: `git clone --no-hardlinks` works.)",
    "cross-device link": "(In the sandbox a folder that was there before the command cannot be "
    "renamed in one step; `mv` copies it instead. A work tree is moved with `mv OLD NEW && git "
    "worktree repair NEW`.)",
}
"""What a failed command says, and what to do instead."""

DROPPED = (
    "(This command was taken for one that only reads, so what it changed did not reach the "
    "project: {}.)"
)
NO_SANDBOX = (
    "Commands run here without a sandbox, with everything that you may do yourself: {}. "
    "What they change is found out afterwards and reported; nothing is held back. `weft "
    "doctor` says more."
)


class SandboxRunner(Runner):
    """Runs the commands of one session in the sandbox, where there is one."""

    def __init__(
        self,
        sandbox: ProcessSandbox,
        inner: Runner,
        *,
        root: str,
        added: Sequence[str] = (),
        judge: ChangeJudge,
        boundaries: SessionBoundaries,
        base_of: Callable[[str], bytes | None] = lambda path: None,
        egress: Callable[[ProcessCommand], EgressJudge | None] = lambda command: None,
        is_required: bool = False,
        kept_bytes: int = KEPT_BYTES,
        aside_bytes: int = ASIDE_BYTES,
        disk_guard: Callable[[Sequence[str], Callable[[], None]], DiskGuard] = DiskGuard,
    ) -> None:
        """`egress` says which hosts a command may reach; None where it has no network at all.

        `is_required`: where there is no sandbox, commands are refused instead of run by `inner`.

        `kept_bytes`: the content of larger files is not kept for the history; removed ones are
        moved aside, up to `aside_bytes` of all commands.
        """
        self._sandbox = sandbox
        self._inner = inner
        self._names = WorkspaceRoots(root, added)
        self._roots = _outermost([self._names.root, *(os.path.realpath(each) for each in added)])
        self._judge = judge
        self._boundaries = boundaries
        self._base_of = base_of
        self._egress = egress
        self._is_required = is_required
        self._kept_bytes = kept_bytes
        self._aside_bytes = aside_bytes
        self._disk_guard = disk_guard
        self._threads = DiskThreads.of(self._names.root)
        self._has_notified = False
        """The user was shown the notice that there is no sandbox."""

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    def knows_changes(self, command: ProcessCommand) -> bool:
        is_inside = not (command.only_reads or command.is_unconfined)
        return (is_inside and self._sandbox.holds(self._roots)) or self._inner.knows_changes(
            command
        )

    async def is_sandboxed(self) -> bool:
        return not await self._sandbox.why_not(self._roots)

    async def why_unconfined(self) -> str:
        return await self._sandbox.why_not(self._roots)

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        if command.only_reads or command.is_unconfined:
            return await self._inner.run(command, on_output)
        if why := await self._sandbox.why_not(self._roots):
            if self._is_required:
                raise FinalToolError(
                    f"commands may only run in the sandbox, and there is none: {why}"
                )
            return self._with_notice(await self._inner.run(command, on_output), why)
        # Before the box: a file that another program changes from here on counts as changed
        # meanwhile.
        started = started_now()
        job = ScratchJob(label=command.label, roots=self._roots, started_ns=started)
        # With the machine's network there is nothing to be let through.
        hosts = None if self._sandbox.options.network else self._egress(command)
        has_egress = hosts is not None
        box = self._sandbox.box(self._roots, job, has_egress=has_egress)
        place = box.place
        try:
            if hosts is None:
                result = await self._run(command, box.cell, place, on_output)
            else:
                result = await self._run_reaching(hosts, command, box, on_output)
        # A cancel too: the command may be amid a change, and half of one must not be judged.
        except BaseException:
            box.cell.close()
            with anyio.CancelScope(shield=True):
                await self._threads.run(lambda: self._sandbox.scratch.discard(place))
            raise
        # Later, so that the result of this command does not wait for it.
        loop = asyncio.get_running_loop()
        make_ready = partial(self._sandbox.make_ready, has_egress=has_egress)
        loop.call_soon(make_ready, box.cell, self._roots)
        hint = self._hint(result, command, hosts)
        if place.is_unused:
            self._sandbox.scratch.give_back(place)
            return _with(result, CommittedChanges(), hint)
        if command.drops_changes:
            dropped = await self._dropped(place)
            return _with(result, CommittedChanges(remarks=dropped), hint)
        commit = self._commit_of(place, started, command.label)
        if command.review is not None:
            declined = await self._declined(commit, command.review, place)
            if declined is not None:
                return msgspec.structs.replace(_with(result, declined, hint), is_declined=True)
        # From here on the changes are the project's.  A cancel waits until they are complete and
        # recorded: half of them would be in the project and in no history.
        with anyio.CancelScope(shield=True):
            committed = await commit.run()
        return _with(result, committed, hint)

    async def _declined(
        self, commit: OverlayCommit, review: ChangeReview, place: ScratchPlace
    ) -> CommittedChanges | None:
        """What is to be said of changes that the review does not want; None where it does."""
        try:
            changes = await commit.review()
            if await review(changes):
                return None
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._threads.run(lambda: self._sandbox.scratch.discard(place))
            raise
        with anyio.CancelScope(shield=True):
            await self._threads.run(lambda: self._sandbox.scratch.discard(place))
        return CommittedChanges(remarks=list(changes.remarks), is_held_back=True)

    async def _run_reaching(
        self,
        hosts: EgressJudge,
        command: ProcessCommand,
        box: CommandCell,
        on_output: Callable[[str], None] | None,
    ) -> RunResult:
        """Run a command that may reach some hosts."""
        from weft.workspace.egress.command_egress import run_with_egress  # few commands may

        async def work(variables: Mapping[str, str]) -> RunResult:
            environ = {**variables, **command.env}
            told = msgspec.structs.replace(command, env=environ)
            return await self._run(told, box.cell, box.place, on_output)

        listener = await box.cell.listener()
        return await run_with_egress(listener, hosts, self._sandbox.environ, work)

    async def _dropped(self, place: ScratchPlace) -> list[str]:
        """Throw away what a command changed that was judged to only read; says so, unless it is
        git's own bookkeeping.
        """
        uppers = [upper for _, upper, _ in place.layers]

        def drop() -> set[str]:
            names = {name for upper in uppers for name in os.listdir(upper)}
            self._sandbox.scratch.discard(place)
            return names - {".git"}

        with anyio.CancelScope(shield=True):
            names = await self._threads.run(drop)
        return [DROPPED.format(", ".join(sorted(names)[:5]))] if names else []

    def _with_notice(self, result: RunResult, why: str) -> RunResult:
        """The result of a command that had no sandbox.

        The first one carries the notice for the user.
        """
        if self._has_notified:
            return result
        self._has_notified = True
        return msgspec.structs.replace(result, notes=(*result.notes, NO_SANDBOX.format(why)))

    async def _run(
        self,
        command: ProcessCommand,
        cell: Cell,
        place: ScratchPlace,
        on_output: Callable[[str], None] | None,
    ) -> RunResult:
        is_endless = command.review is not None
        capture = OutputCapture(on_output, is_endless=is_endless)
        with closing(capture) as output, closing(OutputCapture(None)) as errors:
            request = self._sandbox.exec_request(command, self._roots)
            running = RunningCommand(cell, request, command, output, errors)
            try:
                # What a command wrote until its time-out is committed, as it would be without a
                # sandbox.
                with self._disk_guard((place.folder,), running.kill) as guard:
                    timed_out = not await running.ends_within(command.timeout_seconds)
                    if timed_out:
                        await running.end_politely()
            finally:
                await running.close()
            if guard.is_full:
                # An error throws away what it wrote, which makes room again.
                raise RetryableToolError(
                    f"{full_sentence()}. Nothing that it wrote reached the project"
                )
            return running.result(command, timed_out=timed_out)

    @cached_property
    def _guard(self) -> GitGuard:
        from weft.workspace.sandbox.git_guard import GitGuard  # with the first change of a `.git`

        return GitGuard(self._inner, self._threads, lambda: self._sandbox.scratch.folder)

    def _commit_of(self, place: ScratchPlace, started: int, label: str) -> OverlayCommit:
        scratch = self._sandbox.scratch
        return OverlayCommit(
            place,
            started_ns=started,
            judge=self._judge,
            boundaries=self._boundaries,
            shown=self._shown,
            base_of=self._base_of,
            aside=scratch.aside(),
            threads=self._threads,
            guard=lambda: self._guard,
            kept_bytes=self._kept_bytes,
            aside_bytes=self._aside_bytes,
            tidy=lambda: scratch.settle(place, label),
        )

    def _shown(self, root: str, path: str) -> str:
        return path if root == self._names.root else f"{root}/{path}"

    def _hint(self, result: RunResult, command: ProcessCommand, hosts: EgressJudge | None) -> str:
        """What to add to the result of a command that seems to have failed because of the
        sandbox.
        """
        if not result.exit_code:
            return ""
        text = result.output + result.errors
        if limit := next((OVERLAY_LIMITS[words] for words in OVERLAY_LIMITS if words in text), ""):
            return limit
        if not any(word in result.output for word in _SANDBOX_SYMPTOMS):
            return ""
        options = self._sandbox.options
        none = NO_HOSTS if command.review is None else NO_RULES
        network = " but this machine's" if options.network else none
        return SANDBOX_HINT.format(
            network=network if hosts is None else " but the hosts that are allowed",
            sockets="" if options.unix_sockets else "; unix sockets are refused",
        )


class RunningCommand:
    """One command in its box."""

    def __init__(
        self,
        cell: Cell,
        request: ExecRequest,
        command: ProcessCommand,
        output: OutputCapture,
        errors: OutputCapture,
    ) -> None:
        self._started = time.monotonic()
        self._output, self._errors = output, errors
        captures = [output, errors] if command.errors_apart else [output]
        self._pipes = [OutputPipe(capture) for capture in captures]
        stdin = stdin_file(command.stdin)
        # `subprocess.DEVNULL` is a negative marker for Popen; the keeper needs a real descriptor.
        if stdin < 0:
            stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._command = cell.run(
                request, (stdin, self._pipes[0].theirs, self._pipes[-1].theirs)
            )
        except BaseException:
            for pipe in self._pipes:
                pipe.close()
            raise
        finally:
            os.close(stdin)
            for pipe in self._pipes:
                pipe.hand_over()
        for pipe in self._pipes:
            pipe.listen()

    async def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the box; False when it takes longer."""
        with anyio.move_on_after(seconds):
            await self._command.ended.wait()
        return self._command.ended.is_set()

    def kill(self) -> None:
        """Kill everything in the box at once; its end is waited for elsewhere."""
        self._command.kill()

    async def end_politely(self) -> None:
        """Ask everything in the box to end, then end it."""
        self._command.ask_to_end()
        if not await self.ends_within(GRACE_SECONDS):
            self._command.kill()
            await self.ends_within(REAP_SECONDS)

    async def close(self) -> None:
        """End what still runs, and take in what is left in the pipes; shielded and bounded."""
        with anyio.CancelScope(shield=True):
            if not self._command.ended.is_set():
                self._command.kill()
                await self.ends_within(REAP_SECONDS)
            for pipe in self._pipes:
                # Every process that could write to it is dead, so what is in it is all there will
                # be.
                while not pipe.closed.is_set() and pipe.take():
                    pass
                pipe.close()

    def result(self, command: ProcessCommand, *, timed_out: bool) -> RunResult:
        """How it ended.

        Raises:
            ToolError: it did not start, or goes on running whatever is done: then what it has
                written is not known.
        """
        if not self._command.ended.is_set():
            raise RetryableToolError(
                "the command could not be ended, so nothing that it wrote reached the project"
            )
        if self._command.status is None and self._command.stage:
            raise _explain(self._command, command)
        status = self._command.status
        return RunResult(
            exit_code=-signal.SIGKILL if status is None else status,
            output=self._output.text(),
            errors=self._errors.text(),
            truncated=self._output.is_cut,
            full_output=self._output.whole(),
            total_bytes=self._output.total,
            timed_out=timed_out,
            duration_ms=round((time.monotonic() - self._started) * 1000),
        )


def _with(result: RunResult, committed: CommittedChanges, hint: str) -> RunResult:
    remarks = [*result.remarks, *committed.remarks, *([hint] if hint else ())]
    return msgspec.structs.replace(
        result,
        changes=tuple(committed.changes),
        left_out=tuple(committed.left_out),
        remarks=tuple(remarks),
        is_held_back=committed.is_held_back,
    )


def _explain(run: CellRun, command: ProcessCommand) -> ToolError:
    if run.stage == "chdir":
        return FinalToolError(f"there is no folder {command.cwd!r} to run the command in")
    if run.stage == "exec" and run.errno in (errno.ENOENT, errno.ENOTDIR):
        return FinalToolError(f"there is no program {command.argv[0]!r} in the sandbox")
    if run.stage == "exec" and run.errno == errno.E2BIG:
        return FinalToolError("the command is too long for this system; put the data into a file")
    why = os.strerror(run.errno) if run.errno else "it broke down"
    return RetryableToolError(f"the sandbox could not run the command: {run.stage}: {why}")


def _outermost(folders: Sequence[str]) -> tuple[str, ...]:
    """The folders without those that lie in another one; the first stays first."""
    kept = [
        folder
        for folder in dict.fromkeys(folders)
        if not any(
            folder != other and folder.startswith(f"{other.rstrip('/')}/") for other in folders
        )
    ]
    return tuple(kept)
