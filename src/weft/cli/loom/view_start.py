"""`weft loom view` and `weft loom open`: where the view with keys begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final, TypeAlias

from weft.app import App
from weft.cli.exit_codes import USAGE, CommandExit
from weft.cli.loom.node_references import find_node, is_from_active, one_reference
from weft.cli.parse import ParsedArguments

VIEW_MODULES: Final = ("weft.cli.loom_view", "weft.cli.loom_view.start")
ViewRunner: TypeAlias = Callable[[App, str | None], Awaitable[int]]


async def open_view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree at a node."""
    run_view = _runner()
    return await run_view(app, await find_node(app.loom, one_reference(arguments)))


async def view(app: App, arguments: ParsedArguments) -> int:
    """Open a tree by id, from a file, or by the text that it begins with."""
    run_view = _runner()
    given = " ".join(arguments.words) or None
    if given is not None and is_from_active(given):
        given = await find_node(app.loom, given)
    return await run_view(app, given)


def _runner() -> ViewRunner:
    """What runs the view; by name, so that no other command pays for it.

    Raises:
        CommandExit: there is none.
    """
    for name in VIEW_MODULES:
        try:
            found: ViewRunner | None = getattr(import_module(name), "run_view", None)
        except ModuleNotFoundError as error:
            if error.name not in VIEW_MODULES:
                raise
            continue
        if found is not None:
            return found
    raise CommandExit(
        USAGE,
        "this version has no view with keys; `weft loom show / --tree` prints a tree, "
        "`weft loom children` and `weft loom select` walk in it",
    )
