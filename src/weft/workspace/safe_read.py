"""Safe reading of a project's small text files: instructions, skills, agents, commands, settings.

A project may come from anywhere, and these files are read before the user has said anything about
it.  So one function reads them all:

- **Beneath the repository.**  A symbolic link that stays inside it is followed; one that leads out
  is refused, and its target is not even looked at: links are resolved here, by their text, and the
  resulting name is opened with no link followed.  The user's own folders have no such bound,
  because many users keep their dotfiles elsewhere and link to them.
- **Regular files only**, opened without blocking: no pipe, no device, no folder.
- **Bounded.**  No more than the caller's limit is ever read.
- **Of a known owner.**  In a shared folder any user can leave an `AGENTS.md`, or a `.git` that
  makes their folder our repository; git's `safe.directory` guards against the same.  A file counts
  when it belongs to us or to root.  Root on a checkout that belongs to another user is the normal
  state of a CI container and no attack: for root, the owner of the project's own folder counts too,
  and no other user.

A refusal is one sentence (`UsageError`) that begins with the path.  A missing file is None.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Literal

import msgspec

from weft.errors import UsageError
from weft.file_io import read_all
from weft.workspace.os_errors import kind_of
from weft.workspace.safe_open import open_folder, walk

MOST_ENTRIES = 10_000
"""Names of one folder that are looked at."""
MOST_LINKS = 40
"""Links on the way to one file; Linux follows as many."""
_LONGEST_SHOWN = 200
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ABSENT = (errno.ENOENT, errno.ENOTDIR)


class SourceFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that small files are read from, and how far it is believed."""

    path: str
    """Absolute; of a project, below `root`."""
    root: str = ""
    """The repository's real path, which no link may leave; empty for a folder of the user's own."""
    owners: frozenset[int] = frozenset()
    """The users whose files count; of a folder of the user's own, all of them."""

    def below(self, name: str) -> SourceFolder:
        """A folder in it."""
        return msgspec.structs.replace(self, path=f"{self.path.rstrip('/')}/{name}")

    @property
    def is_project(self) -> bool:
        return bool(self.root)


class SmallFile(msgspec.Struct, frozen=True):
    """The bytes of a file."""

    path: str
    """For prompts and screens: everything in it can be printed."""
    data: bytes
    is_cut: bool = False
    """There is more of it than the limit allows."""


class SmallText(msgspec.Struct, frozen=True):
    """The text of a file."""

    path: str
    """As above."""
    text: str
    is_cut: bool = False
    """As above."""


class FolderEntry(msgspec.Struct, frozen=True):
    """A name in a folder."""

    name: str
    kind: Literal["folder", "link", "file"]
    """`file` is all else, pipes and devices too."""


class FolderListing(msgspec.Struct, frozen=True):
    """What is in a folder, sorted by name."""

    entries: tuple[FolderEntry, ...] = ()
    problems: tuple[str, ...] = ()
    """What of it is left out, and why."""


# --- which folders -----------------------------------------------------------------------


def user_folder(path: str | os.PathLike[str]) -> SourceFolder:
    """A folder of the user's own: links may lead anywhere."""
    return SourceFolder(path=os.path.abspath(path))


def project_folders(project: str | os.PathLike[str]) -> list[SourceFolder]:
    """The project and the folders above it, up to the repository's root, nearest first.

    Outside a repository it is only the project.
    """
    real = os.path.realpath(project)
    owners = believed_owners(os.geteuid(), _owner(real))
    found = [real]
    # Only a `.git` of a believed owner ends the search: in /tmp any user could plant one and make
    # their files the instructions of every project below it.
    while not _is_repository(found[-1], owners):
        above = os.path.dirname(found[-1])
        if above == found[-1]:
            found = [real]
            break
        found.append(above)
    return [SourceFolder(path=each, root=found[-1], owners=owners) for each in found]


def believed_owners(euid: int, project_owner: int | None) -> frozenset[int]:
    """The users whose files in a project count: us and root; for root, the project's owner too."""
    ours = {euid, 0}
    if euid == 0 and project_owner is not None:
        ours.add(project_owner)
    return frozenset(ours)


