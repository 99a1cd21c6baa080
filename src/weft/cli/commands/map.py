"""`weft map`: the files and definitions of a project that a request is about."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weft.app.map_request import MapRequest, check_index_is_on, map_place, unchanged_map
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import has_terminal, show_passing, tell, write
from weft.config.paths import WeftPaths, absolute, places
from weft.errors import UsageError, WeftError

if TYPE_CHECKING:  # loaded where an indexer has to be waited for
    from weft.app.index import AppIndex

TOKENS = 1024
QUIET_SECONDS = 1.0
"""An index that is made sooner needs no progress."""
PROGRESS_SECONDS = 0.25


def run(arguments: ParsedArguments) -> int:
    """Print a map."""
    here = map_folder(arguments.text("cd"))
    project, paths = map_place(here, arguments.words)
    history, tokens = arguments.text("history"), arguments.whole("tokens")
    request = MapRequest(
        text=_request(arguments),
        focus=_focus(arguments, project),
        tokens=TOKENS if tokens is None else tokens,
        paths=paths,
        history=None if history is None else Path(history).absolute(),
    )
    where = places(os.environ)
    check_index_is_on(project, where, os.environ)
    text = unchanged_map(request, project, where)
    if text is None:
        text = _updated_map(request, project, where)
    if not text:
        tell(_why_empty(request, project, where))
    write(text)
    return OK


def map_folder(given: str | None) -> str:
    """The folder that paths are taken from.

    Raises:
        UsageError: there is none.
    """
    try:
        here = absolute(given or ".")
    except FileNotFoundError as error:  # removed under the shell
        raise UsageError("the folder you are in is gone; cd to another one") from error
    if not os.path.isdir(here):
        raise UsageError(f"there is no folder {given!r}")
    return here


def _why_empty(request: MapRequest, project: str, where: WeftPaths) -> str:
    longer = msgspec.structs.replace(request, tokens=max(TOKENS, request.tokens))
    if longer != request and unchanged_map(longer, project, where):
        return f"{request.tokens:,} tokens have no room for a single file; give --tokens more"
    return "there are no source files to map here"


def _updated_map(request: MapRequest, project: str, where: WeftPaths) -> str:
    """The map, once an indexer has read what has changed."""
    import anyio  # with the event loop, which waits for an indexer and for nothing else

    from weft.app.index import open_index

    index = open_index(project, where, os.environ)
    try:
        return anyio.run(_map_with_progress, index, request)
    finally:
        index.close()


async def _map_with_progress(index: AppIndex, request: MapRequest) -> str:
    import anyio

    if not has_terminal():
        return await index.map_of(request)
    made: list[str] = []
    failed: list[Exception] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_show_progress, index)
        try:
            made.append(await index.map_of(request))
        except (WeftError, OSError) as error:  # said in its own words, and not as one of a group
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return made[0]


async def _show_progress(index: AppIndex) -> None:
    """A line on the terminal while the project is read, which is gone afterwards."""
    import anyio

    await anyio.sleep(QUIET_SECONDS)
    try:
        while True:
            read = (await index.status()).sources
            show_passing(f"reading the project: {read:,} source file{'s' * (read != 1)} so far")
            await anyio.sleep(PROGRESS_SECONDS)
    finally:
        show_passing("")


def _request(arguments: ParsedArguments) -> str:
    text, file = arguments.text("request"), arguments.text("request_file")
    if text is not None and file is not None:
        raise UsageError("give either --request or --request-file, not both options")
    if file is None:
        return text or ""
    try:
        return Path(file).read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"cannot read the request {file!r}: {error.strerror}") from error


def _focus(arguments: ParsedArguments, project: str) -> tuple[str, ...]:
    """The files of the conversation, as the index names them."""
    named = [word for word in (arguments.text("focus") or "").split(",") if word]
    for word in named:
        if not os.path.lexists(os.path.join(project, word)):
            # Not refused: a file that a conversation is about may be yet to come.
            tell(f"--focus: there is no file {word!r} in {project}")
    return tuple(
        os.path.relpath(word, project) if os.path.isabs(word) else os.path.normpath(word)
        for word in named
    )
