"""Restoring one path to what it was.

What is there is looked at first (`look`), judged by the caller, and replaced only if it is still
exactly that (`put_back`): otherwise it was changed since, and nothing is touched.  Files and links
change by a rename, so that a kill leaves the old one or the new one.  A folder is only ever removed
when it is empty.  No link is followed, in no part of the name.
"""

from __future__ import annotations

import errno
import functools
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress

from weft import faults
from weft.errors import FinalToolError, RetryableToolError
from weft.file_io import read_all, write_all
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import KEPT_BYTES, FileImage
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.watchers import note_own_write
from weft.workspace.os_errors import explain
from weft.workspace.paths import WorkspacePath, WorkspaceRoots
from weft.workspace.safe_open import make_folders, open_beneath, open_folder
from weft.workspace.writes.atomic_write import (
    TEMPORARY,
    extras_of,
    pass_on,
    remove_if,
    sweep,
    temporary,
)
from weft.workspace.writes.displaced_file import DisplacedChange, DisplacedPlace, displaced_name
from weft.workspace.writes.rename_calls import rename_new

_BEFORE = faults.point("workspace.restore.before_rename")
_AFTER = faults.point("workspace.restore.after_rename")
_MAX_NAMES = 10_000
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = 0o644


class PathRestorer:
    """Looks at paths of a project, and puts them back."""

    def __init__(self, root: str, added: Iterable[str] = (), *, max_file: int = KEPT_BYTES) -> None:
        self._roots = WorkspaceRoots(root, added)
        self._max_file = max_file
        self._threads = DiskThreads.of(self._roots.root)
        self._swept: set[str] = set()

    async def look(self, path: str) -> FileImage | None:
        """What is at a path, with its content where it is not too large; None where nothing is.

        Raises:
            ToolError: it cannot be looked at.
        """
        place = self._roots.place(path)
        return await self._threads.run(functools.partial(self._look, place, path))

    async def put_back(
        self, path: str, image: FileImage | None, *, expected: FileImage | None
    ) -> None:
        """Put `image` at a path (None: nothing), if what is there is still `expected`; durable on
        return.

        A cancel leaves the one or the other, whole.

        Raises:
            RetryableToolError: something else is there; nothing was touched.
            FinalToolError: it cannot be done; nothing was touched.
        """
        place = self._roots.place(path)
        work = functools.partial(self._put_back, place, path, image, expected)
        await self._threads.run(work)

    def _look(self, place: WorkspacePath, shown: str) -> FileImage | None:
        try:
            folder = _open_parent(place)
            if folder is None:
                return None
            try:
                return look(folder, place.leaf, self._max_file)
            finally:
                os.close(folder)
        except OSError as error:
            raise explain(error, shown) from error

    def _put_back(
        self, place: WorkspacePath, shown: str, image: FileImage | None, expected: FileImage | None
    ) -> None:
        try:
            folder = _open_parent(place, makes=image is not None and expected is None)
            if folder is None:
                if expected is not None:
                    raise _changed(shown)
                return
            try:
                self._sweep(place, folder)
                # Looked at again, in the same open folder: between the question and the answer the
                # user may have edited the file.
                found = look(folder, place.leaf, self._max_file)
                if not is_same(found, expected):
                    raise _changed(shown)
                _replace(self._displaced(folder, place.leaf, found, image), found, image)
                os.fsync(folder)
            finally:
                os.close(folder)
        except (FileExistsError, DisplacedChange):
            raise _changed(shown) from None
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FinalToolError(
                    f"{shown!r} is not empty: it holds what this session did not make"
                ) from error
            raise explain(error, shown) from error
        note_own_write(place.folder, place.name)

    def _displaced(
        self, folder: int, name: str, found: FileImage | None, image: FileImage | None
    ) -> DisplacedPlace:
        def is_new(other: str) -> bool:
            there = look(folder, other, self._max_file)
            return there is not None and image is not None and there.data == (image.data or b"")

        return DisplacedPlace(
            folder,
            name,
            is_old=lambda other: is_same(look(folder, other, self._max_file), found),
            is_new=is_new,
        )

    def _sweep(self, place: WorkspacePath, folder: int) -> None:
        """Take away what a killed process left half done, once a folder."""
        key = f"{place.folder}/{place.parent}"
        if key not in self._swept and len(self._swept) < _MAX_NAMES:
            self._swept.add(key)
            sweep(folder)


def is_same(one: FileImage | None, other: FileImage | None) -> bool:
    """True when both are nothing, or of one kind with one mode and one content."""
    if one is None or other is None:
        return one is other
    return (one.mode, one.hash) == (other.mode, other.hash)


