"""From what a command changed to what has to be done in the project: one step for each path, in an
order that works.

A removed folder becomes a step for each thing in it, a folder that was made anew one for each thing
it no longer has, a file in the place of a folder the removal of that folder first.  So every path
is judged and carried out by itself, and what is refused holds nothing else up.  For each step the
project is looked at as it is now: what is there, and whether another program changed it while the
command ran.

Everything here blocks, and only looks.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from weft.ids import BlobId
from weft.sha256 import sha256
from weft.workspace.ignore import NAME, IgnoreRules, ignore_of
from weft.workspace.sandbox.content_match import begins_with
from weft.workspace.sandbox.overlay_changes import DEEPEST, Kind, OverlayChange, TooMuch, changes
from weft.workspace.skipped_folders import is_remade

if TYPE_CHECKING:
    from hashlib import _Hash

Do: TypeAlias = Literal["put", "make", "mode", "touch", "remove", "remove_folder", "leave"]

KEPT_BYTES = 4 * 1024 * 1024
"""Content is read for the history up to this size, unless the caller asks for less or more.

Larger files are hashed.
"""
HASHED_BYTES = 64 * 1024 * 1024
"""Files are hashed up to this size.

Larger ones are compared by size and times: one with holes can be larger than any disk.
"""
IGNORED_FILES = 200
"""Removed files of one command that are ignored, and whose content is read for the history."""
IGNORED_BYTES = 16 * 1024 * 1024
SET_ID = stat.S_ISUID | stat.S_ISGID
"""Bits that let a program run as its owner or group."""
HEART = re.compile(r"(?:.*/)?\.git(?:/HEAD|/objects|/refs)?")
"""What a repository is none without."""
_MOVED = 0
"""No file has this number."""
_CHUNK = 1024 * 1024
_SMALL = 4096
_FEW = 64 * 1024
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW


class FoundEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is at a path."""

    kind: Kind
    mode: int
    identity: tuple[int, ...] = ()
    """Tells whether it is still the very same."""
    hash: BlobId | None = None
    """Of the content, or of a link's target; None where it was not read."""
    data: bytes | None = None
    disk_bytes: int = 0
    """What it takes on the disk; less than its size where it has holes."""


