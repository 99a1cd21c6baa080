"""Copies of the base for candidates, where there is no overlay.

All files of the base are written out, with a git directory of the copy's own.  Ignored files are
cloned where the disk can do that (btrfs, XFS, APFS: two files, one content), but for secrets.
Those, and all where it cannot, are there only where `.worktreeinclude` names them, and the user's
`fan.setup` command does the rest.

What a copy looked like when it was made is written down beside it, so that what a candidate changed
is found without reading all of it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from weft.errors import UsageError
from weft.runtime.fan.base_files import BaseFile, BaseFiles, put_file
from weft.runtime.fan.candidate_changes import LARGEST, TOO_LARGE, CandidateDiff, changes_between
from weft.runtime.fan.ignored_trees import IgnoredTrees
from weft.workspace import ProcessCommand, Runner
from weft.workspace.ignore import read_ignore_file
from weft.workspace.repository_copies.included_files import INCLUDE, files_of, is_named
from weft.workspace.sandbox.overlay_changes import OverlayChange, is_mark
from weft.workspace.sandbox.scratch import remove
from weft.workspace.sandbox.secret_names import is_secret_file

FICLONE: Final = 0x40049409
"""Makes a file share the content of another, until one of the two is written to."""
_STAMPS: Final = "stamps"
_AT_ONCE: Final = 500
_Stamp: TypeAlias = tuple[int, int, int]


def copy_at(folder: str) -> str:
    """Where in the place of a candidate its copy lies."""
    return f"{folder}/copy"


def clone_file(source: str, target: str) -> None:
    """Clone a file.

    Raises:
        OSError: the disk cannot do that.
    """
    with open(source, "rb") as old, open(target, "xb") as new:
        fcntl.ioctl(new.fileno(), FICLONE, old.fileno())
    shutil.copystat(source, target)


def can_clone(root: str, folder: str) -> bool:
    """Whether files of a project can be cloned into a folder, found out by trying.  Blocks."""
    target = f"{folder}/clone-trial"
    for name in os.listdir(root):
        path = f"{root}/{name}"
        if os.path.isfile(path) and not os.path.islink(path):
            try:
                clone_file(path, target)
            except OSError:
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(target)
            return True
    return False


# --- making ---------------------------------------------------------------------------------------


async def make_copy(base: BaseFiles, folder: str, *, clones: bool) -> dict[str, str]:
    """Write the base out below a place (`copy_at`); returns the ignored trees that could not be
    cloned, each with the reason.

    Raises:
        FinalToolError: the base cannot be read.
        OSError: the disk is full, or the like.
    """
    copy = copy_at(folder)
    await anyio.to_thread.run_sync(remove, copy)
    await anyio.to_thread.run_sync(os.makedirs, copy, 0o700)
    paths = sorted(await base.paths())
    for begin in range(0, len(paths), _AT_ONCE):
        files = await base.read(paths[begin : begin + _AT_ONCE])
        await anyio.to_thread.run_sync(_write, copy, files)
    ignored = base.record.ignored
    await anyio.to_thread.run_sync(_make_folders, copy, base.submodules)
    await anyio.to_thread.run_sync(_own_git, base, copy)
    if clones:
        return await anyio.to_thread.run_sync(_clone_trees, base.root, copy, ignored)
    await anyio.to_thread.run_sync(_copy_included, base.root, copy, ignored)
    return {}


async def is_whole(folder: str) -> bool:
    """Whether there is a copy in a place, with all that belongs to it."""
    return await anyio.Path(f"{folder}/{_STAMPS}").exists()


async def note_copy(folder: str) -> None:
    """Write down what a copy looks like, now that it is whole: what differs later is its
    candidate's.
    """
    await anyio.to_thread.run_sync(_note, folder)


def _note(folder: str) -> None:
    stamps = dict(_stamps(copy_at(folder)))
    with open(f"{folder}/{_STAMPS}.new", "wb") as file:
        file.write(msgspec.msgpack.encode(stamps))
    os.rename(f"{folder}/{_STAMPS}.new", f"{folder}/{_STAMPS}")


async def set_up(copy: str, command: str, runner: Runner, seconds: float) -> None:
    """Run the user's command that makes a copy fit for work.

    Raises:
        UsageError: it fails.
        ToolError: it could not be started.
    """
    done = await runner.run(
        ProcessCommand(argv=("/bin/sh", "-c", command), cwd=copy, timeout_seconds=seconds)
    )
    if done.exit_code or done.timed_out:
        tail = done.output.strip()[-500:]
        raise UsageError(f"fan.setup (`{command}`) failed in the copy of a candidate: {tail}")


def _write(copy: str, files: Mapping[str, BaseFile]) -> None:
    for path, file in files.items():
        os.makedirs(os.path.dirname(f"{copy}/{path}"), exist_ok=True)
        put_file(f"{copy}/{path}", file)


def _make_folders(copy: str, paths: Sequence[str]) -> None:
    """Make folders, as git leaves those of submodules that it does not fetch: empty."""
    for path in paths:
        if not os.path.lexists(f"{copy}/{path}"):
            os.makedirs(f"{copy}/{path}")


def _own_git(base: BaseFiles, copy: str) -> None:
    """The git directory that candidates have, with the project's objects where they really lie."""
    if not base.record.objects:
        return
    shutil.copytree(f"{base.pin}/.git", f"{copy}/.git", symlinks=True)
    with open(f"{copy}/.git/objects/info/alternates", "w") as file:
        file.write(f"{base.record.objects}\n")


