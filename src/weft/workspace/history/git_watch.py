"""What commands without a sandbox do to the history of the project's repository.

Nothing holds such a command back, so the refs, the reflogs and the names of objects are remembered
before it runs, and compared afterwards by the rules of the sandbox (`sandbox.git_guard`).  What is
lost is reported; refs that are gone are handed to the file history.

The packs that a command removed are gone by then, and with them the list of what was in them: there
git is asked whether everything that refs led to is still there.  A loose object that was
overwritten in its place is not noticed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from weft.errors import ToolError
from weft.workspace.base import ChangedFile, Runner
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.git import open_safe_git
from weft.workspace.git_records import GitRecords, indexed, is_whole, pack_of
from weft.workspace.git_repository import GitRepository, find_repository
from weft.workspace.sandbox.git_guard import MOST_NAMED, ReadingRunner, ask_git
from weft.workspace.sandbox.repository.repository_change import RepositoryChange

Stamp: TypeAlias = tuple[int, int, int]
LooseObjects: TypeAlias = dict[str, tuple[int, frozenset[str]]]
"""Folder of loose objects → the time of its last change, and the names in it."""
_ALONE = ("HEAD", "packed-refs", "shallow")
_BELOW = ("refs", "logs", "worktrees")


class GitLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What a command did to the history."""

    why: str = ""
    """What is lost; empty when nothing is."""
    changes: tuple[ChangedFile, ...] = ()
    """Refs that are gone, for the file history."""


class GitSnapshot:
    """The records of a git directory as they were."""

    def __init__(self, repository: GitRepository, earlier: GitSnapshot | None = None) -> None:
        """Blocks.  What `earlier` has, and was not changed since, is not read again."""
        self.repository = repository
        self.folder = repository.common
        self.stamps = dict(_stamps(self.folder))
        known = {} if earlier is None or earlier.folder != self.folder else earlier.stamps
        records = GitRecords(self.folder)
        self.contents: dict[str, bytes] = {
            name: earlier.contents[name]
            if earlier is not None and known.get(name) == stamp
            else _content(records, name)
            for name, stamp in self.stamps.items()
        }
        self.packs = _packs(self.folder)
        self.loose: LooseObjects = _loose(self.folder, {} if earlier is None else earlier.loose)

    def changed(self, now: GitSnapshot) -> set[str]:
        """The records that differ."""
        names = self.stamps.keys() | now.stamps.keys()
        return {name for name in names if self.contents.get(name) != now.contents.get(name)}


class RememberedRecords(GitRecords):
    """The records of a snapshot."""

    def __init__(self, snapshot: GitSnapshot) -> None:
        super().__init__(snapshot.folder)
        self._contents = snapshot.contents

    def read(self, name: str) -> bytes | None:
        return self._contents.get(name)

    def names(self, folder: str) -> list[str]:
        if folder not in _BELOW:
            return super().names(folder)
        return sorted(name for name in self._contents if name.startswith(f"{folder}/"))

    def ref(self, name: str) -> str | None:
        text = self.read(name)
        return self.packed().get(name) if text is None else text.decode(errors="replace").strip()


class GitWatch:
    """Watches the repository of one project."""

    def __init__(self, root: str, runner: Runner) -> None:
        self._root = root
        self._runner = ReadingRunner(runner)
        self._threads = DiskThreads.of(root)
        self._last: GitSnapshot | None = None

    async def begin(self) -> GitSnapshot | None:
        """Remember the records before a command; None where there is no repository."""
        self._last = await self._threads.run(self._look)
        return self._last

    async def end(self, before: GitSnapshot | None) -> GitLoss:
        """What the command did to them."""
        if before is None:
            return GitLoss()
        now = self._last = await self._threads.run(self._look)
        if now is None or now.folder != before.folder:
            return GitLoss(why="it leaves no repository that can be read")
        changed = before.changed(now)
        has_fewer = await self._threads.run(lambda: _has_fewer_objects(before, now))
        if not changed and not has_fewer and before.packs == now.packs:
            return GitLoss()
        after = RememberedRecords(now)
        change = RepositoryChange(RememberedRecords(before), after, changed=changed)
        try:
            why = await self._why(change, before, now, has_fewer=has_fewer)
        except (ToolError, OSError) as error:
            why = f"what it did to the repository could not be checked ({error})"
        return GitLoss(why=why, changes=self._changes(change, now))

    async def _why(
        self, change: RepositoryChange, before: GitSnapshot, now: GitSnapshot, *, has_fewer: bool
    ) -> str:
        if why := await self._threads.run(change.why_not_named):
            return why
        if has_fewer and (gone := await self._threads.run(lambda: _gone_tips(change, now.folder))):
            return f"it removes commits that refs or reflogs name: {gone}"
        # Anything but nothing: what they were cannot be known any more.
        change.missing = {b"unknown"} if has_fewer else set()
        if why := await self._threads.run(lambda: _why_not_packs(change, _rewritten(before, now))):
            return why
        if not change.needs_git:
            return ""
        scratch = await self._threads.run(lambda: tempfile.mkdtemp(prefix="weft-git-"))
        try:
            async with open_safe_git(self._runner, now.repository, Path(scratch)) as git:
                return await ask_git(git, change)
        finally:
            await self._threads.run(lambda: shutil.rmtree(scratch, ignore_errors=True))

    def _changes(self, change: RepositoryChange, now: GitSnapshot) -> tuple[ChangedFile, ...]:
        """A rewind reaches only what lies in the project."""
        if now.folder != f"{self._root}/.git":
            return ()
        return tuple(
            msgspec.structs.replace(lost, path=f".git/{lost.path}")
            for lost in change.lost_records()
        )

    def _look(self) -> GitSnapshot | None:
        try:
            repository = find_repository(self._root)
        except ToolError:
            return None
        return None if repository is None else GitSnapshot(repository, self._last)