class ApplyStep(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do at one path."""

    path: str
    do: Do
    """`touch` changes nothing but the time; `leave` is what cannot be carried over."""
    before: FoundEntry | None = None
    """What is there now; None where nothing is."""
    after: FoundEntry | None = None
    """What is to be there."""
    is_stale: bool = False
    """Another program changed it while the command ran."""
    is_ignored: bool = False
    """An ignore file leaves it out of the history."""
    is_copy: bool = False
    """It began as a copy of a file of the project's: the command changed that one, or moved it
    here.
    """
    is_remade: bool = False
    """It is ignored, and tools make it again."""
    is_rewritten: bool = False
    """The history does not hold it, and it holds something else now than it did, not only more."""
    aside: str = ""
    """Where a removed file is moved to instead; empty when it is not kept."""
    is_disarmed: bool = False
    """The command set a bit that lets it run as its owner or group, which is not carried over."""


def plan(
    root: str, upper: str, started_ns: int, *, kept_bytes: int = KEPT_BYTES
) -> list[ApplyStep]:
    """The steps that bring the project to what the command saw; of files up to so many bytes the
    content is at hand.

    Raises:
        TooMuch: it changed more than is carried over.
    """
    return list(_Planner(root, upper, started_ns, kept_bytes).steps())


class _Planner:
    def __init__(self, root: str, upper: str, started_ns: int, kept_bytes: int) -> None:
        self._root, self._upper, self._started = root, upper, started_ns
        self._kept_bytes = kept_bytes
        self._changes = changes(upper)
        self._ignored = _Ignored(root)
        # Two sets of rules only where the command changed an ignore file: reading them costs a
        # walk.
        is_renewed = any(f"/{each.path}".endswith(f"/{NAME}") for each in self._changes)
        self._ignored_now = _Ignored(root, upper) if is_renewed else self._ignored
        """With what the command made of the ignore files: what it made besides, it may have meant
        to be ignored.
        """
        self._sources: set[int] | None = None
        self._ignored_left, self._ignored_room = IGNORED_FILES, IGNORED_BYTES

    def steps(self) -> Iterator[ApplyStep]:
        """Each folder before what is in it."""
        made_anew: list[str] = []
        for change in self._changes:
            inside = any(change.path.startswith(folder) for folder in made_anew)
            if change.kind == "folder" and (change.is_opaque or inside):
                made_anew.append(f"{change.path}/")
                # An opaque folder hides everything below it, so folders inside one are opaque
                # without the flag.
                yield from self._emptied(change.path)
            yield from self._carried_over(change)

    def _carried_over(self, change: OverlayChange) -> Iterator[ApplyStep]:
        found = self._lstat(change.path)
        if change.kind == "gone":
            yield from self._removed(change.path, found)
        elif change.kind == "special":
            yield ApplyStep(path=change.path, do="leave")
        elif change.kind == "folder":
            yield from self._folder(change, found)
        else:
            if found is not None and stat.S_ISDIR(found.st_mode):
                yield from self._removed(change.path, found)
                found = None
            yield self._put(change, found)

    def _folder(self, change: OverlayChange, found: os.stat_result | None) -> Iterator[ApplyStep]:
        rules = self._ignored_now if found is None else self._ignored
        ignored = rules(change.path, is_folder=True)
        after = FoundEntry(kind="folder", mode=change.mode)
        if found is not None and stat.S_ISDIR(found.st_mode):
            if stat.S_IMODE(found.st_mode) != stat.S_IMODE(change.mode):
                before = FoundEntry(kind="folder", mode=found.st_mode)
                yield ApplyStep(
                    path=change.path, do="mode", before=before, after=after, is_ignored=ignored
                )
            return
        yield from self._removed(change.path, found)
        yield ApplyStep(path=change.path, do="make", after=after, is_ignored=ignored)

    def _put(self, change: OverlayChange, found: os.stat_result | None) -> ApplyStep:
        rules = self._ignored_now if found is None else self._ignored
        ignored = rules(change.path, is_folder=False)
        source = f"{self._upper}/{change.path}"
        keep = None if ignored else self._kept_bytes
        after = _look(source, os.lstat(source), keep=keep, is_ours=True)
        step = ApplyStep(
            path=change.path, do="put", after=after, is_ignored=ignored, is_copy=_is_copy(source)
        )
        if found is None:
            stale = self._was_removed_meanwhile(change.path)
            return _disarmed(msgspec.structs.replace(step, is_stale=stale))
        if self._is_held_nowhere(change.path, found, ignored):
            # Nothing else has what it held, as with a file that is removed.
            # A file that only grew, such as a log, has lost nothing.
            only_grew = begins_with(source, f"{self._root}/{change.path}")
            is_rewritten = not holds_nothing(after) and not only_grew
            if ignored and (is_rewritten or holds_nothing(after)):
                keep = self._kept_of(found, ignored)
            # A rewind compares what is there with what the command left, also if that is nothing.
            if keep is not None:
                after = _look(source, os.lstat(source), keep=keep, is_ours=True)
            step = msgspec.structs.replace(step, after=after, is_rewritten=is_rewritten)
        elif ignored:
            step = msgspec.structs.replace(step, is_remade=is_remade(change.path))
        before = self._look(change.path, found, keep=keep)
        step = msgspec.structs.replace(step, before=before, is_stale=self._is_stale(found))
        # Equal content is common: a tool that rewrites a file, or a `chmod`, copies it up whole.
        if after.hash is None or before.kind != after.kind or before.hash != after.hash:
            return _disarmed(step)
        step = _disarmed(step, allowed=before.mode)
        assert step.after is not None
        same_mode = stat.S_IMODE(before.mode) == stat.S_IMODE(step.after.mode)
        return msgspec.structs.replace(step, do="touch" if same_mode else "mode")

    def _was_removed_meanwhile(self, path: str) -> bool:
        """True when a file that is not in the project was there when the command changed it, and
        another program removed it since.

        Then it began as a copy of the project's.  So did one that the command moved or linked here
        from another name, and the kernel does not tell which: so one that could have come from a
        name that the command took away is taken to have come from there.
        """
        source = f"{self._upper}/{path}"
        if not _is_copy(source):
            return False
        if self._sources is None:
            self._sources = set(self._found_sources())
        return _MOVED not in self._sources and os.lstat(source).st_ino not in self._sources

    def _found_sources(self) -> Iterator[int]:
        """Where copies can have come from: the numbers of those with several names, and `_MOVED`
        when a name was taken away.
        """
        for change in self._changes:
            if change.kind not in ("file", "gone") or not self._is_file(change.path):
                continue
            source = f"{self._upper}/{change.path}"
            if change.kind == "gone" or not _is_copy(source):
                yield _MOVED
            elif (about := os.lstat(source)).st_nlink > 1:
                yield about.st_ino

    def _is_file(self, path: str) -> bool:
        found = self._lstat(path)
        return found is not None and stat.S_ISREG(found.st_mode)

    def _emptied(self, path: str) -> Iterator[ApplyStep]:
        """A folder that was made anew: what the project has in it and the new one has not
        is gone.
        """
        folder = f"{self._root}/{path}"
        if not os.path.isdir(folder) or os.path.islink(folder):
            return
        if HEART.fullmatch(path):  # what was there is gone, whatever was put in its place
            yield ApplyStep(path=path, do="remove_folder")
        kept = set(os.listdir(f"{self._upper}/{path}"))
        for name in sorted(set(_names(folder)) - kept):
            below = f"{path}/{name}"
            yield from self._removed(below, self._lstat(below))

    def _removed(self, path: str, found: os.stat_result | None) -> Iterator[ApplyStep]:
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            ignored = self._ignored(path, is_folder=False)
            remade = ignored and is_remade(path)
            yield ApplyStep(
                path=path,
                do="remove",
                # Of an ignored file, too: nothing else has its content once it is removed.
                before=self._look(path, found, keep=self._kept_of(found, ignored, remade)),
                is_stale=self._is_stale(found),
                is_ignored=ignored,
                is_remade=remade,
            )
            return
        if path.count("/") > DEEPEST:
            raise TooMuch(f"it removed folders more than {DEEPEST} deep")
        for name in _names(f"{self._root}/{path}"):
            # One step for each file, although one call could remove all: a rule may protect one of
            # them, and the history needs the content of each.
            yield from self._removed(f"{path}/{name}", self._lstat(f"{path}/{name}"))
        yield ApplyStep(
            path=path,
            do="remove_folder",
            before=FoundEntry(kind="folder", mode=found.st_mode),
            is_ignored=self._ignored(path, is_folder=True),
        )

    def _is_held_nowhere(self, path: str, found: os.stat_result, ignored: bool) -> bool:
        """True for a file with content that neither the history has nor a tool makes again."""
        if not found.st_size or not stat.S_ISREG(found.st_mode):
            return False
        if ignored:
            return not is_remade(path)
        return found.st_size > self._kept_bytes or not is_text(path)

    def _kept_of(self, found: os.stat_result, ignored: bool, remade: bool = False) -> int | None:
        """Up to how many bytes the content of a removed file is read.

        Of ignored files only so much for one command: they may be a data set of many gigabytes.
        """
        if not ignored:
            return self._kept_bytes
        size = found.st_size
        if remade or size > self._kept_bytes or not self._ignored_left:
            return None
        if size > self._ignored_room:
            return None
        self._ignored_left -= 1
        self._ignored_room -= size
        return self._kept_bytes

    def _look(self, path: str, found: os.stat_result, *, keep: int | None) -> FoundEntry:
        return _look(f"{self._root}/{path}", found, keep=keep)

    def _lstat(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(f"{self._root}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _is_stale(self, found: os.stat_result) -> bool:
        # The kernel stamps files with the clock of its last tick, and so is `started`: what changed
        # in the same tick may be from before.
        return found.st_ctime_ns > self._started


class _Ignored:
    """Whether a path is left out of the history; folders are looked at once."""

    def __init__(self, root: str, over: str = "") -> None:
        self._root = root
        self._over = over
        self._known: dict[str, IgnoreRules | None] = {}

    def __call__(self, path: str, *, is_folder: bool) -> bool:
        parent, _, name = path.rpartition("/")
        rules = self._rules(parent)
        return rules is None or rules.ignores(name, is_folder=is_folder)

    def _rules(self, folder: str) -> IgnoreRules | None:
        """The rules in force in a folder; None when it is ignored itself."""
        if folder not in self._known:
            self._known[folder] = self._find(folder)
        return self._known[folder]

    def _find(self, folder: str) -> IgnoreRules | None:
        if not folder:
            return ignore_of(self._root, self._over)
        parent, _, name = folder.rpartition("/")
        rules = self._rules(parent)
        if rules is None or rules.ignores(name, is_folder=True):
            return None
        over = f"{self._over}/{folder}" if self._over else ""
        return rules.below(name, f"{self._root}/{folder}", over)


def holds_nothing(after: FoundEntry) -> bool:
    """True for an empty file, and for a link in the place of one."""
    return after.kind == "link" or not size_of(after)


def _disarmed(step: ApplyStep, *, allowed: int = 0) -> ApplyStep:
    """The step without bits that let a file run as its owner or group, but for those that the very
    same content had before.

    The sandbox itself does not heed them; outside, a program of the command's would run as the
    user, or as root.
    """
    after = step.after
    if after is None or after.kind != "file" or not (gained := after.mode & SET_ID & ~allowed):
        return step
    after = msgspec.structs.replace(after, mode=after.mode & ~gained)
    return msgspec.structs.replace(step, after=after, is_disarmed=True)


def started_now() -> int:
    """The time to compare with: the clock that the kernel stamps files with."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_REALTIME_COARSE", time.CLOCK_REALTIME))


