"""`find`: files by name."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.did_you_mean import near_names
from weft.tools.files import action
from weft.tools.glob import matcher
from weft.tools.project_files import files_of
from weft.workspace import FileState

MAX_SHOWN = 1_000


class FindArguments(ToolArguments, frozen=True, kw_only=True):
    """What `find` takes."""

    pattern: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1000,
            description="Such as `*.py` (at any depth), `src/**/test_*.py`, `*.{ts,tsx}`.",
        ),
    ]
    path: Annotated[str, Meta(description="Folder to look in; the project itself by default.")] = (
        "."
    )


class FindTool(Tool):
    """Names of files that fit a pattern; ignored ones left out."""

    name = "find"
    description = (
        "Find files by a name pattern, below a folder. Files that the project ignores "
        "(.gitignore) are left out."
    )
    schema = late_schema(FindArguments)
    effect: Effect = "pure"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(FindArguments, args)
        path = await context.workspace.resolve(given.path)

        async def run() -> ToolOutcome:
            state = await _nothing_or_file(path, context)
            if state is not None:
                raise FinalToolError(f"{path!r} is a file, not a folder; name the folder it is in")
            listing = await files_of(path, context)
            fits = matcher(given.pattern)
            prefix = "" if path == "." else f"{path}/"
            found = [prefix + name for name in listing.names if fits(name) or fits(prefix + name)]
            return ToolOutcome(text=_shown(found, listing.is_whole))

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)


async def _nothing_or_file(path: str, context: ToolContext) -> FileState | None:
    """The file that is there instead of a folder.

    Raises:
        FinalToolError: there is nothing.
    """
    try:
        state = await context.workspace.peek(path, limit=0)
    except FinalToolError:
        return None  # a folder, as it should be, or what looking there will tell
    if state is None:
        near = await near_names(path, context.workspace)
        raise FinalToolError(f"there is no folder {path!r}{near}")
    return state


def _shown(found: list[str], is_whole: bool) -> str:
    lines = found[:MAX_SHOWN]
    if len(found) > MAX_SHOWN:
        lines.append(f"(… {len(found) - MAX_SHOWN} more; use a narrower pattern)")
    if not is_whole:
        lines.append("(there are more files than could be looked at; look in a folder below)")
    return "\n".join(lines) or "(no file fits)"
