"""File listing of a project: every file, without what its ignore files leave out.

ripgrep knows best; else the folders are walked, with our own reading of the ignore files.  Git
would know as well, but not without its repository's settings, and those can name programs.  Names
come sorted and relative to the folder that was asked for.
"""

from __future__ import annotations

import functools

import anyio.to_thread
import msgspec

from weft.errors import FinalToolError, ToolError
from weft.tools.base import ToolContext
from weft.tools.did_you_mean import near_names
from weft.tools.text import is_binary
from weft.workspace import ProcessCommand, RunResult, ignore_of, unless_trapped

MAX_FILES = 200_000
_MAX_WALKED = 100_000
_SECONDS = 30.0
_PROBE = 8192
_QUIETLY = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh")
"""Runs the rest of the vector as it is, with its complaints out of the way of its answer."""
# An ignore file counts without a repository too.
_RG = ("--no-config", "--files", "--hidden", "--null", "--no-require-git", "--glob=!.git")


class FileListing(msgspec.Struct, frozen=True):
    """The files found."""

    names: list[str]
    is_whole: bool = True
    """False when there were too many."""


async def files_of(folder: str, context: ToolContext) -> FileListing:
    """Files below `folder`, which is already resolved."""
    root = context.workspace.root
    absolute = folder if folder.startswith("/") else root if folder == "." else f"{root}/{folder}"
    return await _by_rg(absolute, context) or await _by_walking(folder, absolute, context)


async def is_file(path: str, context: ToolContext) -> bool:
    """True for a text file, False for a folder and what cannot be read.

    Raises:
        FinalToolError: there is nothing, or a binary file.
    """
    try:
        state = await context.workspace.peek(path, limit=_PROBE)
    except FinalToolError:
        return False  # looking there will say why
    if state is None:
        near = await near_names(path, context.workspace)
        raise FinalToolError(f"there is no file or folder {path!r}{near}")
    if is_binary(state.data):
        raise FinalToolError(f"{path!r} is a binary file of {state.size:,} bytes; it has no lines")
    return True


async def _by_rg(absolute: str, context: ToolContext) -> FileListing | None:
    # Not one of the project's own: it would run without the user having been asked.
    program = context.runner.which("rg", not_below=context.workspace.root)
    if program is None:
        return None
    result = await unless_trapped(absolute, lambda: _ask((program, *_RG), absolute, context))
    if result is None:
        return None
    names = [name.removeprefix("./") for name in _split(result)]
    # None found may also mean that ripgrep failed; the walk then finds out, and is quick where
    # there is nothing.
    return _sorted(names, result) if names else None


async def _by_walking(folder: str, absolute: str, context: ToolContext) -> FileListing:
    found: list[str] = []
    waiting = [("", await anyio.to_thread.run_sync(ignore_of, absolute))]
    while waiting and len(found) < _MAX_WALKED:
        below, ignore = waiting.pop()
        here = f"{folder}/{below}".rstrip("/") if folder != "." else below or "."
        try:
            entries = await context.workspace.list(here)
        except ToolError:
            # The folder that was asked for must be readable; one below it may vanish at any time.
            if not below:
                raise
            continue  # gone meanwhile, or not to be read
        for name, kind in entries:
            path = f"{below}/{name}" if below else name
            if ignore.ignores(name, is_folder=kind == "dir"):
                continue
            if kind == "dir":
                deeper = functools.partial(ignore.below, name, f"{absolute}/{path}")
                waiting.append((path, await anyio.to_thread.run_sync(deeper)))
            elif kind == "file":
                found.append(path)
    return FileListing(sorted(found)[:_MAX_WALKED], len(found) < _MAX_WALKED)


async def _ask(argv: tuple[str, ...], cwd: str, context: ToolContext) -> RunResult:
    command = ProcessCommand(
        argv=(*_QUIETLY, *argv), cwd=cwd, timeout_seconds=_SECONDS, only_reads=True
    )
    return await context.runner.run(command)


def _split(result: RunResult) -> list[str]:
    text = (
        result.output if result.full_output is None else result.full_output.decode(errors="replace")
    )
    *names, _rest = text.split("\0")  # what follows the last mark was cut off
    return [name for name in names if name]


def _sorted(names: list[str], result: RunResult) -> FileListing:
    # The runner keeps a bounded part of the output: what it did not keep are names not seen.
    cut = result.total_bytes > len(result.full_output or b"") if result.truncated else False
    return FileListing(sorted(names)[:MAX_FILES], not cut and len(names) <= MAX_FILES)
