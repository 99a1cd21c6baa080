"""Commands that can do nothing but what is judged.

`ProcessSandbox` is what one process has: the keeper, the folder that commands write to, and what it found out about this machine by trying.
`SandboxRunner` is the runner of one session: it runs a command in a box over the project, and when the command is over, what it changed is
judged (boundaries, protected paths, rules) and only then put into the project, path by path.  What is refused is named, and stays out.

Where this machine has no sandbox, commands run as they would without it, by the runner that is handed in; what they changed is then
reported, never put back.

A cancelled command leaves nothing behind: what it wrote is thrown away.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress

import anyio
import msgspec

from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.workspace.base import ProcessCommand, Runner, RunResult
from weft.workspace.boundaries.workspace import SessionBoundaries
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.paths import WorkspaceRoots
from weft.workspace.process.capture import OutputCapture
from weft.workspace.process.environment import scrubbed
from weft.workspace.process.runner import GRACE_SECONDS, REAP_SECONDS, OutputPipe, stdin_file
from weft.workspace.process.search_path import find_program, lies_in
from weft.workspace.sandbox.client import (
    SWITCH,
    Cell,
    CellConfig,
    CellRun,
    ExecRequest,
    Keeper,
    MountPlan,
    SandboxUnavailable,
    keeper_command,
)
from weft.workspace.sandbox.hidden import HiddenPaths
from weft.workspace.sandbox.overlay_commit import ChangeJudge, CommittedChanges, OverlayCommit
from weft.workspace.sandbox.overlay_plan import KEPT_BYTES, started_now
from weft.workspace.sandbox.overlay_recovery import sweep
from weft.workspace.sandbox.scratch import ScratchFolder, ScratchJob, ScratchPlace
from weft.workspace.sandbox.seccomp import NUMBERS, program

SIDE_BY_SIDE = 2
"""Boxes of one project that stand ready."""
MOST_READY = 4
"""Boxes that stand ready; more are let go."""
TRIAL_SECONDS = 10.0
"""How long a project's first box may take."""
_TRIAL = ".weft-sandbox-trial"
_SPEAKS_OF_WALLS = (
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
WALLS = (
    "(It ran in a sandbox: only the project and /tmp can be written, files with secrets cannot be "
    "read, and there is no network{network}{sockets}.)"
)

NO_SANDBOX = (
    "Commands run here without a sandbox, with everything that you may do yourself: {}. "
    "What they change is found out afterwards and reported; nothing is held back. `weft doctor` says more."
)
_NO_LANDLOCK = "is not in this kernel: named pipes outside can be written to"


class SandboxLayer(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the sandbox is made of, tried on this machine."""

    name: str
    works: bool
    detail: str = ""


class SandboxReport(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine can do."""

    is_available: bool
    reason: str = ""
    """Why there is no sandbox, for people."""
    layers: tuple[SandboxLayer, ...] = ()


class SandboxOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the person settled."""

    network: bool = False
    unix_sockets: bool = False
    """Let commands make unix sockets, by which they reach every server outside whose socket they can see."""
    shown: tuple[str, ...] = ()
    """Files and folders that are not hidden, by path or by name."""


class ProcessSandbox:
    """The sandbox of one process."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        folder: str,
        hidden: Sequence[str] = (),
        options: SandboxOptions | None = None,
    ) -> None:
        """`folder` is ours alone, on a disk that outlives the process; `hidden` names files and folders that commands must not see."""
        self.options = options or SandboxOptions()
        self._environ = environ
        self._scrubbed = scrubbed(environ)
        home = environ.get("HOME", "")
        self._home = os.path.realpath(home) if home else ""
        folder = os.path.realpath(folder)
        self.scratch = ScratchFolder(folder)
        self._hidden = HiddenPaths(self._home, folders=[*hidden, folder], shown=self.options.shown)
        self._is_known_machine = os.uname().machine in NUMBERS
        self._keeper: Keeper | None = None
        self._bubblewrap = ""
        """The program that the keeper runs under."""
        self._projects: set[str] = set()
        """Folders that commands may write to: no program of the sandbox itself comes from there."""
        self._starting = anyio.Lock()
        self._broken = ""
        """Why there is none; found out once."""
        self._tried: dict[tuple[str, ...], str] = {}
        self._ready: dict[tuple[str, ...], list[CommandBox]] = {}

    def hide(self, paths: Sequence[str]) -> None:
        """Commands that start from now on must not see these either."""
        self._hidden.add(paths)

    # --- what there is ---------------------------------------------------------------------------

    async def why_not(self, roots: Sequence[str]) -> str:
        """Why commands of these folders cannot run in a sandbox; empty when they can.  Found out by trying, once."""
        key = tuple(roots)
        if not self._broken and key in self._tried and self._is_up:
            return self._tried[key]
        async with self._starting:
            # Before the search for bubblewrap: every program lies in the whole disk.
            if why := _unfit(key):
                return why
            self._projects.update(key)
            try:
                await self._start()
            except SandboxUnavailable as error:
                return str(error)
            if key not in self._tried:
                self._tried[key] = await self._try(key)
            return self._tried[key]

    def holds(self, roots: tuple[str, ...]) -> bool:
        """True when it is known already that commands of these folders run in the sandbox."""
        return self._is_up and self._tried.get(roots) == ""

    async def probe(self, roots: Sequence[str]) -> SandboxReport:
        """Try everything that the sandbox is made of, for people who want to know."""
        reason = await self.why_not(roots)
        if reason:
            return SandboxReport(is_available=False, reason=reason, layers=self._layers(reason))
        return SandboxReport(is_available=True, layers=self._layers(""))

    def _layers(self, reason: str) -> tuple[SandboxLayer, ...]:
        network = "allowed" if self.options.network else "blocked"
        sockets = "allowed" if self.options.unix_sockets else "blocked"
        has_landlock = self._keeper is not None and self._keeper.has_landlock
        return (
            SandboxLayer(name="bubblewrap", works=self._is_up, detail=self._broken),
            SandboxLayer(name="overlay", works=not reason, detail=reason),
            SandboxLayer(
                name="seccomp",
                works=self._is_known_machine,
                detail=f"unix sockets {sockets}",
            ),
            SandboxLayer(
                name="landlock",
                works=has_landlock,
                detail="named pipes outside blocked" if has_landlock else _NO_LANDLOCK,
            ),
            SandboxLayer(name="network", works=True, detail=network),
        )

    @property
    def _is_up(self) -> bool:
        return self._keeper is not None and self._keeper.is_open

    async def _start(self) -> None:
        if self._broken:
            raise SandboxUnavailable(self._broken)
        if self._is_up:
            if not lies_in(self._bubblewrap, self._projects):
                return
            # A project opened later may hold the program that runs.  Where there is no other one,
            # only this project goes without a sandbox; the projects before it keep theirs.
            if not self._find("bwrap"):
                raise SandboxUnavailable(self._no_bubblewrap())
        try:
            if not self.scratch.folder:
                self._open_scratch()
            await self._open_keeper()
        except SandboxUnavailable as error:
            self._broken = str(error)
            raise

    def _open_scratch(self) -> None:
        if not sys.platform.startswith("linux") or not self._is_known_machine:
            raise SandboxUnavailable("only Linux on x86-64 and 64-bit ARM has it")
        try:
            self.scratch.open()
        except OSError as error:
            raise SandboxUnavailable(
                f"its folder cannot be made: {error.filename}: {error.strerror}"
            ) from error

    def _find(self, name: str) -> str:
        """A program for ourselves, which no command of any project can replace; empty without one.

        Links are resolved here, once: what is started is the file that was looked at.
        """
        found = find_program(name, self._scrubbed["PATH"], outside=self._projects)
        return os.path.realpath(found) if found else ""

    def _no_bubblewrap(self) -> str:
        found = find_program("bwrap", self._scrubbed["PATH"])
        if found is None:
            return "bubblewrap (the program bwrap) is not installed"
        return (
            f"the only bubblewrap on PATH is {found}, which commands could replace; "
            "install it outside of the project"
        )

    async def _open_keeper(self) -> None:
        self._bubblewrap = self._find("bwrap")
        if not self._bubblewrap:
            raise SandboxUnavailable(self._no_bubblewrap())
        python = sys.executable or self._find("python3")
        if not python:
            raise SandboxUnavailable("there is no Python interpreter to run the keeper")
        argv = keeper_command(
            bubblewrap=self._bubblewrap,
            python=python,
            scratch=self.scratch.base,
            network=self.options.network,
        )
        before, self._keeper = self._keeper, None
        if before is not None:
            await before.aclose()
        try:
            self._keeper = await _opened(argv)
        except SandboxUnavailable as error:
            if SWITCH not in str(error):
                raise
            # An older bubblewrap does not have it; the filter and the lack of capabilities say the same.
            self._keeper = await _opened([word for word in argv if word != SWITCH])

    async def _try(self, roots: tuple[str, ...]) -> str:
        """Run something in a box over these folders; empty when it did what it should."""
        box = self.box(roots, ScratchJob(label="", roots=roots, started_ns=0))
        command = ProcessCommand(argv=("/bin/sh", "-c", f": > {_TRIAL}"), cwd=roots[0])
        nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        try:
            run = box.cell.run(self.order(command, roots), (nothing, nothing, nothing))
            with anyio.move_on_after(TRIAL_SECONDS):
                await run.ended.wait()
        finally:
            os.close(nothing)
        is_held = _is_held(box.place)
        self.scratch.discard(box.place)
        if run.status == 0 and is_held:
            self.make_ready(box.cell, roots)
            return ""
        box.cell.close()
        if run.stage:
            return f"{run.stage}: {os.strerror(run.errno) if run.errno else 'it failed'}"
        return "a command could not write in its overlay"

    async def aclose(self) -> None:
        """End the keeper and every command, and take the folder away."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()
        await DiskThreads().run(self._tidy)

    def _tidy(self) -> None:
        if self.scratch.folder:
            self.scratch.close()
            sweep(self.scratch.base)

    # --- what a box is made of --------------------------------------------------------------------

    @property
    def keeper(self) -> Keeper:
        """The keeper that runs."""
        if self._keeper is None or not self._keeper.is_open:
            raise RetryableToolError("the sandbox broke down; try again")
        return self._keeper

    def box(self, roots: tuple[str, ...], job: ScratchJob) -> CommandBox:
        """A box over these folders for one command: one that stands ready, or a new one."""
        stamp = self._hidden.stamp()
        while ready := self._ready.get(roots):
            box = ready.pop(0)
            if box.is_fit(self.keeper, stamp):
                self.scratch.assign(box.place, job)
                return box
            self._let_go(box)
        box = self._made(self.keeper.cell(self._charter()), roots)
        self.scratch.assign(box.place, job)
        return box

    def make_ready(self, cell: Cell, roots: tuple[str, ...]) -> None:
        """Let a cell make the view for the next command of these folders: that takes longer than starting a command in it.

        Nothing looks at the disk through it before the command does, so it shows the project as it is then.
        """
        if cell.is_lost or not self._is_up:
            return
        if sum(map(len, self._ready.values())) >= MOST_READY:
            cell.close()
            return
        ready = self._ready.setdefault(roots, [])
        with suppress(OSError):  # the next command tries for itself, and tells
            ready.append(self._made(cell, roots))
            if len(ready) < SIDE_BY_SIDE:
                # In turns: while the one takes its last view apart and makes the next, the other runs a command.
                ready.append(self._made(self.keeper.cell(self._charter()), roots))

    def _made(self, cell: Cell, roots: tuple[str, ...]) -> CommandBox:
        place = self.scratch.place(roots)
        cell.prepare(
            MountPlan(
                layers=tuple(place.layers),
                temporary=tuple(self._temporary(roots[0])),
                empty_file=self.scratch.unreadable,
                hidden=tuple(self._hidden.of_machine(roots)),
            )
        )
        return CommandBox(self.keeper, cell, place, self._hidden.stamp())

    def _let_go(self, box: CommandBox) -> None:
        box.cell.close()
        self.scratch.give_back(box.place)

    def _charter(self) -> CellConfig:
        password = secrets.randbits(63)
        code = program(os.uname().machine, password, unix_sockets=self.options.unix_sockets)
        return CellConfig(
            environ={**self._scrubbed, **_INSIDE}, filter=code or b"", password=password
        )

    def order(self, command: ProcessCommand, roots: Sequence[str]) -> ExecRequest:
        """A command as a box takes it."""
        return ExecRequest(
            argv=command.argv,
            cwd=command.cwd,
            environ=command.env,
            hidden=self._hidden.of_projects(roots),
        )

    def _temporary(self, project: str) -> list[tuple[str, str]]:
        """Folders of our own in the place of those that every program writes to.

        They last as long as the process; a project's cache outlives it, and is used by no other and by nobody outside the sandbox.
        """
        found = [(self.scratch.temporary("tmp", 0o1777), "/tmp")]
        if os.path.isdir("/var/tmp"):
            found.append((self.scratch.temporary("var-tmp", 0o1777), "/var/tmp"))
        cache = f"{self._home}/.cache"
        if self._home and os.path.isdir(cache):
            found.append((self.scratch.cache(project), cache))
        return found


def _is_held(place: ScratchPlace) -> bool:
    """True when what the trial wrote is in the overlay and not in the project."""
    root, upper, _ = place.layers[0]
    return os.path.exists(f"{upper}/{_TRIAL}") and not os.path.exists(f"{root}/{_TRIAL}")


_INSIDE = {"TMPDIR": "/tmp", "WEFT_SANDBOX": "1"}
"""What a program in a box finds in its environment besides."""


class CommandBox:
    """A cell with a view of the project, and the place where its command writes."""

    def __init__(
        self, keeper: Keeper, cell: Cell, place: ScratchPlace, stamp: tuple[int, ...]
    ) -> None:
        self.cell, self.place = cell, place
        self._keeper, self._stamp = keeper, stamp
        self._roots = [_which_folder(root) for root in place.roots]

    def is_fit(self, keeper: Keeper, stamp: tuple[int, ...]) -> bool:
        """True while it would show the project and hide all secrets: the folders are the same ones, and the cell still stands."""
        if keeper is not self._keeper or self.cell.is_lost or stamp != self._stamp:
            return False
        return [_which_folder(root) for root in self.place.roots] == self._roots


def _which_folder(path: str) -> tuple[int, int, int]:
    about = os.stat(path)
    return about.st_dev, about.st_ino, about.st_mode


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
        is_required: bool = False,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """`is_required`: where there is no sandbox, commands are refused instead of run by `inner`.

        `kept_bytes`: the content of larger files is not kept for the history.
        """
        self._sandbox = sandbox
        self._inner = inner
        self._names = WorkspaceRoots(root, added)
        self._roots = _outermost([self._names.root, *(os.path.realpath(each) for each in added)])
        self._judge = judge
        self._boundaries = boundaries
        self._base_of = base_of
        self._is_required = is_required
        self._kept_bytes = kept_bytes
        self._threads = DiskThreads.of(self._names.root)
        self._has_told = False
        """The person knows that there is no sandbox."""

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
            return self._told(await self._inner.run(command, on_output), why)
        started = started_now()
        job = ScratchJob(label=command.label, roots=self._roots, started_ns=started)
        box = self._sandbox.box(self._roots, job)
        place = box.place
        try:
            result = await self._run(command, box.cell, on_output)
        except BaseException:
            box.cell.close()
            with anyio.CancelScope(shield=True):
                await self._threads.run(lambda: self._sandbox.scratch.discard(place))
            raise
        # When whoever waits for the result has it.
        loop = asyncio.get_running_loop()
        loop.call_soon(self._sandbox.make_ready, box.cell, self._roots)
        if place.is_unused:
            self._sandbox.scratch.give_back(place)
            return _with(result, CommittedChanges(), self._walls(result))
        # From here on the changes are the project's: whoever gives up waiting must not lose sight of half of them.
        with anyio.CancelScope(shield=True):
            carried = await self._carrier(place, started, command.label).run()
        return _with(result, carried, self._walls(result))

    def _told(self, result: RunResult, why: str) -> RunResult:
        """The result of a command that had no sandbox; the first one says so to the person."""
        if self._has_told:
            return result
        self._has_told = True
        return msgspec.structs.replace(result, notes=(*result.notes, NO_SANDBOX.format(why)))

    async def _run(
        self, command: ProcessCommand, cell: Cell, on_output: Callable[[str], None] | None
    ) -> RunResult:
        with closing(OutputCapture(on_output)) as output, closing(OutputCapture(None)) as errors:
            order = self._sandbox.order(command, self._roots)
            running = _Running(cell, order, command, output, errors)
            try:
                timed_out = not await running.ends_within(command.timeout_seconds)
                if timed_out:
                    await running.end_politely()
            finally:
                await running.close()
            return running.result(command, timed_out=timed_out)

    def _carrier(self, place: ScratchPlace, started: int, label: str) -> OverlayCommit:
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
            kept_bytes=self._kept_bytes,
            tidy=lambda: scratch.settle(place, label),
        )

    def _shown(self, root: str, path: str) -> str:
        return path if root == self._names.root else f"{root}/{path}"

    def _walls(self, result: RunResult) -> str:
        """What to tell of the sandbox to whoever seems to have run into it."""
        if not result.exit_code or not any(word in result.output for word in _SPEAKS_OF_WALLS):
            return ""
        options = self._sandbox.options
        return WALLS.format(
            network=" but this machine's" if options.network else "",
            sockets="" if options.unix_sockets else "; unix sockets are refused",
        )


class _Running:
    """One command in its box."""

    def __init__(
        self,
        cell: Cell,
        order: ExecRequest,
        command: ProcessCommand,
        output: OutputCapture,
        errors: OutputCapture,
    ) -> None:
        self._started = time.monotonic()
        self._output, self._errors = output, errors
        captures = [output, errors] if command.errors_apart else [output]
        self._pipes = [OutputPipe(capture) for capture in captures]
        stdin = stdin_file(command.stdin)
        if stdin < 0:
            stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._command = cell.run(order, (stdin, self._pipes[0].theirs, self._pipes[-1].theirs))
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
                # Whoever could write to it is dead, so what is in it is all there will be.
                while not pipe.closed.is_set() and pipe.take():
                    pass
                pipe.close()

    def result(self, command: ProcessCommand, *, timed_out: bool) -> RunResult:
        """How it ended.

        Raises:
            ToolError: it did not start, or goes on running whatever is done: then nobody can say what it has written.
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


def _with(result: RunResult, carried: CommittedChanges, walls: str) -> RunResult:
    remarks = [*carried.remarks, walls] if walls else carried.remarks
    return msgspec.structs.replace(
        result,
        changes=tuple(carried.changes),
        left_out=tuple(carried.left_out),
        remarks=tuple(remarks),
        is_held_back=carried.is_held_back,
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


def _unfit(roots: Sequence[str]) -> str:
    """Why an overlay over these folders would not show what is in them; empty when it would."""
    for root in roots:
        if root == "/":
            return "the whole disk is not a project"
        about = os.stat(root)
        if about.st_uid != os.geteuid():
            return f"{root} belongs to another user"
        for mounted in _mounts():
            if mounted.startswith(f"{root}/"):
                return f"another disk is mounted in the project, at {mounted}"
    return ""


def _mounts() -> list[str]:
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    fields = (line.split(b" ")[4] for line in lines)
    return [os.fsdecode(field.replace(b"\\040", b" ")) for field in fields]


async def _opened(argv: list[str]) -> Keeper:
    keeper = Keeper(argv)
    await keeper.open()
    return keeper
