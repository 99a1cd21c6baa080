"""Servers that run: a record of each, and how another process asks, pairs with or stops it.

A record lies beside the tokens.  Its process holds a lock on it, which the kernel drops when the
process dies, so that a record of the dead is never taken for one of the living.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from weft.errors import UsageError
from weft.sha256 import sha256

STOP_SECONDS: Final = 10.0
LOOK_EVERY_SECONDS: Final = 0.05
HOLD_TRIES: Final = 5
"""How often a record is tried for: a server that lives holds it all the time."""
ASK_SECONDS: Final = 5.0


def unix_name(path: str) -> str:
    """What tells the server on a unix socket from others: it follows from the socket's path."""
    folder, name = os.path.split(os.path.abspath(path))
    whole = os.path.join(os.path.realpath(folder), name)
    return f"unix-{sha256(os.fsencode(whole)).hexdigest()[:12]}"


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down of a server that runs."""

    pid: int
    url: str
    project_path: str
    started: float
    token_file: str


class RecordLock:
    """The record of this process's server, held until `release`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.json"
        self._descriptor = -1

    def hold(self, record: ServerRecord) -> None:
        """Write the record down.

        Raises:
            UsageError: a server that lives has this record.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for _ in range(HOLD_TRIES):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _locked(descriptor) and _is_at(self.path, descriptor):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, msgspec.json.encode(record), 0)
                self._descriptor = descriptor
                return
            # A process that looks has the lock for an instant, and may take the file away.
            os.close(descriptor)
            time.sleep(LOOK_EVERY_SECONDS)
        raise UsageError(f"a server is running here: `weft serve status` shows it ({self.path})")

    def release(self) -> None:
        """The server is gone."""
        if self._descriptor >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def running_servers(folder: Path) -> list[ServerRecord]:
    """The servers that live; what the dead left is taken away."""
    paths = [path for path in sorted(folder.glob("*.json")) if path.stem.count(".") == 0]
    found = [_record(path) for path in paths]
    return [record for record in found if record is not None]


def stop_server(folder: Path, record: ServerRecord) -> bool:
    """Ask a server to stop, and wait for it; False when it still runs after a while."""
    try:
        os.kill(record.pid, signal.SIGTERM)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        if record.pid not in {each.pid for each in running_servers(folder)}:
            return True
        time.sleep(LOOK_EVERY_SECONDS)
    return False


def new_code_from(record: ServerRecord) -> str:
    """A code for a page, from a server that runs.

    Raises:
        UsageError: it does not answer.
    """
    place = urlsplit(record.url)
    try:
        token = Path(record.token_file).read_text(encoding="ascii").strip()
        connection = http.client.HTTPConnection(
            place.hostname or "", place.port or 80, timeout=ASK_SECONDS
        )
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with closing(connection):
            connection.request("POST", "/api/pair/codes", b"{}", headers)
            answer = connection.getresponse().read()
        return msgspec.json.decode(answer, type=dict[str, str])["code"]
    except (OSError, http.client.HTTPException, msgspec.MsgspecError, KeyError) as error:
        raise UsageError(f"the server at {record.url} does not answer: {error}") from error


def _record(path: Path) -> ServerRecord | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if _locked(descriptor):
            path.unlink(missing_ok=True)
            return None
        return msgspec.json.decode(os.pread(descriptor, 64 * 1024, 0), type=ServerRecord)
    except msgspec.MsgspecError:
        return None  # it is being written
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
