"""A record of the language servers that run, for `weft lsp status` in another process.

One file for each process of ours, which goes with it; what a crash left is recognised by its owner
and removed.  A restart is asked for by the time of one more file: whoever runs servers looks at it
before the next use.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from weft.workspace.process.orphans import is_owner_alive, owner
from weft.workspace.process.piped import memory_of


class RunningServer(msgspec.Struct, frozen=True, kw_only=True):
    """A language server of one of our processes."""

    name: str
    project: str
    state: str
    why: str = ""
    pid: int = 0
    memory: int = 0
    """Bytes, measured by who asks."""


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A language server that is there for a project, or runs somewhere."""

    name: str
    project: str = ""
    program: str = ""
    """Where its program is; empty for one of another project."""
    suffixes: tuple[str, ...] = ()
    """Of the files that it looks at."""
    state: str = ""
    """not found, not used, not started, stopped, starting, ready or failed."""
    why: str = ""
    pid: int = 0
    memory: int = 0
    """Bytes."""


class _Record(msgspec.Struct):
    owner: str
    servers: list[RunningServer]


class StatusFolder:
    """The folder of these records."""

    def __init__(self, marker: Path) -> None:
        """`marker` lies in it: `WeftPaths.servers_restart`."""
        self._marker = marker
        self._folder = marker.parent

    @property
    def _own(self) -> Path:
        return self._folder / f"{os.getpid()}.json"

    def write(self, servers: Sequence[RunningServer]) -> None:
        """Say how the servers of this process stand."""
        record = msgspec.json.encode(_Record(owner(), list(servers)))
        # A record for others to read: where it cannot be written, nothing else is wrong.
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._own.write_bytes(record)

    def remove(self) -> None:
        """This process has no servers any more."""
        with suppress(OSError):
            self._own.unlink(missing_ok=True)

    def read(self) -> list[RunningServer]:
        """The servers of all processes that run."""
        found: list[RunningServer] = []
        for file in sorted(self._folder.glob("*.json")):
            try:
                record = msgspec.json.decode(file.read_bytes(), type=_Record)
            except (OSError, msgspec.MsgspecError):
                continue  # being written, or gone
            if is_owner_alive(record.owner):
                found += record.servers
            else:
                file.unlink(missing_ok=True)
        return [
            msgspec.structs.replace(each, memory=memory_of(each.pid) if each.pid else 0)
            for each in found
        ]

    @property
    def restarted(self) -> int:
        """Changes when a restart is asked for."""
        try:
            return self._marker.stat().st_mtime_ns
        except OSError:
            return 0

    def ask_restart(self) -> None:
        """Have all processes stop their servers before the next use."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._marker.touch(mode=0o600)
