"""Git repositories found by their files: where the work tree and the git directory lie.

Git is not asked, and nothing here is slow to load: it is looked up before every turn.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Final

import msgspec

from weft.errors import FinalToolError

LARGEST_SMALL: Final = 64 * 1024
"""Bytes that are read of a file; one of as many may be longer."""
LARGEST_SETTINGS: Final = 1024 * 1024

_HEADER: Final = r"\s*\[([^\]]*)\]"
_HOOKS_PATH: Final = r'(?i)\s*hookspath\s*=\s*(?:"([^"]*)"|([^#;"]*))'
_HOOK: Final = (
    r"(?:pre|post|prepare|commit|applypatch|update|push|proc|reference|fsmonitor|sendemail|p4)"
    r"(?:-[a-z-]+)?"
)
_MAY_BE_RECORD: Final = (
    r"\.git/|(?:^|/)(?:objects|refs|logs|reftable)/|(?:^|/)(?:HEAD|packed-refs|shallow)$"
)


class GitRepository(msgspec.Struct, frozen=True, kw_only=True):
    """Where a repository lies; every link is followed."""

    top: str
    """The top of the work tree."""
    records: str
    """The git directory of this work tree: its HEAD and index."""
    common: str
    """The git directory that all work trees share; `records` itself, but for a linked work tree."""

    @property
    def is_linked(self) -> bool:
        """True for a work tree that `git worktree add` made."""
        return self.records != self.common


def find_repository(folder: str) -> GitRepository | None:
    """The repository that a folder lies in; None where there is none.  Git is not asked.  Blocks.

    Raises:
        FinalToolError: what is there belongs to another folder, or to another user.
    """
    real = os.path.realpath(folder)
    for top in _upwards(real):
        records = _records_of(top)
        if records is not None:
            common = _common_of(records, top)
            _check_owner(real, records, common)
            return GitRepository(top=top, records=records, common=common)
    return None


class HookFolder(msgspec.Struct, frozen=True):
    """Where a repository has its hooks, if not in its git directory: `core.hooksPath`."""

    top: str
    """The top of the work tree."""
    names: frozenset[str]
    """The folder as the settings name it, and with every link followed."""

    def hold(self, place: str) -> bool:
        """True when writing at this absolute path changes a hook, or where hooks are."""
        return any(self._holds(folder, place) for folder in self.names)

    def _holds(self, folder: str, place: str) -> bool:
        if f"{self.top}/".startswith(f"{folder}/"):
            # All of the work tree lies below: what is called like a hook is one.
            above, name = os.path.split(place)
            return above == folder and re.fullmatch(_HOOK, name) is not None
        return f"{place}/".startswith(f"{folder}/")


def find_hook_folder(folder: str) -> HookFolder | None:
    """Where the repository around a folder, which need not be there yet, has its hooks; None for
    `.git/hooks`, and where there is no repository of the folder's own.  Blocks.
    """
    there = next(path for path in _upwards(folder) if os.path.isdir(path))
    try:
        repository = find_repository(there)
    except FinalToolError:
        return None
    if repository is None:
        return None
    named = ""
    for path in (f"{repository.common}/config", f"{repository.records}/config.worktree"):
        named = _hooks_path(read_small(path, LARGEST_SETTINGS) or b"") or named
    if not named:
        return None
    # Which folder is the user's home is not known here: it is one of those above, if it counts.
    homes = _upwards(repository.top) if named.startswith("~/") else (repository.top,)
    found = {os.path.normpath(os.path.join(home, named.removeprefix("~/"))) for home in homes}
    return HookFolder(repository.top, frozenset(found | set(map(os.path.realpath, found))))


def _hooks_path(settings: bytes) -> str:
    found, is_core = "", False
    for line in os.fsdecode(settings).splitlines():
        header = re.match(_HEADER, line)
        if header is not None:
            is_core, line = header[1].strip().lower() == "core", line[header.end() :]
        if is_core and (setting := re.match(_HOOKS_PATH, line)):
            found = (setting[1] if setting[1] is not None else setting[2]).strip()
    return found


def may_be_record(path: str) -> bool:
    """True for a path that may lie in a git directory, also in that of a bare repository, which may
    have any name.
    """
    return re.search(_MAY_BE_RECORD, path) is not None


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        if (parent := os.path.dirname(folder)) == folder:
            return
        folder = parent


def _records_of(top: str) -> str | None:
    """The git directory that `.git` is, or names.

    A folder that is one itself (a bare repository) does not count: it may have come in an archive.
    """
    path = f"{top}/.git"
    if os.path.isdir(path):
        records = os.path.realpath(path)
        return records if os.path.lexists(f"{records}/HEAD") else None
    text = read_pointer(path)
    if text is None or not text.startswith("gitdir:"):
        return None
    records = os.path.realpath(os.path.join(top, text.removeprefix("gitdir:").strip()))
    if not os.path.lexists(f"{records}/HEAD"):
        raise FinalToolError(f"{path} names {records!r}, which is not a git directory")
    return records


def _common_of(records: str, top: str) -> str:
    """The shared git directory.

    Only one that knows this work tree is believed, so that no folder claims another's repository.
    """
    text = read_pointer(f"{records}/commondir")
    if text is None:
        owner = os.path.dirname(records)
        if os.path.basename(records) == ".git" and owner != top:
            raise FinalToolError(f"the .git of {top!r} is that of another folder, {owner!r}")
        return records
    # Both ways have to agree.  A pointer alone could come in an archive and name any repository of
    # the user's, whose index and branches an agent would then change.
    common = os.path.realpath(os.path.join(records, text))
    back = read_pointer(f"{records}/gitdir") or ""
    known = os.path.realpath(os.path.join(records, os.path.dirname(back)))
    if os.path.dirname(records) != f"{common}/worktrees" or known != top:
        raise FinalToolError(
            f"the .git of {top!r} belongs to no worktree of {common!r}; "
            "`git worktree repair` may help"
        )
    return common


def _check_owner(folder: str, *places: str) -> None:
    """A repository that another user put above the folder is not the folder's own."""
    try:
        # As git's `safe.directory`: in a shared folder any user can put a `.git` above ours.
        known = {os.geteuid(), os.stat(folder).st_uid}
        foreign = [place for place in places if os.stat(place).st_uid not in known]
    except OSError as error:
        raise FinalToolError(f"the repository of {folder!r}: {error.strerror}") from error
    for place in foreign:
        raise FinalToolError(f"{place!r} belongs neither to you nor to the owner of {folder!r}")


def read_pointer(path: str) -> str | None:
    """The one line of a small regular file, such as `commondir`; None where there is none."""
    data = read_small(path)
    # A NUL, which no path may hold, ends it as it does for git.
    return None if data is None else os.fsdecode(data.split(b"\0")[0]).rstrip("\r\n")


def read_small(path: str, most: int = LARGEST_SMALL) -> bytes | None:
    """The content of a small regular file, or how it begins; None where there is none."""
    try:
        # Without blocking: a named pipe called `.git` would hold us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return os.read(handle, most)
    finally:
        os.close(handle)
