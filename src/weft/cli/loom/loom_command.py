"""`weft loom`: which function carries out which of its commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from weft.app import App
from weft.cli.commands.with_app import with_app
from weft.cli.loom import (
    branch_growth,
    tree_changes,
    tree_files,
    tree_lists,
    tree_texts,
    view_start,
)
from weft.cli.parse import ParsedArguments
from weft.errors import UsageError

LoomCommand: TypeAlias = Callable[[App, ParsedArguments], Awaitable[int]]


def run(arguments: ParsedArguments) -> int:
    """Carry out a `loom` command."""
    work = _COMMANDS[arguments.verb.removeprefix("loom ")]
    return with_app(arguments, lambda app: _carried_out(app, arguments, work))


async def _carried_out(app: App, arguments: ParsedArguments, work: LoomCommand) -> int:
    try:
        return await work(app, arguments)
    except UsageError as error:
        from weft.cli.loom.tree_in_use import for_people  # only then

        raise await for_people(app, error) from None


_COMMANDS: Mapping[str, LoomCommand] = {
    "new": branch_growth.new,
    "continue": branch_growth.go_on,
    "select": tree_changes.select,
    "open": view_start.open_view,
    "view": view_start.view,
    "active": tree_lists.active,
    "list": tree_lists.list_trees,
    "roots": tree_lists.roots,
    "children": tree_lists.children,
    "search": tree_lists.search,
    "show": tree_texts.show,
    "compare": tree_texts.compare,
    "edit": tree_changes.edit,
    "bookmark": tree_changes.bookmark,
    "rate": tree_changes.rate,
    "weave": tree_texts.weave,
    "delete": tree_changes.delete,
    "restore": tree_changes.restore,
    "settings": tree_changes.settings,
    "stats": tree_files.stats,
    "export": tree_files.export,
    "import": tree_files.import_files,
}
