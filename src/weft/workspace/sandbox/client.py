"""Our side of the keeper: starting it, asking it to run commands, and hearing how they ended.

One keeper serves all commands of a process, side by side.  It is started by bubblewrap with
everything that bubblewrap can take away; what it must keep, in its own user namespace only, is the
right to mount, so that it can give each command a view of the disk.  When it dies, every command
dies with it, each caller that waits gets an error, and the next command starts another.
"""

from __future__ import annotations

import array
import asyncio
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from weft.errors import RetryableToolError, WeftError
from weft.file_io import write_all

START_SECONDS = 10.0
"""How long bubblewrap and the keeper may take to start.

A busy machine is slow, a broken one never answers.
"""
STOP_SECONDS = 2.0
FIRST_TO_GO = 500
"""What the kernel adds, in thousandths of all memory, to what sandboxed programs use when it looks
for one to end.
"""
BROKEN = "the sandbox broke down"
_PACKET = 64 * 1024
_KEPT = (
    "CAP_SYS_ADMIN",
    "CAP_SYS_CHROOT",
    "CAP_SETPCAP",
    "CAP_DAC_OVERRIDE",
    "CAP_CHOWN",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_NET_ADMIN",
)
"""What it takes to mount an overlay and write its work folder, to switch on the loopback of a
network of its own, and to drop all of it again.  They hold in the sandbox's user namespace and
nowhere else, and no command ever has one.
"""


class SandboxUnavailable(WeftError):
    """There is no sandbox on this machine; the message says why, for the user."""


class CellConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all commands of a cell."""

    environ: Mapping[str, str]
    filter: bytes = b""
    password: int = 0
    """What the filter lets the cell's own calls through by."""

    def encoded(self) -> bytes:
        """As the keeper reads it."""
        return _message(*_variables(self.environ), self.filter.hex(), str(self.password))


class MountPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a command's view of the disk is made of; paths are absolute."""

    layers: tuple[tuple[str, str, str], ...]
    """Folder, upper layer and work folder."""
    temporary: tuple[tuple[str, str], ...] = ()
    """A real folder, and where the command sees it."""
    empty_file: str = ""
    """What stands in the place of a hidden file."""
    hidden: tuple[str, ...] = ()
    """Files and folders."""
    pins: tuple[str, ...] = ()
    """Folders whose content is seen before that of the first layer's folder, the first before the
    others.
    """
    has_own_network: bool = False
    """A network with nothing but a loopback, for this view alone."""
    port: int = 0
    """Where a listener is opened in that network, for `Cell.listener`; 0 for none.  Not of a view
    that is held."""

    def encoded(self) -> bytes:
        """As a cell reads it."""
        return _message(
            *_several(itertools.chain.from_iterable(self.layers)),
            *_several(itertools.chain.from_iterable(self.temporary)),
            self.empty_file,
            *_several(self.hidden),
            *_several(self.pins),
            str(self.port or "own") if self.has_own_network else "",
        )


class HeldNamespaces(msgspec.Struct, frozen=True, kw_only=True):
    """A view that a cell holds, by descriptors of ours."""

    root: int
    """The project in the view; what lies below it is opened by `openat2`, from outside too."""
    mounts: int
    network: tuple[int, ...]
    """Empty where it uses that of all cells."""
    writable: tuple[str, ...]
    """The folders that its commands may write to."""

    def close(self) -> None:
        """Let go of the descriptors; the view goes with the cell that holds it."""
        for fd in (self.root, self.mounts, *self.network):
            os.close(fd)


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command; paths are absolute."""

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str] = {}
    """Besides the cell's."""
    hidden: Sequence[str] = ()
    """Besides what the plan hides."""

    def encoded(self) -> bytes:
        """As a cell reads it."""
        return _message(
            self.cwd, *_several(self.argv), *_variables(self.environ), *_several(self.hidden)
        )


def _several(values: Iterable[str]) -> list[str]:
    listed = list(values)
    return [str(len(listed)), *listed]


def _variables(environ: Mapping[str, str]) -> list[str]:
    return _several(f"{name}={value}" for name, value in environ.items())


def _message(*fields: str) -> bytes:
    return b"\0".join(os.fsencode(field) for field in fields)