def _stamps(folder: str) -> Iterator[tuple[str, Stamp]]:
    records = GitRecords(folder)
    below = [name for part in _BELOW for name in records.names(part) if not name.endswith(".lock")]
    for name in (*_ALONE, *below):
        with suppress(OSError):
            about = os.lstat(f"{folder}/{name}")
            yield name, (about.st_mtime_ns, about.st_size, about.st_ino)


def _content(records: GitRecords, name: str) -> bytes:
    path = f"{records.folder}/{name}"
    if os.path.islink(path):
        return b"ref: " + os.fsencode(os.readlink(path))
    return records.read(name) or b""


def _packs(folder: str) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    with suppress(OSError):
        for entry in os.scandir(f"{folder}/objects/pack"):
            if pack_of(f"objects/pack/{entry.name}"):
                about = entry.stat(follow_symlinks=False)
                found[entry.name] = (about.st_mtime_ns, about.st_size, about.st_ino)
    return found


def _loose(folder: str, earlier: LooseObjects) -> LooseObjects:
    """The loose objects of each folder of them; one that was not changed is not listed again."""
    found: LooseObjects = {}
    for number in range(256):
        part = f"{number:02x}"
        with suppress(OSError):
            time = os.stat(f"{folder}/objects/{part}").st_mtime_ns
            known = earlier.get(part)
            if known is not None and known[0] == time:
                found[part] = known
            else:
                found[part] = (time, frozenset(os.listdir(f"{folder}/objects/{part}")))
    return found


def _has_fewer_objects(before: GitSnapshot, now: GitSnapshot) -> bool:
    """True when objects may be gone: a pack is, or a loose object that no pack has."""
    if before.packs.keys() - now.packs.keys():
        return True
    records = GitRecords(now.folder)
    for part, (_, names) in before.loose.items():
        _, left = now.loose.get(part, (0, frozenset()))
        for name in names - left:
            if len(name) in (38, 62) and not records.has_object(f"{part}{name}"):
                return True
    return False


def _gone_tips(change: RepositoryChange, folder: str) -> str:
    """Some commits that refs and the last entries of reflogs named, and that are not there."""
    records = GitRecords(folder)
    gone = [oid[:12] for oid in sorted(change.recent_tips()) if not records.has_object(oid)]
    return ", ".join(gone[:MOST_NAMED])


def _rewritten(before: GitSnapshot, now: GitSnapshot) -> list[str]:
    """The packs, without ending, that were changed in their place; git itself only renews times."""
    names = {
        f"{now.folder}/objects/pack/{os.path.splitext(name)[0]}"
        for name, stamp in before.packs.items()
        if now.packs.get(name, stamp) != stamp
    }
    return sorted(names)


def _why_not_packs(change: RepositoryChange, packs: Iterable[str]) -> str:
    """Which pack is damaged as its checksums tell; the others git has to look at."""
    for pack in packs:
        if not is_whole(f"{pack}.pack", f"{pack}.idx"):
            return f"it leaves a damaged pack, {os.path.basename(pack)}"
        change.packs.look_into(pack, indexed(f"{pack}.idx"))
    return ""
