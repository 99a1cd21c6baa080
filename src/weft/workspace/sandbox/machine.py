"""The sandbox of one process: what this machine can do, the keeper, and boxes for commands.

Whether there is a sandbox is found out by running a command in one, never by looking at versions:
containers, distributions and security modules switch off any part of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
import msgspec

from weft.errors import RetryableToolError
from weft.workspace.base import ProcessCommand
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.process.environment import scrubbed
from weft.workspace.process.search_path import find_program, lies_in
from weft.workspace.sandbox.client import (
    SWITCH,
    Cell,
    CellConfig,
    ExecRequest,
    Keeper,
    MountPlan,
    SandboxUnavailable,
    keeper_command,
    write_bytecode,
)
from weft.workspace.sandbox.hidden import HiddenPaths
from weft.workspace.sandbox.overlay_recovery import sweep
from weft.workspace.sandbox.scratch import (
    KEPT_BYTES,
    ScratchFolder,
    ScratchJob,
    ScratchPlace,
)
from weft.workspace.sandbox.seccomp import NUMBERS, program

SIDE_BY_SIDE = 2
"""Boxes of one project that stand ready."""
MOST_READY = 4
"""Boxes that stand ready; more are let go."""
TRIAL_SECONDS = 10.0
"""How long a project's first box may take."""
MOST_SHOWN = 5
"""Hosts that a report names."""
PROXY_PORT = 61_080
"""Where a command finds its egress proxy, in its own network.  Above the ports that systems give to
connections by themselves."""
_TRIAL = ".weft-sandbox-trial"
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
    """Why there is no sandbox, for the user."""
    layers: tuple[SandboxLayer, ...] = ()


class SandboxOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's settings for the sandbox."""

    network: bool = False
    unix_sockets: bool = False
    """Let commands make unix sockets, by which they reach every server outside whose socket they
    can see.
    """
    shown: tuple[str, ...] = ()
    """Files and folders that are not hidden, by path or by name."""
    passed: tuple[str, ...] = ()
    """Variables that commands get although they look like secrets."""
    kept_bytes: int = KEPT_BYTES
    """How much of half-done work, and of files that commands removed, is kept."""


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
        """`folder` is ours alone, on a disk that outlives the process.

        `hidden` names files and folders that commands must not see.
        """
        self.options = options or SandboxOptions()
        self._environ = environ
        self._scrubbed = scrubbed(environ, self.options.passed)
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
        self._ready: dict[tuple[tuple[str, ...], bool], list[CommandCell]] = {}

    def hide(self, paths: Sequence[str]) -> None:
        """Commands that start from now on must not see these either."""
        self._hidden.add(paths)

    # --- what there is ---------------------------------------------------------------------------

    async def why_not(self, roots: Sequence[str]) -> str:
        """Why commands of these folders cannot run in a sandbox.

        Empty when they can.  Found out by trying, once.
        """
        key = tuple(roots)
        if not self._broken and key in self._tried and self._is_up:
            return self._tried[key]
        # Sessions ask at the same time; one of them starts the keeper and the others wait for the
        # outcome.
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

    @property
    def environ(self) -> Mapping[str, str]:
        """What every command in it finds in its environment."""
        return self._scrubbed

    @property
    def is_in_use(self) -> bool:
        """True when it is known already that commands of some folders run in the sandbox."""
        return self._is_up and "" in self._tried.values()

    async def probe(self, roots: Sequence[str], hosts: Sequence[str] = ()) -> SandboxReport:
        """Try everything that the sandbox is made of, for `weft doctor`; `hosts` are those that
        commands may reach.
        """
        reason = await self.why_not(roots)
        layers = self._layers(reason, hosts)
        return SandboxReport(is_available=not reason, reason=reason, layers=layers)

    def _layers(self, reason: str, hosts: Sequence[str]) -> tuple[SandboxLayer, ...]:
        network = "allowed" if self.options.network else _blocked_but_for(hosts)
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
            # Final for this process: what is missing (a program, a kernel switch) does not appear
            # by itself, and trying costs each command up to ten seconds.
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
        write_bytecode()
        argv = keeper_command(
            bubblewrap=self._bubblewrap,
            python=python,
            scratch=self.scratch.base,
            network=self.options.network,
        )
        # `_keeper` is empty while there are two: `keeper` must not hand out one that is being
        # closed.
        before, self._keeper = self._keeper, None
        if before is not None:
            await before.aclose()
        try:
            self._keeper = await _opened(argv)
        except SandboxUnavailable as error:
            if SWITCH not in str(error):
                raise
            # An older bubblewrap does not have it; the filter and the lack of capabilities say the
            # same.
            self._keeper = await _opened([word for word in argv if word != SWITCH])

    async def _try(self, roots: tuple[str, ...]) -> str:
        """Run something in a box over these folders; empty when it did what it should."""
        box = self.box(roots, ScratchJob(label="", roots=roots, started_ns=0))
        command = ProcessCommand(argv=("/bin/sh", "-c", f": > {_TRIAL}"), cwd=roots[0])
        # All three streams: a trial that printed into our terminal would disturb the screen.
        nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        try:
            run = box.cell.run(self.exec_request(command, roots), (nothing, nothing, nothing))
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
            sweep(self.scratch.base, self.options.kept_bytes)

    # --- what a box is made of --------------------------------------------------------------------

    @property
    def keeper(self) -> Keeper:
        """The keeper that runs."""
        if self._keeper is None or not self._keeper.is_open:
            raise RetryableToolError("the sandbox broke down; try again")
        return self._keeper

    def box(
        self, roots: tuple[str, ...], job: ScratchJob, *, has_egress: bool = False
    ) -> CommandCell:
        """A box over these folders for one command: one that stands ready, or a new one.

        `has_egress`: it has a network of its own, with a listener (`Cell.listener`).
        """
        # A box that stands ready hides what was secret when it was made.  If a secret has come to
        # be since, or the project was moved, it is thrown away, because it would show too much or
        # the wrong folder.
        stamp = self._hidden.stamp()
        while ready := self._ready.get((roots, has_egress)):
            box = ready.pop(0)
            if box.is_fit(self.keeper, stamp):
                self.scratch.assign(box.place, job)
                return box
            self._let_go(box)
        box = self._made(self.keeper.cell(self._cell_config()), roots, has_egress=has_egress)
        self.scratch.assign(box.place, job)
        return box

    def make_ready(self, cell: Cell, roots: tuple[str, ...], *, has_egress: bool = False) -> None:
        """Let a cell make the view for the next command of these folders: that takes longer than
        starting a command in it.

        Nothing looks at the disk through it before the command does, so it shows the project as it
        is then.
        """
        if cell.is_lost or not self._is_up:
            return
        # Each one holds mounts and a process; with many projects open that would add up.
        if sum(map(len, self._ready.values())) >= MOST_READY:
            cell.close()
            return
        ready = self._ready.setdefault((roots, has_egress), [])
        with suppress(OSError):  # the next command tries for itself, and reports the error
            ready.append(self._made(cell, roots, has_egress=has_egress))
            if len(ready) < SIDE_BY_SIDE:
                # In turns: while the one takes its last view apart and makes the next, the other
                # runs a command.
                other = self.keeper.cell(self._cell_config())
                ready.append(self._made(other, roots, has_egress=has_egress))

    def _made(self, cell: Cell, roots: tuple[str, ...], *, has_egress: bool) -> CommandCell:
        place = self.scratch.place(roots)
        # Before the paths are listed: a secret that comes in between makes the box unfit.
        stamp = self._hidden.stamp()
        cell.prepare(
            MountPlan(
                layers=tuple(place.layers),
                temporary=tuple(self._temporary(roots[0])),
                empty_file=self.scratch.unreadable,
                hidden=tuple(self._hidden.of_machine(roots)),
                has_own_network=has_egress,
                port=PROXY_PORT if has_egress else 0,
            )
        )
        return CommandCell(self.keeper, cell, place, stamp)

    def new_cell(self) -> Cell:
        """A cell without a view."""
        return self.keeper.cell(self._cell_config())

    def hidden_paths(self, roots: Sequence[str]) -> list[str]:
        """What a view that stays must not show, in these projects and elsewhere."""
        self._hidden.stamp()
        return [*self._hidden.of_machine(roots), *self._hidden.of_projects(roots)]

    def _let_go(self, box: CommandCell) -> None:
        box.cell.close()
        self.scratch.give_back(box.place)

    def _cell_config(self) -> CellConfig:
        password = int.from_bytes(os.urandom(8)) >> 1
        code = program(os.uname().machine, password, unix_sockets=self.options.unix_sockets)
        return CellConfig(
            environ={**self._scrubbed, **_INSIDE}, filter=code or b"", password=password
        )

    def exec_request(self, command: ProcessCommand, roots: Sequence[str]) -> ExecRequest:
        """A command as a box takes it."""
        return ExecRequest(
            argv=command.argv,
            cwd=command.cwd,
            environ=command.env,
            hidden=[*self._hidden.of_projects(roots), *command.hidden],
        )

    def _temporary(self, project: str) -> list[tuple[str, str]]:
        """Folders of our own in the place of those that every program writes to.

        They last as long as the process; a project's cache outlives it, and is used by no other
        project and by no program outside the sandbox.
        """
        found = [(self.scratch.temporary("tmp", 0o1777), "/tmp")]
        if os.path.isdir("/var/tmp"):
            found.append((self.scratch.temporary("var-tmp", 0o1777), "/var/tmp"))
        cache = f"{self._home}/.cache"
        if self._home and os.path.isdir(cache):
            found.append((self.scratch.cache(project), cache))
        return found