class CellRun:
    """A command in a cell."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self.ended = asyncio.Event()
        self.status: int | None = None
        """How it ended; None when it did not start, or the keeper broke down."""
        self.errno = 0
        self.stage = ""
        """What failed, when it did not start."""

    def ask_to_end(self) -> None:
        """Signal everything in the cell."""
        self._cell.signal(b"term")

    def kill(self) -> None:
        """End everything in the cell, and the cell."""
        self._cell.signal(b"kill")

    def finish(self, status: int | None, errno: int = 0, stage: str = "") -> None:
        """Set how it ended, and wake the caller that waits."""
        self.status, self.errno, self.stage = status, errno, stage
        self.ended.set()


class Cell:
    """A cell as we see it: it is given a plan, then a command, then the next plan, and so on."""

    def __init__(self, keeper: Keeper, name: bytes, channel: socket.socket) -> None:
        self._keeper = keeper
        self._name = name
        self._channel: socket.socket | None = channel
        self._run: CellRun | None = None
        self._failure: tuple[int, str] | None = None
        self._handed: list[int] | None = None
        """What came with the view that it holds."""
        self._listener: socket.socket | None = None
        self._answered = asyncio.Event()
        self.is_lost = False
        """It is gone, or about to go."""
        asyncio.get_running_loop().add_reader(channel.fileno(), self._on_packet)

    def prepare(self, plan: MountPlan) -> None:
        """Have the view for the next command made; it need not be waited for."""
        self._failure = None
        self._answered.clear()
        self._hand(b"plan", plan.encoded(), ())

    async def listener(self) -> socket.socket:
        """The listener in the network of the view that is being made; the caller's to close.

        Raises:
            RetryableToolError: the view could not be made, and why.
        """
        with anyio.move_on_after(START_SECONDS):
            await self._answered.wait()
        listener, self._listener = self._listener, None
        if listener is None:
            code, stage = self._failure or (0, BROKEN)
            why = f"{stage}: {os.strerror(code)}" if code else stage
            raise RetryableToolError(f"the sandbox has no network of its own: {why}")
        return listener

    async def hold(self, plan: MountPlan, lock: int) -> HeldNamespaces:
        """Have a view made that stays until the cell is closed; `lock` is held as long.

        Raises:
            SandboxUnavailable: it could not be made, and why.
        """
        self._hand(b"hold", plan.encoded(), (lock,))
        with anyio.move_on_after(START_SECONDS):
            await self._answered.wait()
        if self._handed is None:
            code, stage = self._failure or (0, BROKEN)
            self.signal(b"kill")
            raise SandboxUnavailable(f"{stage}: {os.strerror(code)}" if code else stage)
        root, mounts, *network = self._handed
        targets = [target for _, target in plan.temporary]
        writable = [*(layer[0] for layer in plan.layers), *targets, "/dev"]
        return HeldNamespaces(
            root=root, mounts=mounts, network=tuple(network), writable=tuple(writable)
        )

    def join(self, held: HeldNamespaces, *, port: int = 0) -> None:
        """Let the next command run in a view that another cell holds; it need not be waited for.

        With a `port` it has a network of its own, in which a listener is opened there, for
        `listener`.
        """
        self._failure = None
        self._answered.clear()
        message = _message(*_several(held.writable), str(port))
        self._hand(b"join", message, (held.mounts, *(() if port else held.network)))

    def run(self, request: ExecRequest, descriptors: tuple[int, int, int]) -> CellRun:
        """Start a command with these for its input, output and errors; they stay ours to close."""
        run = self._run = CellRun(self)
        if self._failure is not None:  # the view could not be made
            self._finish(None, *self._failure)
        elif self.is_lost:
            self._finish(None, 0, BROKEN)
        else:
            self._hand(b"run", request.encoded(), descriptors)
        return run

    def signal(self, verb: bytes) -> None:
        """Have everything in it signalled."""
        self.is_lost |= verb == b"kill"
        self._keeper.send(verb + b"\0" + self._name)

    def close(self) -> None:
        """Let it go; it ends by itself."""
        self._drop()

    def gone(self, why: str = "") -> None:
        """Everything in it is dead."""
        self._drop()
        self._finish(None if why else -9, 0, why)

    def _hand(self, verb: bytes, data: bytes, descriptors: Sequence[int]) -> None:
        message = os.memfd_create("message", os.MFD_CLOEXEC)
        try:
            write_all(message, data)
            if self._channel is not None:
                _send(self._channel, verb, (message, *descriptors))
        except OSError:
            self.is_lost = True  # it is gone; the caller gets the end when all of it is
        finally:
            os.close(message)

    def _on_packet(self) -> None:
        assert self._channel is not None
        handed: list[int] = []
        try:
            packet, handed, _, _ = socket.recv_fds(self._channel, _PACKET, 4)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        verb, *fields = packet.split(b"\0")
        if not packet:
            # Dead, but perhaps not all of it yet: the keeper says when.
            self._drop()
        elif verb == b"held":
            self._handed = handed
            self._answered.set()
        elif verb == b"listens":
            os.set_inheritable(handed[0], False)  # no program that we start may have it
            self._listener = socket.socket(fileno=handed[0])
            self._listener.setblocking(False)
            self._answered.set()
        elif verb == b"ended":
            self._finish(int(fields[0]))
        elif self._run is not None:
            self._finish(None, int(fields[0]), os.fsdecode(b"".join(fields[1:])))
        else:
            self._failure = (int(fields[0]), os.fsdecode(b"".join(fields[1:])))
            self._answered.set()

    def _finish(self, status: int | None, errno: int = 0, stage: str = "") -> None:
        run, self._run = self._run, None
        if run is not None:
            run.finish(status, errno, stage)

    def _drop(self) -> None:
        self.is_lost = True
        self._answered.set()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        channel, self._channel = self._channel, None
        if channel is not None:
            asyncio.get_running_loop().remove_reader(channel.fileno())
            channel.close()


class Keeper:
    """A running keeper."""

    def __init__(self, argv: Sequence[str]) -> None:
        """`argv` is what `keeper_command` makes."""
        self._argv = list(argv)
        self._control: socket.socket | None = None
        self._popen: subprocess.Popen[bytes] | None = None
        self._spoke = asyncio.Event()
        """It is ready, or it never will be."""
        self.has_landlock = False
        """Commands cannot write to named pipes outside."""
        self._cells: dict[bytes, Cell] = {}
        self._names = itertools.count(1)

    @property
    def is_open(self) -> bool:
        """True while it can be asked for cells."""
        return self._control is not None and self._spoke.is_set()

    async def open(self) -> None:
        """Start it.

        Raises:
            SandboxUnavailable: this machine has no sandbox, and why.
        """
        # SEQPACKET: message boundaries are kept, and the end of the other side is noticed.
        # Descriptors can be passed with a packet, which a pipe cannot do.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        try:
            ours.setblocking(False)
            self._control = ours
            # `pass_fds` keeps the number, so it can be named on the command line.
            self._popen = _spawn([*self._argv, str(theirs.fileno())], theirs.fileno(), errors)
            theirs.close()
            asyncio.get_running_loop().add_reader(ours.fileno(), self._on_packet)
            with anyio.move_on_after(START_SECONDS):
                await self._spoke.wait()
            if not self.is_open:
                raise SandboxUnavailable(_why(errors))
        except BaseException:
            await self.aclose()
            raise
        finally:
            theirs.close()
            os.close(errors)

    def cell(self, config: CellConfig) -> Cell:
        """A new cell; it need not be waited for."""
        name = b"%d" % next(self._names)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        # Known before it is asked for: if the keeper turns out to be gone, it is ended with the
        # rest.
        cell = self._cells[name] = Cell(self, name, ours)
        message = os.memfd_create("message", os.MFD_CLOEXEC)
        try:
            write_all(message, config.encoded())
            self.send(b"cell\0" + name, (message, theirs.fileno()))
        finally:
            os.close(message)
            theirs.close()
        return cell

    def send(self, packet: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send one packet; for a keeper that is gone every waiting command has ended already."""
        if self._control is None:
            return
        try:
            _send(self._control, packet, descriptors)
        except BlockingIOError as error:
            raise RetryableToolError("the sandbox is busy; try again") from error
        except OSError:
            self._broke_down()

    async def aclose(self) -> None:
        """End it, and every command with it; bounded."""
        self._broke_down()
        # The closed socket is what ends the keeper; the kill in `_reap` is for one that hangs.
        popen, self._popen = self._popen, None
        if popen is None:
            return
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_reap, popen)

    def _on_packet(self) -> None:
        assert self._control is not None
        try:
            packet = self._control.recv(_PACKET)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        verb, _, name = packet.partition(b"\0")
        if not packet:
            self._broke_down()
        elif verb == b"ready":
            self.has_landlock = name == b"landlock"
            self._spoke.set()
        elif (cell := self._cells.pop(name, None)) is not None:
            cell.gone()

    def _broke_down(self) -> None:
        """It is gone, and so are its commands."""
        control, self._control = self._control, None
        if control is not None:
            asyncio.get_running_loop().remove_reader(control.fileno())
            control.close()
        self._spoke.set()
        cells, self._cells = self._cells, {}
        for cell in cells.values():
            cell.gone(BROKEN)


