"""Our side of the keeper: starting it, having commands run below it, and hearing how they ended.

One keeper serves all commands of a process of ours, from whichever thread and event loop; what it
promises is told in `keeper_program`.  It is not waited for: the first command waits for it without
knowing.  It lives as long as our process.  When it is killed, running commands go on below their
reapers, and the next command starts another; when a reaper is killed, its command is reported as
interrupted, and what is left of it is killed by the keeper and by its mark.
"""

from __future__ import annotations

import array
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Final

import anyio

from weft.file_io import write_all
from weft.workspace.process import orphans

PROGRAM: Final = str(Path(__file__).with_name("keeper_program.py"))
START_SECONDS: Final = 10.0
"""How long it may take to start: a busy machine is slow, a broken one never answers."""
MOST_IDLE: Final = 2
"""Reapers that are kept for the next commands."""
MOST_FAILURES: Final = 3
"""A keeper that ends so often without having run anything is not started again."""
_PACKET: Final = 4096
_RUN_COMPILED: Final = (
    "import sys; from _frozen_importlib_external import SourceFileLoader as Loader; "
    "exec(Loader('__main__', sys.argv.pop(1)).get_code('__main__'))"
)
"""Runs a file as a script, except that its bytecode is used where there is some."""


class KeeperLink:
    """Our end of a keeper that was started."""

    def __init__(self, control: socket.socket, pid: int) -> None:
        self.control = control
        self.pid = pid
        self.reapers: set[ReaperLink] = set()
        """Those that it has made and that were not closed."""


class ReaperLink:
    """Our end of a reaper: it runs one command after the other."""

    def __init__(self, keeper: CommandKeeper, below: KeeperLink, channel: socket.socket) -> None:
        self._keeper = keeper
        self.below = below
        self.channel = channel
        self.is_ready = False
        """It has said that it runs."""

    async def becomes_ready(self) -> bool:
        """Wait until it runs; False when it never will."""
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self.channel.fileno(), heard.set)
        try:
            with anyio.move_on_after(START_SECONDS):
                await heard.wait()
        finally:
            loop.remove_reader(self.channel.fileno())
        with suppress(OSError):
            self.is_ready = self.channel.recv(_PACKET) == b"ready"
        return self.is_ready

    def send(self, verb: bytes, descriptors: Sequence[int] = ()) -> None:
        """Ask for something.

        Raises:
            OSError: it is gone.
        """
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        self.channel.sendmsg([verb], [rights] if descriptors else [])

    def close(self) -> None:
        """Let it go; it kills what is left below it, and ends."""
        _hang_up(self.channel)
        self._keeper.was_closed(self)

    def give_back(self) -> None:
        """Nothing runs below it any more: it may serve the next command."""
        self._keeper.give_back(self)


