"""Which file holds what, and how a stream's name becomes a file's name."""

from __future__ import annotations

import re
from pathlib import Path

from weft.errors import UsageError

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_ESCAPED = re.compile(rb"%([0-9a-f]{2})")
_LONGEST = 200


def file_name(stream: str) -> str:
    """A file name for any stream; everything but small letters, digits, `_` and `-` is written
    `%xx`.

    Capitals too: some file systems do not tell them from small letters.
    """
    name = "".join(
        char if char in _PLAIN else "".join(f"%{byte:02x}" for byte in char.encode())
        for char in stream
    )
    # File systems take 255 bytes, and endings and `.new` are added.
    if len(name) > _LONGEST:
        raise UsageError(f"the name {stream[:40]!r}… is too long for a file")
    return name


def stream_name(name: str) -> str:
    """The stream that a file name stands for."""
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), name.encode()).decode()


class JsonlPaths:
    """The folder of a jsonl store: where each thing lies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = folder / "version.json"
        self.lock = folder / "lock"
        self.journal = folder / "journal.json"
        self.is_journal_named = False
        """Its name is known to be durable."""
        self.logs = folder / "logs"
        self.rows = folder / "rows"
        self.leases = folder / "leases"
        self.hidden = folder / "hidden"
        self.waits = folder / "waits"
        self.drafts = folder / "drafts"
        self.snapshots = folder / "snapshots"
        self.blobs = folder / "blobs"
        self.processes = folder / "processes"
        self.run = folder / "run"

    def log(self, stream: str) -> Path:
        """The stream's own file."""
        return self.logs / f"{file_name(stream)}.jsonl"

    def row(self, stream: str) -> Path:
        """The side file that lists are read from."""
        return self.rows / f"{file_name(stream)}.json"

    def lease(self, stream: str) -> Path:
        """The fence and who holds it."""
        return self.leases / f"{file_name(stream)}.json"

    def hiding(self, stream: str) -> Path:
        """There when the session was deleted and a fork still reads its log."""
        return self.hidden / f"{file_name(stream)}.json"

    def wait(self, stream: str) -> Path:
        """There while a turn of the session may be waiting; the row says until when."""
        return self.waits / file_name(stream)

    def draft(self, stream: str) -> Path:
        """Text in flight."""
        return self.drafts / f"{file_name(stream)}.jsonl"

    def snapshot(self, stream: str) -> Path:
        """The newest snapshot."""
        return self.snapshots / file_name(stream)

    def blob(self, blob_id: str) -> Path:
        """A blob, under its hash."""
        name = file_name(blob_id)
        return self.blobs / name[:2] / name

    def process(self, process_id: str) -> Path:
        """Who opened the store under this id."""
        return self.processes / f"{file_name(process_id)}.json"
