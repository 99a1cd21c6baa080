"""A state of the project's files as a layer of an overlay: what differs from the project as it is
now, and marks for what was not there.

What is ignored is not in it: those files are today's.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import msgspec

from weft.errors import UsageError
from weft.events import LeftOutFile
from weft.runtime.snapshots.node_files import FileAt, NodeFiles, put_entry, stored_content
from weft.store import Store
from weft.workspace.disk_threads import DiskThreads
from weft.workspace.history.project_tree import TreeEntry, folders_above
from weft.workspace.sandbox.overlay_changes import mark_gone
from weft.workspace.sandbox.secret_names import is_secret_file
from weft.workspace.skipped_folders import skipped_for

MOST_BYTES: Final = 512 * 1024 * 1024
"""What one layer may hold."""
_NEVER: Final = frozenset(skipped_for("version control"))
_NAMED: Final = 3


class StateLayer(msgspec.Struct, frozen=True, kw_only=True):
    """How the files of a state differ from those of the project."""

    put: dict[str, FileAt]
    """What the state has."""
    gone: tuple[str, ...]
    """What it does not have; a folder stands for all in it."""
    missing: tuple[LeftOutFile, ...] = ()
    """What it has, and the store does not: without them it cannot be made."""

    @property
    def why_not(self) -> str:
        """Why it cannot be made; empty where it can."""
        if not self.missing:
            return ""
        named = ", ".join(f"{each.path} ({each.why})" for each in self.missing[:_NAMED])
        more = len(self.missing) - _NAMED
        return f"not stored: {named}{f' and {more} more' if more > 0 else ''}"


def state_layer(
    files: NodeFiles,
    now: Mapping[str, TreeEntry],
    moving: Collection[str] = (),
    *,
    hides_secrets: bool = True,
) -> StateLayer:
    """How a state differs from the project as it is `now`; `moving` are paths of which that is not
    certain.  With `hides_secrets` no check sees a file with a secret, whatever is in it.
    """
    put: dict[str, FileAt] = {}
    missing: list[LeftOutFile] = []
    for path, was in sorted(files.files.items()):
        here = now.get(path)
        if _is_same(was, here) and path not in moving:
            continue
        if not _NEVER.isdisjoint(path.lower().split("/")):
            continue
        if was.why or (was.content is None and not was.is_folder):
            if not (hides_secrets and is_secret_file(os.path.basename(path))):
                missing.append(LeftOutFile(path=path, why=was.why or "not known"))
            continue
        put[path] = was
    gone = _without_inner({*now, *moving} - files.files.keys(), put)
    return StateLayer(put=put, gone=tuple(gone), missing=tuple(missing))


def _is_same(was: FileAt, here: TreeEntry | None) -> bool:
    if here is None:
        return False
    if was.is_folder or here.is_folder:
        return was.is_folder and here.is_folder
    # Of neither is a content known: too large to be read, then and now.
    return was.mode == here.mode and (was.content or "") == here.hash


def _without_inner(gone: Collection[str], put: Mapping[str, FileAt]) -> list[str]:
    """Without what lies in a folder that is gone, or that a file takes the place of."""
    files = {path for path, each in put.items() if not each.is_folder}
    return [
        path
        for path in sorted(gone)
        if not any(above in gone or above in files for above in folders_above(path))
    ]


async def write_layer(layer: StateLayer, folder: str, root: str, store: Store) -> None:
    """Make a layer in an empty folder.

    Raises:
        UsageError: it is too large, a content is gone, or the disk does not take it.
    """
    threads = DiskThreads()
    room = MOST_BYTES
    for path, each in layer.put.items():
        data = await stored_content(each, store)
        if data is None and not each.is_folder:
            raise UsageError(f"the content of {path} is not stored any more")
        room -= len(data or b"")
        if room < 0:
            raise UsageError(f"it differs from the project by more than {MOST_BYTES >> 20} MiB")
        await threads.run(partial(_put, folder, path, each.mode, data, root))
    await threads.run(partial(_finish, folder, layer))


def _put(folder: str, path: str, mode: int, data: bytes | None, root: str) -> None:
    os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
    target = f"{folder}/{path}"
    if stat.S_ISDIR(mode) and os.path.isdir(target):
        return
    if why := put_entry(target, mode, data):
        raise UsageError(f"{path} cannot be made: {why}")
    if stat.S_ISREG(mode):
        _set_time(target, f"{root}/{path}")


def _set_time(target: str, today: str) -> None:
    """Another second than that of today's file: what was built from that one and is ignored (a
    compiled module) names its time in whole seconds, and would be taken for this one's.
    """
    try:
        taken = int(os.stat(today, follow_symlinks=False).st_mtime)
    except OSError:
        return
    if (at := int(time.time())) <= taken:
        at = taken + 1
    os.utime(target, (at, at))


def _finish(folder: str, layer: StateLayer) -> None:
    for path in layer.gone:
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        mark_gone(f"{folder}/{path}")
    # Last: until then nobody else can look into them.
    for path in sorted(layer.put, reverse=True):
        if layer.put[path].is_folder:
            os.chmod(f"{folder}/{path}", 0o755)
