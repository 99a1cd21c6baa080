"""`weft loom view` and `weft loom open`: where the view with keys begins."""

from __future__ import annotations

from typing import Final

from weft.app import App
from weft.cli.loom.node_references import BY_ID, find_node, is_from_active, one_reference
from weft.cli.parse import ParsedArguments
from weft.errors import AmbiguousId, NodeNotFound

SHORTEST_ID: Final = 5
"""Characters of what may be the beginning of an id, and not a word of a text."""


async def open_view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree at a node."""
    from weft.cli.loom_view.start import run_view  # no other command pays for the screen

    return await run_view(app, await find_node(app.loom, one_reference(arguments)))


async def view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree by id, from a file, or by the text that it begins with."""
    from weft.cli.loom_view.start import run_view  # as above

    given = " ".join(arguments.words) or None
    return await run_view(app, None if given is None else await _named(app, given))


async def _named(app: App, given: str) -> str:
    """The node that a word names as in all commands; a text or a file stays as it is."""
    if is_from_active(given):
        return await find_node(app.loom, given)
    # A word of a text may be the beginning of an id as well, if it is short.
    is_short = len(given) < SHORTEST_ID and not given.startswith(BY_ID)
    if is_short or any(each.isspace() for each in given):
        return given
    try:
        return await find_node(app.loom, given)
    except (NodeNotFound, AmbiguousId):
        return given
