"""The local workspace: the project on this machine's disk.

Every file is opened by its real name with no link followed (`safe_open`), so that what was judged
is what is opened.  Links inside the project are followed by finding out the real name first
(`resolve`); one that leads out of the folders open to the session is refused.

A small file on a local disk is read on the event loop's own thread: an open, a stat and one read of
the page cache cost about as much as handing the work to a thread does.  All else (large files,
folders, writes, network disks) goes through the pool.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from weft.errors import FinalToolError
from weft.file_io import read_all
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import KEPT_BYTES, ChangedFile, FileState, Workspace
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.watchers import note_own_write
from weft.workspace.os_errors import explain, refusal
from weft.workspace.paths import WorkspacePath, WorkspaceRoots
from weft.workspace.safe_open import open_beneath, open_folder

if TYPE_CHECKING:  # loaded with the first change: it costs start-up time
    from weft.workspace.writes.atomic_write import FileReplacement

Kind: TypeAlias = Literal["file", "dir", "link", "other"]

MAX_READ = 32 * 1024 * 1024
"""What one read takes at most, where the caller sets no limit."""
_INLINE = 64 * 1024
_MAX_NAMES = 100_000
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a FIFO or device must not hold us up
_PATH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_MAX_SWEPT = 10_000
_SLOW = (
    *("nfs", "cifs", "smb", "9p", "ceph", "afs", "fuse", "lustre", "gluster", "ncpfs", "coda"),
    "sshfs",
)


class LocalWorkspace(Workspace):
    """Files below a project on a local disk, and below the folders added to it.

    A path that lies outside as written is opened too: the caller has asked for permission
    (`is_outside`).  A path that lies inside as written and is led outside by a link is always
    refused.
    """

    def __init__(
        self, root: str, added: Iterable[str] = (), *, kept_bytes: int = KEPT_BYTES
    ) -> None:
        """`kept_bytes`: up to this size, what a write replaces is handed on."""
        self._roots = WorkspaceRoots(root, added)
        self._kept_bytes = kept_bytes
        self.root = self._roots.root
        self._threads = DiskThreads.of(self.root)
        self._swept: set[str] = set()
        self._local_device = _local_device(self.root)

    def relative(self, path: str) -> str:
        return self._roots.shown(self._roots.place(path))

    def is_outside(self, path: str) -> bool:
        return self._roots.place(path).outside

    async def resolve(self, path: str) -> str:
        return self._roots.shown(self._real(self._roots.place(path)))

    async def read(self, path: str, *, limit: int | None = None) -> FileState:
        state = await self.peek(path, limit=limit)
        if state is None:
            raise FinalToolError(f"there is no file {self.relative(path)!r}")
        return state

    async def peek(self, path: str, *, limit: int | None = None) -> FileState | None:
        opened = self._open_file(path)
        if opened is None:
            return None
        most = MAX_READ if limit is None else limit
        if opened.about.st_size <= _INLINE and opened.about.st_dev == self._local_device:
            return opened.read(most)
        return await self._threads.run(lambda: opened.read(most))

    async def vet(self, path: str, before: FileState | None, data: bytes) -> None:
        """Nothing here is bounded (`BoundedWorkspace` is)."""

    def missing_folders(self, path: str) -> tuple[str, ...]:
        place = self._real(self._roots.place(path))
        parts = place.name.split("/")[:-1]
        there = len(parts)
        while there and not _is_there(WorkspacePath(place.folder, "/".join(parts[:there]))):
            there -= 1
        missing = (
            WorkspacePath(place.folder, "/".join(parts[:n]))
            for n in range(there + 1, len(parts) + 1)
        )
        return tuple(self._roots.shown(each) for each in missing)

    async def write(self, path: str, data: bytes, *, expected: BlobId | None) -> ChangedFile:
        """A cancel leaves the old file or the new one, whole, and nothing is written after it."""
        from weft.workspace.writes.atomic_write import FileReplacement  # as above

        _refuse_folder_name(path)
        place = self._real(self._roots.place(path))
        replacement = FileReplacement(
            place,
            self._roots.shown(place),
            data,
            expected,
            sweep=self._sweeps(place),
            kept_bytes=self._kept_bytes,
        )
        return await self._threads.run(lambda: _explained(replacement), replacement.abandon)

    async def remove(self, path: str, *, expected: BlobId) -> ChangedFile:
        """A cancel leaves the file or removes it, and nothing happens after it."""
        from weft.workspace.writes.atomic_write import FileRemoval  # as above

        _refuse_folder_name(path)
        place = self._real(self._roots.place(path))
        removal = FileRemoval(
            place,
            self._roots.shown(place),
            b"",
            expected,
            sweep=False,
            kept_bytes=self._kept_bytes,
        )
        return await self._threads.run(lambda: _explained(removal), removal.abandon)

    async def list(self, path: str) -> list[tuple[str, Kind]]:
        place = self._real(self._roots.place(path))
        return await self._threads.run(lambda: _names(place, self._roots.shown(place)))

    # --- finding ---------------------------------------------------------------------------

    def _open_file(self, path: str) -> _Opened | None:
        """Open a regular file for reading; None where there is none."""
        _refuse_folder_name(path)
        place = self._roots.place(path)
        try:
            try:
                # The name as written first: most paths have no link in them, and finding the real
                # name costs a system call for each part.
                fd = _open(place, _READ_FLAGS)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                place = self._real(place)
                fd = _open(place, _READ_FLAGS)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise explain(error, self._roots.shown(place)) from error
        return _Opened.check(fd, self._roots.shown(place))

    def _real(self, place: WorkspacePath) -> WorkspacePath:
        """The place by its real name, with every link followed, within the same folders.

        Nothing is decided here but a name: whatever happens to the links later, that very name is
        opened with no link followed.
        """
        try:
            os.close(_open(place, _PATH_FLAGS))
        except OSError as error:
            if error.errno != errno.ELOOP:
                return place  # nothing there, or not to be opened: no link on the way
        else:
            return place
        try:
            target = os.path.realpath(place.absolute)
        except OSError as error:  # a link was swapped while it was being followed
            raise explain(error, self._roots.shown(place)) from error
        real = self._roots.place(target)
        # Only the link is refused.  A path that names a file outside plainly was judged as such
        # before this point; one that hides where it leads was not.
        if real.outside and not place.outside:
            raise FinalToolError(
                f"{self._roots.shown(place)!r} leads out of the project by a symbolic "
                f"link, to {target!r}; "
                "if you need that file, name it by that path"
            )
        return real

    def _sweeps(self, place: WorkspacePath) -> bool:
        """True the first time that this workspace writes into a folder."""
        folder = os.path.dirname(place.absolute)
        if folder in self._swept:
            return False
        if len(self._swept) >= _MAX_SWEPT:
            self._swept.clear()
        self._swept.add(folder)
        return True


class _Opened:
    """A regular file that is open for reading; `read` closes it."""

    def __init__(self, fd: int, about: os.stat_result, shown: str) -> None:
        self.fd, self.about, self.shown = fd, about, shown

    @classmethod
    def check(cls, fd: int, shown: str) -> _Opened:
        """Take the descriptor over; refuse what is no regular file."""
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            os.close(fd)
            raise FinalToolError(refusal(about.st_mode, shown))
        return cls(fd, about, shown)

    def read(self, most: int) -> FileState:
        """The first `most` bytes, in one go."""
        try:
            # One byte more than asked for tells a file that is longer from one that ends exactly
            # here; the size from `stat` may be out of date, and is 0 in /proc.
            data = read_all(self.fd, most + 1, self.about.st_size)
        except OSError as error:
            raise explain(error, self.shown) from error
        finally:
            os.close(self.fd)
        cut = data[:most]
        return FileState(
            path=self.shown,
            data=cut,
            mode=stat.S_IMODE(self.about.st_mode),
            hash=BlobId(sha256(cut).hexdigest()),
            truncated=len(data) > most,
            size=max(self.about.st_size, len(cut)),
        )


def _open(place: WorkspacePath, flags: int) -> int:
    folder = open_folder(place.folder)
    try:
        return open_beneath(folder, place.name, flags)
    finally:
        os.close(folder)


def _is_there(place: WorkspacePath) -> bool:
    try:
        os.close(_open(place, _PATH_FLAGS))
    except OSError:
        return False
    return True


def _explained(replacement: FileReplacement) -> ChangedFile:
    try:
        touched = replacement.run()
    except OSError as error:
        raise explain(error, replacement.shown) from error
    note_own_write(replacement.place.folder, replacement.place.name)
    return touched


def _names(place: WorkspacePath, shown: str) -> list[tuple[str, Kind]]:
    try:
        fd = _open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # By descriptor: the folder that was opened beneath the root, not whatever has its name
            # by now.
            with os.scandir(fd) as entries:
                found = [
                    (_printable(entry.name), _kind(entry)) for entry in islice(entries, _MAX_NAMES)
                ]
        finally:
            os.close(fd)
    except NotADirectoryError as error:
        raise FinalToolError(f"{shown!r} is not a folder") from error
    except FileNotFoundError as error:
        raise FinalToolError(f"there is no folder {shown!r}") from error
    except OSError as error:
        raise explain(error, shown) from error
    return sorted(found)


def _printable(name: str) -> str:
    """A name as text; bytes that are no UTF-8 become `\ufffd`, and such a file cannot be opened by
    name.
    """
    return os.fsencode(name).decode(errors="replace")


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _refuse_folder_name(path: str) -> None:
    if path.endswith("/"):
        raise FinalToolError(f"{path!r} names a folder, not a file")


def _local_device(root: str) -> int | None:
    """The device that the project lies on, None when reading from it may take long: a network disk
    or a file system in user space.
    """
    try:
        device = os.stat(root).st_dev
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                before, _, after = line.partition(" - ")
                # By device number and not by path: the project may lie below a bind mount or a
                # link.
                if before.split()[2] == f"{os.major(device)}:{os.minor(device)}":
                    return None if after.startswith(_SLOW) else device
    except OSError:
        return None
    # Not in the table by number (btrfs, overlay): such file systems are local.
    return device
