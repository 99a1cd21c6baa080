"""Atomic writes: a file is replaced in one step.

The new content goes to a temporary file in the same folder, is made durable, and takes the old
one's place by a rename; then the folder is made durable.  Killed at any instant, the file is the
old one or the new one, whole.

What a kill can leave behind is the temporary file.  Its name says what it is, and its maker holds a
lock on it while it lives: the first write that this process makes into a folder removes those whose
writer is gone.

Whether the file is still what the caller expects is checked when it is opened, again right before
the rename, and of what the rename has displaced (`displaced_file`): a change that another program
makes at any instant is never overwritten.  A new file is put in place by a rename that refuses to
replace, so that two processes that create it never overwrite one another.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress

from weft import faults
from weft.errors import FinalToolError, RetryableToolError, ToolError
from weft.file_io import read_all, write_all
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import KEPT_BYTES, ChangedFile, unkept
from weft.workspace.os_errors import refusal
from weft.workspace.paths import WorkspacePath
from weft.workspace.safe_open import make_folders, open_beneath, open_folder
from weft.workspace.writes.displaced_file import (
    DISPLACED,
    DisplacedChange,
    DisplacedPlace,
    displaced_name,
    settle_displaced,
)
from weft.workspace.writes.rename_calls import rename_new

TEMPORARY = ".weft-tmp-"
"""How the names of our temporary files begin."""
OURS = (TEMPORARY, DISPLACED)
"""How the names of files begin that lie beside the project's for the instant of a write."""

_BEFORE_RENAME = faults.point("workspace.write.before_rename")
_AFTER_RENAME = faults.point("workspace.write.after_rename")
_BEFORE_REMOVAL = faults.point("workspace.remove.before_rename")
_CHUNK = 1024 * 1024


class WriteAbandoned(Exception):
    """The caller was cancelled before the point of no return; nothing was written."""


