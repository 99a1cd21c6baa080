"""Listing a project: every file that its ignore files do not leave out.

Git is asked where there is a repository, because it knows fastest; else the folders are walked with
our own reading of the ignore files.  `.weftignore` files leave out more, tracked files too.  Other
repositories inside a project, submodules among them, are projects of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread

from weft.errors import FinalToolError, ToolError
from weft.repo.file_paths import (
    GIT_IGNORE,
    IGNORE_FILES,
    OWN_IGNORE,
    FileListing,
    is_left_out,
)
from weft.repo.freshness import stamp_at
from weft.repo.index_cache import ABSENT, FileStamp
from weft.workspace import (
    GitRepository,
    IgnoreFile,
    Runner,
    find_repository,
    ignore_of,
    open_safe_git,
    read_ignore_file,
)

MOST_FILES: Final = 1_000_000
_ESCAPED: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
}
_EXCLUDES: Final = re.compile(rb"(?mi)^\s*excludesfile\s*=(.*)$")
_MOST_SETTINGS: Final = 256 * 1024
# An entry in conflict would come once for each side.
_ASK: Final = ("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
_REPLACED: Final = "\ufffd"
"""What stands for bytes that are no UTF-8: such names are asked for once more, spelled out."""

GIT_SECONDS: Final = 60.0
"""How long git may take to list a project, or to tell its past: it may wait for ever, as for a
named pipe called `.gitignore`."""
_LOOK_SECONDS: Final = 0.2

_T = TypeVar("_T")


async def ask_within(
    question: Callable[[], Awaitable[_T]], seconds: float, go_on: Callable[[], bool]
) -> _T | None:
    """The answer of git; None when it takes longer, or once `go_on` says no.

    What the question has started is ended then, for a cancel kills it.
    """
    answer: _T | None = None
    with anyio.move_on_after(seconds):
        async with anyio.create_task_group() as group:

            async def look() -> None:
                while True:
                    if not go_on():
                        group.cancel_scope.cancel()
                    await anyio.sleep(_LOOK_SECONDS)

            group.start_soon(look)
            answer = await question()
            group.cancel_scope.cancel()
    return answer


async def list_project(
    runner: Runner,
    project: str,
    scratch: Path,
    go_on: Callable[[], bool] = lambda: True,
    git_seconds: float = GIT_SECONDS,
) -> FileListing:
    """The files of a project as they are now; `scratch` is a folder that only the user can enter.

    What git tracks is listed also when it is gone from the disk.  Where git takes longer than
    `git_seconds`, the folders are walked.  Once `go_on` says no, git is ended, and a walk stops in
    the middle, with what it has.
    """
    asked = partial(_by_git, runner, project, scratch)
    listing = await ask_within(asked, git_seconds, go_on)
    if listing is None:
        listing = await anyio.to_thread.run_sync(walk_project, project, go_on)
    return await anyio.to_thread.run_sync(_without_own_ignored, project, listing)


async def _by_git(runner: Runner, project: str, scratch: Path) -> FileListing | None:
    repository = await anyio.to_thread.run_sync(_repository, project)
    if repository is None:
        return None
    chunks: list[str] = []
    try:
        async with open_safe_git(runner, repository, scratch) as git:
            # An ignore file of the user's own holds for every repository, as in their `git status`.
            excludes = ("-c", f"core.excludesFile={await git.user_excludes()}", "-C", project)
            asked = (*excludes, *_ASK)
            run = partial(git.run, work_tree=repository.top, on_output=chunks.append)
            result = await run(*asked, "-z")
            text = "".join(chunks)
            if _REPLACED in text:
                chunks.clear()
                result = await run("-c", "core.quotePath=true", *asked)
                text = "".join(f"{_unquoted(line)}\0" for line in "".join(chunks).splitlines())
    except ToolError:
        return None  # no git, or not one that can read this repository
    if result.exit_code:
        return None
    # It complains of folders that it may not look into, in the user's language.
    closed = (await anyio.to_thread.run_sync(walk_project, project)).closed if result.errors else ()
    if "/\0" in text:  # another repository, which git does not look into
        paths = (path for path in text.split("\0") if path and path[-1] != "/")
        return FileListing.of(paths, closed)
    return FileListing(text, closed)


def _unquoted(line: str) -> str:
    """A path as git spells it where it holds bytes that are not ASCII, quotes or control
    characters.
    """
    if not line.startswith('"'):
        return line
    raw = _ESCAPED.sub(_byte, line[1:-1].encode("utf-8", "replace"))
    return os.fsdecode(raw)


def _byte(match: re.Match[bytes]) -> bytes:
    said = match[1]
    return bytes([int(said, 8)]) if said.isdigit() else _ESCAPES.get(said, said)


def _repository(project: str) -> GitRepository | None:
    try:
        return find_repository(project)
    except FinalToolError:
        return None


def walk_project(project: str, go_on: Callable[[], bool] = lambda: True) -> FileListing:
    """The files of a folder without git; no link is followed.  Blocks."""
    found: list[str] = []
    closed: list[str] = []
    waiting = [("", ignore_of(project))]
    while waiting and len(found) < MOST_FILES and go_on():
        folder, ignore = waiting.pop()
        try:
            opened = os.scandir(f"{project}/{folder}")
        except OSError as error:
            if folder and isinstance(error, PermissionError):
                closed.append(folder.rstrip("/"))
            continue
        with suppress(OSError), opened as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                is_folder = entry.is_dir(follow_symlinks=False)
                if ignore.ignores(entry.name, is_folder=is_folder) or "\0" in entry.name:
                    continue
                path = f"{folder}{entry.name}"
                # As git does: no pipes, sockets and devices.
                if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    found.append(path)
                elif is_folder and not os.path.lexists(f"{entry.path}/.git"):
                    waiting.append((f"{path}/", ignore.below(entry.name, entry.path)))
    return FileListing.of(sorted(found), closed)


def _without_own_ignored(project: str, listing: FileListing) -> FileListing:
    if f"{OWN_IGNORE}\0" not in listing.text and not os.path.lexists(f"{project}/{OWN_IGNORE}"):
        return listing
    paths = listing.paths()
    files = {path for path in paths if path.rpartition("/")[2] == OWN_IGNORE} | {OWN_IGNORE}
    own: dict[str, IgnoreFile] = {}
    for path in files:
        if (found := read_ignore_file(f"{project}/{path}")) is not None:
            own[path.removesuffix(OWN_IGNORE)] = found
    folders: dict[str, bool] = {"": False}
    left = [
        path
        for path in paths
        if not _is_below_left_out(path, own, folders)
        and not is_left_out(path, own, is_folder=False)
    ]
    return FileListing.of(left, listing.closed)


def _is_below_left_out(path: str, own: Mapping[str, IgnoreFile], folders: dict[str, bool]) -> bool:
    """Whether a folder that a path is in is left out."""
    waiting: list[str] = []
    folder = path.rpartition("/")[0]
    while folder not in folders:
        waiting.append(folder)
        folder = folder.rpartition("/")[0]
    verdict = folders[folder]
    for each in reversed(waiting):
        verdict = verdict or is_left_out(each, own, is_folder=True)
        folders[each] = verdict
    return verdict


def rule_stamps(project: str, folders: Iterable[str], home: str) -> dict[str, FileStamp]:
    """The files that say what is ignored, absolute, with their stamps: those in the project, above
    it, and of the user.  Blocks.

    `folders` are those that have files.  What git is told by settings that it includes is not among
    them.
    """
    inside = [f"{folder}/{name}" for folder in folders if folder for name in IGNORE_FILES]
    found = {f"{project}/{path}": stamp_at(f"{project}/{path}") for path in inside}
    # A new one in a folder gives that another time; others are told by having been absent.
    found = {path: stamp for path, stamp in found.items() if stamp != ABSENT}
    return found | {path: stamp_at(path) for path in _outer_rules(project, home)}


def _outer_rules(project: str, home: str) -> list[str]:
    places = [f"{project}/{name}" for name in IGNORE_FILES]
    repository = _repository(project)
    if repository is None:
        return places
    places.append(f"{repository.common}/info/exclude")
    above = project
    while above.startswith(f"{repository.top}/"):
        above = os.path.dirname(above)
        places.append(f"{above}/{GIT_IGNORE}")
    return [*places, *_user_places(home)] if home else places


def _user_places(home: str) -> list[str]:
    places = [f"{home}/.gitconfig", f"{home}/.config/git/config", f"{home}/.config/git/ignore"]
    for settings in places[:2]:
        with suppress(OSError), open(settings, "rb") as file:
            for named in _EXCLUDES.findall(file.read(_MOST_SETTINGS)):
                word = os.fsdecode(named).strip().strip('"')
                places.append(f"{home}/{word[2:]}" if word.startswith("~/") else word)
    return [place for place in places if os.path.isabs(place)]
