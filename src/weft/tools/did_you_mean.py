"""Suggestions: the names that the model may have meant."""

from __future__ import annotations

from weft.errors import ToolError
from weft.workspace import Workspace

_MAX_NAMES = 5_000
_MAX_SHOWN = 3


async def near_names(path: str, workspace: Workspace) -> str:
    """The end of a sentence: `; did you mean …?`, or which part of the path is missing.

    Empty when nothing comes near.
    """
    import difflib  # only for misses

    if workspace.is_outside(path):
        return ""  # permission was given for this path, not for its neighbours
    folder, _, leaf = path.rpartition("/")
    try:
        names = [name for name, _ in await workspace.list(folder or ".")]
    except ToolError:
        return f": there is no folder {folder!r}" if folder else ""
    # Bounded: comparing with each of a hundred thousand names would take seconds.
    by_lower = {name.lower(): name for name in names[:_MAX_NAMES]}
    close = difflib.get_close_matches(leaf.lower(), by_lower, n=_MAX_SHOWN, cutoff=0.6)
    found = [f"{folder}/{by_lower[name]}" if folder else by_lower[name] for name in close]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""
