"""A small file of the user's own that the program changes: settings, memory.

The file is replaced as a whole by a rename, in the folder that a link leads to, with the mode that
it had; what another program wrote meanwhile is not lost.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.errors import UsageError
from weft.file_io import write_all
from weft.workspace import read_small_file, user_folder

_TRIES = 5
"""How often a change is made again because another program changed the file meanwhile."""


class UserFile:
    """A text file below the user's own folders; it need not be there."""

    def __init__(self, path: Path, largest: int) -> None:
        """`largest` is how many bytes are read of it; a larger one is refused."""
        self.path = path
        self._largest = largest

    def read(self) -> str:
        """The text; empty where there is no file.

        Raises:
            UsageError: it is no file that may be read.
        """
        return _decoded(self._read())

    def replace(self, edit: Callable[[str], str | None]) -> bool:
        """Put in place what `edit` makes of the text; False where that is None, and nothing is
        changed.  `edit` is called again when the file has changed meanwhile.

        Raises:
            UsageError: the file cannot be read or changed.
        """
        for _ in range(_TRIES):
            before = self._read()
            after = edit(_decoded(before))
            if after is None:
                return False
            if self._written(before, after.encode("utf-8", "surrogateescape")):
                return True
        raise UsageError(f"{self.path} is being changed by another program; try again")

    def _read(self) -> bytes:
        found = read_small_file(user_folder(self.path.parent), self.path.name, self._largest)
        return found.data if found is not None else b""

    def _written(self, before: bytes, after: bytes) -> bool:
        """Put the new content in place; False when the old one has changed meanwhile."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Where a link leads: users keep such files in a repository of their own, and a rename
            # over the link would part the two.
            goal = Path(os.path.realpath(self.path))
            with _locked(goal.parent):
                return self._renamed(goal, before, after)
        except OSError as error:
            raise UsageError(f"cannot change {self.path}: {error.strerror}") from error

    def _renamed(self, goal: Path, before: bytes, after: bytes) -> bool:
        import tempfile  # only when something is written: it costs start-up time

        fd, name = tempfile.mkstemp(dir=goal.parent, prefix=f".{goal.name}-")
        try:
            try:
                write_all(fd, after)
                _keep_mode(fd, goal)
                # Before the rename, which may reach the disk first: after a crash the file would
                # be empty.
                os.fsync(fd)
            finally:
                os.close(fd)
            is_same = self._read() == before
            if is_same:
                os.replace(name, goal)
                return True
            os.unlink(name)
            return False
        except BaseException:
            if os.path.lexists(name):
                os.unlink(name)
            raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep out other processes that change a file here, from the last look to the rename."""
    import fcntl  # only when something is written: it costs start-up time

    # The folder itself: a lock on a file that a rename replaces keeps no one out.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _keep_mode(fd: int, goal: Path) -> None:
    """The mode and owner of the file that is replaced; a new one is private: it may hold keys."""
    try:
        about = os.stat(goal)
    except FileNotFoundError:
        return
    if about.st_uid != os.geteuid() or about.st_gid != os.getegid():
        try:
            os.fchown(fd, about.st_uid, about.st_gid)
        except PermissionError as error:
            raise UsageError(f"{goal} belongs to another user; change it as that user") from error
    os.fchmod(fd, stat.S_IMODE(about.st_mode))
