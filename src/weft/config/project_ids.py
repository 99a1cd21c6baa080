"""Project ids: the name of a folder that outlives its path.

An id is made with the first session that is kept on a folder, and stored with our own data: nothing
is written into the project.  It is found again by the folder's path.  A folder that was moved is
known by its device, its inode and its birth time, which a rename keeps; a copy has others and
becomes a project of its own, and so does a folder that was moved to another file system, or on one
that knows no birth times.  What is put at a known path (a repository that was cloned anew) is the
same project.

Sessions may work in folders of one repository, or in its worktrees.  Each is a project of its own,
but they are related: what was decided in one counts in all.
"""

from __future__ import annotations

import logging
import os
from _thread import get_ident
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.errors import FinalToolError
from weft.ids import ProjectId, new_id
from weft.sha256 import sha256
from weft.workspace import find_repository
from weft.workspace.history.birth_time import born

logger = logging.getLogger(__name__)

MOST_FORMER: Final = 8
"""Former paths that are remembered; each is asked for when sessions are listed."""
MOST_RELATED: Final = 50
"""Projects of one repository whose decisions are read; and of folders that are gone, those which
are still remembered.
"""
_ROOTS: Final = "roots"


class KnownProject(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down of a project."""

    id: ProjectId
    path: str
    device: int = 0
    inode: int = 0
    born: int = 0
    """Its birth time; 0 where it is unknown, and then it is found by its path alone."""
    former: tuple[str, ...] = ()
    """Paths that it had before: sessions that were not used since are stored with one of them."""


class RepositoryPlace(msgspec.Struct, frozen=True):
    """Where a folder lies in a repository."""

    root: str
    """The top of the repository; of a worktree, that of the repository which it belongs to, or the
    git directory where that is a bare one.  The folder itself where there is no repository."""
    inside: str
    """The way from the top of its work tree to the folder; empty for the top."""


class RelatedProject(msgspec.Struct, frozen=True):
    """Another project of the same repository."""

    id: ProjectId
    inside: str
    """As a `RepositoryPlace` has it."""


_decoder = msgspec.json.Decoder(KnownProject)


class ProjectIds:
    """The projects that are known here: one small file for each path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, path: str) -> ProjectId | None:
        """The id of a project that has one; None for a folder that has none yet."""
        known = self.known(path)
        return known.id if known is not None else None

    def known(self, path: str) -> KnownProject | None:
        """What is written down of the project in a folder; None when it has no id yet."""
        real = os.path.realpath(path)
        return _read(self._file(real)) or self._moved_here(real)

    def written(self, path: str) -> KnownProject | None:
        """What is written down under the path of a folder; one that was moved is not looked for,
        which would read what is known of every project.
        """
        return _read(self._file(os.path.realpath(path)))

    def place_of(self, project_id: str, path: str, *, perhaps: str = "") -> str:
        """Where a project is now that was at `path`, `perhaps` in this folder; `path` when it is
        found nowhere else.
        """
        at_path = _read(self._file(os.path.realpath(path)))
        if at_path is not None and at_path.id == project_id and os.path.isdir(path):
            return path
        if perhaps:
            self.known(perhaps)  # a move is found out where the folder is now
        for file in self._files():
            known = _read(file)
            if known is not None and known.id == project_id and os.path.isdir(known.path):
                return known.path
        return path

    @property
    def has_related(self) -> bool:
        """Whether any two projects may be of one repository; one look at the disk."""
        return os.path.isdir(self._folder / _ROOTS)

    def related(self, path: str) -> list[RelatedProject]:
        """The other projects of the repository that a folder lies in.  Blocks."""
        place = repository_place(path)
        root = place.root
        own, real = self.written(path), os.path.realpath(path)
        paths = [root, *self._below(root)] if place.inside or root != real else self._below(root)
        found: dict[ProjectId, RelatedProject] = {}
        for each in paths:
            if len(found) == MOST_RELATED:
                break
            known = _read(self._file(each))
            if known is None or (own is not None and known.id == own.id):
                continue
            there = repository_place(each)
            if there.root == root:  # a folder may have become a repository of its own
                found[known.id] = RelatedProject(known.id, there.inside)
        return [*found.values()]

    def _below(self, root: str) -> list[str]:
        """The folders of projects in a repository that are there, but for its top; the newest
        projects first.
        """
        try:
            notes = sorted(self._root_folder(root).iterdir(), reverse=True)
        except OSError:
            return []
        found, gone = [], 0
        for note in notes:
            folder = _noted(note)
            if folder is None:  # another process has removed it
                continue
            if os.path.isdir(folder):
                found.append(folder)
                continue
            # It may come back with another branch, or another disk; most are worktrees that were
            # removed for good.
            gone += 1
            if gone > MOST_RELATED:
                with suppress(OSError):
                    note.unlink()
        return found

    def _relate(self, real: str, project_id: ProjectId) -> None:
        """Note that a project is a folder of a repository; its top is found without a note."""
        root = repository_place(real).root
        note = self._root_folder(root) / project_id
        if root == real or _noted(note) == real:
            return
        # Not beside the notes, and renamed: whoever reads one finds a whole path.
        new = self._folder / _ROOTS / f"{project_id}.{os.getpid()}.{get_ident()}"
        try:
            note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(os.fsencode(real))
            new.replace(note)
        except OSError:
            logger.warning("a project's repository could not be written down", exc_info=True)
            with suppress(OSError):
                new.unlink(missing_ok=True)

    def _root_folder(self, root: str) -> Path:
        return self._folder / _ROOTS / _name_of(root)

    def make(self, path: str, now: float) -> ProjectId:
        """The id of a project, made if it has none yet."""
        made = self._make(path, now)
        self._relate(os.path.realpath(path), made)
        return made

    def _make(self, path: str, now: float) -> ProjectId:
        found = self.find(path)
        if found is not None:
            return found
        real = os.path.realpath(path)
        about = KnownProject(id=ProjectId(new_id("prj", now)), path=real, **_identity(real))
        self._set_damaged_aside(self._file(real))
        return self._keep(about).id

    def _set_damaged_aside(self, file: Path) -> None:
        """Make room for a project whose file cannot be read: it would get a new id each time."""
        if not file.exists() or _read(file) is not None:
            return
        aside = file.with_name(f"{file.name}.damaged")
        logger.warning(
            "%s is damaged: its project gets a new id, and the file is kept as %s", file, aside.name
        )
        file.replace(aside)

    def _moved_here(self, real: str) -> KnownProject | None:
        """The project that was elsewhere before, under its new path."""
        here = _identity(real)
        # Device and inode are not enough: ext4 gives a new folder the inode of one just deleted.
        if not here.get("born"):
            return None
        for file in self._files():
            known = _read(file)
            # Two names of one folder (a bind mount) are two paths that exist: neither has moved.
            if known is None or not _is_at(known, here) or _identity(known.path) == here:
                continue
            former = (*(each for each in known.former if each != real), known.path)
            moved = self._keep(
                msgspec.structs.replace(known, path=real, former=former[-MOST_FORMER:])
            )
            file.unlink(missing_ok=True)
            self._relate(real, moved.id)
            return moved
        return None

    def _keep(self, about: KnownProject) -> KnownProject:
        """Write a project down, unless another process has done so at the same moment."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._file(about.path)
        new = file.with_name(f"{file.name}.{os.getpid()}.{about.id}")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as writing:
            writing.write(msgspec.json.encode(about))
            writing.flush()
            os.fsync(writing.fileno())
        try:
            # A link and not a rename: of two processes that make an id for one folder, the second
            # must take the first one's.
            os.link(new, file)
        except FileExistsError:
            return _read(file) or about
        finally:
            new.unlink(missing_ok=True)
        return about

    def _file(self, real: str) -> Path:
        return self._folder / f"{_name_of(real)}.json"

    def _files(self) -> list[Path]:
        try:
            return sorted(self._folder.glob("*.json"))
        except OSError:
            return []


def repository_place(path: str) -> RepositoryPlace:
    """Where a folder lies in its repository.  Blocks."""
    real = os.path.realpath(path)
    try:
        # It believes a `.git` that points elsewhere only where both ways agree: a folder cannot
        # claim what is another project's.
        repository = find_repository(real)
    except FinalToolError:
        repository = None
    if repository is None:
        return RepositoryPlace(real, "")
    root = repository.top
    if repository.is_linked:
        # A bare clone has no top: its git directory, of any name, is what its worktrees share.
        common = repository.common
        root = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    inside = os.path.relpath(real, repository.top)
    return RepositoryPlace(root, "" if inside == "." else inside)


def _noted(note: Path) -> str | None:
    try:
        return os.fsdecode(note.read_bytes())
    except OSError:
        return None


def _name_of(path: str) -> str:
    return sha256(os.fsencode(path)).hexdigest()[:32]


def _identity(path: str) -> dict[str, Any]:
    """What tells a folder from all others; empty where there is none."""
    try:
        about = os.stat(path)
    except OSError:
        return {}
    # Folders that came with a disk image may all have been born at 0, which tells nothing.
    return {"device": about.st_dev, "inode": about.st_ino, "born": born(path) or 0}


def _is_at(known: KnownProject, here: dict[str, Any]) -> bool:
    return {"device": known.device, "inode": known.inode, "born": known.born} == here


def _read(file: Path) -> KnownProject | None:
    try:
        return _decoder.decode(file.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
