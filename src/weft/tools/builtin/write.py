"""`write`: a whole file, new or overwritten."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from weft.errors import ToolError
from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext
from weft.tools.files import EditTarget, prepare_change, refuse_stale, target_of
from weft.tools.text import decode, line_end


class WriteArguments(ToolArguments, frozen=True, kw_only=True):
    """What `write` takes."""

    path: Annotated[str, Meta(description="File to write, relative to the project or absolute.")]
    content: Annotated[str, Meta(description="The whole new content of the file.")]


class WriteTool(Tool):
    """Creates a file, or overwrites one whose current version the model has read."""

    name = "write"
    description = (
        "Write a whole file: create it (missing folders too) or overwrite it. An "
        "existing file must have been read before; "
        "prefer an edit for changes to part of a file."
    )
    schema = late_schema(WriteArguments)
    effect: Effect = "checkable"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(WriteArguments, args)
        target = await target_of(given.path, context)
        # Unlike an edit, which shows by its old text that it knows the place, a whole new content
        # would silently undo what others changed.
        refuse_stale(target, context)
        data, kept = _encode(given.content, target)
        done = "wrote" if target.state is None else "overwrote"
        lines = given.content.count("\n") + (
            not given.content.endswith("\n") and bool(given.content)
        )

        def summary() -> str:
            return f"{done} {target.path} ({lines} lines{kept})"

        return await prepare_change(self.name, target, data, context, summary=summary)


def _encode(content: str, target: EditTarget) -> tuple[bytes, str]:
    """Bytes for the content: an overwritten file keeps its line ends, its byte-order mark and, if
    it can, its encoding.
    """
    old = None if target.state is None else decode(target.state.data)
    if old is None or not old.text:
        return content.encode(), ""
    kept = ""
    if line_end(old.text) == "\r\n" and "\r\n" not in content and "\n" in content:
        content = content.replace("\n", "\r\n")
        kept = "; its Windows line ends were kept"
    try:
        return old.encode(content, target.path), kept
    except ToolError:
        return content.encode(), f"{kept}; it is UTF-8 now, {old.encoding} could not hold the text"