def _owner(path: str) -> int | None:
    try:
        return os.stat(path).st_uid
    except OSError:
        return None


def _is_repository(folder: str, owners: frozenset[int]) -> bool:
    """A `.git` that another user left in a folder that we share makes no repository of ours."""
    try:
        return os.lstat(f"{folder.rstrip('/')}/.git").st_uid in owners
    except OSError:
        return False


# --- reading -----------------------------------------------------------------------------


def read_small_file(
    folder: SourceFolder, name: str, limit: int, *, cut: bool = False
) -> SmallFile | None:
    """The file called `name` in a folder; None where there is none.

    A file larger than `limit` bytes is refused or, with `cut`, read only so far.

    Raises:
        UsageError: it is not to be read; the sentence says why.
    """
    path = f"{folder.path.rstrip('/')}/{name}"
    fd = _opened(folder, path, _READ)
    if fd is None:
        return None
    try:
        # Of the open file, never of its path: the file could be exchanged between the two calls.
        about = os.fstat(fd)
        _check(about, folder, path)
        if about.st_size > limit and not cut:
            raise UsageError(f"{printable_path(path)}: it is larger than {limit // 1024} KB")
        data = read_all(fd, limit + 1, about.st_size)
    except OSError as error:
        raise _unreadable(error, path) from error
    finally:
        os.close(fd)
    if len(data) > limit and not cut:  # it grew meanwhile, or does not know its size
        raise UsageError(f"{printable_path(path)}: it is larger than {limit // 1024} KB")
    return SmallFile(printable_path(path), data[:limit], len(data) > limit)


def read_small_text(
    folder: SourceFolder, name: str, limit: int, *, cut: bool = False
) -> SmallText | None:
    """`read_small_file` as text, with plain newlines and without a byte order mark.

    Single bytes that are not UTF-8 are replaced: most of a Latin-1 text is still of use.

    Raises:
        UsageError: as there, or it is no text at all.
    """
    file = read_small_file(folder, name, limit, cut=cut)
    if file is None:
        return None
    if b"\0" in file.data:
        raise UsageError(f"{file.path}: it is not UTF-8 text")
    # What was cut may end with half a letter, which is left out.
    text, _ = codecs.utf_8_decode(file.data, "replace", not file.is_cut)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return SmallText(file.path, text, file.is_cut)