def _clone_trees(root: str, copy: str, ignored: IgnoredTrees) -> dict[str, str]:
    """Clone what is ignored; of secrets, those that the list of what a work tree needs names.

    A tree is there whole or not at all; returns those that are not, with the reason.
    """
    wanted = read_ignore_file(f"{root}/{INCLUDE}")
    left_out: dict[str, str] = {}
    for path in ignored.all:
        made: list[str] = []
        try:
            for source, below in files_of(root, path, _unless_gone):
                is_secret = path in ignored.hidden or is_secret_file(os.path.basename(below))
                if is_secret and (wanted is None or not is_named(wanted, below)):
                    continue
                if not os.path.lexists(target := f"{copy}/{below}"):  # else the base has it
                    made.append(target)
                    _clone(source, target)
        except OSError as error:
            left_out[path] = error.strerror or "it cannot be read"
            for target in made:
                with suppress(FileNotFoundError):
                    os.unlink(target)
    return left_out


def _clone(source: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with suppress(FileNotFoundError):  # it went while we looked
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        else:
            clone_file(source, target)


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _copy_included(root: str, copy: str, ignored: IgnoredTrees) -> None:
    """Copy what is ignored and named in the project's own list of what a work tree needs."""
    wanted = read_ignore_file(f"{root}/{INCLUDE}")
    if wanted is None:
        return
    for path in ignored.all:
        for source, below in files_of(root, path):
            if is_named(wanted, below):
                os.makedirs(os.path.dirname(f"{copy}/{below}"), exist_ok=True)
                shutil.copy2(source, f"{copy}/{below}", follow_symlinks=False)


def apply_layer(layer: str, copy: str) -> None:
    """Bring what a layer shows into a copy: its files, and what it hides.  Blocks."""
    for folder, folders, names in os.walk(layer):
        below = folder[len(layer) :]
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
        for name in (*names, *links):
            source, target = f"{folder}/{name}", f"{copy}{below}/{name}"
            if os.path.isdir(target) and not os.path.islink(target):
                shutil.rmtree(target)
            else:
                with suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(target)
            if is_mark(source):
                continue
            _make_way(copy, os.path.dirname(f"{below}/{name}".lstrip("/")))
            shutil.copy2(source, target, follow_symlinks=False)


def _make_way(copy: str, folder: str) -> None:
    """Make folders, also where a file was."""
    here = copy
    for part in folder.split("/") if folder else ():
        here = f"{here}/{part}"
        if os.path.islink(here) or (os.path.lexists(here) and not os.path.isdir(here)):
            os.unlink(here)
        if not os.path.isdir(here):
            os.mkdir(here)


# --- comparing ------------------------------------------------------------------------------------


async def copy_diff(base: BaseFiles, folder: str) -> CandidateDiff:
    """Compare a candidate's copy with the base.

    Raises:
        FinalToolError: the base cannot be read.
    """
    copy, known = copy_at(folder), await base.paths()
    ignored = base.ignored()

    def changed() -> tuple[dict[str, OverlayChange | None], list[str]]:
        with open(f"{folder}/{_STAMPS}", "rb") as file:
            before = msgspec.msgpack.decode(file.read(), type=dict[str, _Stamp])
        now = dict(_stamps(copy))
        wanted: dict[str, OverlayChange | None] = {path: None for path in known if path not in now}
        left_out, skipped = list[str](), 0
        for path, (_, size, mode) in now.items():
            if before.get(path) == now[path]:
                continue
            if path not in known and ignored.holds(path, is_folder=False):
                skipped += 1
            elif size > LARGEST:
                left_out.append(f"{path} {TOO_LARGE}")
            else:
                kind: Literal["file", "link"] = "link" if stat.S_ISLNK(mode) else "file"
                wanted[path] = OverlayChange(path=path, kind=kind, mode=mode, size=size)
        return wanted, [*left_out, *([f"{skipped:,} ignored files"] if skipped else [])]

    wanted, left_out = await anyio.to_thread.run_sync(changed)
    return await changes_between(base, copy, wanted, left_out)


def _stamps(copy: str) -> Iterator[tuple[str, _Stamp]]:
    """When each file was written, how large it is, and what it is; not of the git directory."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with suppress(OSError), os.scandir(f"{copy}/{below}") as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode) and entry.name != ".git":
                    waiting.append(path)
                elif stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
                    yield path, (about.st_mtime_ns, about.st_size, about.st_mode)
