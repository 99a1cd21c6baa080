"""`weft loom view` and `weft loom open`: where the view with keys begins."""

from __future__ import annotations

from weft.app import App
from weft.cli.loom.node_references import find_node, is_from_active, one_reference
from weft.cli.parse import ParsedArguments


async def open_view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree at a node."""
    from weft.cli.loom_view.start import run_view  # no other command pays for the screen

    return await run_view(app, await find_node(app.loom, one_reference(arguments)))


async def view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree by id, from a file, or by the text that it begins with."""
    from weft.cli.loom_view.start import run_view  # as above

    given = " ".join(arguments.words) or None
    if given is not None and is_from_active(given):
        given = await find_node(app.loom, given)
    return await run_view(app, given)
