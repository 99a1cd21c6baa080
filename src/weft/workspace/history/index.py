"""What every file of a project looked like when we last looked, and what differs now.

Folder by folder, as the disk has it: an entry for each file, link and folder, and for each folder a
watch.  Looking again at one name, one folder or everything is the same comparison; each yields what
differs, and what is found becomes what is known.

Left out, and named: what ignore files leave out, version control's own folders, other disks, names
that are no text, and folders beyond the number of files that is still worth knowing.  Of large
files, of pipes and devices, and of what does not fit, only that they changed is known.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

from weft.workspace.history.file_reader import NOT_COPIED, FileReader, differs, looks_like
from weft.workspace.history.inotify import FolderWatches, InotifyWatcher
from weft.workspace.history.pack import FileEntry, PackChange, PreimagePack
from weft.workspace.history.project_tree import (
    FolderListing,
    ProjectTree,
    listing,
    listing_of,
    tree_mode,
)
from weft.workspace.ignore import NAME as IGNORE_FILE
from weft.workspace.ignore import IgnoreRules, ignore_of
from weft.workspace.safe_open import open_folder
from weft.workspace.writes.atomic_write import OURS

MAX_FILES = 100_000
"""Files, links and folders that are known at most; folders further down are left out and named."""
_LARGE_FOLDER = 5_000
"""A folder with more entries waits until all others are known."""
_NAMED = 1_000
"""Names of left-out things that are remembered."""


class ScanAbandoned(Exception):
    """The caller was cancelled; what is known so far is not whole."""


class _Folder:
    """What is known of one folder."""

    __slots__ = ("entries", "ignore", "listing")

    def __init__(self) -> None:
        self.entries: dict[str, FileEntry] = {}
        self.ignore: IgnoreRules | None = None
        self.listing: FolderListing | None = None
        """None when something in it, or below it, is not what it was."""


class _Visit(NamedTuple):
    """A folder to look at."""

    path: str
    ignore: IgnoreRules
    silent: bool
    """What is new there was there before, only not looked at."""


class HardLinkNames:
    """Which paths are names of one file."""

    def __init__(self) -> None:
        self._first: dict[int, str] = {}
        self._others: dict[int, set[str]] = {}
        """Only for files that have several."""

    def change(self, path: str, old: FileEntry | None, new: FileEntry | None) -> None:
        """A path is a name of another file now."""
        before = 0 if old is None else old.inode
        after = 0 if new is None else new.inode
        if before == after:
            return
        if before in self._others:
            self._others[before].discard(path)
        elif self._first.get(before) == path:
            del self._first[before]
        if not after:
            return
        first = self._first.setdefault(after, path)
        if first != path:
            self._others.setdefault(after, {first}).add(path)

    def of(self, inode: int) -> list[str]:
        """All names of a file that has several."""
        return sorted(self._others.get(inode, ()))


class FileIndex:
    """Everything known of one project; not for several threads at once."""

    def __init__(
        self,
        root: str,
        pack: PreimagePack,
        watcher: InotifyWatcher | None,
        *,
        max_file: int,
        skip: Iterable[str] = (),
    ) -> None:
        self._root = root
        self._base = open_folder(root)
        # Entries on another device are left out: a mounted disk may be huge, slow, or loop back
        # here.
        self._device = os.fstat(self._base).st_dev
        self._pack = pack
        self.watches = FolderWatches(watcher)
        self._reader = FileReader(root, self._base, pack, max_file)
        self._skip = frozenset(skip)
        self._folders: dict[str, _Folder] = {}
        self._names = HardLinkNames()
        self._written: dict[int, None] = {}
        """Files with several names that were looked at because of an event about one of them."""
        self._count = 0
        self._tree: ProjectTree | None = None
        """All listings; None when one of them has to be made anew."""
        self._changes: list[PackChange] = []
        self.is_wanted: Callable[[], bool] = lambda: True
        """False when the caller was cancelled; then looking everywhere stops."""
        self.left_out: dict[str, str] = {}
        """Path → why nothing is known of it; the first ones only."""
        self.lacks_copies = False
        """Of some files the content is not kept yet."""
        self._restore(pack.loaded())

    def close(self) -> None:
        """Let go of the project's folder."""
        os.close(self._base)

    def _stand_on_root(self) -> None:
        """Open the project's folder again: it may have been made anew, and nothing can be read
        through the old one.
        """
        try:
            base = open_folder(self._root)
        except OSError:
            return  # it is gone, and so is everything in it
        self._base, before = base, self._base
        os.close(before)
        self._reader.base = base
        self._device = os.fstat(base).st_dev

    def entry(self, path: str) -> FileEntry | None:
        """What is known of a path."""
        folder, _, name = path.rpartition("/")
        known = self._folders.get(folder)
        return known.entries.get(name) if known is not None else None

    def entries(self) -> dict[str, FileEntry]:
        """All that is known."""
        return {
            _join(path, name): entry
            for path, folder in self._folders.items()
            for name, entry in folder.entries.items()
        }

    def tree(self) -> ProjectTree:
        """All that is known, as a tree of listings; only those of folders that changed since the
        last time, and of the folders above them, are made anew.
        """
        if self._tree is None:
            stale = [path for path, folder in self._folders.items() if folder.listing is None]
            # The innermost first: a listing holds the hashes of those below it.
            for path in sorted(stale, key=_depth, reverse=True):
                self._folders[path].listing = self._listing(path)
            made = {path: folder.listing for path, folder in self._folders.items()}
            made.setdefault("", listing(()))
            self._tree = ProjectTree({path: each for path, each in made.items() if each})
        return self._tree

    @property
    def knows_tree(self) -> bool:
        """True when `tree` has nothing to do."""
        return self._tree is not None

    def _listing(self, path: str) -> FolderListing:
        # Of each file in the folder, with every change of one: nothing is made in this loop that is
        # not needed.  Of a file that is not kept the hash is known all the same.
        return listing_of(
            (
                name,
                tree_mode(entry.mode),
                self._held(_join(path, name)) if stat.S_ISDIR(entry.mode) else entry.hash,
            )
            for name, entry in self._folders[path].entries.items()
        )

    def _held(self, path: str) -> str:
        """The hash of a folder's listing."""
        below = self._folders.get(path)
        return "" if below is None or below.listing is None else below.listing.digest

    def _is_stale(self, path: str) -> None:
        """Something in this folder changed: its listing is not true any more, nor those above."""
        self._tree = None
        while True:
            folder = self._folders.get(path)
            # One that is stale has stale ones above it.
            if folder is not None and folder.listing is None:
                break
            if folder is not None:
                folder.listing = None
            if not path:
                break
            path = path.rpartition("/")[0]

    def read_again(self, path: str, entry: FileEntry) -> bytes | None:
        """What a file holds that was not kept; None when it is not what it was."""
        return self._reader.content_of(path, entry)

    def move(self, entries: dict[str, FileEntry]) -> None:
        """Take over entries whose content was moved."""
        for path, folder in self._folders.items():
            for name in folder.entries:
                folder.entries[name] = entries[_join(path, name)]

    @property
    def watcher(self) -> InotifyWatcher | None:
        """The queue of events; None when changes have to be looked for."""
        return self.watches.watcher

    # -- looking

    def look_first(self, *, copies: bool) -> list[PackChange]:
        """Compare everything, for the first time in this process; without `copies`, what files hold
        is not kept before `copy_contents`.
        """
        self.lacks_copies |= not copies
        self._reader.copies = copies
        try:
            return self.look_everywhere()
        finally:
            # What changes from here on is kept as it is found: by the time it is wanted, it may
            # have changed again.
            self._reader.copies = True

    def copy_contents(self) -> list[PackChange]:
        """Keep what all files hold; returns what differs by now."""
        for path, folder in list(self._folders.items()):
            for name, entry in list(folder.entries.items()):
                if entry.why_not != NOT_COPIED:
                    continue
                if not self.is_wanted():
                    raise ScanAbandoned
                self._look(path, folder, name, written=True, silent=False)
        self.lacks_copies = False
        return self._taken()

    def look_everywhere(self) -> list[PackChange]:
        """Compare everything."""
        self._stand_on_root()
        self.left_out.clear()
        self._visit_all([_Visit("", ignore_of(self._root), silent=False)])
        return self._taken()

    def look_at(self, names: dict[str, dict[str, bool]]) -> list[PackChange]:
        """Compare these names of these folders.

        True: it was written to, so that its looks prove nothing.
        """
        for path in sorted(names):
            folder = self._folders.get(path)
            if folder is None:
                continue  # gone with a folder above it
            below = [
                _join(path, name)
                for name, written in names[path].items()
                if self._look(path, folder, name, written=written, silent=False)
            ]
            if folder.ignore is None:
                continue
            if IGNORE_FILE in names[path]:
                self._visit_all([_Visit(path, self._ignore_at(path), silent=False)])
            else:
                self._visit_all([self._visit(folder.ignore, each) for each in below])
        self._look_at_other_names(names)
        return self._taken()

    def _look_at_other_names(self, names: dict[str, dict[str, bool]]) -> None:
        """A write through one name of a file changes it under all its names, and the event names
        only one.
        """
        written, self._written = self._written, {}
        for inode in written:
            for path in self._names.of(inode):
                above, _, name = path.rpartition("/")
                folder = self._folders.get(above)
                if folder is not None and name not in names.get(above, {}):
                    self._look(above, folder, name, written=True, silent=False)
        self._written.clear()

    def refresh(self, path: str) -> None:
        """Take in what is at a path as not worth telling: we ourselves put it there."""
        here = ""
        parts = path.split("/")
        for number, part in enumerate(parts, start=1):
            folder = self._folders.get(here)
            if folder is None or folder.ignore is None:
                break
            is_new = part not in folder.entries
            goes_on = self._look(here, folder, part, written=True, silent=True)
            if goes_on and (is_new or number == len(parts)):
                self._visit_all([_Visit(_join(here, part), self._below(here, part), silent=True)])
                break
            here = _join(here, part)
        self._changes.clear()

    def _taken(self) -> list[PackChange]:
        taken, self._changes = self._changes, []
        return taken

    # -- folders

    def _visit_all(self, visits: list[_Visit]) -> None:
        """Compare these folders and all below them.

        Large ones last, so that they cannot use up the room for the others.
        """
        waiting = deque(visits)
        later: deque[_Visit] = deque()
        while waiting or later:
            if not self.is_wanted():
                raise ScanAbandoned
            from_later = not waiting
            visit = (waiting or later).popleft()
            known = visit.path in self._folders
            folder = self._folders.setdefault(visit.path, _Folder())
            if not known:
                self._is_stale(visit.path.rpartition("/")[0])
            # Before it is listed, so that nothing falls between the two.
            self.watches.add(visit.path, self._absolute(visit.path))
            found = _listed(self._absolute(visit.path))
            # Known folders are compared whatever the count: their files are in it already.
            if not known and self._count + len(found) > MAX_FILES:
                self._turn_away(visit.path)
            elif len(found) > _LARGE_FOLDER and not from_later:
                later.append(visit)
            else:
                waiting.extend(self._compare(visit, folder, found))

    def _compare(
        self, visit: _Visit, folder: _Folder, found: dict[str, os.DirEntry[str]]
    ) -> list[_Visit]:
        path = visit.path
        before, folder.ignore = folder.ignore, visit.ignore
        if before == visit.ignore:
            before = None
        for name in [name for name in folder.entries if name not in found]:
            self._gone(path, folder, name)
        below: list[_Visit] = []
        for name, entry in found.items():
            silent = visit.silent or (
                before is not None
                and before.ignores(name, is_folder=entry.is_dir(follow_symlinks=False))
            )
            if self._look(path, folder, name, written=True, silent=silent, entry=entry):
                below.append(self._visit(visit.ignore, _join(path, name), silent=silent))
        return below

    def _turn_away(self, path: str) -> None:
        """A folder with more in it than there is room for: that it is there is all that is
        known.
        """
        self._leave_out(f"{path}/", "too many files")
        self._drop_folder(path)
        above, _, name = path.rpartition("/")
        holder = self._folders.get(above)
        if holder is not None and name in holder.entries:
            holder.entries[name] = msgspec.structs.replace(
                holder.entries[name], why_not="too many files"
            )
            self._is_stale(above)

    def _visit(self, ignore: IgnoreRules, below: str, *, silent: bool = False) -> _Visit:
        name = below.rpartition("/")[2]
        return _Visit(below, ignore.below(name, self._absolute(below)), silent)

    def _below(self, path: str, name: str) -> IgnoreRules:
        ignore = self._folders[path].ignore
        assert ignore is not None
        return ignore.below(name, self._absolute(_join(path, name)))

    def _ignore_at(self, path: str) -> IgnoreRules:
        """The rules in force in a folder, read anew; those above it are as they were."""
        if not path:
            return ignore_of(self._root)
        above, _, name = path.rpartition("/")
        return self._below(above, name)

    # -- names

    def _look(
        self,
        path: str,
        folder: _Folder,
        name: str,
        *,
        written: bool,
        silent: bool,
        entry: os.DirEntry[str] | None = None,
    ) -> bool:
        """Compare one name; True when it is a folder to look into.

        `entry`: it comes from a list of the folder, so that files are judged by their looks and
            folders are gone into.
        """
        try:
            about = (
                os.lstat(self._absolute(_join(path, name)))
                if entry is None
                else entry.stat(follow_symlinks=False)
            )
        except OSError:
            self._gone(path, folder, name)
            return False
        if self._is_left_out(path, folder, name, about.st_mode):
            self._forget(path, folder, name)
            return False
        if stat.S_ISDIR(about.st_mode):
            return self._look_at_folder(path, folder, name, about, written=written, silent=silent)
        must_read = written and entry is None
        self._look_at_file(path, folder, name, about, written=must_read, silent=silent)
        return False

    def _look_at_folder(
        self,
        path: str,
        folder: _Folder,
        name: str,
        about: os.stat_result,
        *,
        written: bool,
        silent: bool,
    ) -> bool:
        old = folder.entries.get(name)
        if old is not None and not stat.S_ISDIR(old.mode):
            self._gone(path, folder, name)
            old = None
        why_not = old.why_not if old is not None else ""
        if about.st_dev != self._device:
            why_not = "another disk"
        if why_not:
            self._leave_out(f"{_join(path, name)}/", why_not)
        new = FileEntry(mode=about.st_mode, why_not=why_not)
        if new != old:
            self._pack.mention(_join(path, name), new, old)
            self._set(path, folder, name, new, silent=silent)
        # An event about a known folder's own mode says nothing about what is in it; one that it was
        # made or moved does.
        return not why_not and (written or _join(path, name) not in self._folders)

    def _look_at_file(
        self,
        path: str,
        folder: _Folder,
        name: str,
        about: os.stat_result,
        *,
        written: bool,
        silent: bool,
    ) -> None:
        old = folder.entries.get(name)
        if old is not None and stat.S_ISDIR(old.mode):
            self._gone(path, folder, name)
            old = None
        if old is not None and not written and looks_like(old, about):
            return
        # Of a change of mode, too, the event has only the name by which it was made.
        if about.st_nlink > 1:
            self._written[about.st_ino] = None
        new = self._reader.read(_join(path, name), about, old)
        if new is None:
            self._gone(path, folder, name)
        else:
            self._set(path, folder, name, new, silent=silent)

    def _is_left_out(self, path: str, folder: _Folder, name: str, mode: int) -> bool:
        if name.startswith(OURS):
            return True  # ours; it becomes a file in an instant
        full = _join(path, name)
        is_folder = stat.S_ISDIR(mode)
        if folder.ignore is not None and folder.ignore.ignores(name, is_folder=is_folder):
            self._leave_out(f"{full}/" if is_folder else full, "ignored")
            return True
        if is_folder and self._absolute(full) in self._skip:
            self._leave_out(f"{full}/", "Weft's own")
            return True
        try:
            name.encode()
        except UnicodeEncodeError:
            self._leave_out(os.fsencode(full).decode(errors="replace"), "its name is not text")
            return True
        return False

    def _leave_out(self, path: str, why: str) -> None:
        if len(self.left_out) < _NAMED:
            self.left_out[path] = why

    def _set(self, path: str, folder: _Folder, name: str, new: FileEntry, *, silent: bool) -> None:
        old = folder.entries.get(name)
        folder.entries[name] = new
        self._names.change(_join(path, name), old, new)
        # Counted here and in `_remove` alone: the limit of files must not drift over a long
        # session.
        self._count += old is None
        if differs(old, new) or (old is not None and old.why_not != new.why_not):
            self._is_stale(path)
        if not silent and differs(old, new):
            self._changes.append(PackChange(_join(path, name), old, new))

    def _gone(self, path: str, folder: _Folder, name: str) -> None:
        """Nothing is there any more, nor below it."""
        for full, old in self._taken_out(path, folder, name):
            self._changes.append(PackChange(full, old, None))

    def _forget(self, path: str, folder: _Folder, name: str) -> None:
        """It is there, and is none of our business any more."""
        for _ in self._taken_out(path, folder, name):
            pass

    def _taken_out(self, path: str, folder: _Folder, name: str) -> Iterator[tuple[str, FileEntry]]:
        """Know nothing any more of a name and of all below it; yields each with what was known, the
        innermost first.

        Without a call for each folder in another: a command can nest more of them than calls can
        be.
        """
        if name not in folder.entries:
            return
        waiting = [(path, folder, name)]
        while waiting:
            path, folder, name = waiting[-1]
            full = _join(path, name)
            below = self._folders.get(full)
            if below is not None and below.entries:
                waiting += [(full, below, each) for each in below.entries]
                continue
            if below is not None:
                self._drop_folder(full)
            waiting.pop()
            old = folder.entries[name]
            yield full, old
            self._remove(folder, name, full, old)
            self._is_stale(path)

    def _remove(self, folder: _Folder, name: str, full: str, old: FileEntry) -> None:
        del folder.entries[name]
        self._names.change(full, old, None)
        self._count -= 1
        self._pack.mention(full, None, old)

    def _drop_folder(self, path: str) -> None:
        del self._folders[path]
        self._tree = None
        self.watches.remove(path)

    # -- the rest

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _restore(self, loaded: dict[str, FileEntry]) -> None:
        """Begin with what an earlier process knew."""
        if loaded:
            self._folders[""] = _Folder()
        for path, entry in loaded.items():
            if stat.S_ISDIR(entry.mode) and not entry.why_not:
                self._folders.setdefault(path, _Folder())
        for path, entry in loaded.items():
            folder = self._folders.get(path.rpartition("/")[0])
            if folder is not None:
                folder.entries[path.rpartition("/")[2]] = entry
                self.lacks_copies |= entry.why_not == NOT_COPIED
                self._names.change(path, None, entry)
                self._count += 1


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _listed(absolute: str) -> dict[str, os.DirEntry[str]]:
    with suppress(OSError), os.scandir(absolute) as entries:
        return {entry.name: entry for entry in entries}
    return {}