def _send(channel: socket.socket, packet: bytes, descriptors: Sequence[int]) -> None:
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
    channel.sendmsg([packet], [rights] if descriptors else [])


SWITCH = "--disable-userns"
"""Forbids further user namespaces, and locks what is mounted; bubblewrap has it since 0.8."""
KEEPER = str(Path(__file__).with_name("keeper.py"))
"""The keeper's program."""
_RUN_COMPILED = (
    "import sys; from _frozen_importlib_external import SourceFileLoader as Loader; "
    "exec(Loader('__main__', sys.argv.pop(1)).get_code('__main__'))"
)
"""Runs a file as a script like any other, except that its bytecode is used where there is some: a
script is compiled anew each time, and what the compiler took stays with the process.  For the
keeper and two cells that is 4 MB.
"""


def write_bytecode(keeper: str = KEEPER) -> None:
    """Leave the keeper's bytecode where Python looks for it, if it may lie there; most installers
    have done so.
    """
    cached = cache_from_source(keeper)
    # The keeper itself compares them exactly, and cannot write: all of its disk is read-only.
    with suppress(OSError):
        if os.stat(cached).st_mtime >= os.stat(keeper).st_mtime:
            return
    if not sys.dont_write_bytecode and os.access(os.path.dirname(keeper), os.W_OK):
        SourceFileLoader("__main__", keeper).get_code("__main__")