def read_beneath(root: str, name: str, limit: int) -> bytes | None:
    """The first `limit` bytes of a regular file below a folder; None for everything else, links
    among them.
    """
    try:
        folder = open_folder(root)
    except OSError:
        return None
    try:
        fd = walk(folder, name, _READ, 0)
    except (OSError, ValueError):
        return None
    finally:
        os.close(folder)
    try:
        about = os.fstat(fd)
        return read_all(fd, limit, about.st_size) if stat.S_ISREG(about.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _check(about: os.stat_result, folder: SourceFolder, path: str) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise UsageError(
            f"{printable_path(path)}: it is {kind_of(about.st_mode)}, not a regular file"
        )
    if folder.is_project and about.st_uid not in folder.owners:
        raise UsageError(
            f"{printable_path(path)}: it belongs to another user (uid {about.st_uid}); "
            "make it yours with chown, or work on a copy"
        )


def is_there(folder: SourceFolder) -> bool:
    """Whether there is such a folder, or something that is not to be looked into."""
    try:
        fd = _opened(folder, folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except UsageError:
        return True
    if fd is not None:
        os.close(fd)
    return fd is not None


def list_folder(folder: SourceFolder) -> FolderListing:
    """What is in a folder; nothing where there is none.

    Raises:
        UsageError: it is not to be looked into; the sentence says why.
    """
    fd = _opened(folder, folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if fd is None:
        return FolderListing()
    try:
        with os.scandir(fd) as entries:
            return _sorted_out(islice(entries, MOST_ENTRIES + 1), folder.path)
    except OSError as error:
        raise _unreadable(error, folder.path) from error
    finally:
        os.close(fd)


def _sorted_out(entries: Iterable[os.DirEntry[str]], path: str) -> FolderListing:
    found: list[FolderEntry] = []
    problems: list[str] = []
    unprintable = 0
    for number, entry in enumerate(entries):
        if number == MOST_ENTRIES:
            problems.append(f"{printable_path(path)}: it holds more than {MOST_ENTRIES:,} names")
        # Names end up in prompts and on terminals; control characters could move the cursor or
        # forge lines.
        elif entry.name.isprintable():
            found.append(FolderEntry(entry.name, _kind(entry)))
        else:
            unprintable += 1
    if unprintable:
        problems.append(
            f"{printable_path(path)}: {unprintable} of the names in it cannot be printed"
        )
    return FolderListing(tuple(sorted(found, key=lambda each: each.name)), tuple(problems))


def _kind(entry: os.DirEntry[str]) -> Literal["folder", "link", "file"]:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


# --- opening -----------------------------------------------------------------------------


def _opened(folder: SourceFolder, path: str, flags: int) -> int | None:
    try:
        if not folder.is_project:
            return os.open(path, flags)
        return _open_inside(folder.root, path, flags)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _unreadable(error, path) from error


def _open_inside(root: str, path: str, flags: int) -> int:
    """Open a path below the root; links on the way are followed only as far as they stay inside."""
    name = path[len(root.rstrip("/")) + 1 :] or "."
    base = open_folder(root)
    try:
        # Part by part and not by `open_beneath`: it is as strict, and `openat2` would load ctypes
        # (10 ms) on the way to the first request.
        try:
            return walk(base, name, flags, 0)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return walk(base, _real_name(root, name), flags, 0)
    finally:
        os.close(base)


def _real_name(root: str, name: str) -> str:
    """The name below the root that is left when all links are followed.

    Links are followed by their text, and nothing outside the root is touched: even to look at
    the target of a link can hang (a dead network disk) or be noticed by a server (an automounter).

    Raises:
        UsageError: a link leads out; the sentence names the one that is written in `name`.
        OSError: there is no such file, or there are too many links.
    """
    here: list[str] = []
    ahead = deque((part, at) for at, part in enumerate(name.split("/")))
    links = 0
    while ahead:
        part, at = ahead.popleft()
        if part in ("", "."):
            continue
        if part == ".." and not here:
            raise _leads_out(root, name, at)
        if part == "..":
            here.pop()
            continue
        # A race here is harmless: the name that comes out is opened with no link followed.
        target = _link_target("/".join((root.rstrip("/"), *here, part)))
        if target is None:
            here.append(part)
            continue
        links += 1
        # A loop of links would go on for ever.
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        if target.startswith("/"):
            here.clear()
            if not f"{target}/".startswith(f"{root.rstrip('/')}/"):
                raise _leads_out(root, name, at)
            target = target[len(root.rstrip("/")) + 1 :]
        ahead.extendleft((each, at) for each in reversed(target.split("/")))
    return "/".join(here) or "."


def _link_target(path: str) -> str | None:
    """What a link says; None when it is none."""
    return os.readlink(path) if stat.S_ISLNK(os.lstat(path).st_mode) else None


# --- sentences ---------------------------------------------------------------------------


def printable_path(path: str) -> str:
    """A path that may stand in a sentence or a prompt: printable, on one line, at least its end."""
    if not path.isprintable():
        path = "".join(letter if letter.isprintable() else _numbered(letter) for letter in path)
    return path if len(path) <= _LONGEST_SHOWN else f"…{path[-_LONGEST_SHOWN:]}"


def _numbered(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode()


def _leads_out(root: str, name: str, at: int) -> UsageError:
    link = "/".join((root.rstrip("/"), *name.split("/")[: at + 1]))
    return UsageError(
        f"{printable_path(link)}: it is a symbolic link that leads out of {printable_path(root)}, "
        "and nothing outside is read"
    )


def _unreadable(error: OSError, path: str) -> UsageError:
    if error.errno == errno.ELOOP:
        return UsageError(
            f"{printable_path(path)}: its symbolic links lead in circles, or are too many"
        )
    if error.errno == errno.ENXIO:
        return UsageError(f"{printable_path(path)}: it is a socket or a device, not a regular file")
    return UsageError(f"{printable_path(path)}: it cannot be read: {error.strerror}")
