"""Listing a project: every file that its ignore files do not leave out.

Git is asked where there is a repository, because it knows fastest; else the folders are walked with
our own reading of the ignore files.  `.weftignore` files leave out more, tracked files too.  Other
repositories inside a project, submodules among them, are projects of their own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio.to_thread

from weft.errors import FinalToolError, ToolError
from weft.repo.file_paths import FileListing
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
OWN_IGNORE: Final = ".weftignore"
# An entry in conflict would come once for each side.
_ASK: Final = ("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z")


async def list_project(runner: Runner, project: str, scratch: Path) -> FileListing:
    """The files of a project as they are now; `scratch` is a folder that only the user can enter.

    What git tracks is listed also when it is gone from the disk.
    """
    listing = await _by_git(runner, project, scratch)
    if listing is None:
        listing = await anyio.to_thread.run_sync(walk_project, project)
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
            result = await git.run(
                *excludes, *_ASK, work_tree=repository.top, on_output=chunks.append
            )
    except ToolError:
        return None  # no git, or not one that can read this repository
    if result.exit_code:
        return None
    text = "".join(chunks)
    if "/\0" in text:  # another repository, which git does not look into
        return FileListing.of(path for path in text.split("\0") if path and path[-1] != "/")
    return FileListing(text)


def _repository(project: str) -> GitRepository | None:
    try:
        return find_repository(project)
    except FinalToolError:
        return None


def walk_project(project: str) -> FileListing:
    """The files of a folder without git; no link is followed.  Blocks."""
    found: list[str] = []
    waiting = [("", ignore_of(project))]
    while waiting and len(found) < MOST_FILES:
        folder, ignore = waiting.pop()
        with suppress(OSError), os.scandir(f"{project}/{folder}") as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                is_folder = entry.is_dir(follow_symlinks=False)
                if ignore.ignores(entry.name, is_folder=is_folder) or "\0" in entry.name:
                    continue
                path = f"{folder}{entry.name}"
                if not is_folder:
                    found.append(path)
                elif not os.path.lexists(f"{entry.path}/.git"):
                    waiting.append((f"{path}/", ignore.below(entry.name, entry.path)))
    return FileListing.of(sorted(found))


def _without_own_ignored(project: str, listing: FileListing) -> FileListing:
    if f"{OWN_IGNORE}\0" not in listing.text and not os.path.lexists(f"{project}/{OWN_IGNORE}"):
        return listing
    paths = listing.paths()
    files = {path for path in paths if path.rpartition("/")[2] == OWN_IGNORE} | {OWN_IGNORE}
    rules: dict[str, IgnoreFile] = {}
    for path in files:
        if (found := read_ignore_file(f"{project}/{path}")) is not None:
            rules[path.removesuffix(OWN_IGNORE)] = found
    verdicts: dict[str, bool] = {"": False}
    return FileListing.of(
        path for path in paths if not _is_left_out(path, rules, verdicts, is_folder=False)
    )


def _is_left_out(
    path: str, rules: dict[str, IgnoreFile], verdicts: dict[str, bool], *, is_folder: bool
) -> bool:
    """Whether a path, or a folder that it is in, is left out; `path` of a folder has no slash at
    its end.
    """
    if path in verdicts:
        return verdicts[path]
    folder, _, name = path.rpartition("/")
    left_out = _is_left_out(folder, rules, verdicts, is_folder=True)
    place = f"{folder}/" if folder else ""
    prefix = ""
    # The nearest file that has something to say decides.
    while not left_out:
        verdict = None
        if place in rules:
            verdict = rules[place].judge(prefix, name, is_folder=is_folder)
        if verdict is not None:
            left_out = verdict
            break
        if not place:
            break
        above, _, last = place[:-1].rpartition("/")
        prefix = f"{last}/{prefix}"
        place = f"{above}/" if above else ""
    if is_folder:
        verdicts[path] = left_out
    return left_out
