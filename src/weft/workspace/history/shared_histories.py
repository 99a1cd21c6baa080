"""The file histories of projects, shared by all sessions of a process.

So two commands at once are noticed, and each file is known once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from weft.sha256 import sha256
from weft.workspace.history.history import FileHistory, HistoryLimits
from weft.workspace.history.pack import mark_for_removal, remove_unused
from weft.workspace.history.watchers import WATCHED

_SHARING = threading.Lock()


def histories_of(
    root: str,
    added: Iterable[str] = (),
    *,
    folder: str | None,
    limits: HistoryLimits,
    skip: Iterable[str] = (),
) -> list[FileHistory]:
    """The histories of a project and of the folders added to it, shared by all who hold them.

    `folder`: where what they know may outlive the process.
    """
    project, *others = (os.path.realpath(each) for each in (root, *added))
    roots = [project]
    for other in sorted(set(others)):
        if not any(_is_within(other, each) for each in roots):
            roots.append(other)
    return [
        _shared(
            each,
            folder,
            limits,
            # A folder that holds the project leaves it to the project's own.
            (*skip, *(other for other in roots if other != each and _is_within(other, each))),
            shown="" if each == project else f"{each}/",
        )
        for each in roots
    ]


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _shared(
    root: str, folder: str | None, limits: HistoryLimits, skip: Iterable[str], *, shown: str
) -> FileHistory:
    # Sessions begin to look in threads of their own; two histories of one project would each take
    # what the other's commands do for the user's.
    with _SHARING:
        found = WATCHED.get(root)
        if not isinstance(found, FileHistory):
            pack = None if folder is None else _pack_path(folder, root)
            found = FileHistory(root, pack=pack, limits=limits, skip=skip, shown=shown)
            WATCHED[root] = found
        return found


def _pack_path(folder: str, root: str) -> str:
    """Where the pre-images of a project lie: a file that only its owner can read, in a folder that
    only the owner can enter.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, sha256(os.fsencode(root)).hexdigest()[:32])


def forget_preimages(root: str, folder: str, *, is_needed: bool) -> None:
    """Remove what is kept of a project's files below `folder`; blocks for a moment.

    While it is in use, here or by another process, or still needed, it is only marked: the last
    process to let go of it in good order removes it.
    """
    if not os.path.isdir(folder):
        return
    root = os.path.realpath(root)
    path = _pack_path(folder, root)
    mark_for_removal(path)
    if is_needed:
        return
    watching = WATCHED.get(root)
    if isinstance(watching, FileHistory):
        watching.close_if_idle()
    remove_unused(path)