def look(folder: int, name: str, max_file: int) -> FileImage | None:
    """What is at a name in an open folder."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(about.st_mode):
            return _image(about.st_mode, os.fsencode(os.readlink(name, dir_fd=folder)))
        if stat.S_ISDIR(about.st_mode):
            return FileImage(mode=about.st_mode, names=_names(folder, name))
        if not stat.S_ISREG(about.st_mode) or about.st_size > max_file:
            return FileImage(mode=about.st_mode)
        # Without following links and without blocking: by now a link or a pipe may have this name.
        fd = os.open(name, _FLAGS, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        about = os.fstat(fd)
        is_file = stat.S_ISREG(about.st_mode)
        data = read_all(fd, max_file + 1, about.st_size) if is_file else None
    finally:
        os.close(fd)
    if data is None or len(data) > max_file:
        return FileImage(mode=about.st_mode)
    return _image(about.st_mode, data)


def _image(mode: int, data: bytes) -> FileImage:
    return FileImage(mode=mode, hash=BlobId(sha256(data).hexdigest()), data=data)


def _names(folder: int, name: str) -> tuple[str, ...]:
    fd = os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
    try:
        return tuple(sorted(os.listdir(fd))[:_MAX_NAMES])
    finally:
        os.close(fd)


def _open_parent(place: WorkspacePath, *, makes: bool = False) -> int | None:
    """The folder that holds a path; None where there is none by that very name."""
    base = open_folder(place.folder)
    try:
        return open_beneath(base, place.parent, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return make_folders(base, place.parent) if makes else None
    except OSError as error:
        if not makes and error.errno in (errno.ENOTDIR, errno.ELOOP):
            return None
        raise
    finally:
        os.close(base)


def _changed(shown: str) -> RetryableToolError:
    return RetryableToolError(f"{shown!r} was changed meanwhile; it was left as it is")


# --- replacing -----------------------------------------------------------------------------------


def _replace(place: DisplacedPlace, found: FileImage | None, image: FileImage | None) -> None:
    folder, name = place.folder, place.leaf
    is_folder = found is not None and stat.S_ISDIR(found.mode)
    wants_folder = image is not None and stat.S_ISDIR(image.mode)
    if found is not None and image is not None and _differ_in_mode_only(found, image):
        _set_mode(folder, name, image.mode)
        return
    if is_folder:
        os.rmdir(name, dir_fd=folder)
    elif found is not None and (image is None or wants_folder):
        _BEFORE.hit()
        place.remove(displaced_name(found.hash, None, name))
        _AFTER.hit()
    if image is None:
        return
    if wants_folder:
        # Closed until it has its own mode, so that no other user can enter in between.
        os.mkdir(name, 0o700, dir_fd=folder)
        _set_mode(folder, name, image.mode)
        return
    replaced = None if is_folder else found
    if stat.S_ISLNK(image.mode):
        _put_link(place, image, replaced)
    else:
        _put_file(place, image, replaced)


def _differ_in_mode_only(found: FileImage, image: FileImage) -> bool:
    return found.hash == image.hash and stat.S_IFMT(found.mode) == stat.S_IFMT(image.mode)


def _set_mode(folder: int, name: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        return  # a link has none of its own
    fd = os.open(name, _FLAGS, dir_fd=folder)
    try:
        if stat.S_IFMT(os.fstat(fd).st_mode) == stat.S_IFMT(mode):
            os.fchmod(fd, stat.S_IMODE(mode))
    finally:
        os.close(fd)


def _put_link(place: DisplacedPlace, image: FileImage, replaced: FileImage | None) -> None:
    spare = _spare_name(place.leaf, image, replaced)
    os.symlink(os.fsdecode(image.data or b""), spare, dir_fd=place.folder)
    about = os.stat(spare, dir_fd=place.folder, follow_symlinks=False)
    _take_place(place, spare, about.st_ino, is_new=replaced is None)


def _put_file(place: DisplacedPlace, image: FileImage, replaced: FileImage | None) -> None:
    folder, is_new = place.folder, replaced is None
    spare, fd = temporary(folder, 0o600)
    try:
        try:
            write_all(fd, image.data or b"")
            mode = _NEW_FILE if is_new else _with_same_metadata(folder, place.leaf, fd)
            # The owner is not recorded, and these two bits mean something only together with it.
            final = stat.S_IMODE(image.mode) if image.mode else mode
            os.fchmod(fd, final & ~(stat.S_ISUID | stat.S_ISGID))
            os.fdatasync(fd)
            if replaced is not None:  # it is whole, and may lie under a name that is kept
                aside = _spare_name(place.leaf, image, replaced)
                rename_new(folder, spare, aside)
                spare = aside
        except BaseException:
            with suppress(OSError):
                os.unlink(spare, dir_fd=folder)
            raise
        _take_place(place, spare, os.fstat(fd).st_ino, is_new=is_new)
    finally:
        os.close(fd)


def _spare_name(leaf: str, image: FileImage, replaced: FileImage | None) -> str:
    """The name of a new file until it takes its place; of one that displaces another, the name that
    the other will have.
    """
    if replaced is None:
        return TEMPORARY + secrets.token_hex(8)
    return displaced_name(replaced.hash, image.hash, leaf)


def _with_same_metadata(folder: int, name: str, fd: int) -> int:
    """Give the new file the owner and attributes of the one that it replaces.

    Returns that one's mode.
    """
    try:
        old = os.open(name, _FLAGS, dir_fd=folder)
    except OSError:
        return _NEW_FILE  # a link, or a file that we may not read
    try:
        about = os.fstat(old)
        if not stat.S_ISREG(about.st_mode):
            return _NEW_FILE
        pass_on(fd, about, extras_of(old))
        return stat.S_IMODE(about.st_mode)
    finally:
        os.close(old)


def _take_place(place: DisplacedPlace, spare: str, inode: int, *, is_new: bool) -> None:
    try:
        _BEFORE.hit()
        if is_new:
            rename_new(place.folder, spare, place.leaf)
        else:
            place.exchange(spare)
    except BaseException:
        remove_if(place.folder, spare, inode)
        raise
    _AFTER.hit()