class FileReplacement:
    """One replacement of one file; `run` blocks, `abandon` may be called from another thread."""

    def __init__(
        self,
        place: WorkspacePath,
        shown: str,
        data: bytes,
        expected: BlobId | None,
        *,
        sweep: bool,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self.place, self.shown, self.data, self.expected = place, shown, data, expected
        self._sweep = sweep
        self._kept_bytes = kept_bytes
        self._abandoned = False
        self._made: list[tuple[str, int]] = []

    def abandon(self) -> None:
        """Stop before the rename, if it is not too late."""
        self._abandoned = True

    def run(self) -> ChangedFile:
        """Do it.

        Raises:
            RetryableToolError: the file is not what was expected.
            FinalToolError: it may not be replaced.
            OSError: the system refused.
        """
        self._raise_if_abandoned()
        folder = self._open_parent()
        try:
            if self._sweep:
                sweep(folder)
            return self._replace(folder)
        finally:
            os.close(folder)

    def _open_parent(self) -> int:
        base = open_folder(self.place.folder)
        try:
            return open_beneath(base, self.place.parent, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return make_folders(base, self.place.parent, self._made)
        finally:
            os.close(base)

    def _replace(self, folder: int) -> ChangedFile:
        leaf = self.place.leaf
        before = _Old.read(folder, leaf, self.shown, self._kept_bytes)
        self._compare(before)
        # A new file gets the mode that the umask allows; a replacement stays closed until it has
        # the old one's owner and mode.
        name, fd = temporary(folder, 0o666 if before is None else 0o600)
        try:
            write_all(fd, self.data)
            if before is not None:
                before.pass_on(fd)
            # Before the rename: file systems may order the two the other way round, and a power cut
            # would leave an empty file under the final name.
            os.fdatasync(fd)
            # The last look before the rename: what changes after it is found displaced.
            if before is None or not before.is_still(folder, self.place.leaf):
                self._compare(_Old.read(folder, self.place.leaf, self.shown, self._kept_bytes))
            mode = os.fstat(fd).st_mode
            self._raise_if_abandoned()
            _BEFORE_RENAME.hit()
            if before is None:
                self._take_free_place(folder, name)
            else:
                # Only once it is whole: under this name lies what it displaces.
                aside = displaced_name(before.hash, self._after, leaf)
                rename_new(folder, name, aside)
                name = aside
                self._take_place(folder, before, name)
        except BaseException:
            remove_if(folder, name, os.fstat(fd).st_ino)
            raise
        finally:
            os.close(fd)
        _AFTER_RENAME.hit()
        # Last: until the folder is on disk the rename itself can be lost.
        os.fsync(folder)
        return self._touched(before, mode)

    def _compare(self, found: _Old | None) -> None:
        """Refuse unless the file is what the caller expects."""
        if found is None and self.expected is not None:
            raise RetryableToolError(
                f"{self.shown!r} was removed since it was read; nothing was written"
            )
        if found is not None and self.expected is None:
            raise RetryableToolError(
                f"{self.shown!r} exists by now; nothing was written.  Read it first"
            )
        if found is not None and found.hash != self.expected:
            raise RetryableToolError(
                f"{self.shown!r} was changed since it was read; nothing was written.  Read it again"
            )

    def _take_free_place(self, folder: int, name: str) -> None:
        try:
            rename_new(folder, name, self.place.leaf)
        except FileExistsError:
            raise RetryableToolError(
                f"{self.shown!r} exists by now; nothing was written.  Read it first"
            ) from None

    def _take_place(self, folder: int, before: _Old, name: str) -> None:
        try:
            self._displaced(folder, before).exchange(name)
        except FileNotFoundError:
            self._compare(None)
            raise
        except DisplacedChange as change:
            raise change.explained(self.shown) from None

    def _displaced(self, folder: int, before: _Old) -> DisplacedPlace:
        def is_old(name: str) -> bool:
            found = self._found(folder, name)
            return found is not None and found.is_like(before)

        def is_new(name: str) -> bool:
            found = self._found(folder, name)
            return found is not None and found.hash == self._after

        return DisplacedPlace(folder, self.place.leaf, is_old=is_old, is_new=is_new)

    def _found(self, folder: int, name: str) -> _Old | None:
        """A plain file; None for whatever else may have come into its place."""
        try:
            return _Old.read(folder, name, self.shown, 0)
        except (ToolError, OSError):
            return None

    @property
    def _after(self) -> BlobId:
        return BlobId(sha256(self.data).hexdigest())

    def _raise_if_abandoned(self) -> None:
        if self._abandoned:
            raise WriteAbandoned

    def _touched(self, before: _Old | None, mode: int) -> ChangedFile:
        above = self.shown.removesuffix(self.place.name)
        return ChangedFile(
            path=self.shown,
            action="created" if before is None else "modified",
            before=None if before is None else before.hash,
            after=self._after,
            data_before=None if before is None else before.kept,
            data_after=self.data if len(self.data) <= self._kept_bytes else None,
            mode_before=0 if before is None else before.about.st_mode,
            mode_after=mode,
            missing=unkept(self._kept_bytes) if before is not None and before.kept is None else "",
            folders=tuple((f"{above}{name}", mode) for name, mode in self._made),
        )


class FileRemoval(FileReplacement):
    """The removal of a file that still has an expected content; `data` is nothing."""

    def _open_parent(self) -> int:
        base = open_folder(self.place.folder)
        try:
            return open_beneath(base, self.place.parent, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            # The folder went with the file.
            self._compare(None)
            raise
        finally:
            os.close(base)

    def _replace(self, folder: int) -> ChangedFile:
        before = _Old.read(folder, self.place.leaf, self.shown, self._kept_bytes)
        self._compare(before)
        assert before is not None  # something was expected
        if not before.is_still(folder, self.place.leaf):
            self._compare(_Old.read(folder, self.place.leaf, self.shown, self._kept_bytes))
        self._raise_if_abandoned()
        self._move_away(folder, before)
        os.fsync(folder)
        return ChangedFile(
            path=self.shown,
            action="deleted",
            before=before.hash,
            data_before=before.kept,
            mode_before=before.about.st_mode,
            missing=unkept(self._kept_bytes) if before.kept is None else "",
        )

    def _move_away(self, folder: int, before: _Old) -> None:
        _BEFORE_REMOVAL.hit()
        try:
            self._displaced(folder, before).remove(
                displaced_name(before.hash, None, self.place.leaf)
            )
        except FileNotFoundError:
            self._compare(None)
            raise
        except DisplacedChange as change:
            raise change.explained(self.shown) from None


class _Old:
    """The file that is about to be replaced, as it was found."""

    def __init__(
        self, about: os.stat_result, digest: str, kept: bytes | None, extras: dict[str, bytes]
    ) -> None:
        self.about, self.hash, self.kept, self.extras = about, BlobId(digest), kept, extras

    @classmethod
    def read(cls, folder: int, name: str, shown: str, kept_bytes: int) -> _Old | None:
        """Read it whole; None where there is nothing.  Refuses what must not be replaced."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise FinalToolError(refusal(stat.S_IFLNK, shown)) from error
            raise
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                raise FinalToolError(refusal(about.st_mode, shown))
            # A rename would part the names: the other one would keep the old content.  Writing in
            # place instead would not be atomic, and could change a file outside the project.
            if about.st_nlink > 1:
                raise FinalToolError(
                    f"{shown!r} has {about.st_nlink} names (hard links), so that writing "
                    "it could change a file elsewhere; "
                    "copy it to a file of its own first"
                )
            digest, kept = _digest(fd, about.st_size, kept_bytes)
            return cls(about, digest, kept, extras_of(fd))
        finally:
            os.close(fd)

    def is_still(self, folder: int, name: str) -> bool:
        """True when nothing can have changed since it was read; cheap."""
        try:
            now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return _identity(now) == _identity(self.about)

    def is_like(self, other: _Old) -> bool:
        """True when neither content nor owner, mode and attributes differ."""
        mine, theirs = self.about, other.about
        return (self.hash, self.extras, mine.st_mode, mine.st_uid, mine.st_gid) == (
            *(other.hash, other.extras, theirs.st_mode, theirs.st_uid, theirs.st_gid),
        )

    def pass_on(self, fd: int) -> None:
        """Give the new file the old one's owner, attributes and mode."""
        pass_on(fd, self.about, self.extras)


def pass_on(fd: int, about: os.stat_result, extras: dict[str, bytes]) -> None:
    """Give an open file the owner, attributes and mode of the one whose place it takes."""
    mode = stat.S_IMODE(about.st_mode)
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (about.st_uid, about.st_gid):
        try:
            os.fchown(fd, about.st_uid, about.st_gid)
        except OSError:
            mode &= ~(stat.S_ISUID | stat.S_ISGID)  # never lend them to another owner
    for name, value in extras.items():
        with suppress(OSError):  # a label that may not be set by us stays the folder's default
            os.setxattr(fd, name, value)
    # After the owner: `chown` clears the set-user-id and set-group-id bits.
    os.fchmod(fd, mode)


def _identity(about: os.stat_result) -> tuple[int, ...]:
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def extras_of(fd: int) -> dict[str, bytes]:
    """Extended attributes: access lists, labels, the user's own."""
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except (OSError, AttributeError):
        return {}


def _digest(fd: int, size: int, kept_bytes: int) -> tuple[str, bytes | None]:
    """Hash the file; keep its content where it is small enough."""
    if size <= kept_bytes:
        data = read_all(fd, kept_bytes + 1, size)
        if len(data) <= kept_bytes:
            return sha256(data).hexdigest(), data
        os.lseek(fd, 0, os.SEEK_SET)
    import hashlib  # OpenSSL's is worth loading for a large file

    hashed = hashlib.sha256()
    while chunk := os.read(fd, _CHUNK):
        hashed.update(chunk)
    return hashed.hexdigest(), None


# --- temporary files -------------------------------------------------------------------------


def temporary(folder: int, mode: int) -> tuple[str, int]:
    """Make a temporary file with an unpredictable name, and hold its lock."""
    while True:
        name = TEMPORARY + os.urandom(8).hex()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, mode, dir_fd=folder)
        try:
            with suppress(OSError):  # a disk without locks: then no process sweeps there either
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_nlink:
                return name, fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # a sweep came between the two calls and took it for a leftover


def sweep(folder: int) -> int:
    """Take away the temporary files that a killed writer left in this folder; returns how many."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(OURS)]
    for name in names:
        settle_displaced(folder, name)
    return sum(_remove_if_free(folder, name) for name in names if name.startswith(TEMPORARY))


def remove_if(folder: int, name: str, inode: int) -> None:
    """Remove a file of ours, unless another one is under its name by now."""
    with suppress(OSError):
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino == inode:
            os.unlink(name, dir_fd=folder)


def _remove_if_free(folder: int, name: str) -> bool:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link holds no lock, and lives for an instant
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
                return True
        return False
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return False
        # The kernel drops the lock with its process, so a lock that we get means a dead writer.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False  # held by a living writer, or gone already
    finally:
        os.close(fd)
    return True
