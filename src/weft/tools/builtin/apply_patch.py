"""`apply_patch`: edits of one or more files in the V4A format, which GPT models are trained on.

Everything is worked out before anything is written: a piece that does not fit leaves all files as
they are.  The lines that stay and go show that the model knows the place, so a file need not have
been read with `read` before: these models like to look at files with the shell.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext
from weft.tools.file_changes import FileChange, prepare_changes
from weft.tools.files import MAX_KEPT, EditTarget, target_of
from weft.tools.text import decode
from weft.tools.v4a_patch import PatchedFile, parse_patch, patched

MOST_FILES = 50


class PatchArguments(ToolArguments, frozen=True, kw_only=True):
    """What `apply_patch` takes."""

    patch: Annotated[
        str, Meta(description="The whole patch, from *** Begin Patch to *** End Patch.")
    ]


class ApplyPatchTool(Tool):
    """Changes files as a patch says, all of them or none."""

    name = "apply_patch"
    description = (
        "Edit, create, move and delete files with one patch:\n"
        "*** Begin Patch\n*** Update File: path\n@@ def name():\n unchanged line\n-old line\n"
        "+new line\n*** Add File: path\n+content\n*** Delete File: path\n*** End Patch\n"
        "Give about 3 unchanged lines before and after each change, exactly as they are in the "
        "file; where those are not unique, add @@ with the line of the class or function above. "
        "`*** Move to: path` after an Update File line renames the file. There are no line "
        "numbers. If anything does not fit, nothing is changed."
    )
    schema = late_schema(PatchArguments)
    effect: Effect = "checkable"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        files = parse_patch(parse(PatchArguments, args).patch)
        if len(files) > MOST_FILES:
            raise FinalToolError(f"a patch changes at most {MOST_FILES} files; send several")
        changes: dict[str, FileChange] = {}
        for file in files:
            for change in await _changes(file, context):
                path = change.target.path
                if path in changes:
                    raise FinalToolError(f"the patch has {path!r} twice; put its pieces together")
                changes[path] = change
        return await prepare_changes(self.name, list(changes.values()), context)


async def _changes(file: PatchedFile, context: ToolContext) -> list[FileChange]:
    target = await target_of(file.path, context)
    if file.action == "add":
        if target.state is not None:
            raise FinalToolError(
                f"{target.path!r} exists already; change it with *** Update File, or delete it"
            )
        return [FileChange(target=target, data=file.content.encode(), verb="added")]
    if target.state is None:
        raise FinalToolError(f"there is no file {target.path!r}; add it with *** Add File")
    _refuse_unreadable(target.path, context)
    if file.action == "delete":
        _refuse_unkept(target)
        return [FileChange(target=target, data=None, verb="deleted")]
    data = _updated(target, file)
    if not file.move_to:
        return [FileChange(target=target, data=data, verb="changed")]
    place = await target_of(file.move_to, context)
    if place.path == target.path:
        return [FileChange(target=target, data=data, verb="changed")]
    if place.state is not None:
        raise FinalToolError(f"{place.path!r} exists already; nothing can be moved there")
    _refuse_unkept(target)
    # The new one first: a crash in between leaves both, and loses nothing.
    return [
        FileChange(target=place, data=data, verb="added"),
        FileChange(target=target, data=None, verb="deleted"),
    ]


def _refuse_unkept(target: EditTarget) -> None:
    """A file whose content is not kept would be gone for good: no rewind brings it back."""
    assert target.state is not None
    if len(target.state.data) > MAX_KEPT:
        raise FinalToolError(
            f"{target.path!r} is too large to be removed by a patch ({target.state.size:,} bytes); "
            "remove it with the shell"
        )


def _refuse_unreadable(path: str, context: ToolContext) -> None:
    """Whether a piece fits tells what a file holds, so a file that may not be read is refused."""
    guard = context.read_guard
    if guard is not None and (why := guard.forbids(path)):
        raise FinalToolError(f"{path!r} may not be read, and so not patched: {why}")


def _updated(target: EditTarget, file: PatchedFile) -> bytes:
    assert target.state is not None
    decoded = decode(target.state.data)
    if decoded is None:
        raise FinalToolError(f"{target.path!r} is a binary file and cannot be patched")
    try:
        text = patched(decoded.text, file.pieces)
    except FinalToolError as error:
        raise FinalToolError(f"{target.path}: {error}") from error
    return decoded.encode(text, target.path)
