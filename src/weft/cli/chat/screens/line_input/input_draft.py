"""What stands in the input line, in a private file while the chat runs: after a crash, or when the
terminal was closed, the next chat of the project has it again.

Each chat has a file of its own and holds a lock on it, which the kernel drops when the process
dies: a file without one was left behind.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from weft.sha256 import sha256

LONGEST = 1024 * 1024
"""Bytes that are kept; of a longer draft the beginning."""


class InputDraft:
    """The draft of one chat, and what dead ones have left."""

    def __init__(self, folder: str | None, project: str) -> None:
        """`folder` is None where nothing may be kept."""
        self._folder = Path(folder) if folder is not None else None
        self._name = sha256(project.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._fd = -1
        self._path = Path()
        self._kept = ""

    def take_left(self) -> list[str]:
        """What chats of this project have left that are over, the newest last; taken by this one
        alone.
        """
        if self._folder is None:
            return []
        try:
            names = [each.path for each in os.scandir(self._folder) if self._is_ours(each.name)]
        except OSError:
            return []
        found = [left for path in names if (left := _taken(path)) is not None]
        return [text for _, text in sorted(found) if text.strip()]

    def _is_ours(self, name: str) -> bool:
        return name.startswith(f"{self._name}-")

    def keep(self, text: str) -> None:
        """Remember this, and nothing else."""
        if self._folder is None or text == self._kept:
            return
        data = text.encode("utf-8", "replace")[:LONGEST]
        try:
            if self._fd < 0:
                self._open(self._folder)
            # One write with its length before it: what a crash leaves behind the text is not read.
            os.pwrite(self._fd, b"%d\n%b" % (len(data), data), 0)
        except OSError:
            self._folder = None  # it is a comfort: a full disk must not end the chat
            return
        self._kept = text

    def close(self) -> None:
        """The chat is over; what stands in the line stays for the next one."""
        if self._fd < 0:
            return
        if not self._kept.strip():
            self._path.unlink(missing_ok=True)
        os.close(self._fd)
        self._fd = -1

    def _open(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / f"{self._name}-{os.getpid()}"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(self._path, flags, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _taken(path: str) -> tuple[float, str] | None:
    """When a draft was left, and the draft; None while its chat lives."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        data = os.read(fd, LONGEST + 32)
        # Still under the lock: of two chats that start at once, one finds it.
        os.unlink(path)
        length, _, text = data.partition(b"\n")
        return os.fstat(fd).st_mtime, text[: int(length)].decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
