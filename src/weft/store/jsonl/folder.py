"""The folder of a JSONL store: its paths, the logs that were read, the lock."""

from __future__ import annotations

import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from weft.errors import StoreUnavailable, TooNew
from weft.store.fsync import make_durable_folder
from weft.store.jsonl import files, journal
from weft.store.jsonl.lock import open_lock
from weft.store.jsonl.log_file import LogFile
from weft.store.jsonl.paths import JsonlPaths

VERSION = 1
"""The layout this program reads and writes."""

_MOST_LOGS = 256
_MOST_REPAIRS = 100


class _Version(msgspec.Struct):
    weft_jsonl: int


class JsonlFolder:
    """One opened folder.  Its files are touched inside `entered` only."""

    def __init__(self, folder: Path, *, busy_seconds: float) -> None:
        self.places = JsonlPaths(folder)
        self.repairs: list[str] = []
        self._busy_seconds = busy_seconds
        self._logs: OrderedDict[str, LogFile] = OrderedDict()
        self._last_stamp = 0
        with files.explained(folder):
            make_durable_folder(folder)
            self._lock = open_lock(self.places.lock)
        try:
            with self.entered():
                self._check_version()
        except BaseException:
            self._lock.close()
            raise

    def next_stamp(self) -> int:
        """The time of now in nanoseconds, later than any that was handed out before.

        The kernel stamps files by its tick, some milliseconds long, in which many are written: by
        their own stamps nobody could tell which of them is older.
        """
        self._last_stamp = max(time.time_ns(), self._last_stamp + 1)
        return self._last_stamp

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Be the only one in the folder; a batch that a crash left half written is finished first.

        Raises:
            StoreUnavailable: the lock was not to be had, or the disk refused.
        """
        with self._lock.entered(self._busy_seconds), files.explained(self.places.folder):
            if not self.places.folder.exists():
                raise StoreUnavailable(f"{self.places.folder} is gone; nothing was written")
            # First thing under the lock, for readers too: half of a batch must never be seen.
            journal.recover(self.places)
            yield

    def log(self, stream: str) -> LogFile:
        """The log of a stream as it is now.

        Raises:
            Corrupt: the file is damaged before its last line.
        """
        # Taken out and put back at the end: the longest unused one is first in the dictionary.
        log = self._logs.pop(stream, None) or LogFile(stream, self.places.log(stream))
        try:
            log.refresh()
        finally:
            self._collect_repairs(log)
        self._logs[stream] = log
        if len(self._logs) > _MOST_LOGS:
            self._logs.popitem(last=False)
        return log

    def added(self, stream: str, lines: Sequence[bytes]) -> None:
        """Take in lines that were just written by us, without reading them back."""
        log = self._logs.get(stream)
        if log is not None:
            log.added(lines)

    def streams(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """The file name of each stream that has a log, without its ending, and the file."""
        with os.scandir(self.places.logs) as entries:
            for entry in entries:
                if entry.name.endswith(".jsonl"):
                    yield entry.name.removesuffix(".jsonl"), entry

    def close(self) -> None:
        """Give the lock back."""
        self._lock.close()

    def _collect_repairs(self, log: LogFile) -> None:
        self.repairs += log.repairs
        log.repairs.clear()
        del self.repairs[:-_MOST_REPAIRS]

    def _check_version(self) -> None:
        """Refuse a folder of a newer program before anything in it is changed."""
        kept = files.content(self.places.version)
        if kept is None:
            for folder in (self.places.logs, self.places.rows, self.places.hidden):
                make_durable_folder(folder)
            files.replace(self.places.version, msgspec.json.encode(_Version(VERSION)), durable=True)
            return
        try:
            version = msgspec.json.decode(kept, type=_Version).weft_jsonl
        except msgspec.MsgspecError as error:
            raise StoreUnavailable(
                f"{self.places.version} cannot be read ({error}); is this a Weft store?"
            ) from error
        if version > VERSION:
            raise TooNew(
                f"{self.places.folder} was written by a newer Weft (its layout is {version}, this "
                f"one knows {VERSION}); update Weft, nothing was changed"
            )