def size_of(found: FoundEntry) -> int:
    """Bytes of a file."""
    return found.identity[2] if found.identity else 0


def written_at(found: FoundEntry) -> float:
    """When a file was written, in seconds since the epoch."""
    return found.identity[3] / 1e9 if found.identity else 0.0


def identity(about: os.stat_result) -> tuple[int, ...]:
    """What differs as soon as a file was changed."""
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def _look(
    path: str, about: os.stat_result, *, keep: int | None, is_ours: bool = False
) -> FoundEntry:
    """What is at a path, with content up to so many bytes; None reads nothing."""
    found = FoundEntry(
        kind=_kind(about.st_mode),
        mode=about.st_mode,
        identity=identity(about),
        disk_bytes=min(about.st_size, about.st_blocks * 512),
    )
    if keep is None:
        return found
    if found.kind == "link":
        data = os.fsencode(os.readlink(path))
        return msgspec.structs.replace(found, hash=_hash(data), data=data)
    if found.kind != "file" or about.st_size > HASHED_BYTES:
        return found
    try:
        fd = _open(path, about.st_mode, is_ours=is_ours)
    except PermissionError:
        return found
    try:
        digest, data_read = _read(fd, about.st_size, keep)
    finally:
        os.close(fd)
    return msgspec.structs.replace(found, hash=digest, data=data_read)


