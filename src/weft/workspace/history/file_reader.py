"""What is known of one file: reading it while commands write to it, and telling whether it
changed.
"""

from __future__ import annotations

import os
import stat
import time

import msgspec

from weft.file_io import read_all
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.history.pack import FileEntry, PreimagePack
from weft.workspace.safe_open import open_beneath

_RACY_NS = 50_000_000
"""A file changed so shortly before it was read may change again without looking different."""
TOO_LARGE = "too large"
NOT_COPIED = "not copied"
"""The content is on the disk alone, as far as it is still that one."""
MOST_HASHED = 1024 * 1024 * 1024
"""Of a larger file nothing is read: a hash takes a second or two for each gigabyte, and the end of
a command waits for it."""
_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW


class FileReader:
    """Reads files below a project's folder into a pack."""

    def __init__(self, root: str, base: int, pack: PreimagePack, max_file: int) -> None:
        """`base` is the open folder `root`; content of files over `max_file` bytes is not kept."""
        self._root = root
        self.base = base
        self._pack = pack
        self._max_file = max_file
        self.copies = True
        """False while files are only looked at: then their content is hashed and not kept."""

    def read(self, path: str, about: os.stat_result, old: FileEntry | None) -> FileEntry | None:
        """Read what is at a path and keep it; None when it is gone by now."""
        mode = about.st_mode
        if stat.S_ISLNK(mode):
            try:
                data = os.fsencode(os.readlink(f"{self._root}/{path}"))
            except OSError:
                return None
        elif not stat.S_ISREG(mode):
            return self._without_content(path, about, "not a regular file", old)
        elif about.st_size > self._max_file:
            return self._hashed(path, about, old)
        else:
            try:
                about, data = self._content(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError:
                return self._without_content(path, about, "unreadable", old)
            if len(data) > self._max_file:
                return self._hashed(path, about, old)
        digest = BlobId(sha256(data).hexdigest())
        new = FileEntry(
            mode=about.st_mode,
            size=len(data),
            changed=_changed(about),
            hash=digest,
            inode=about.st_ino,
            links=about.st_nlink,
        )
        # Only its looks changed (touched, or rewritten with the same content): what is kept is
        # kept.
        if old is not None and (old.hash, old.mode) == (digest, new.mode) and old.offset >= 0:
            return msgspec.structs.replace(new, offset=old.offset)
        if self.copies:
            return self._pack.put(path, new, data, old)
        new = msgspec.structs.replace(new, why_not=NOT_COPIED)
        self._pack.mention(path, new, old)
        return new

    def content_of(self, path: str, entry: FileEntry) -> bytes | None:
        """The content of a known file, from the disk; None when it is another one by now."""
        try:
            if stat.S_ISLNK(entry.mode):
                data = os.fsencode(os.readlink(f"{self._root}/{path}"))
            else:
                _, data = self._content(path)
        except OSError:
            return None
        return data if sha256(data).hexdigest() == entry.hash else None

    def _hashed(self, path: str, about: os.stat_result, old: FileEntry | None) -> FileEntry | None:
        """A large file: its hash is known, and its content is not kept."""
        if about.st_size > MOST_HASHED:
            return self._without_content(path, about, TOO_LARGE, old)
        try:
            about, digest = self._digest(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return self._without_content(path, about, "unreadable", old)
        new = FileEntry(
            mode=about.st_mode,
            size=about.st_size,
            changed=_changed(about),
            hash=digest,
            why_not=TOO_LARGE,
            inode=about.st_ino,
            links=about.st_nlink,
        )
        if new != old:
            self._pack.mention(path, new, old)
        return new

    def _digest(self, path: str) -> tuple[os.stat_result, BlobId]:
        """The hash of a regular file of any size.  One that is written to meanwhile is looked at
        again: the write causes an event, and changes its times.
        """
        import hashlib  # OpenSSL's is worth loading for a large file

        fd = open_beneath(self.base, path, _READ_FLAGS)
        with open(fd, "rb", buffering=0) as file:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                raise FileNotFoundError(path)
            return about, BlobId(hashlib.file_digest(file, "sha256").hexdigest())

    def _without_content(
        self, path: str, about: os.stat_result, why_not: str, old: FileEntry | None
    ) -> FileEntry:
        new = FileEntry(
            mode=about.st_mode,
            size=about.st_size,
            changed=about.st_mtime_ns,
            why_not=why_not,
            inode=about.st_ino,
            links=about.st_nlink,
        )
        if new != old:
            self._pack.mention(path, new, old)
        return new

    def _content(self, path: str) -> tuple[os.stat_result, bytes]:
        """A regular file, read while it stands still, or at least three times."""
        fd = open_beneath(self.base, path, _READ_FLAGS)
        try:
            for _ in range(3):
                about = os.fstat(fd)
                if not stat.S_ISREG(about.st_mode):
                    # It was swapped since it was listed; the swap causes an event of its own.
                    raise FileNotFoundError(path)
                data = read_all(fd, self._max_file + 1, about.st_size)
                after = os.fstat(fd)
                # The same before and after the read: no write came in between.
                if (after.st_mtime_ns, after.st_size) == (about.st_mtime_ns, len(data)):
                    break
                os.lseek(fd, 0, os.SEEK_SET)
            return after, data
        finally:
            os.close(fd)


def differs(old: FileEntry | None, new: FileEntry | None) -> bool:
    """True when they are not the same file with the same content and mode."""
    if old is None or new is None:
        return old is not new
    if old.mode != new.mode or old.hash != new.hash:
        return True
    return not new.hash and (old.size, old.changed) != (new.size, new.changed)


def looks_like(entry: FileEntry, about: os.stat_result) -> bool:
    """True when nothing can have changed since it was read."""
    if entry.mode != about.st_mode or entry.size != about.st_size:
        return False
    # An earlier version did not hash it.
    if entry.why_not == TOO_LARGE and not entry.hash and entry.size <= MOST_HASHED:
        return False
    seen = about.st_mtime_ns if not entry.hash else _signature(about)
    return entry.changed == seen


def _changed(about: os.stat_result) -> int:
    # Times have the resolution of the kernel's tick: a second write in the same tick leaves them as
    # they are.  0 matches nothing, so such a file is read again.
    newest = max(about.st_mtime_ns, about.st_ctime_ns)
    return 0 if newest > time.time_ns() - _RACY_NS else _signature(about)


def _signature(about: os.stat_result) -> int:
    # The status change time too: a program can set the modification time back, not this one.
    return hash((about.st_mtime_ns, about.st_ctime_ns, about.st_ino))
