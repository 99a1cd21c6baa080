"""`weft map`: the files and definitions of a project that a request is about."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

from weft.app.index import MapRequest, map_place, open_index
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write
from weft.config.paths import absolute, places
from weft.errors import UsageError

TOKENS = 1024


def run(arguments: ParsedArguments) -> int:
    """Print a map."""
    here = absolute(arguments.text("cd") or ".")
    if not os.path.isdir(here):
        raise UsageError(f"there is no folder {arguments.text('cd')!r}")
    project, paths = map_place(here, arguments.words)
    history, tokens = arguments.text("history"), arguments.whole("tokens")
    request = MapRequest(
        text=_request(arguments),
        focus=_focus(arguments, project),
        tokens=TOKENS if tokens is None else tokens,
        paths=paths,
        history=None if history is None else Path(history).absolute(),
    )
    index = open_index(project, places(os.environ), os.environ)
    try:
        text = anyio.run(index.map_of, request)
    finally:
        index.close()
    if not text:
        tell("there are no source files to map here")
    write(text)
    return OK


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
    return tuple(
        os.path.relpath(word, project) if os.path.isabs(word) else os.path.normpath(word)
        for word in named
    )