def _blocked_but_for(hosts: Sequence[str]) -> str:
    if not hosts:
        return "blocked"
    more = f" and {len(hosts) - MOST_SHOWN} more" if len(hosts) > MOST_SHOWN else ""
    return f"blocked but for {', '.join(hosts[:MOST_SHOWN])}{more}"


def _is_held(place: ScratchPlace) -> bool:
    """True when what the trial wrote is in the overlay and not in the project."""
    root, upper, _ = place.layers[0]
    return os.path.exists(f"{upper}/{_TRIAL}") and not os.path.exists(f"{root}/{_TRIAL}")


_INSIDE = {"TMPDIR": "/tmp", "WEFT_SANDBOX": "1"}
"""What a program in a box finds in its environment besides."""


class CommandCell:
    """A cell with a view of the project, and the place where its command writes."""

    def __init__(
        self, keeper: Keeper, cell: Cell, place: ScratchPlace, stamp: tuple[int, ...]
    ) -> None:
        self.cell, self.place = cell, place
        self._keeper, self._stamp = keeper, stamp
        self._roots = [_which_folder(root) for root in place.roots]

    def is_fit(self, keeper: Keeper, stamp: tuple[int, ...]) -> bool:
        """True while it would show the project and hide all secrets: the folders are the same ones,
        and the cell still stands.
        """
        if keeper is not self._keeper or self.cell.is_lost or stamp != self._stamp:
            return False
        return [_which_folder(root) for root in self.place.roots] == self._roots


def _which_folder(path: str) -> tuple[int, int, int]:
    # Device and inode, because an overlay stays on the folder that it was mounted over: after a
    # rename the path may name another one.
    about = os.stat(path)
    return about.st_dev, about.st_ino, about.st_mode


def _unfit(roots: Sequence[str]) -> str:
    """Why an overlay over these folders would not show what is in them; empty when it would."""
    for root in roots:
        if root == "/":
            return "the whole disk is not a project"
        about = os.stat(root)
        # Only our own user exists in the user namespace: the kernel could not copy what belongs to
        # another one up into the overlay.
        if about.st_uid != os.geteuid():
            return f"{root} belongs to another user"
        for mounted in _mounts():
            # An overlay shows one file system: below the mount point the project would look empty.
            if mounted.startswith(f"{root}/"):
                return f"another disk is mounted in the project, at {mounted}"
    return ""


def _mounts() -> list[str]:
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    # Field 5 is the mount point; the kernel writes a blank in it as \040.
    fields = (line.split(b" ")[4] for line in lines)
    return [os.fsdecode(field.replace(b"\\040", b" ")) for field in fields]


async def _opened(argv: list[str]) -> Keeper:
    keeper = Keeper(argv)
    await keeper.open()
    return keeper
