"""A wait for files: a path, or all paths that fit a pattern, until they differ from what they were.

What they look like is a digest of names, sizes and times, not of contents: a look costs no more for
large files, and what a rule keeps from being read is not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import anyio.to_thread

from weft.errors import BadArguments
from weft.events import WaitSubject
from weft.sha256 import sha256
from weft.tools.base import ToolContext, WaitLook
from weft.tools.glob import matcher

MOST_ENTRIES: Final = 50_000
"""Names that one look at a pattern goes through; what lies behind them is not seen."""
PATH_PACE_SECONDS: Final = 1.0
PATTERN_PACE_SECONDS: Final = 10.0
"""Between two looks.  A pattern may stand for thousands of files."""
_SIGNS: Final = frozenset("*?[{")


def is_pattern(path: str) -> bool:
    """Whether a path stands for any number of files."""
    return not _SIGNS.isdisjoint(path)


def fixed_folder(pattern: str) -> str:
    """The folder below which everything lies that fits a pattern."""
    parts = pattern.removeprefix("./").split("/")
    fixed = next((at for at, part in enumerate(parts) if is_pattern(part)), len(parts) - 1)
    return "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ".")


async def file_subject(path: str, place: str) -> WaitSubject:
    """What is waited for, with what it looks like now; `place` is its absolute path or pattern."""
    seen = await anyio.to_thread.run_sync(digest_of, place, abandon_on_cancel=True)
    return WaitSubject(kind="file", text=path[:80], place=path, seen=seen)


def file_look(place: str) -> WaitLook:
    """A look at files; they have changed when they differ, and did not while they were looked at
    twice: a file that is being written is not yet what is waited for.
    """
    last = ""

    async def look(subject: WaitSubject) -> bool:
        nonlocal last
        now = await anyio.to_thread.run_sync(digest_of, place, abandon_on_cancel=True)
        is_settled, last = now == last, now
        return is_settled and now != subject.seen

    return look


def digest_of(place: str) -> str:
    """What is there, by names, sizes and times; empty where nothing is."""
    marks = [mark for path in _paths(place) if (mark := _mark(path))]
    if not marks:
        return ""
    return sha256("\n".join(sorted(marks)).encode("utf-8", "surrogateescape")).hexdigest()


def _paths(place: str) -> Iterator[str]:
    if not is_pattern(place):
        yield place
        # Of a folder, what is in it: its own time tells of names alone.
        yield from (f"{place}/{name}" for name in _names(place))
        return
    folder = fixed_folder(place)
    prefix = folder.rstrip("/") + "/"
    fits = matcher(place[len(prefix) :])
    yield from (prefix + name for name in _below(folder) if fits(name))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:MOST_ENTRIES]
    except OSError:
        return []


def _below(folder: str) -> Iterator[str]:
    """Every file below a folder, relative to it; no link is followed."""
    left = MOST_ENTRIES
    waiting = [""]
    while waiting:
        at = waiting.pop()
        try:
            entries = sorted(os.scandir(f"{folder}/{at}"), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if (left := left - 1) < 0:
                return
            name = f"{at}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif entry.name != ".git":
                waiting.append(f"{name}/")


def _mark(path: str) -> str:
    try:
        found = os.lstat(path)
    except OSError:
        return ""
    return f"{path}\0{found.st_mode}\0{found.st_size}\0{found.st_mtime_ns}\0{found.st_ino}"


async def resolved_place(path: str, context: ToolContext) -> tuple[str, str]:
    """A path or pattern as it is judged and shown, and its absolute form.

    Raises:
        BadArguments: it leads out of the folder that it names.
        FinalToolError: a link leads out of the project.
    """
    if "\0" in path or ".." in path.split("/"):
        raise BadArguments(f"`file` is a path of the project without `..`: {path!r}")
    if not is_pattern(path):
        real = await context.workspace.resolve(path)
    else:
        folder = await context.workspace.resolve(fixed_folder(path))
        rest = path.removeprefix("./")[len(fixed_folder(path).removeprefix(".")) :].lstrip("/")
        real = rest if folder == "." else f"{folder.rstrip('/')}/{rest}"
    root = context.workspace.root.rstrip("/")
    return real, real if real.startswith("/") else f"{root}/{real}"
