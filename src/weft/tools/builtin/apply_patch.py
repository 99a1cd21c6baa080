"""`apply_patch`: edits of one or more files in the V4A format, which GPT models are trained on.

Everything is worked out before anything is written: a piece that does not fit leaves all files as
they are.  The lines that stay and go show that the model knows the place, so a file need not have
been read with `read` before: these models like to look at files with the shell.
"""

from __future__ import annotations

import hashlib
import stat
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from weft.errors import FinalToolError, ToolError
from weft.events import Effect, Fact
from weft.ids import BlobId
from weft.permissions import ToolAction
from weft.tools.arguments import ToolArguments, parse, schema_of
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.diff import bounded
from weft.tools.files import (
    MAX_KEPT,
    EditTarget,
    action,
    change_preview,
    keeps_of,
    new_folders,
    target_of,
)
from weft.tools.text import decode
from weft.tools.v4a_patch import PatchedFile, parse_patch, patched
from weft.workspace import ChangedFile

MOST_FILES = 50
# No other tool deletes a file, so only a rule for patches themselves allows that.
_ACTS_AS = {"changed": "edit", "added": "write"}


class PatchArguments(ToolArguments, frozen=True, kw_only=True):
    """What `apply_patch` takes."""

    patch: Annotated[
        str, Meta(description="The whole patch, from *** Begin Patch to *** End Patch.")
    ]


class _FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file, and what it is to hold."""

    target: EditTarget
    data: bytes | None
    """None: it is removed."""
    verb: str

    @property
    def after(self) -> str:
        return "" if self.data is None else hashlib.sha256(self.data).hexdigest()


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
    schema = schema_of(PatchArguments)
    effect: Effect = "checkable"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        files = parse_patch(parse(PatchArguments, args).patch)
        if len(files) > MOST_FILES:
            raise FinalToolError(f"a patch changes at most {MOST_FILES} files; send several")
        changes: dict[str, _FileChange] = {}
        for file in files:
            for change in await _changes(file, context):
                path = change.target.path
                if path in changes:
                    raise FinalToolError(f"the patch has {path!r} twice; put its pieces together")
                changes[path] = change
        return await _prepared(self.name, list(changes.values()), context)


async def _changes(file: PatchedFile, context: ToolContext) -> list[_FileChange]:
    target = await target_of(file.path, context)
    if file.action == "add":
        if target.state is not None:
            raise FinalToolError(
                f"{target.path!r} exists already; change it with *** Update File, or delete it"
            )
        return [_FileChange(target=target, data=file.content.encode(), verb="added")]
    if target.state is None:
        raise FinalToolError(f"there is no file {target.path!r}; add it with *** Add File")
    _refuse_unreadable(target.path, context)
    if file.action == "delete":
        _refuse_unkept(target)
        return [_FileChange(target=target, data=None, verb="deleted")]
    data = _updated(target, file)
    if not file.move_to:
        return [_FileChange(target=target, data=data, verb="changed")]
    place = await target_of(file.move_to, context)
    if place.path == target.path:
        return [_FileChange(target=target, data=data, verb="changed")]
    if place.state is not None:
        raise FinalToolError(f"{place.path!r} exists already; nothing can be moved there")
    _refuse_unkept(target)
    # The new one first: a crash in between leaves both, and loses nothing.
    return [
        _FileChange(target=place, data=data, verb="added"),
        _FileChange(target=target, data=None, verb="deleted"),
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


async def _prepared(tool: str, changes: list[_FileChange], context: ToolContext) -> PreparedCall:
    keeps: dict[BlobId, bytes] = {}
    facts: list[Fact] = []
    for change in changes:
        await context.workspace.vet(change.target.path, change.target.state, change.data or b"")
        keeps |= keeps_of(change.target)
        facts += [fact for fact in new_folders(change.target, context) if fact not in facts]
    preview = _preview(changes)

    async def run() -> ToolOutcome:
        return await _applied(changes, preview, context)

    return PreparedCall(
        action=_action(tool, changes, context),
        run=run,
        preview=preview,
        pre_hashes={change.target.path: change.target.hash for change in changes},
        post_hashes={change.target.path: change.after for change in changes},
        pre_modes={
            change.target.path: stat.S_IFREG | change.target.state.mode
            for change in changes
            if change.data is None and change.target.state is not None
        },
        keeps=keeps,
        facts=tuple(facts),
    )


def _action(tool: str, changes: list[_FileChange], context: ToolContext) -> ToolAction:
    each = [
        msgspec.structs.replace(
            action(tool, change.target.path, context, edits=True),
            acts_as=_ACTS_AS.get(change.verb, ""),
            removes=change.data is None,
        )
        for change in changes
    ]
    if len(each) == 1:
        return each[0]
    named = ", ".join(part.target for part in each)
    return ToolAction(tool=tool, kind="edit", target=named, parts=tuple(each))


def _preview(changes: list[_FileChange]) -> str:
    shown = [change_preview(change.target, change.data) for change in changes]
    if len(shown) == 1:
        return shown[0]
    # Without the two lines that name the file: between other lines they would look like changed
    # ones.
    return "\n".join(
        f"*** {change.target.path} ({change.verb})\n{_without_names(diff)}"
        for change, diff in zip(changes, shown, strict=True)
    )


def _without_names(diff: str) -> str:
    return diff.split("\n", 2)[2] if diff.startswith("--- ") else diff


async def _applied(changes: list[_FileChange], preview: str, context: ToolContext) -> ToolOutcome:
    """All changes in their order; where one is refused, those before it are reported as done."""
    touched: list[ChangedFile] = []
    error: ToolError | None = None
    for change in changes:
        try:
            touched.append(await _written(change, context))
        except ToolError as refused:
            if not touched:
                raise
            error = refused
            break
    done = changes[: len(touched)]
    lines = [f"{change.verb} {change.target.path}" for change in done]
    if error is not None:
        left = ", ".join(change.target.path for change in changes[len(done) :])
        lines.append(f"{error}.  Not done: {left}")
    seen = {change.target.path: change.after for change in done if change.data is not None}
    names = [change.target.path for change in done]
    kept = {"diff": bounded(preview), "read": seen, "files": names}
    return ToolOutcome(
        text="\n".join(lines), touched=tuple(touched), data=kept, is_error=error is not None
    )


async def _written(change: _FileChange, context: ToolContext) -> ChangedFile:
    target = change.target
    if change.data is None:
        assert target.state is not None
        return await context.workspace.remove(target.path, expected=target.state.hash)
    expected = None if target.state is None else target.state.hash
    touched = await context.workspace.write(target.path, change.data, expected=expected)
    context.reads.saw(target.path, BlobId(change.after))
    return touched
