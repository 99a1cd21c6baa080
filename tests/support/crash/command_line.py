"""A real `weft` process on a session: with a prompt (`-p`), or a chat on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import termios
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import msgspec

from tests.support.weft_program import WeftProgram

Format: TypeAlias = Literal["text", "json", "stream-json", "chat"]


class CommandLineEnd(msgspec.Struct, frozen=True):
    """How a process ended, and what it had said."""

    code: int
    answer: str
    """The answer as its user reads it; of a chat, all that was on the screen."""
    terminal_reason: str
    stderr: str


class CommandLine:
    """One process; its output goes to files, so that it never waits for us to read."""

    def __init__(
        self, weft: WeftProgram, folder: Path, name: str, format_: Format, arguments: list[str]
    ) -> None:
        self.name = name
        self.format: Format = format_
        self._weft = weft
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1
        self._screen = b""
        self._has_quit = False
        self._files: list[IO[bytes]] = []
        self._end: CommandLineEnd | None = None
        self.signals: list[int] = []
        """What was sent to it while it ran, in order."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_started(self) -> bool:
        return self._process is not None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self) -> bool:
        return self._process is not None and not self.is_running

    def start(self) -> None:
        """Start it."""
        if self.format == "chat":
            self._start_chat()
            return
        flags = ["-p", "--output-format", self.format]
        self._files = [self._open(suffix) for suffix in ("out", "err")]
        self._process = self._weft.start(
            *flags, *self._arguments, stdout=self._files[0], stderr=self._files[1]
        )

    def _start_chat(self) -> None:
        self._terminal, inner = os.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, b"\x18\x00\xc8\x00\x00\x00\x00\x00")
        os.set_blocking(self._terminal, False)
        try:
            self._process = self._weft.start(
                *("--plain", *self._arguments),
                stdin=inner,
                stdout=inner,
                stderr=inner,
                start_new_session=True,
            )
        finally:
            os.close(inner)

    def _open(self, suffix: str) -> IO[bytes]:
        return (self._folder / f"{self.name}.{suffix}").open("w+b")

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.is_running:
            self.signals.append(number)
            os.kill(self.pid, number)

    def tend(self, expected: str) -> None:
        """Read a chat's screen; quit when it shows what is expected of it."""
        if self.format != "chat" or self._terminal < 0:
            return
        with contextlib.suppress(BlockingIOError, OSError):
            while data := os.read(self._terminal, 65536):
                self._screen += data
        if not self._has_quit and expected.encode() in self._screen:
            with contextlib.suppress(OSError):
                os.write(self._terminal, b"/quit\n")
                self._has_quit = True

    def end(self) -> CommandLineEnd:
        """How it ended; kills it where it still runs."""
        if self._end is None:
            self._end = self._closed()
        return self._end

    def _closed(self) -> CommandLineEnd:
        assert self._process is not None
        if self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
        code = self._process.wait()
        if self.format == "chat":
            self.tend("\0")
            os.close(self._terminal)
            return CommandLineEnd(code, self._screen.decode("utf-8", "replace"), "", "")
        written = [self._read(file) for file in self._files]
        answer, reason = self._answer_of(written[0])
        return CommandLineEnd(code, answer, reason, written[1])

    def _read(self, file: IO[bytes]) -> str:
        file.seek(0)
        with file:
            return file.read().decode("utf-8", "replace")

    def _answer_of(self, printed: str) -> tuple[str, str]:
        if self.format == "text":
            return printed.removesuffix("\n"), ""
        results = [line for line in _objects(printed) if line.get("type") == "result"]
        if not results:
            return "", ""
        return str(results[-1].get("result", "")), str(results[-1].get("terminal_reason", ""))


def _objects(printed: str) -> list[dict[str, Any]]:
    """The JSON lines that are whole; a killed process may leave half of one."""
    found = []
    for line in printed.splitlines():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found
