"""`weft loom view` and `weft loom open`: where the view with keys begins."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from weft.app import App
from weft.cli.exit_codes import USAGE, CommandExit
from weft.cli.loom.given_text import file_bytes, file_text
from weft.cli.loom.node_references import find_node, one_reference
from weft.cli.parse import ParsedArguments
from weft.errors import NodeNotFound, UsageError
from weft.loom.formats.plain_json import MOST_BYTES
from weft.loom.tree_transfer import import_trees

VIEW_MODULE: Final = "weft.cli.loom_view"


async def open_view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree at a node."""
    return await _run(app, await find_node(app.loom, one_reference(arguments)))


async def view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree by id, from a file, or by the text that it begins with."""
    _check_terminal()
    given = " ".join(arguments.words)
    return await _run(app, await _start(app, given) if given else await find_node(app.loom, None))


async def _start(app: App, given: str) -> str:
    if _is_file(given):
        return await _from_file(app, given)
    try:
        return await find_node(app.loom, given)
    except NodeNotFound:
        # What could be an id or a path is a mistyped one; words are a text.
        if " " not in given.strip():
            raise
    return await _by_text(app, given)


def _is_file(given: str) -> bool:
    return os.path.isfile(os.path.expanduser(given))


async def _from_file(app: App, path: str) -> str:
    if path.lower().endswith((".json", ".zip")):
        found = await import_trees(app.loom, file_bytes(path, MOST_BYTES))
        if not found.roots:
            raise UsageError(f"{path}: there is no tree in it")
        return found.roots[0]
    return await _by_text(app, file_text(path))


async def _by_text(app: App, text: str) -> str:
    known = await app.loom.find_root_by_text(text)
    return (known or await app.loom.create_root(text)).id


def _check_terminal() -> None:
    if find_spec(VIEW_MODULE) is None:
        raise CommandExit(
            USAGE,
            "this version has no view with keys; `weft loom show --tree` prints a tree, "
            "`weft loom children` and `weft loom select` walk in it",
        )
    if not all(each is not None and each.isatty() for each in (sys.stdin, sys.stdout)):
        raise UsageError("the view needs a terminal; `weft loom show` prints a text")


async def _run(app: App, start_id: str) -> int:
    _check_terminal()
    # By name: it is loaded for those who look, and no other command pays for it.
    code: int = await import_module(VIEW_MODULE).run_view(app, start_id)
    return code
