"""Where sandboxed commands write: a private folder for each process, with a place for each command
that runs.

A place holds the upper and the work folder of each overlay, and a note of whose command it is.  It
is used again, emptied, for making folders is slower than all the rest.  What was changed stays
written down for a while, because the log may not have it yet.  What a crash leaves behind is still
there, and the lock shows that its process is gone (`overlay_recovery`).
"""

from __future__ import annotations

import fcntl
import itertools
import os
import stat
from collections import deque
from contextlib import suppress

import msgspec

from weft.file_io import write_all
from weft.sha256 import sha256
from weft.workspace.sandbox.overlay_changes import is_empty

LOCK = "lock"
JOB = "job"
PLAN = "plan"
DONE = "done"
"""A plan that was carried out."""
KEPT = "kept"
"""Folder for versions of files that could not be put into the project."""
KEPT_BYTES = 512 * 1024 * 1024
"""How much of what was never finished, or was moved aside, is kept; the oldest goes first, and
nothing by its age."""
_REST = 4
"""Places that rest before they are used again: the kernel may still be taking the last overlay
apart.
"""
_REMEMBERED = 32
"""Commands whose changes stay written down.

More than can be under way before the log has the first.
"""
_REMEMBERED_BYTES = 256 * 1024 * 1024


class ScratchJob(msgspec.Struct, frozen=True, kw_only=True):
    """Whose command a place belongs to."""

    label: str
    roots: tuple[str, ...]
    started_ns: int


class ScratchPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where one command writes."""

    folder: str
    roots: tuple[str, ...]

    @property
    def layers(self) -> list[tuple[str, str, str]]:
        """Folder, upper layer and work folder of each overlay."""
        return [
            (root, f"{self.folder}/upper{number}", f"{self.folder}/work{number}")
            for number, root in enumerate(self.roots)
        ]

    @property
    def is_unused(self) -> bool:
        """True when the command changed nothing."""
        return all(is_empty(upper) for _, upper, _ in self.layers)


class ScratchFolder:
    """The private folder of this process."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.folder = ""
        self._lock: int | None = None
        self._resting: dict[tuple[str, ...], deque[ScratchPlace]] = {}
        self._records: deque[tuple[str, int]] = deque()
        self._count = 0
        self._record_count = 0

    def open(self) -> None:
        """Make it, and hold it.

        Raises:
            OSError: it cannot be made.
        """
        os.makedirs(self.base, mode=0o700, exist_ok=True)
        self.folder = f"{self.base}/{os.getpid()}-{os.urandom(4).hex()}"
        # For our user alone: commands of all projects leave copies of their files in here.
        os.mkdir(self.folder, 0o700)
        self._lock = os.open(f"{self.folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # The kernel drops the lock with the process, however it ends; a process number in a file
        # would mean another process after a restart of the machine.
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.close(os.open(self.unreadable, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o000))

    @property
    def unreadable(self) -> str:
        """A file that no command may read, to be seen in the place of secret ones."""
        return f"{self.folder}/unreadable"

    def temporary(self, name: str, mode: int) -> str:
        """A folder that all commands of this process share."""
        path = f"{self.folder}/{name}"
        if not os.path.isdir(path):
            os.mkdir(path, 0o700)
            # By `chmod`, because `mkdir` takes the umask off its mode, and 1777 would become 1755.
            os.chmod(path, mode)
        return path

    def cache(self, project: str) -> str:
        """A folder for what the commands of a project want to find again.

        It outlives the process.
        """
        name = sha256(os.fsencode(project)).hexdigest()[:16]
        path = f"{self.base}/cache/{name}"
        if not os.path.isdir(path):
            os.makedirs(path, mode=0o700, exist_ok=True)
        return path

    def place(self, roots: tuple[str, ...]) -> ScratchPlace:
        """A place for one command, for it alone."""
        resting = self._resting.setdefault(roots, deque())
        return resting.popleft() if len(resting) > _REST else self._new(roots)

    def assign(self, place: ScratchPlace, job: ScratchJob) -> None:
        """Write down whose command it is for."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        fd = os.open(f"{place.folder}/{JOB}", flags, 0o600)
        try:
            write_all(fd, msgspec.json.encode(job))
        finally:
            os.close(fd)

    def aside(self) -> str:
        """A folder, not made yet, for what one command loses."""
        return f"{self.base}/{KEPT}/{os.path.basename(self.folder)}-{os.urandom(4).hex()}"

    def _new(self, roots: tuple[str, ...]) -> ScratchPlace:
        self._count += 1
        place = ScratchPlace(folder=f"{self.folder}/{self._count}", roots=roots)
        os.mkdir(place.folder, 0o700)
        for root, upper, work in place.layers:
            os.mkdir(work, 0o700)
            os.mkdir(upper, 0o700)
            os.chmod(upper, _mode_for(root))
        return place

    def give_back(self, place: ScratchPlace) -> None:
        """A place in which there is nothing; what a command did to the folder itself is undone."""
        try:
            for root, upper, _ in place.layers:
                _make_plain(upper, root)
        except OSError:
            remove(place.folder)
        else:
            self._resting.setdefault(place.roots, deque()).append(place)

    def discard(self, place: ScratchPlace) -> None:
        """Throw away a place with its changes; blocks."""
        remove(place.folder)

    def settle(self, place: ScratchPlace, label: str) -> None:
        """Empty a place whose changes are in the project, and take it back.

        What they were stays written down.  Blocks.
        """
        for number in range(len(place.roots)):
            done = f"{place.folder}/{DONE}{number}"
            if label and os.path.exists(done):
                self._remember(done, label, number)
        for _, upper, _ in place.layers:
            _clear(upper)
        self.give_back(place)

    def _remember(self, done: str, label: str, number: int) -> None:
        self._record_count += 1
        record = f"{self.folder}/{record_name(self._record_count, label, number)}"
        # The order matters after a crash: the record is in place before the layer is emptied, so a
        # restart finds the changes in one of the two.
        os.rename(done, record)
        self._records.append((record, os.stat(record).st_size))
        while len(self._records) > 1 and (
            len(self._records) > _REMEMBERED
            or sum(size for _, size in self._records) > _REMEMBERED_BYTES
        ):
            # A record may be gone already, with the session whose command it was.
            with suppress(FileNotFoundError):
                os.unlink(self._records.popleft()[0])

    def close(self) -> None:
        """Let go, and take everything away; blocks."""
        if self._lock is None:
            return
        remove(self.folder)
        os.close(self._lock)
        self._lock = None


def record_name(count: int, label: str, layer: int) -> str:
    """How the file is called that says what a command changed in one of its folders."""
    return f"{DONE}-{sha256(label.encode()).hexdigest()[:16]}-{count:06}-{layer}"


def records_of(folder: str, label: str) -> list[str]:
    """The files that say what a command changed; the oldest first."""
    start = record_name(0, label, 0).rsplit("-", 2)[0]
    names = sorted(name for name in os.listdir(folder) if name.startswith(f"{start}-"))
    return [f"{folder}/{name}" for name in names]


def _clear(upper: str) -> None:
    """Leave nothing in an upper layer."""
    os.chmod(upper, 0o700)
    with os.scandir(upper) as entries:
        left = list(entries)
    for entry in left:
        if entry.is_dir(follow_symlinks=False):
            remove(entry.path)
        else:
            os.unlink(entry.path)


def _make_plain(upper: str, root: str) -> None:
    """Leave nothing of what a command gave the folder itself: it stands for the project's, and
    would do so for the next one.
    """
    mode = _mode_for(root)
    if stat.S_IMODE(os.stat(upper).st_mode) != mode:
        os.chmod(upper, mode)
    for name in os.listxattr(upper):
        # The overlay keeps its own books in attributes; those of the command are all others.
        if not name.startswith("user.overlay."):
            os.removexattr(upper, name)


def _mode_for(root: str) -> int:
    """The overlay shows the upper folder's mode as the project's."""
    return stat.S_IMODE(os.stat(root).st_mode) | 0o700


def bytes_below(folder: str) -> int:
    """What the files below a folder hold, links not followed."""
    found = 0
    # What a command nested too deep for calls, or closed, counts as far as it is seen.
    with suppress(RecursionError, OSError):
        for _, _, files, fd in os.fwalk(folder):
            for name in files:
                with suppress(OSError):
                    found += os.stat(name, dir_fd=fd, follow_symlinks=False).st_size
    return found


def remove(folder: str) -> None:
    """Take a folder away with all that is in it, whatever modes a command gave it and however deep
    it nested them.
    """
    # The obvious way first: `_remove_flat` renames each folder, and so is slower for ordinary
    # trees.
    with suppress(RecursionError, OSError):
        _remove_plain(folder)
    if os.path.isdir(folder):
        _remove_flat(folder)


def _remove_plain(folder: str) -> None:
    """As far as it goes; never through a link.  Not by `shutil`: that loads three compressors."""
    for _, folders, files, fd in os.fwalk(folder, topdown=False):
        for name in files:
            os.unlink(name, dir_fd=fd)
        for name in folders:
            try:
                os.rmdir(name, dir_fd=fd)
            except NotADirectoryError:  # a link to one
                os.unlink(name, dir_fd=fd)
    os.rmdir(folder)


def _remove_flat(folder: str) -> None:
    """The same for what is closed, or too deep for paths and for calls: each folder is moved to the
    top before it is looked into.
    """
    waiting = [folder]
    moved = itertools.count()
    while waiting:
        here = waiting.pop()
        below: list[str] = []
        with suppress(OSError):
            os.chmod(here, 0o700)
            for entry in list(os.scandir(here)):
                if entry.is_dir(follow_symlinks=False):
                    below.append(f"{folder}.{next(moved)}")
                    os.chmod(entry.path, 0o700)
                    os.rename(entry.path, below[-1])
                else:
                    os.unlink(entry.path)
            os.rmdir(here)
        waiting += below
