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
from threading import Lock
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


class ReaperLink:
    """Our end of a reaper: it runs one command after the other."""

    def __init__(self, keeper: CommandKeeper, channel: socket.socket) -> None:
        self._keeper = keeper
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
        self.channel.close()

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
        """Its reaper was killed: how it ended is not known."""
        self._loop.add_reader(link.channel.fileno(), self._on_packet)
        self._message, self._standard = message, standard

    def run(self, *, tell_pid: bool = False) -> None:
        """Have it started; it need not be waited for."""
        fd = os.memfd_create("request", os.MFD_CLOEXEC)
        try:
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
        if not self.exited.is_set():
            self.is_lost = True
            self._end(-signal.SIGKILL, is_clear=True)
        self.is_lost = True
        self._cleared.set()
        with suppress(OSError, ValueError):
            self._loop.remove_reader(self._link.channel.fileno())


class CommandKeeper:
    """The keeper of this process."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._forget()

    def _forget(self) -> None:
        self._control: socket.socket | None = None
        self._idle: list[ReaperLink] = []
        self._failures = 0
        self.pid = 0
        """Of the program; 0 while there is none."""
        self.why_not = "" if hasattr(os, "pidfd_open") else "this system has no process handles"
        """Why there is none, and will be none."""

    def after_fork(self) -> None:
        """In a child of ours: it has no keeper, and must not hold the ends of its parent's."""
        self._guard = Lock()
        for each in self._idle:
            each.close()
        if self._control is not None:
            self._control.close()
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
            link.close()
            with self._guard:
                self._fail("its program does not answer")
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
                    if self._control is None:
                        self._control = self._start(environ)
                    return self._asked(self._control)
                except OSError as error:
                    self._fail(f"its program does not run: {error.strerror or error}")
            return None

    def _fail(self, why: str) -> None:
        """Start another one next time, unless that has failed too often."""
        self._close()
        self._failures += 1
        if self._failures >= MOST_FAILURES:
            self.why_not = why

    def give_back(self, link: ReaperLink) -> None:
        """Keep a reaper for the next command."""
        with self._guard:
            self._failures = 0
            if len(self._idle) < MOST_IDLE:
                self._idle.append(link)
                return
        link.close()

    def end(self) -> None:
        """End it and everything below it; the next command starts another."""
        with self._guard:
            for each in self._idle:
                each.close()
            self._idle = []
            self._close()

    def _asked(self, control: socket.socket) -> ReaperLink:
        # SEQPACKET: the boundaries of messages are kept, and descriptors can be passed.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            ours.setblocking(False)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))
            control.sendmsg([b"reaper"], [rights])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return ReaperLink(self, ours)

    def _start(self, environ: Mapping[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        owner = os.pidfd_open(os.getpid())
        try:
            self.pid = _spawn(environ, theirs.fileno(), owner)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(owner)
        return ours

    def _close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        pid, self.pid = self.pid, 0
        # Reaped here and not by a handler: the signals of the process are its application's.
        with suppress(OSError):
            if pid:
                os.waitpid(pid, os.WNOHANG)


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