class KeptProcess:
    """A command below a reaper, from its start to its end."""

    def __init__(
        self,
        link: ReaperLink,
        message: bytes,
        standard: Sequence[int],
        on_exit: Callable[[], None] = lambda: None,
    ) -> None:
        """`message` is what `encoded_request` makes; `standard` is stdin, stdout and stderr, which
        stay the caller's to close.
        """
        self._on_exit = on_exit
        self._link = link
        self._loop = asyncio.get_running_loop()
        self.exited = asyncio.Event()
        self.started = asyncio.Event()
        self._cleared = asyncio.Event()
        self.pid = 0
        """Known when it has started, where that was asked for."""
        self.exit_code: int | None = None
        self.failure: OSError | None = None
        """Why it did not start; its `filename` is the stage."""
        self.is_lost = False
        """Its reaper was killed, or does not answer."""
        self.is_end_known = True
        """False where that was before the end of its first process."""
        self._message, self._standard = message, standard

    def run(self, *, tell_pid: bool = False) -> None:
        """Have it started; it need not be waited for.

        Raises:
            OSError: it cannot be asked for; the reaper is as before.
        """
        fd = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
            self._loop.add_reader(self._link.channel.fileno(), self._on_packet)
            write_all(fd, self._message)
            self._link.send(b"start" if tell_pid else b"run", (fd, *self._standard))
        except OSError:
            self._lose()
        finally:
            os.close(fd)

    def ask_to_end(self) -> None:
        """Send the polite signal to its group."""
        self._ask(b"term")

    def kill(self) -> None:
        """Have all of it killed; `cleared` comes after that."""
        self._ask(b"end")

    async def cleared(self) -> None:
        """Wait until nothing of it runs any more."""
        await self._cleared.wait()

    @property
    def is_cleared(self) -> bool:
        """True when nothing of it runs any more."""
        return self._cleared.is_set()

    def let_go(self) -> None:
        """Give the reaper back, or have it end with what is left of the command."""
        with suppress(OSError, ValueError):
            self._loop.remove_reader(self._link.channel.fileno())
        if self.is_lost or not self._cleared.is_set():
            self._link.close()
        else:
            self._link.give_back()

    def _ask(self, verb: bytes) -> None:
        try:
            self._link.send(verb)
        except OSError:
            self._lose()

    def _on_packet(self) -> None:
        try:
            packet = self._link.channel.recv(_PACKET)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        verb, *fields = packet.split(b"\0")
        if verb == b"ended":
            self._end(int(fields[0]), is_clear=fields[1] == b"0")
        elif verb == b"clear":
            self._cleared.set()
        elif verb == b"started":
            self.pid = int(fields[0])
            self.started.set()
        elif verb == b"failed":
            number = int(fields[0])
            self.failure = OSError(number, os.strerror(number), os.fsdecode(fields[1]))
            self._end(None, is_clear=True)
        else:
            self._lose()

    def _end(self, code: int | None, *, is_clear: bool) -> None:
        self.exit_code = code
        self._on_exit()
        self.started.set()
        self.exited.set()
        if is_clear:
            self._cleared.set()

    def _lose(self) -> None:
        self.is_lost = True
        if not self.exited.is_set():
            self.is_end_known = False
            self._end(-signal.SIGKILL, is_clear=True)
        self._cleared.set()
        with suppress(OSError, ValueError):
            self._loop.remove_reader(self._link.channel.fileno())


class CommandKeeper:
    """The keeper of this process."""

    def __init__(self) -> None:
        self._guard = RLock()
        self._forget()

    def _forget(self) -> None:
        self._current: KeeperLink | None = None
        self._retired: list[KeeperLink] = []
        """Those that did not answer, but have commands running below them."""
        self._ended: list[int] = []
        """Numbers of those that were ended, and not reaped yet."""
        self._idle: list[ReaperLink] = []
        self._failures = 0
        self.why_not = "" if hasattr(os, "pidfd_open") else "this system has no process handles"
        """Why there is none, and will be none."""

    @property
    def pid(self) -> int:
        """Of the program; 0 while there is none."""
        return 0 if self._current is None else self._current.pid

    def after_fork(self) -> None:
        """In a child of ours: it has no keeper, and must not hold the ends of its parent's."""
        self._guard = RLock()
        # Closed and not hung up: the parent goes on with them.
        for keeper in (*self._retired, *([self._current] if self._current else [])):
            for each in keeper.reapers:
                each.channel.close()
            keeper.control.close()
        self._forget()

    async def take(self, environ: Mapping[str, str]) -> ReaperLink | None:
        """A reaper for one command; None where there can be none, as `why_not` says.

        `environ` is that of our process: what its interpreter needs to start is taken from it.
        """
        while (link := self._taken(environ)) is not None:
            try:
                if link.is_ready or await link.becomes_ready():
                    return link
            except BaseException:
                link.close()
                raise
            with self._guard:
                # Of several that waited for the same one, the first has started another.
                if link.below is self._current:
                    self._fail("its program does not answer")
            link.close()
        return None

    def _taken(self, environ: Mapping[str, str]) -> ReaperLink | None:
        with self._guard:
            while self._idle:
                link = self._idle.pop()
                if _is_open(link.channel):
                    return link
                link.close()
            while not self.why_not:
                try:
                    if self._current is None:
                        self._current = self._start(environ)
                    return self._asked(self._current)
                except OSError as error:
                    self._fail(f"its program does not run: {error.strerror or error}")
            return None

    def _fail(self, why: str) -> None:
        """Start another one next time, unless that has failed too often."""
        self._retire()
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self.why_not = why

    def give_back(self, link: ReaperLink) -> None:
        """Keep a reaper for the next command."""
        with self._guard:
            self._failures = 0
            if link.below is self._current and len(self._idle) < MOST_IDLE:
                self._idle.append(link)
                return
        link.close()

    def was_closed(self, link: ReaperLink) -> None:
        """A reaper was let go; a keeper that was retired ends with the last of its own."""
        with self._guard:
            link.below.reapers.discard(link)
            if link.below in self._retired and not link.below.reapers:
                self._retired.remove(link.below)
                self._hang_up_keeper(link.below)

    def end(self) -> None:
        """End it and everything below it; the next command starts another."""
        with self._guard:
            self._retire()
            for keeper in self._retired:
                self._hang_up_keeper(keeper)
            self._retired = []

    def _asked(self, keeper: KeeperLink) -> ReaperLink:
        # SEQPACKET: the boundaries of messages are kept, and descriptors can be passed.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            ours.setblocking(False)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))
            keeper.control.sendmsg([b"reaper"], [rights])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        link = ReaperLink(self, keeper, ours)
        keeper.reapers.add(link)
        return link

    def _start(self, environ: Mapping[str, str]) -> KeeperLink:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            # One that is stopped takes nothing in: the event loop must not wait for it.
            ours.setblocking(False)
            owner = os.pidfd_open(os.getpid())
            try:
                return KeeperLink(ours, _spawn(environ, theirs.fileno(), owner))
            finally:
                os.close(owner)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    def _retire(self) -> None:
        """Ask the current one for nothing more; what runs below it goes on."""
        keeper, self._current = self._current, None
        if keeper is None:
            return
        self._retired.append(keeper)
        idle, self._idle = self._idle, []
        for each in idle:
            each.close()
        if not keeper.reapers and keeper in self._retired:
            self._retired.remove(keeper)
            self._hang_up_keeper(keeper)

    def _hang_up_keeper(self, keeper: KeeperLink) -> None:
        _hang_up(keeper.control)
        # Reaped here and not by a handler: the signals of the process are its application's.
        self._ended = [pid for pid in (*self._ended, keeper.pid) if not _is_reaped(pid)]


