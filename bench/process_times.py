"""Processor time of the processes that a benchmark has started, by what they do."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
KINDS = ("server", "readers", "main", "raster", "compositor", "gpu", "rest")


class ProcessTimes(NamedTuple):
    """Seconds of processor time so far, by kind."""

    seconds: dict[str, float]

    @classmethod
    def of_children(cls) -> ProcessTimes:
        """Those of this process and of all below it."""
        found: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        for pid in (os.getpid(), *_below(os.getpid())):
            with suppress(OSError):  # it has ended meanwhile
                for kind, spent in _threads(pid):
                    found[kind] += spent
        return cls({kind: found[kind] / TICKS for kind in KINDS})

    def since(self, before: ProcessTimes) -> dict[str, float]:
        """What was spent meanwhile."""
        return {kind: spent - before.seconds[kind] for kind, spent in self.seconds.items()}


def _below(top: int) -> Iterator[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            children[int(_fields(file)[1])].append(int(file.parent.name))
    ahead = [top]
    while ahead:
        below = children[ahead.pop()]
        yield from below
        ahead += below


def _threads(pid: int) -> Iterator[tuple[str, int]]:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        fields = _fields(file)
        yield _kind(words, (file.parent / "comm").read_text().strip()), sum(map(int, fields[11:13]))


def _kind(words: str, thread: str) -> str:
    if "bench.event_readers" in words:
        return "readers"
    if "-m\0weft\0" in words:
        return "server"
    if "--type=gpu-process" in words:
        return "gpu"
    if "--type=renderer" in words:
        names = {"Compositor": "compositor", "chromium": "main"}
        return names.get(thread, "raster" if thread.startswith("ThreadPool") else "rest")
    return "rest"


def _fields(file: Path) -> list[str]:
    """What stands behind the name, which may hold anything."""
    return file.read_text().rpartition(")")[2].split()
