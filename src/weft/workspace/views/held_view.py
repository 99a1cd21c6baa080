"""A view of a project that stays: an overlay of its own for everything that one session does.

Other sandboxed commands get a fresh overlay each, and what they wrote is carried into the project.
Here the overlay lives as long as the work in it, its network is its own, and nothing reaches the
project.  Commands run in it side by side; our file tools work on the same tree from outside, below
a descriptor of its root, so that no mount has to be visible anywhere else.

A place on disk holds what was written.  It outlives the process, and its lock is held by the
process and by the view: two overlays over one upper layer would be allowed by the kernel, and
nothing would be promised of what they show.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final

import anyio
import msgspec

from weft.errors import FinalToolError, RetryableToolError
from weft.workspace.base import KEPT_BYTES, ProcessCommand, Runner, RunResult
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.egress.judge import CommandEgress, EgressJudge, no_egress
from weft.workspace.local import LocalWorkspace
from weft.workspace.os_errors import explain
from weft.workspace.paths import WorkspacePath, WorkspaceRoots
from weft.workspace.process.capture import OutputCapture
from weft.workspace.process.disk_guard import DiskGuard, full_sentence
from weft.workspace.safe_open import open_beneath
from weft.workspace.sandbox.client import Cell, HeldNamespaces, MountPlan, SandboxUnavailable
from weft.workspace.sandbox.machine import PROXY_PORT, ProcessSandbox
from weft.workspace.sandbox.overlay_changes import is_gone
from weft.workspace.sandbox.removals import folder_size
from weft.workspace.sandbox.runner import RunningCommand

OBJECTS: Final = "/tmp/.git-objects"
"""Where a view shows the objects of the project's repository, read-only."""
MOST_BYTES: Final = 2 * 1024**3
"""What one view may hold; then its commands are refused."""
LOCK_SECONDS: Final = 5.0
"""How long a place may still be held by the view of a process that is gone."""
_PAUSE: Final = 0.02
_MOST_LINKS: Final = 40
_UNCONFINED: Final = (
    "this session works in an overlay of its own, where nothing runs outside the sandbox or in the "
    "background; run it without"
)


class ViewPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where one view keeps what is written in it."""

    folder: str

    @property
    def upper(self) -> str:
        """The upper layer: exactly what was changed."""
        return f"{self.folder}/upper"

    def make(self, root: str) -> None:
        """Make what is missing of it.  Blocks."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        for name, mode in (
            ("upper", stat.S_IMODE(os.stat(root).st_mode) | 0o700),
            ("work", 0o700),
            ("tmp", 0o1777),
            ("var-tmp", 0o1777),
        ):
            path = f"{self.folder}/{name}"
            if not os.path.isdir(path):
                os.mkdir(path, 0o700)
                # By `chmod`, because `mkdir` takes the umask off its mode.
                os.chmod(path, mode)

    def size(self) -> int:
        """Bytes that were written, with what lies in its `/tmp`.  Blocks."""
        return sum(folder_size(f"{self.folder}/{name}") for name in ("upper", "tmp", "var-tmp"))


