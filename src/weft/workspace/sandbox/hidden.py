"""What a sandboxed command cannot see: other programs' secrets, ours, and the project's `.env`
files.

Everything else on the disk can be read, as anywhere; nothing but the project can be written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from weft.workspace.sandbox.secret_names import credential_files, is_secret_file
from weft.workspace.skipped_folders import SKIPPED_FOLDERS

_DEPTH = 3
_MOST_FOLDERS = 300


class HiddenPaths:
    """The paths that commands must not see."""

    def __init__(
        self, home: str, *, folders: Iterable[str] = (), shown: Sequence[str] = ()
    ) -> None:
        self._home = home
        self._shown = tuple(shown)
        names = credential_files()
        self._folders = [f"{home}/{name.rstrip('/')}" for name in names if name.endswith("/")]
        self._files = [f"{home}/{name}" for name in names if not name.endswith("/")]
        self._watched: tuple[str, ...] = ()
        """The folders that are there of those that lead to a named path."""
        self._present: tuple[str, ...] = ()
        """The named paths that are there; of two hundred it is a handful."""
        self._stamp: tuple[int, ...] = ()
        """Taken before those two were looked up."""
        self._listed: dict[str, tuple[int, list[str], list[str]]] = {}
        self._ours: set[str] = set()
        """What is hidden besides those that are named in the table."""
        self._opened: dict[str, None] = {}
        """Folders of ours that a project lies in: what comes to be in them is hidden as well."""
        self.add(folders)

    def add(self, paths: Iterable[str]) -> None:
        """Hide these files and folders as well."""
        given = dict.fromkeys(paths)
        self._ours.update(given)
        self._folders += [path for path in given if path not in self._folders]
        self._look_again()

    def of_machine(self, roots: Sequence[str]) -> list[str]:
        """What there was to hide outside the projects at the last `stamp`.

        Never a folder that a project lies in, nor what is shown on purpose.
        """
        found: list[str] = []
        for path in self._present:
            inside = [root for root in roots if _is_in(root, path)]
            if self._is_shown(path):
                continue
            if not inside:
                found.append(path)
            elif path in self._ours:
                # A session that came from another host works in a folder of ours.
                found += self._beside(path, inside)
            # Else it is a secret folder of the user's, who chose to work there: it stays visible.
        return found

    def _beside(self, folder: str, roots: Sequence[str]) -> list[str]:
        """All that a folder of ours holds but the ways to the projects in it."""
        if folder in roots:
            return []
        self._opened[folder] = None
        found: list[str] = []
        for name in sorted(os.listdir(folder)):
            path = f"{folder}/{name}"
            # A link is hidden where it leads to, which must not be where a project lies.
            inside = [root for root in roots if _is_in(root, os.path.realpath(path))]
            if not inside:
                found.append(path)
            elif not os.path.islink(path):
                found += self._beside(path, inside)
        return found

    def stamp(self) -> tuple[int, ...]:
        """Changes when something has come to be that is to be hidden, or when more is to be."""
        if self._times() != self._stamp:
            self._look_again()
        return self._stamp

    def _times(self) -> tuple[int, ...]:
        # The time of a folder changes when a name comes or goes in it: a stat for each folder that
        # is there instead of one for each of the many files.
        watched = (*self._watched, *self._opened)
        return (len(self._folders), *(_changed(folder) for folder in watched))

    def _look_again(self) -> None:
        named = (*self._folders, *self._files)
        # Every folder on the way, so that one that is made later changes the time of another that
        # is watched already.
        leading = {folder for path in named for folder in self._leading_to(path)}
        self._watched = tuple(sorted(folder for folder in leading if os.path.isdir(folder)))
        # Before the paths are looked up: what comes in between is then found the next time.
        self._stamp = self._times()
        self._present = tuple(path for path in named if os.path.lexists(path))

    def _leading_to(self, path: str) -> list[str]:
        """The folders on the way to a path, from the home folder on: those above it may change all
        the time, as a temporary folder does.
        """
        folders = [os.path.dirname(path)]
        while _is_in(folders[-1], self._home) and folders[-1] not in (self._home, "/"):
            folders.append(os.path.dirname(folders[-1]))
        return folders

    def of_projects(self, roots: Sequence[str]) -> list[str]:
        """Files to hide in the projects."""
        found = [file for root in roots for file in self._of_project(root)]
        return [file for file in found if not self._is_shown(file)]

    def _is_shown(self, path: str) -> bool:
        return any(path == shown or os.path.basename(path) == shown for shown in self._shown)

    def _of_project(self, root: str) -> list[str]:
        """`.env` files of a project, some folders deep.

        A folder is read again only when something came or went in it.
        """
        found: list[str] = []
        level = [root]
        looked = 0
        for _ in range(_DEPTH):
            below: list[str] = []
            for folder in level:
                looked += 1
                # Bounded, since it runs before every command: a huge project is searched only near
                # its top.
                if looked > _MOST_FOLDERS:
                    return found
                files, folders = self._names(folder)
                found += files
                below += folders
            level = below
        return found

    def _names(self, folder: str) -> tuple[list[str], list[str]]:
        try:
            changed = os.stat(folder).st_mtime_ns
            known = self._listed.get(folder)
            if known is not None and known[0] == changed:
                return known[1], known[2]
            files, folders = _listing(folder)
        except OSError:
            return [], []
        if len(self._listed) > 10 * _MOST_FOLDERS:
            self._listed.clear()
        self._listed[folder] = (changed, files, folders)
        return files, folders


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _listing(folder: str) -> tuple[list[str], list[str]]:
    """The secret files of a folder, and the folders in it that are worth a look."""
    files: list[str] = []
    folders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    folders.append(entry.path)
            elif is_secret_file(entry.name) and entry.is_file():
                files.append(entry.path)  # of a link, what it leads to is hidden
    return files, sorted(folders)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
