"""What a word on the command line means: a node, a file, or a text."""

from __future__ import annotations

import os
from typing import Any, Final

import anyio.to_thread

from weft.app import App
from weft.errors import AmbiguousId, NodeNotFound, UsageError
from weft.loom.formats.plain_json import MOST_BYTES

SHORTEST_ID: Final = 4
"""Letters of the beginning of an id; anything shorter is a text."""
BRANCHES: Final = 3
TOKENS: Final = 40
"""What a new tree begins with: several short branches show more than a long one."""
_IDS: Final = ("nod_", "ses_")


async def find_start(app: App, given: str) -> str:
    """The id of the node to begin at.  A file is imported, and a text becomes the root of a tree;
    one that is there already is found again.

    Raises:
        NodeNotFound, AmbiguousId: it looks like an id, and none or several begin so.
        UsageError: it is a file that holds no tree and no text.
    """
    is_word = len(given) >= SHORTEST_ID and not any(each.isspace() for each in given)
    if is_word:
        try:
            return await app.loom.resolve_node_id(given)
        except (NodeNotFound, AmbiguousId):
            if given.startswith(_IDS):
                raise
    path, is_folder = await anyio.to_thread.run_sync(_looked_at, app.project_path, given)
    if is_folder and is_word:
        raise UsageError(f"{given!r} is a folder; name a file, a node or a text")
    if path and not is_folder:
        return await _from_file(app, given, path)
    return await _root(app, given)


async def _from_file(app: App, given: str, path: str) -> str:
    data = await anyio.to_thread.run_sync(_read, path)
    if data[:4] == b"PK\x03\x04" or data.lstrip()[:1] in (b"{", b"["):
        return await _from_trees(app, given, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{given!r} is neither a tree nor a text in UTF-8") from error
    # A text file ends with a newline, whether its text goes on or not.
    text = text.replace("\r\n", "\n").rstrip("\n")
    if not text.strip():
        raise UsageError(f"{given!r} is empty")
    return await _root(app, text, title=os.path.basename(path))


def _looked_at(folder: str, given: str) -> tuple[str, bool]:
    """The path of what a word names, empty where it names nothing; and whether that is a folder."""
    path = os.path.join(folder, os.path.expanduser(given))
    try:
        is_there, is_folder = os.path.isfile(path), os.path.isdir(path)
    except ValueError:  # no name of a file at all
        return "", False
    return (path if is_there or is_folder else ""), is_folder


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(MOST_BYTES + 1)


async def _from_trees(app: App, given: str, data: bytes) -> str:
    from weft.loom.formats.tree_file import parse_trees  # only for files

    try:
        records = await anyio.to_thread.run_sync(parse_trees, data)
    except UsageError as error:
        raise UsageError(f"{given!r}: {error}") from error
    if not records:
        raise UsageError(f"{given!r} has no tree in it")
    for record in records:
        await app.loom.import_tree(record)
    return str(records[0].root_id)


async def _root(app: App, text: str, title: str = "") -> str:
    known = await app.loom.find_root_by_text(text)
    if known is not None:
        return known.id
    plan: dict[str, Any] = {}
    if app.loom.default_model():
        plan = {"n_branches": BRANCHES, "max_tokens": TOKENS}
    return (await app.loom.create_root(text, metadata=plan, title=title)).id