class HeldView:
    """One view, open."""

    def __init__(
        self,
        sandbox: ProcessSandbox,
        *,
        root: str,
        place: ViewPlace,
        pins: Sequence[str] = (),
        objects: str = "",
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`pins` are folders that are seen before the project; `objects` is shown at `OBJECTS`."""
        self.root = root
        self.place = place
        self.most_bytes = most_bytes
        self._sandbox = sandbox
        self._pins = tuple(pins)
        self._objects = objects
        self._cell: Cell | None = None
        self._held: HeldNamespaces | None = None
        self._opening = anyio.Lock()

    @property
    def has_own_network(self) -> bool:
        """False where the user lets commands use the machine's network."""
        return not self._sandbox.options.network

    async def open(self) -> None:
        """Make the view, or make it anew where the sandbox broke down.

        Raises:
            SandboxUnavailable: it cannot be made, and why.
        """
        async with self._opening:
            if self._cell is not None and not self._cell.is_lost:
                return
            # Before the next mount: a descriptor of ours would keep the last one alive.
            self._let_go()
            if why := await self._sandbox.why_not((self.root,)):
                raise SandboxUnavailable(why)
            await DiskThreads.of(self.root).run(lambda: self.place.make(self.root))
            lock = await self._locked()
            try:
                cell = self._sandbox.new_cell()
                self._held = await cell.hold(self._plan(), lock)
                self._cell = cell
            finally:
                os.close(lock)

    def _plan(self) -> MountPlan:
        place, sandbox = self.place, self._sandbox
        temporary = [(f"{place.folder}/tmp", "/tmp"), (f"{place.folder}/var-tmp", "/var/tmp")]
        temporary = [each for each in temporary if os.path.isdir(each[1])]
        # After the rest: its place lies in one of them.
        temporary += [(self._objects, OBJECTS)] if self._objects else []
        return MountPlan(
            layers=((self.root, place.upper, f"{place.folder}/work"),),
            temporary=tuple(temporary),
            empty_file=sandbox.scratch.unreadable,
            hidden=tuple(sandbox.hidden_paths((self.root,))),
            pins=self._pins,
            has_own_network=self.has_own_network,
        )

    async def _locked(self) -> int:
        """The lock of the place, which the view takes over."""
        path = f"{self.place.folder}/lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with anyio.move_on_after(LOCK_SECONDS):
                while True:
                    with suppress(BlockingIOError):
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        return lock
                    await anyio.sleep(_PAUSE)
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        raise SandboxUnavailable(f"{self.place.folder} is in use by another process")

    @property
    def root_fd(self) -> int:
        """The project in the view.

        Raises:
            RetryableToolError: the view is gone.
        """
        if self._held is None:
            raise RetryableToolError("the overlay of this session is not open")
        return self._held.root

    def has_own(self, path: str) -> bool:
        """Whether a path is other than the project's by what was written in the view, or by a pin:
        then no change of the project shows through.  Blocks.
        """
        layers = (self.place.upper, *self._pins)
        return any(os.path.lexists(f"{layer}/{path}") or is_gone(layer, path) for layer in layers)

    def joined_cell(self, *, has_egress: bool = False) -> Cell:
        """A cell for one command in the view; in a network of its own where it has a way out, for
        the others in the view may have none."""
        if self._held is None:
            raise RetryableToolError("the overlay of this session is not open")
        cell = self._sandbox.new_cell()
        cell.join(self._held, port=PROXY_PORT if has_egress else 0)
        return cell

    async def close(self) -> None:
        """Take the view apart, with all that runs in it; what was written stays in its place."""
        async with self._opening:
            cell, self._cell = self._cell, None
            self._let_go()
            if cell is not None:
                cell.signal(b"kill")
                cell.close()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    def runner(self, inner: Runner, egress: CommandEgress = no_egress) -> HeldRunner:
        """Runs commands in the view; `inner` is asked for programs alone, and `egress` says which
        hosts a command may reach."""
        return HeldRunner(self, inner, self._sandbox, egress)

    def workspace(self, *, kept_bytes: int = KEPT_BYTES) -> HeldWorkspace:
        """The files of the project as the view has them."""
        return HeldWorkspace(self, kept_bytes=kept_bytes)


class HeldRunner(Runner):
    """Runs commands in a view that stays; any number of them side by side."""

    def __init__(
        self,
        view: HeldView,
        inner: Runner,
        sandbox: ProcessSandbox,
        egress: CommandEgress = no_egress,
    ) -> None:
        self._view = view
        self._inner = inner
        self._sandbox = sandbox
        self._egress = egress
        self._threads = DiskThreads.of(view.root)

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner.which(program, not_below=not_below)

    def knows_changes(self, command: ProcessCommand) -> bool:
        # What is in the upper layer is the change set; nothing has to be watched for.
        return True

    async def is_sandboxed(self) -> bool:
        return True

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        if command.is_unconfined or command.stop is not None:
            raise FinalToolError(_UNCONFINED)
        view = self._view
        try:
            await view.open()
        except SandboxUnavailable as error:
            raise RetryableToolError(f"the overlay of this session is gone: {error}") from error
        if not command.only_reads:
            await self._check_room()
        # With the machine's network there is nothing to be let through.
        hosts = self._egress(command) if view.has_own_network else None
        with closing(view.joined_cell(has_egress=hosts is not None)) as cell:
            if hosts is None:
                return await self._ran(cell, command, on_output)
            return await self._ran_reaching(hosts, cell, command, on_output)

    async def _ran(
        self, cell: Cell, command: ProcessCommand, on_output: Callable[[str], None] | None
    ) -> RunResult:
        request = self._sandbox.exec_request(command, (self._view.root,))
        with closing(OutputCapture(on_output)) as output, closing(OutputCapture(None)) as errors:
            with closing(cell):
                running = RunningCommand(cell, request, command, output, errors)
                timed_out = await self._timed_out(running, command)
            result = running.result(command, timed_out=timed_out)
        return msgspec.structs.replace(result, changes=())

    async def _ran_reaching(
        self,
        hosts: EgressJudge,
        cell: Cell,
        command: ProcessCommand,
        on_output: Callable[[str], None] | None,
    ) -> RunResult:
        from weft.workspace.egress.command_egress import run_with_egress  # few commands may

        async def work(variables: Mapping[str, str]) -> RunResult:
            environ = {**variables, **command.env}
            told = msgspec.structs.replace(command, env=environ)
            return await self._ran(cell, told, on_output)

        listener = await cell.listener()
        return await run_with_egress(listener, hosts, self._sandbox.environ, work)

    async def _timed_out(self, running: RunningCommand, command: ProcessCommand) -> bool:
        """Wait for the end of a command; true where it had to be ended.

        Raises:
            RetryableToolError: it filled the disk.
        """
        try:
            with DiskGuard((self._view.place.folder,), running.kill) as guard:
                timed_out = not await running.ends_within(command.timeout_seconds)
                if timed_out:
                    await running.end_politely()
        finally:
            await running.close()
        if guard.is_full:
            raise RetryableToolError(full_sentence())
        return timed_out

    async def _check_room(self) -> None:
        size = await self._threads.run(self._view.place.size)
        if size > self._view.most_bytes:
            raise FinalToolError(
                f"this session has written {size >> 20:,} MiB in its overlay, and "
                f"{self._view.most_bytes >> 20:,} MiB is the limit; remove files with the file "
                "tools first"
            )


class _HeldRoots(WorkspaceRoots):
    """The project by its path, opened by the descriptor of its root in the view."""

    def __init__(self, view: HeldView) -> None:
        super().__init__(view.root)
        self._view = view

    def place(self, path: str) -> WorkspacePath:
        found = super().place(path)
        if found.outside:
            return found
        # Through the magic link and never by its target: that names the project itself, outside.
        return WorkspacePath(f"/proc/self/fd/{self._view.root_fd}", found.name)

    def shown(self, place: WorkspacePath) -> str:
        return place.absolute if place.outside else place.name


class HeldWorkspace(LocalWorkspace):
    """Files below the project as a view has them; the project itself is not reached."""

    def __init__(self, view: HeldView, *, kept_bytes: int = KEPT_BYTES) -> None:
        super().__init__(view.root, kept_bytes=kept_bytes)
        self._view = view
        self._roots = _HeldRoots(view)

    def _real(self, place: WorkspacePath) -> WorkspacePath:
        if place.outside:
            return super()._real(place)
        root = self._view.root_fd
        try:
            os.close(open_beneath(root, place.name, os.O_PATH))
        except OSError as error:
            if error.errno != errno.ELOOP:
                return place
        else:
            return place
        # Link by link: `realpath` would follow the descriptor to the project outside the view.
        try:
            return WorkspacePath(place.folder, real_name(root, place.name, self.root))
        except OSError as error:
            raise explain(error, place.name) from error


def real_name(root: int, name: str, path: str) -> str:
    """The name below an open folder with every link followed; `path` is the folder's own.

    Raises:
        FinalToolError: a link leads out of the folder.
        OSError: they go round in a circle.
    """
    waiting, done = name.split("/"), list[str]()
    links = 0
    while waiting:
        part = waiting.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise _leads_out(name)
            done.pop()
            continue
        try:
            target = os.readlink("/".join([*done, part]), dir_fd=root)
        except OSError:  # no link, or nothing there
            done.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        if target.startswith("/"):
            if not f"{target}/".startswith(f"{path.rstrip('/')}/"):
                raise _leads_out(name)
            done, target = [], target[len(path.rstrip("/")) :]
        waiting = [*target.split("/"), *waiting]
    return "/".join(done) or "."


def _leads_out(name: str) -> FinalToolError:
    return FinalToolError(f"{name!r} leads out of the project by a symbolic link")
