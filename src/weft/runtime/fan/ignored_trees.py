"""The ignored trees of a project (dependencies, build products) as they were when its candidates
began.

They are too large to be copied.  Each file is linked instead, into a layer of its own between the
project and the pin layer: one more name for what lies on disk already.  Who reinstalls removes
names, or puts new files in their place, and what was there stays under ours.  Only what is written
in place is changed under both names; that can be told afterwards, by its time (`changed_in_place`).

A tree that cannot be linked, because it lies on another disk, belongs to somebody else or has too
many files, is shared as it is, and said to be.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from weft.workspace.sandbox.overlay_changes import OPAQUE
from weft.workspace.sandbox.scratch import remove
from weft.workspace.sandbox.secret_names import is_secret_file

MOST_LINKED: Final = 200_000
"""Files and folders that are linked; it takes about 0.02 ms of CPU time for each."""
_DEEPEST: Final = 200


class IgnoredTrees(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the ignored files and folders of a project."""

    linked: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    """Those that candidates see as the project has them, at any time."""
    why: str = ""
    """Why the first of those is shared."""
    hidden: tuple[str, ...] = ()
    """Secrets; a candidate sees none, whoever changes them."""

    @property
    def all(self) -> tuple[str, ...]:
        """Everything that is ignored; a folder stands for all in it."""
        return (*self.linked, *self.shared, *self.hidden)


class _CannotLink(Exception):
    """A tree cannot be linked, for this reason."""


def link_trees(root: str, layer: str, paths: Sequence[str]) -> IgnoredTrees:
    """Link these ignored files and folders of a project into a layer.  Blocks."""
    linked: list[str] = []
    shared: list[str] = []
    why = ""
    room = [MOST_LINKED]
    os.makedirs(layer, 0o700, exist_ok=True)
    for path in paths:
        target = f"{layer}/{path}"
        try:
            _make_parents(root, layer, os.path.dirname(path))
            _link(f"{root}/{path}", target, room, 0)
            if os.path.isdir(target) and not os.path.islink(target):
                # What comes into the project's folder later does not show through.
                os.setxattr(target, OPAQUE, b"y")
            linked.append(path)
        except (_CannotLink, OSError) as error:
            remove(target)
            shared.append(path)
            why = why or (str(error) if isinstance(error, _CannotLink) else _reason(error))
    return IgnoredTrees(linked=tuple(linked), shared=tuple(shared), why=why)


def _reason(error: OSError) -> str:
    if error.errno == errno.EXDEV:
        return "the sandbox's folder lies on another disk than the project"
    return error.strerror or "it cannot be linked"


def _make_parents(root: str, layer: str, folder: str) -> None:
    """The folders on the way to a tree; they show the project's through."""
    if not folder or os.path.isdir(f"{layer}/{folder}"):
        return
    _make_parents(root, layer, os.path.dirname(folder))
    os.mkdir(f"{layer}/{folder}")
    os.chmod(f"{layer}/{folder}", stat.S_IMODE(os.stat(f"{root}/{folder}").st_mode) | 0o700)


def _link(source: str, target: str, room: list[int], depth: int) -> None:
    if depth > _DEEPEST:
        raise _CannotLink("its folders are nested too deep")
    mode = os.lstat(source).st_mode
    if not stat.S_ISDIR(mode):
        _link_file(source, target, is_plain=stat.S_ISREG(mode) or stat.S_ISLNK(mode))
        return
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            room[0] -= 1
            if room[0] < 0:
                raise _CannotLink(f"there are more than {MOST_LINKED:,} ignored files")
            try:
                if entry.is_dir(follow_symlinks=False):
                    _link(entry.path, f"{target}/{entry.name}", room, depth + 1)
                else:
                    is_plain = entry.is_symlink() or entry.is_file(follow_symlinks=False)
                    _link_file(entry.path, f"{target}/{entry.name}", is_plain=is_plain)
            except FileNotFoundError:
                continue  # it went while we looked
    # At the end: a folder that nobody may write to could not be filled.
    os.chmod(target, stat.S_IMODE(mode) | 0o700)


def _link_file(source: str, target: str, *, is_plain: bool) -> None:
    # Secrets are hidden in candidates, by their place in the project; sockets and pipes lead out.
    if is_plain and not is_secret_file(os.path.basename(source)):
        os.link(source, target, follow_symlinks=False)


def changed_in_place(layer: str, since_ns: int, most: int = 3) -> tuple[int, list[str]]:
    """How many linked files were written to since, so that candidates see it, and a few of them.

    Blocks.
    """
    count, named = 0, list[str]()
    for path in _files(layer):
        try:
            about = os.lstat(f"{layer}/{path}")
        except OSError:
            continue
        # A link that only we have left was replaced in the project: nobody can write to it there.
        if about.st_mtime_ns > since_ns and about.st_nlink > 1:
            count += 1
            if len(named) < most:
                named.append(path)
    return count, named


def _files(layer: str) -> Iterator[str]:
    for folder, _, names in os.walk(layer):
        below = folder[len(layer) + 1 :]
        for name in names:
            yield f"{below}/{name}" if below else name
