"""`edit` and `multi_edit`: exact replacements in a file that the model has read.

When the file was changed by another program since it was read, an edit that still fits exactly once
is applied to the new version, which merges both changes; the result says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext
from weft.tools.files import NOTE_CHANGED, known_text, prepare_change, target_of
from weft.tools.patch import TextReplacement, apply

_OLD = (
    "The exact text to replace, white space included, without line numbers. Must occur once "
    "in the file."
)
_NEW = "The text to put in its place."
_ALL = "Replace every occurrence instead of exactly one."
_PATH = "File to edit, relative to the project or absolute."


class EditArguments(ToolArguments, frozen=True, kw_only=True):
    """What `edit` takes."""

    path: Annotated[str, Meta(description=_PATH)]
    old_string: Annotated[str, Meta(description=_OLD)]
    new_string: Annotated[str, Meta(description=_NEW)]
    replace_all: Annotated[bool, Meta(description=_ALL)] = False


class OneEdit(ToolArguments, frozen=True, kw_only=True):
    """One replacement of several."""

    old_string: Annotated[str, Meta(description=_OLD)]
    new_string: Annotated[str, Meta(description=_NEW)]
    replace_all: Annotated[bool, Meta(description=_ALL)] = False


class MultiEditArguments(ToolArguments, frozen=True, kw_only=True):
    """What `multi_edit` takes."""

    path: Annotated[str, Meta(description=_PATH)]
    edits: Annotated[
        list[OneEdit],
        Meta(
            min_length=1, description="Replacements, each applied to the result of the one before."
        ),
    ]


class EditTool(Tool):
    """One exact replacement."""

    name = "edit"
    description = (
        "Replace an exact piece of text in a file that you have read. Nothing is changed "
        "unless old_string occurs exactly once "
        "(or replace_all is set)."
    )
    schema = late_schema(EditArguments)
    effect: Effect = "checkable"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(EditArguments, args)
        change = TextReplacement(
            old=given.old_string, new=given.new_string, replace_all=given.replace_all
        )
        return await _prepare(self.name, given.path, [change], context)


class MultiEditTool(Tool):
    """Several exact replacements in one file, all or nothing."""

    name = "multi_edit"
    description = (
        "Make several exact replacements in one file that you have read, in order, all "
        "or nothing: if one does not fit, the file "
        "stays as it is."
    )
    schema = late_schema(MultiEditArguments)
    effect: Effect = "checkable"
    timeout_seconds = 60.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(MultiEditArguments, args)
        changes = [
            TextReplacement(old=edit.old_string, new=edit.new_string, replace_all=edit.replace_all)
            for edit in given.edits
        ]
        return await _prepare(self.name, given.path, changes, context)


async def _prepare(
    tool: str, path: str, changes: Sequence[TextReplacement], context: ToolContext
) -> PreparedCall:
    target = await target_of(path, context)
    decoded = known_text(target, context)
    text, count = decoded.text, 0
    for number, change in enumerate(changes, 1):
        try:
            text, times = apply(text, change)
        except FinalToolError as error:
            if len(changes) == 1:
                raise FinalToolError(f"{target.path}: {error}") from error
            raise FinalToolError(
                f"{target.path}: edit {number} of {len(changes)}: {error}"
            ) from error
        count += times
    # Read in some version is enough: the old text still had to fit exactly once in the present one.
    was_known = context.reads.seen(target.path) == target.hash
    data = decoded.encode(text, target.path)

    def summary() -> str:
        times = "1 replacement" if count == 1 else f"{count} replacements"
        return f"edited {target.path}: {times}" + ("" if was_known else f"\n{NOTE_CHANGED}")

    return await prepare_change(tool, target, data, context, summary=summary)
