"""Our side of the keeper: starting it, asking it to run commands, and hearing how they ended.

One keeper serves all commands of a process, side by side.  It is started by bubblewrap with everything that bubblewrap can take
away; what it must keep, in its own user namespace only, is the right to mount, so that it can make a box for each command.  When it dies,
every command dies with it, whoever waits for one is told, and the next command starts another.
"""

from __future__ import annotations

import array
import asyncio
import itertools
import os
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec

from weft.errors import RetryableToolError, WeftError

START_SECONDS = 10.0
"""How long bubblewrap and the keeper may take to start; a busy machine is slow, a broken one never answers."""
STOP_SECONDS = 2.0
_PACKET = 64 * 1024
_KEPT = (
    "CAP_SYS_ADMIN",
    "CAP_SETPCAP",
    "CAP_DAC_OVERRIDE",
    "CAP_CHOWN",
    "CAP_FOWNER",
    "CAP_FSETID",
)
"""What mounting an overlay and writing its work folder takes, and dropping all of it again.  They hold in the sandbox's user
namespace and nowhere else, and no command ever has one."""


class Unavailable(WeftError):
    """There is no sandbox on this machine; the message says why, for people."""


class BoxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command and the box that it is to run in; paths are absolute."""

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str]
    layers: Sequence[tuple[str, str, str]]
    """Folder, upper layer and work folder."""
    temporary: Sequence[tuple[str, str]] = ()
    """A real folder, and where the command sees it."""
    hidden_folders: Sequence[str] = ()
    hidden_files: Sequence[str] = ()
    empty_file: str = ""
    filter: bytes = b""

    def encoded(self) -> bytes:
        """As the keeper reads it."""
        fields = [
            self.cwd,
            *_several(self.argv),
            *_several(f"{name}={value}" for name, value in self.environ.items()),
            *_several(itertools.chain.from_iterable(self.layers)),
            *_several(itertools.chain.from_iterable(self.temporary)),
            *_several(self.hidden_folders),
            *_several(self.hidden_files),
            self.empty_file,
            self.filter.hex(),
        ]
        return b"\0".join(os.fsencode(field) for field in fields)


def _several(values: Iterable[str]) -> list[str]:
    listed = list(values)
    return [str(len(listed)), *listed]


class Box:
    """A command that runs, as we see it."""

    def __init__(self, keeper: Keeper, name: bytes) -> None:
        self._keeper = keeper
        self._name = name
        self.ended = asyncio.Event()
        self.status: int | None = None
        """How it ended; None when it did not start, or the keeper broke down."""
        self.errno = 0
        self.stage = ""
        """What failed, when it did not start."""

    def ask_to_end(self) -> None:
        """Signal everything in the box."""
        self._keeper.send(b"term\0" + self._name)

    def kill(self) -> None:
        """End everything in the box."""
        self._keeper.send(b"kill\0" + self._name)


class Keeper:
    """A running keeper."""

    def __init__(self, argv: Sequence[str]) -> None:
        """`argv` is what `keeper_command` makes."""
        self._argv = list(argv)
        self._control: socket.socket | None = None
        self._popen: subprocess.Popen[bytes] | None = None
        self._spoke = asyncio.Event()
        """It is ready, or it never will be."""
        self._boxes: dict[bytes, Box] = {}
        self._names = itertools.count(1)

    @property
    def is_open(self) -> bool:
        """True while it can be asked to run something."""
        return self._control is not None and self._spoke.is_set()

    async def open(self) -> None:
        """Start it.

        Raises:
            Unavailable: this machine has no sandbox, and why.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        try:
            ours.setblocking(False)
            self._control = ours
            self._popen = _spawn([*self._argv, str(theirs.fileno())], theirs.fileno(), errors)
            theirs.close()
            asyncio.get_running_loop().add_reader(ours.fileno(), self._on_packet)
            with anyio.move_on_after(START_SECONDS):
                await self._spoke.wait()
            if not self.is_open:
                raise Unavailable(_why(errors))
        except BaseException:
            await self.aclose()
            raise
        finally:
            theirs.close()
            os.close(errors)

    def run(self, request: BoxRequest, descriptors: tuple[int, int, int]) -> Box:
        """Start a command with these for its input, output and errors; they stay ours to close."""
        box = Box(self, b"%d" % next(self._names))
        paper = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            _write_all(paper, request.encoded())
            self._boxes[box._name] = box
            self.send(b"run\0" + box._name, (paper, *descriptors))
        finally:
            os.close(paper)
        return box

    def send(self, packet: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send one packet; a keeper that is gone has told so already."""
        if self._control is None:
            return
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        try:
            self._control.sendmsg([packet], [rights] if descriptors else [])
        except BlockingIOError as error:
            raise RetryableToolError("the sandbox is busy; try again") from error
        except OSError:
            self._broke_down()

    async def aclose(self) -> None:
        """End it, and every command with it; bounded."""
        self._broke_down()
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
        if not packet:
            self._broke_down()
            return
        verb, *fields = packet.split(b"\0")
        if verb == b"ready":
            self._spoke.set()
            return
        box = self._boxes.pop(fields[0], None)
        if box is None:
            return
        if verb == b"ended":
            box.status = int(fields[1])
        else:
            box.errno = int(fields[1])
            box.stage = os.fsdecode(b"".join(fields[2:]))
        box.ended.set()

    def _broke_down(self) -> None:
        """It is gone, and so are its commands."""
        control, self._control = self._control, None
        if control is not None:
            asyncio.get_running_loop().remove_reader(control.fileno())
            control.close()
        self._spoke.set()
        boxes, self._boxes = self._boxes, {}
        for box in boxes.values():
            box.stage = "the sandbox broke down"
            box.ended.set()


KEEPER = str(Path(__file__).with_name("sandbox_keeper.py"))
"""The keeper's program."""


def keeper_command(
    *, bubblewrap: str, python: str, scratch: str, network: bool = False, keeper: str = KEEPER
) -> list[str]:
    """How the keeper is started; the number of its socket comes last."""
    return [
        bubblewrap,
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *(["--share-net"] if network else []),
        *("--cap-drop", "ALL"),
        *itertools.chain.from_iterable(("--cap-add", name) for name in _KEPT),
        *("--new-session", "--die-with-parent"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev"),
        *("--bind", scratch, scratch, "--chdir", "/"),
        # Isolated and without site packages: it starts faster, and nothing of the person's own is loaded.
        *("--", python, "-I", "-S", "-B", keeper),
    ]


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
        raise Unavailable(f"bubblewrap does not start: {error.strerror}") from error


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


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