def keeper_command(
    *, bubblewrap: str, python: str, scratch: str, network: bool = False, keeper: str = KEEPER
) -> list[str]:
    """How the keeper is started; the number of its socket comes last."""
    return [
        # What is started from here is the first to go where memory runs out, before the user's
        # other programs.
        *("/bin/sh", "-c", f'echo {FIRST_TO_GO} > /proc/self/oom_score_adj; exec "$@"', "sh"),
        bubblewrap,
        # `--unshare-all` only tries to make a user namespace.  As root it would do without one,
        # keep every capability, and a remount could make the whole disk writable again.
        *("--unshare-all", "--unshare-user", SWITCH),
        *(["--share-net"] if network else []),
        *("--cap-drop", "ALL"),
        *itertools.chain.from_iterable(("--cap-add", name) for name in _KEPT),
        # A session of its own: a command could otherwise type into the user's terminal (TIOCSTI).
        *("--new-session", "--die-with-parent"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev"),
        *("--bind", scratch, scratch, "--chdir", "/"),
        # Isolated and without site packages: it starts faster, and nothing of the user's own is
        # loaded.
        *("--", python, "-I", "-S", "-B", *_bytecode_place(), "-c", _RUN_COMPILED, keeper),
    ]


def _bytecode_place() -> list[str]:
    """Isolated, Python does not read the variable that says so."""
    return ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []


def _spawn(argv: list[str], control: int, errors: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(control,),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxUnavailable(f"bubblewrap does not start: {error.strerror}") from error


def _reap(popen: subprocess.Popen[bytes]) -> None:
    """Wait for it to end, and help it if it does not."""
    try:
        popen.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        popen.kill()
        with suppress(subprocess.TimeoutExpired):
            popen.wait(STOP_SECONDS)


def _why(errors: int) -> str:
    said = os.pread(errors, 2000, 0).decode(errors="replace").strip()
    return said.splitlines()[-1] if said else "it does not answer"
