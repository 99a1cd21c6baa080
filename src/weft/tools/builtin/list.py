"""`list`: what is in a folder."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.files import action

MAX_NAMES = 1_000
_ENDS = {"dir": "/", "link": "@", "other": "?", "file": ""}


class ListArguments(ToolArguments, frozen=True, kw_only=True):
    """What `list` takes."""

    path: Annotated[
        str,
        Meta(
            description="Folder, relative to the project or absolute; the project itself "
            "by default."
        ),
    ] = "."


class ListTool(Tool):
    """Names of one folder, folders first."""

    name = "list"
    description = "List what is in a folder. Folders end in `/`, symbolic links in `@`."
    schema = late_schema(ListArguments)
    effect: Effect = "pure"
    timeout_seconds = 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(ListArguments, args)
        path = await context.workspace.resolve(given.path)

        async def run() -> ToolOutcome:
            names = await context.workspace.list(path)
            names.sort(key=lambda entry: entry[1] != "dir")
            lines = [name + _ENDS[kind] for name, kind in names[:MAX_NAMES]]
            if len(names) > MAX_NAMES:
                lines.append(f"(… {len(names) - MAX_NAMES} more; use the find tool with a pattern)")
            return ToolOutcome(text="\n".join(lines) or "(the folder is empty)")

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)
