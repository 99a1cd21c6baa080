"""Keeping a candidate: its changes and the user's together, shown first, verified, then put there.

Each file is compared in three versions: the base, the candidate's, and what the project has now.
What only the candidate changed is taken; what both changed is merged where that is clean; else the
user's stays, and the candidate's version is kept aside.  Nothing is deleted that the user changed,
and nothing of `.git`, nor a file that programs obey, is ever taken over by this.

What is put is put as a sandboxed command's changes are: judged path by path, planned on disk before
it is begun, so that a crash amid it is finished by the next process.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import anyio.to_thread
import msgspec

from weft.permissions import is_protected
from weft.runtime.fan.base_files import BaseFile, put_file, replaced
from weft.runtime.fan.candidate_changes import CandidateChange, CandidateDiff, is_same
from weft.workspace.bare_repositories import steers_git
from weft.workspace.safe_open import open_beneath, open_folder
from weft.workspace.sandbox.merge import merge, merge_marked
from weft.workspace.sandbox.overlay_changes import mark_gone
from weft.workspace.sandbox.overlay_commit import ChangeJudge
from weft.workspace.sandbox.scratch import ScratchPlace

KeepAction: TypeAlias = Literal["put", "remove", "merge", "marked", "conflict", "same"]
_LARGEST: Final = 32 * 1024 * 1024
_IN_THE_WAY: Final = "what you have there is in its way"
_BOTH_MADE: Final = "you and the candidate made it"
_SAME_LINES: Final = "you and the candidate changed the same lines"
_BY_HAND: Final = "programs obey it; copy it by hand if you want it"
_MEETS: Final = (_BOTH_MADE, _SAME_LINES)


class KeptFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a candidate, and what keeping does with it."""

    path: str
    action: KeepAction
    why: str = ""
    """Of a conflict, in a few words."""
    result: BaseFile | None = None
    """What the project will have."""
    theirs: BaseFile | None = None
    """What it has now."""
    ours: BaseFile | None = None
    """What the candidate has."""


class KeepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What keeping a candidate would do."""

    files: tuple[KeptFile, ...] = ()
    left_out: tuple[str, ...] = ()

    def paths(self, *actions: KeepAction) -> list[str]:
        """The paths with one of these actions."""
        return [file.path for file in self.files if file.action in actions]

    @property
    def changes(self) -> list[KeptFile]:
        """What is put into the project."""
        wanted = ("put", "remove", "merge", "marked")
        return [file for file in self.files if file.action in wanted]


async def plan_keep(
    diff: CandidateDiff, root: str, rules: ChangeJudge, *, marks_as: str = ""
) -> KeepPlan:
    """Compare a candidate's changes with the project as it is now, under the user's rules.

    `marks_as`: where both changed the same lines, both versions are put there between conflict
    markers, the candidate's under this name.
    """
    steers = await anyio.to_thread.run_sync(_steers_git, diff, root)
    forbidden = {
        change.path: _BY_HAND if change.path in steers else _why_forbidden(change, rules)
        for change in diff.changes
    }
    files = await anyio.to_thread.run_sync(_planned_all, diff, root, forbidden)
    if marks_as:
        before = {change.path: change.before for change in diff.changes}
        files = [_marked(file, before[file.path], marks_as) for file in files]
    return KeepPlan(files=tuple(files), left_out=diff.left_out)


def _marked(file: KeptFile, before: BaseFile | None, name: str) -> KeptFile:
    """A conflict with markers, where it can have them: both sides are text."""
    ours, theirs = file.ours, file.theirs
    if file.action != "conflict" or file.why not in _MEETS or ours is None or theirs is None:
        return file
    if not all(stat.S_ISREG(each.mode) for each in (ours, theirs, before) if each is not None):
        return file
    old = b"" if before is None else before.data
    text = merge_marked(old, ours.data, theirs.data, our_name=name, their_name="yours")
    if text is None:
        return file
    result = BaseFile(theirs.mode | (ours.mode & 0o111), text)
    return msgspec.structs.replace(file, action="marked", result=result)


def _why_forbidden(change: CandidateChange, rules: ChangeJudge) -> str:
    if is_protected(change.path):
        return _BY_HAND
    if change.after is not None and stat.S_ISLNK(change.after.mode):
        return rules.forbids_link(change.path)
    return rules.forbids(change.path)


def _steers_git(diff: CandidateDiff, root: str) -> set[str]:
    """The paths by which git would obey a folder of another name than `.git`."""
    places = {change.path: f"{root}/{change.path}" for change in diff.changes if change.after}
    together = tuple(places.values())
    return {path for path, place in places.items() if steers_git(place, together)}


def _planned_all(diff: CandidateDiff, root: str, forbidden: Mapping[str, str]) -> list[KeptFile]:
    """Each path by itself, then those that take the place of a file or a folder: only together with
    what has to go for them.
    """
    files = [_planned(change, root, forbidden[change.path]) for change in diff.changes]
    gone = {file.path for file in files if file.action == "remove"}
    files = [_fitted(file, root, gone) for file in files]
    stays = tuple(f"{file.path}/" for file in files if file.why == _IN_THE_WAY)
    why = "what the candidate put in its place stays out"
    return [
        msgspec.structs.replace(file, action="conflict", why=why, result=None)
        if file.action == "remove" and file.path.startswith(stays)
        else file
        for file in files
    ]


def _fitted(file: KeptFile, root: str, gone: Container[str]) -> KeptFile:
    if file.action != "put":
        return file
    above = (file.path[:end] for end, letter in enumerate(file.path) if letter == "/")
    blocked = any(_is_no_folder(f"{root}/{path}") and path not in gone for path in above)
    below = f"{root}/{file.path}"
    if not _is_no_folder(below) and os.path.isdir(below):
        cut = len(root) + 1
        blocked |= any(
            f"{folder}/{name}"[cut:] not in gone
            for folder, folders, names in os.walk(below)
            for name in (*names, *(each for each in folders if os.path.islink(f"{folder}/{each}")))
        )
    if not blocked:
        return file
    return msgspec.structs.replace(file, action="conflict", why=_IN_THE_WAY, result=None)


def _is_no_folder(path: str) -> bool:
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))


def _planned(change: CandidateChange, root: str, forbidden: str) -> KeptFile:
    path, ours = change.path, change.after
    try:
        theirs = file_now(root, path)
    except IsADirectoryError:
        if change.before is None and ours is not None and not forbidden:
            # Below it everything may be gone with the candidate.
            return KeptFile(path=path, action="put", result=ours, ours=ours)
        return KeptFile(path=path, action="conflict", why=_IN_THE_WAY, ours=ours)
    except OSError as error:
        why = error.strerror or "it cannot be read"
        return KeptFile(path=path, action="conflict", why=why, ours=ours)
    known = KeptFile(path=path, action="conflict", theirs=theirs, ours=ours)
    if forbidden:
        return msgspec.structs.replace(known, why=forbidden)
    if is_same(theirs, ours):
        return msgspec.structs.replace(known, action="same", result=theirs)
    if is_same(theirs, change.before):
        return msgspec.structs.replace(known, action="put" if ours else "remove", result=ours)
    if ours is None:
        return msgspec.structs.replace(known, why="you changed it, the candidate removed it")
    if theirs is None:
        return msgspec.structs.replace(known, why="you removed it, the candidate changed it")
    return _merged(known, change.before)


def _merged(known: KeptFile, before: BaseFile | None) -> KeptFile:
    ours, theirs = known.ours, known.theirs
    assert ours is not None
    assert theirs is not None
    kinds = {stat.S_IFMT(file.mode) for file in (ours, theirs, before) if file is not None}
    if before is None:
        return msgspec.structs.replace(known, why=_BOTH_MADE)
    together = None
    if kinds == {stat.S_IFREG}:
        together = merge(before.data, ours.data, theirs.data)
    if together is None:
        return msgspec.structs.replace(known, why=_SAME_LINES)
    result = BaseFile(theirs.mode | (ours.mode & 0o111), together)
    action: KeepAction = "same" if is_same(theirs, result) else "merge"
    return msgspec.structs.replace(known, action=action, result=result)


def file_now(root: str, path: str) -> BaseFile | None:
    """What the project has at a path, with no link followed; None where nothing is.

    Raises:
        OSError: a folder is there, or it cannot be read.
    """
    top = open_folder(root)
    try:
        folder, _, name = path.rpartition("/")
        try:
            parent = open_beneath(top, folder or ".", os.O_PATH | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            about = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(about.st_mode):
                return BaseFile(about.st_mode, os.fsencode(os.readlink(name, dir_fd=parent)))
            if stat.S_ISDIR(about.st_mode):
                raise IsADirectoryError(errno.EISDIR, "a folder is there")
            fd = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent
            )
        except FileNotFoundError:
            return None
        finally:
            os.close(parent)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(about.st_mode):
                raise OSError(0, "it is no regular file")
            return BaseFile(about.st_mode, file.read(_LARGEST))
    finally:
        os.close(top)


class KeepJudge(ChangeJudge):
    """What the user has seen in the plan may be changed, where the rules of the session allow it;
    nothing else.
    """

    def __init__(self, plan: KeepPlan, root: str, rules: ChangeJudge) -> None:
        self._root = root
        self._rules = rules
        self._paths = {file.path for file in plan.changes}

    def forbids(self, path: str) -> str:
        return self._unplanned(path) or self._rules.forbids(path)

    def _unplanned(self, path: str) -> str:
        return "" if path in self._paths or self._leads(path) else "it was not in the plan"

    def _leads(self, path: str) -> bool:
        # A folder may be made there, but no file taken away for it.
        if _is_no_folder(f"{self._root}/{path}"):
            return False
        return any(each.startswith(f"{path}/") for each in self._paths)

    def forbids_link(self, path: str) -> str:
        return self._unplanned(path) or self._rules.forbids_link(path)

    def forbids_record(self, path: str) -> str:
        return "a repository's records are not carried over"


def put_plan(plan: KeepPlan, place: ScratchPlace) -> None:
    """Write what is to be put into the upper layer of a place, as a command would have left it.

    Blocks.
    """
    root, upper, _ = place.layers[0]
    put = {file.path for file in plan.changes if file.result is not None}
    skipped = replaced((file.path for file in plan.changes), put) - put
    for file in plan.changes:
        if file.path in skipped:
            continue  # by what is put there: a folder, or a file in the place of one above it
        _copy_folders(root, upper, os.path.dirname(file.path))
        target = f"{upper}/{file.path}"
        if file.result is None:
            mark_gone(target)
        else:
            put_file(target, file.result)


def _copy_folders(root: str, upper: str, folder: str) -> None:
    if not folder or os.path.isdir(f"{upper}/{folder}"):
        return
    _copy_folders(root, upper, os.path.dirname(folder))
    os.mkdir(f"{upper}/{folder}")
    # A folder of the layer stands for the project's: another mode would be a change.
    with suppress(FileNotFoundError, NotADirectoryError):
        about = os.lstat(f"{root}/{folder}")
        if stat.S_ISDIR(about.st_mode):
            os.chmod(f"{upper}/{folder}", stat.S_IMODE(about.st_mode))


def put_aside(files: Sequence[KeptFile], folder: str) -> str:
    """Keep the candidate's versions of files that stay the user's; returns where.  Blocks."""
    kept = [file for file in files if file.ours is not None]
    for file in kept:
        target = f"{folder}/{file.path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        assert file.ours is not None
        put_file(target, file.ours)
    return folder if kept else ""