def _hang_up(channel: socket.socket) -> None:
    """Close a socket, and the copies of it that a child of ours may have."""
    with suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()


def _is_reaped(pid: int) -> bool:
    """Reap a child; False while it runs."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:
        return True


def _is_open(channel: socket.socket) -> bool:
    """False when the other side is gone."""
    try:
        return bool(channel.recv(_PACKET, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _spawn(environ: Mapping[str, str], control: int, owner: int) -> int:
    python = sys.executable
    if not python:
        raise OSError(0, "there is no Python interpreter to run it")
    place = [f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    options = [word for each in place for word in ("-X", each)]
    # Isolated and without site packages: it starts faster, and nothing of the user's own is loaded.
    argv = [python, "-I", "-S", *options, "-c", _RUN_COMPILED, PROGRAM, str(control), str(owner)]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        return os.posix_spawn(
            python,
            argv,
            _environment(environ),
            # One that is put where it is stays open in the new program, under its number.
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, null, to) for to in range(3)),
                *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in (control, owner)),
            ],
            setsid=True,
        )
    finally:
        os.close(null)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What its interpreter may need, and by which it is known: to another Weft that runs us by that
    one's mark, to the next one after a crash by ours."""
    names = ("LD_LIBRARY_PATH", orphans.MARK)
    passed = {name: environ[name] for name in names if name in environ}
    return {**passed, orphans.KEEPER: orphans.owner()}


def encoded_request(argv: Sequence[str], cwd: str, environ: Mapping[bytes, bytes]) -> bytes:
    """A command as a reaper reads it.

    Raises:
        ValueError: a NUL is in it.
    """
    fields = [os.fsencode(cwd), b"%d" % len(argv), *map(os.fsencode, argv)]
    fields += [name + b"=" + value for name, value in environ.items()]
    if any(b"\0" in field for field in fields):
        raise ValueError("embedded null byte")
    return b"\0".join(fields)


COMMAND_KEEPER: Final = CommandKeeper()
"""One for the process."""
os.register_at_fork(after_in_child=COMMAND_KEEPER.after_fork)