def _open(path: str, mode: int, *, is_ours: bool) -> int:
    """Open a file; one of the upper layer also when the command left it unreadable."""
    try:
        return os.open(path, _READ | os.O_CLOEXEC)
    except PermissionError:
        if not is_ours:
            raise
        # Only in the upper layer, where no other process looks; in the project a mode is never
        # touched.
        os.chmod(path, stat.S_IMODE(mode) | 0o400)
        try:
            return os.open(path, _READ | os.O_CLOEXEC)
        finally:
            os.chmod(path, stat.S_IMODE(mode))


def _read(fd: int, expected: int, keep: int) -> tuple[BlobId | None, bytes | None]:
    """The hash of a file, and its content where it is small enough; `expected` bytes are probably
    there.

    Neither when it grew too large meanwhile.
    """
    hashed = _hasher(expected)
    kept: list[bytes] | None = []
    size = 0
    # A read takes memory for all that it is asked for, mapped and given back each time.
    most = min(max(expected + 1, _SMALL), _CHUNK)
    while chunk := os.read(fd, most):
        hashed.update(chunk)
        size += len(chunk)
        if size > HASHED_BYTES:
            return None, None
        if kept is not None:
            kept = [*kept, chunk] if size <= keep else None
    return BlobId(hashed.hexdigest()), None if kept is None else b"".join(kept)


def _hasher(expected: int) -> _Hash:
    if expected <= _FEW:
        return sha256()
    import hashlib  # OpenSSL's is worth loading for what is large

    return hashlib.sha256()


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "special"


def _hash(data: bytes) -> BlobId:
    return BlobId(sha256(data).hexdigest())


def is_text(path: str) -> bool:
    """True when a name can be stored as text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_copy(source: str) -> bool:
    """True when a file of the upper layer began as a copy of one of the project's."""
    with suppress(OSError):
        return "user.overlay.origin" in os.listxattr(source, follow_symlinks=False)
    return False


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
