"""Putting what a sandboxed command changed into the project, one path at a time.

Each step was judged before; here it is carried out, if the path is still as it was when it was
judged.  A file takes its place by a rename, so that at every instant the old or the new one is
there, whole; what it displaces is looked at once more (`displaced_file`).  What cannot be done is
named and leaves the rest alone.

Nothing is forced to disk: it is as durable as it would be if the command had written it itself.
What is to be done is written down beside the upper layer before the first step, with the hashes of
before and after, so that after a crash it can be finished (`overlay_recovery`).

Everything here blocks.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress

import msgspec

from weft.file_io import write_all
from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.base import ChangedFile
from weft.workspace.safe_open import open_beneath, open_folder
from weft.workspace.sandbox.overlay_plan import ApplyStep, FoundEntry, identity
from weft.workspace.writes.atomic_write import remove_if
from weft.workspace.writes.displaced_file import DisplacedChange, DisplacedPlace, displaced_name

_CHUNK = 1024 * 1024
_CHANGED = "it was changed just now"


class ApplyOutcome(msgspec.Struct, kw_only=True):
    """What became of a change set."""

    done: list[ApplyStep] = []
    failed: list[tuple[ApplyStep, str]] = []
    """With the reason."""


class OverlayApplier:
    """Carries steps out in one project folder."""

    def __init__(self, root: str, upper: str) -> None:
        self._upper = upper
        self._root = open_folder(root)

    def close(self) -> None:
        """Let the folder go."""
        os.close(self._root)

    def run(self, steps: list[ApplyStep], each: Callable[[], None] = lambda: None) -> ApplyOutcome:
        """Carry out all steps.

        One that fails is named, and the others go on.  `each` is called after each.
        """
        outcome = ApplyOutcome()
        for step in steps:
            try:
                self._do(step)
            except OSError as error:
                outcome.failed.append((step, error.strerror or str(error)))
            else:
                outcome.done.append(step)
            each()
        return outcome

    def _do(self, step: ApplyStep) -> None:
        parent, _, leaf = step.path.rpartition("/")
        # Opened for each step anew, without following links: another program may have put a link in
        # the place of a folder since, and a path would lead out of the project.
        folder = open_beneath(self._root, parent or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._check(step, folder, leaf)
            _ACTIONS[step.do](step, folder, leaf, f"{self._upper}/{step.path}")
        finally:
            os.close(folder)

    def _check(self, step: ApplyStep, folder: int, leaf: str) -> None:
        """Refuse when the path was changed since it was judged."""
        if step.before is None or not step.before.identity:
            return
        if identity(os.stat(leaf, dir_fd=folder, follow_symlinks=False)) != step.before.identity:
            raise OSError(0, _CHANGED)


def _put(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    assert step.after is not None
    if step.after.kind == "file":
        _without_flags(source, step.after.mode)
    # Before the move: in the project the file must never have had the bits, not for an instant.
    if step.is_disarmed:
        os.chmod(source, stat.S_IMODE(step.after.mode))
    if step.aside:
        _keep_also(leaf, folder, step.aside)
    try:
        _move_in(step, folder, leaf, source)
    except OSError as error:
        # The scratch folder may be on another disk than the project; a rename cannot cross.
        if error.errno != errno.EXDEV:
            raise
        _copy_in(step, folder, leaf, source)


def _move_in(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    # A link refuses to take the place of what another program has put there meanwhile; a rename
    # does not.
    if step.before is None:
        os.link(source, leaf, dst_dir_fd=folder, follow_symlinks=False)
    else:
        # By way of a name in the project: what is displaced must never lie in the scratch folder,
        # which is emptied.  The layer keeps its own until the step is done, for `overlay_recovery`.
        near = _near(step, leaf)
        os.link(source, near, dst_dir_fd=folder, follow_symlinks=False)
        _displace(step, folder, leaf, near)
    os.unlink(source)


def _near(step: ApplyStep, leaf: str) -> str:
    """A name beside the target, so that the last move is a rename within one folder."""
    assert step.after is not None
    before = step.before.hash if step.before is not None else None
    return displaced_name(before, step.after.hash, leaf)


def _displace(step: ApplyStep, folder: int, leaf: str, near: str) -> None:
    """Take the place of what was judged, and of nothing else."""
    assert step.before is not None
    ours = os.stat(near, dir_fd=folder, follow_symlinks=False)
    try:
        if step.before.kind == "folder" or not step.before.identity:
            os.rename(near, leaf, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            _judged_place(step, folder, leaf, _looks(ours)).exchange(near)
    except DisplacedChange:
        raise OSError(0, _CHANGED) from None
    finally:
        # Where it failed half way, somebody else's file may have this name.
        remove_if(folder, near, ours.st_ino)


def _judged_place(
    step: ApplyStep, folder: int, leaf: str, new: tuple[int, ...] = ()
) -> DisplacedPlace:
    """The place of what was judged; `new` tells what is to take it."""
    assert step.before is not None
    judged = (step.before.mode, *step.before.identity[:-1])

    def looks(name: str) -> tuple[int, ...]:
        return _looks(os.stat(name, dir_fd=folder, follow_symlinks=False))

    return DisplacedPlace(
        folder,
        leaf,
        is_old=lambda name: looks(name) == judged,
        is_new=lambda name: looks(name) == new,
    )


def _looks(about: os.stat_result) -> tuple[int, ...]:
    # But for the time of the last change, which a rename sets.
    return (about.st_mode, *identity(about)[:-1])


def _copy_in(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    assert step.after is not None
    near = _near(step, leaf)
    if step.after.kind == "link":
        os.symlink(os.readlink(source), near, dir_fd=folder)
    else:
        _copy_file(source, near, folder, step.after)
    if step.before is not None:
        _displace(step, folder, leaf, near)
        return
    try:
        os.link(near, leaf, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(near, dir_fd=folder)


def _copy_file(source: str, near: str, folder: int, after: FoundEntry) -> None:
    os.chmod(source, stat.S_IMODE(after.mode) | 0o400)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        open(source, "rb") as given,
        open(os.open(near, flags, 0o600, dir_fd=folder), "wb") as made,
    ):
        about = os.fstat(given.fileno())
        _copy_content(given.fileno(), made.fileno(), about.st_size)
        os.utime(made.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))
        os.fchmod(made.fileno(), stat.S_IMODE(after.mode))


def _copy_content(given: int, made: int, size: int) -> None:
    """Copy what a file holds, and leave holes where it has some: it may be larger than the disk."""
    os.ftruncate(made, size)
    start = 0
    while (start := _next_data(given, start)) < size:
        end = os.lseek(given, start, os.SEEK_HOLE)
        os.lseek(given, start, os.SEEK_SET)
        os.lseek(made, start, os.SEEK_SET)
        while start < end and (chunk := os.read(given, min(_CHUNK, end - start))):
            write_all(made, chunk)
            start += len(chunk)
        start = end


def _next_data(fd: int, start: int) -> int:
    try:
        return os.lseek(fd, start, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return os.fstat(fd).st_size  # nothing but a hole up to the end


def _make(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    assert step.after is not None
    # Another program may have made it first; what goes into it is judged by itself.
    with suppress(FileExistsError):
        os.mkdir(leaf, dir_fd=folder)
    # Open while it is being filled; a folder that the command closed is closed by `finish_folders`.
    _chmod(folder, leaf, stat.S_IMODE(step.after.mode) | 0o700, os.O_DIRECTORY)


def _mode(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    assert step.after is not None
    if step.after.kind == "folder":
        _chmod(folder, leaf, stat.S_IMODE(step.after.mode) | 0o700, os.O_DIRECTORY)
        return
    _chmod(folder, leaf, stat.S_IMODE(step.after.mode))
    _touch(step, folder, leaf, source)


def _chmod(folder: int, leaf: str, mode: int, flags: int = 0) -> None:
    fd = open_beneath(folder, leaf, os.O_PATH | flags)
    try:
        # Through the descriptor: `fchmod` refuses one opened with O_PATH, and a path would follow a
        # link.
        os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def _touch(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    about = os.lstat(source)
    times = (about.st_atime_ns, about.st_mtime_ns)
    os.utime(leaf, ns=times, dir_fd=folder, follow_symlinks=False)


def _remove(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    if not step.aside:
        _unlink(step, folder, leaf)
        return
    try:
        _move_aside(leaf, folder, step.aside)
    except OSError as error:
        if error.errno != errno.EXDEV or step.before is None:
            raise
        # Another disk: it is not gone from the one before it is on the other.
        _copy_aside(leaf, folder, step.aside)
        _unlink(step, folder, leaf)


def _unlink(step: ApplyStep, folder: int, leaf: str) -> None:
    """Remove what was judged, and nothing else."""
    if step.before is None or not step.before.identity:
        os.unlink(leaf, dir_fd=folder)
        return
    try:
        aside = displaced_name(step.before.hash, None, leaf)
        _judged_place(step, folder, leaf).remove(aside)
    except DisplacedChange:
        raise OSError(0, _CHANGED) from None


def _keep_also(leaf: str, folder: int, target: str) -> None:
    """Keep a file aside that is about to be replaced; until then it stays in its place too."""
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    try:
        os.link(leaf, target, src_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        _copy_aside(leaf, folder, target)


def _move_aside(leaf: str, folder: int, target: str) -> None:
    try:
        os.rename(leaf, target, src_dir_fd=folder)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        os.rename(leaf, target, src_dir_fd=folder)


def _copy_aside(leaf: str, folder: int, target: str) -> None:
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    given = open_beneath(folder, leaf, os.O_RDONLY)
    try:
        made = os.open(target, flags, 0o600)
        try:
            _copy_content(given, made, os.fstat(given).st_size)
        finally:
            os.close(made)
    finally:
        os.close(given)


def _remove_folder(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    os.rmdir(leaf, dir_fd=folder)


def _leave(step: ApplyStep, folder: int, leaf: str, source: str) -> None:
    raise OSError(0, "pipes, sockets and devices are not carried over")


_ACTIONS: dict[str, Callable[[ApplyStep, int, str, str], None]] = {
    "put": _put,
    "make": _make,
    "mode": _mode,
    "touch": _touch,
    "remove": _remove,
    "remove_folder": _remove_folder,
    "leave": _leave,
}


def rewrite(upper: str, step: ApplyStep, data: bytes) -> ApplyStep:
    """Let the upper layer have other content for a file than the command gave it; returns the step
    that puts it in place.

    Raises:
        OSError: the system refused.
    """
    assert step.after is not None
    source = f"{upper}/{step.path}"
    mode = stat.S_IMODE(step.after.mode)
    os.chmod(source, mode | 0o200)
    with open(source, "wb") as file:
        file.write(data)
    os.chmod(source, mode)
    digest = BlobId(sha256(data).hexdigest())
    after = msgspec.structs.replace(step.after, hash=digest, data=data)
    return msgspec.structs.replace(step, do="put", after=after, is_stale=False)


def finish_folders(root: str, done: list[ApplyStep]) -> None:
    """Give folders the modes that the command gave them, now that nothing more goes into them.

    The innermost first.
    """
    base = open_folder(root)
    try:
        # Modes come last and from within: in a folder without write permission nothing more can be
        # put.
        for step in reversed(done):
            after = step.after
            is_folder = after is not None and after.kind == "folder"
            if after is not None and is_folder and stat.S_IMODE(after.mode) & 0o700 != 0o700:
                with suppress(OSError):
                    _finish_folder(base, step.path, stat.S_IMODE(after.mode))
    finally:
        os.close(base)


def _finish_folder(base: int, path: str, mode: int) -> None:
    parent, _, leaf = path.rpartition("/")
    folder = open_beneath(base, parent or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        _chmod(folder, leaf, mode)
    finally:
        os.close(folder)


def touched(
    step: ApplyStep, shown: str, *, with_data: bool, unkept: str = "too large"
) -> ChangedFile:
    """The change that the history records for a step that was carried out.

    `unkept` says why the content of a file is not kept.
    """
    before, after = step.before, step.after
    action = "created" if before is None else "deleted" if after is None else "modified"
    missing = ""
    if before is not None and before.kind == "file" and (before.data is None or not with_data):
        missing = "too much at once" if before.data is not None else unkept
    return ChangedFile(
        path=shown,
        action=action,  # type: ignore[arg-type]  # one of the three words
        before=before.hash if before is not None else None,
        after=after.hash if after is not None else None,
        data_before=before.data if before is not None and with_data else None,
        data_after=after.data if after is not None and with_data else None,
        mode_before=before.mode if before is not None else 0,
        mode_after=after.mode if after is not None else 0,
        missing=missing,
    )


def _without_flags(source: str, mode: int) -> None:
    """Take the overlay's own attributes off a file that is about to leave it."""
    flags = [name for name in os.listxattr(source) if name.startswith("user.overlay.")]
    if not flags:
        return
    if not mode & 0o200:
        os.chmod(source, stat.S_IMODE(mode) | 0o200)
    for name in flags:
        os.removexattr(source, name)
    if not mode & 0o200:
        os.chmod(source, stat.S_IMODE(mode))
