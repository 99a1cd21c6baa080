"""The chat in a terminal of ours: when keys are shown, and what drawing costs while text streams.

A pseudo-terminal stands for the user's.  What the program writes is looked at as bytes, so a number
ends where a real terminal would begin to draw.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

from bench.table import Row

COLUMNS, ROWS = 100, 30
REPEATS = 5
KEYS = 60
TOKENS_PER_SECOND = 200
STREAM_SECONDS = 5.0
LETTERS = "QXZJK"
"""Typed while text streams that has none of them, so that a letter on its way out is ours."""


class PtyChat:
    """The chat on a pseudo-terminal, with what it wrote and when."""

    def __init__(self, folder: Path, model: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {
            **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
            "HOME": str(folder / "home"),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [Path(sys.executable).parent / "weft", "-m", model],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder / "project",
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = b""
        self.written = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read(self, seconds: float) -> bytes:
        """What is written within this time, at once when something is."""
        if not select.select([self._master], [], [], max(0.0, seconds))[0]:
            return b""
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # it has ended
            return b""
        self.written += len(data)
        self.seen = (self.seen + data)[-200_000:]
        return data

    def until(self, wanted: bytes, seconds: float = 20.0) -> float:
        """Wait until this is written; returns when."""
        end = time.perf_counter() + seconds
        begun = max(0, len(self.seen))
        tail = b""
        while time.perf_counter() < end:
            tail = (tail + self.read(end - time.perf_counter()))[-(1 << 17) :]
            if wanted in tail:
                return time.perf_counter()
        raise AssertionError(f"{wanted!r} was not written: {self.seen[begun:][-2000:]!r}")

    def settle(self, seconds: float) -> None:
        """Read for this long."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def cpu_seconds(self) -> float:
        """What the program has used of the processor."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        """Memory that is its own, and its part of what it shares."""
        status = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        return int(status.partition("Pss:")[2].split()[0]) / 1024

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@contextlib.contextmanager
def chat(answers: list[object], **fields: object) -> Iterator[PtyChat]:
    """A chat with a scripted model, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "project").mkdir()
        script = folder / "script.json"
        script.write_text(json.dumps({"by": "content", "answers": answers, **fields}))
        running = PtyChat(folder, f"scripted:{script}")
        try:
            yield running
        finally:
            running.close()


def run() -> list[Row]:
    """All budgets."""
    _first_key()  # the file cache
    shown = [_first_key() for _ in range(REPEATS)]
    floor = [_bare_start() for _ in range(REPEATS)]
    return [
        Row(
            "chat: first key shown",
            statistics.median(shown) * 1000,
            "ms",
            floor=statistics.median(floor) * 1000,
            # 60 ms where a bare start takes 15.
            limit=4,
            of="ratio",
        ),
        *_streaming(),
    ]


def _bare_start() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def _first_key() -> float:
    """From the command to the first key behind the prompt; a key is typed every 10 ms."""
    with chat(["Hello."]) as running:
        typed, seen = 0, b""
        while True:
            running.type("k")
            typed += 1
            until = time.perf_counter() + 0.01
            while (left := until - time.perf_counter()) > 0:
                seen += running.read(left)
            prompt = seen.rfind("›".encode())
            if prompt >= 0 and b"k" in seen[prompt:]:
                shown = time.perf_counter() - running.started
                break
            assert typed < 1000, seen
        # None may be lost, those before the prompt included.
        running.settle(0.7)
        running.type("!\r")
        running.until(b"k" * (typed % COLUMNS - 5 if typed > COLUMNS - 5 else typed))
        return shown


def _streaming() -> list[Row]:
    text = "Lorem ipsum dolor sit amet, consectetur elit sed do. " * 2000
    steps = [{"do": "text", "text": text, "chunk": 4}]
    with chat([steps], pace_seconds=1 / TOKENS_PER_SECOND) as running:
        running.until("›".encode())
        running.settle(1.5)
        idle = running.cpu_seconds()
        running.settle(3)
        idle = (running.cpu_seconds() - idle) / 3
        running.type("go")
        running.settle(0.3)
        pressed = time.perf_counter()
        running.type("\r")
        spinner = running.until(b"Esc stops") - pressed
        running.settle(1)
        cpu, written, began = running.cpu_seconds(), running.written, time.perf_counter()
        running.settle(STREAM_SECONDS)
        seconds = time.perf_counter() - began
        cpu, written = running.cpu_seconds() - cpu, running.written - written
        delays = []
        for number in range(KEYS):
            letter = LETTERS[number % len(LETTERS)]
            pressed = time.perf_counter()
            running.type(letter)
            delays.append(running.until(letter.encode()) - pressed)
            running.settle(0.037)
        memory = running.megabytes()
    p90 = statistics.quantiles(delays, n=10)[-1]
    return [
        Row("chat: Enter to activity line", spinner * 1000, "ms", limit=50),
        Row("chat: key to screen while streaming, median", statistics.median(delays) * 1000, "ms"),
        Row("chat: key to screen while streaming, p90", p90 * 1000, "ms", limit=20),
        Row("chat: CPU idle", idle * 100, "% of a core", limit=0.5),
        Row("chat: CPU at 200 tokens/s", cpu / seconds * 100, "% of a core", limit=13),
        Row("chat: to the terminal", written / seconds / 1000, "kB/s", limit=10),
        Row("chat: memory", memory, "MB", limit=40),
    ]
