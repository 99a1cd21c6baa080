"""Every file of a project, without what its ignore files leave out.

ripgrep knows best; git knows as well, if its own programs are kept from running; else the folders are walked, past the ones that
nobody means.  Names come sorted and relative to the folder that was asked for.
"""

from __future__ import annotations

import msgspec

from weft.errors import FinalToolError, ToolError
from weft.tools.base import ToolContext
from weft.tools.suggest import near_names
from weft.tools.text import is_binary
from weft.workspace import Command, RunResult

MAX_FILES = 200_000
_MAX_WALKED = 20_000
_SECONDS = 30.0
_PROBE = 8192
_SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".mypy_cache",
        ".ruff_cache",
    }
)
_QUIETLY = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh")
"""Runs the rest of the vector as it is, with its complaints out of the way of its answer."""
_GIT = (
    # What a repository's own configuration could start, or write, is off.
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.untrackedCache=false"),
    *("ls-files", "-z", "-t", "-c", "-o", "-d", "--exclude-standard"),
)
# An ignore file counts without a repository too.
_RG = ("--no-config", "--files", "--hidden", "--null", "--no-require-git", "--glob=!.git")


class Listing(msgspec.Struct, frozen=True):
    """The files found."""

    names: list[str]
    is_whole: bool = True
    """False when there were too many."""


async def files_of(folder: str, context: ToolContext) -> Listing:
    """Files below `folder`, which is already resolved."""
    root = context.workspace.root
    absolute = folder if folder.startswith("/") else root if folder == "." else f"{root}/{folder}"
    listing = await _by_rg(absolute, context) or await _by_git(absolute, folder, context)
    return listing or await _by_walking(folder, context)


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


async def _by_rg(absolute: str, context: ToolContext) -> Listing | None:
    program = context.runner.which("rg", not_below=context.workspace.root)
    if program is None:
        return None
    result = await _ask((program, *_RG), absolute, context)
    names = [name.removeprefix("./") for name in _split(result)]
    return _sorted(names, result) if names else None


async def _by_git(absolute: str, folder: str, context: ToolContext) -> Listing | None:
    program = context.runner.which("git", not_below=context.workspace.root)
    if program is None:
        return None
    result = await _ask((program, *_GIT), absolute, context)
    if result.exit_code != 0:
        return None
    found: set[str] = set()
    gone: set[str] = set()
    nested: set[str] = set()
    for entry in _split(result):
        tag, _, name = entry.partition(" ")
        if name.startswith(".."):
            continue
        (gone if tag == "R" else nested if name.endswith("/") else found).add(name)
    for name in sorted(nested)[:20]:  # a repository inside this one: git only names its folder
        inner = name.rstrip("/")
        below = await _by_walking(inner if folder == "." else f"{folder}/{inner}", context)
        found |= {f"{inner}/{one}" for one in below.names}
    return _sorted(list(found - gone), result) if found else None


async def _by_walking(folder: str, context: ToolContext) -> Listing:
    found: list[str] = []
    waiting = [""]
    while waiting and len(found) < _MAX_WALKED:
        below = waiting.pop()
        here = f"{folder}/{below}".rstrip("/") if folder != "." else below or "."
        try:
            entries = await context.workspace.list(here)
        except ToolError:
            if not below:
                raise
            continue  # gone meanwhile, or not to be read
        for name, kind in entries:
            path = f"{below}/{name}" if below else name
            if kind == "dir" and name not in _SKIPPED:
                waiting.append(path)
            elif kind == "file":
                found.append(path)
    return Listing(sorted(found)[:_MAX_WALKED], len(found) < _MAX_WALKED)


async def _ask(argv: tuple[str, ...], cwd: str, context: ToolContext) -> RunResult:
    command = Command(argv=(*_QUIETLY, *argv), cwd=cwd, timeout_seconds=_SECONDS, only_reads=True)
    return await context.runner.run(command)


def _split(result: RunResult) -> list[str]:
    text = (
        result.output if result.full_output is None else result.full_output.decode(errors="replace")
    )
    *names, _rest = text.split("\0")  # what follows the last mark was cut off
    return [name for name in names if name]


def _sorted(names: list[str], result: RunResult) -> Listing:
    cut = result.total_bytes > len(result.full_output or b"") if result.truncated else False
    return Listing(sorted(names)[:MAX_FILES], not cut and len(names) <= MAX_FILES)
