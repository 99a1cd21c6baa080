"""What a command says of a tree that another process has, and so cannot be changed."""

from __future__ import annotations

import re
from typing import Final

from weft.app import App
from weft.cli.loom.branch_text import tree_name
from weft.cli.loom.node_references import short_id
from weft.errors import UsageError, WeftError

_SENTENCE: Final = re.compile(r"another process has the tree (?:of )?'([^']+)'")


async def for_people(app: App, error: UsageError) -> UsageError:
    """The error with the id and the name that lists show; any other error as it is."""
    found = _SENTENCE.match(str(error))
    if found is None:
        return error
    try:
        root = await app.loom.root(found[1])
        settings = await app.loom.tree_settings(root.id)
    except WeftError:
        return error
    shown, name = short_id(root.id), tree_name(settings.name, root.text)
    return UsageError(
        f"another process has the tree {shown} ({name}): a view of it is open, or branches grow; "
        f"end that first, then try again (`weft loom show {shown} --tree` reads it meanwhile)"
    )
