"""Changes of several files by one call: judged, shown, intended and carried out together.

Everything is worked out before anything is written; where a write is then refused, those before it
are reported as done, or taken back if only all of them together make sense.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence

import anyio
import msgspec

from weft.errors import ToolError
from weft.events import Fact
from weft.ids import BlobId
from weft.permissions import ToolAction
from weft.sha256 import sha256
from weft.tools.base import PreparedCall, ToolContext, ToolOutcome
from weft.tools.diff import bounded
from weft.tools.files import (
    EditTarget,
    action,
    change_preview,
    keeps_of,
    new_folders,
    vetted_content,
)
from weft.workspace import ChangedFile, steers_git

# No other tool deletes a file, so only a rule for patches themselves allows that.
_ACTS_AS = {"changed": "edit", "added": "write"}


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file, and what it is to hold."""

    target: EditTarget
    data: bytes | None
    """None: it is removed."""
    verb: str
    is_known: bool = True
    """The model knows the whole of what it will hold; else it has to read the file before it
    overwrites it."""

    @property
    def after(self) -> str:
        """The hash of what it will hold; empty for a file that is removed."""
        return "" if self.data is None else sha256(self.data).hexdigest()


async def prepare_changes(
    tool: str,
    changes: list[FileChange],
    context: ToolContext,
    summary: str = "",
    *,
    remarks: Sequence[str] = (),
    is_whole: bool = False,
) -> PreparedCall:
    """A call that makes these changes in their order; its result begins with `summary`, and what
    the user is shown ends with `remarks`.
    `is_whole`: where one cannot be made, those before it are taken back.

    Raises:
        FinalToolError: a boundary forbids one of them.
    """
    keeps: dict[BlobId, bytes] = {}
    facts: list[Fact] = []
    changes, notes = await _vetted(changes, context)
    for change in changes:
        keeps |= keeps_of(change.target)
        facts += [fact for fact in new_folders(change.target, context) if fact not in facts]
    preview = "\n".join((_preview(changes), *remarks))

    async def run() -> ToolOutcome:
        outcome = await _applied(changes, preview, context, summary, is_whole=is_whole)
        text = "\n".join((outcome.text, *notes))
        return msgspec.structs.replace(outcome, text=text)

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


async def _vetted(
    changes: list[FileChange], context: ToolContext
) -> tuple[list[FileChange], list[str]]:
    """The changes with formatted contents, and what the model should know of that."""
    vetted: list[FileChange] = []
    notes: list[str] = []
    for change in changes:
        if change.data is None:
            await context.workspace.vet(change.target.path, change.target.state, b"")
            vetted.append(change)
            continue
        content = await vetted_content(change.target, change.data, context)
        vetted.append(msgspec.structs.replace(change, data=content.data))
        if content.note:
            notes.append(f"{change.target.path}: {content.note}")
    return vetted, notes


def _action(tool: str, changes: list[FileChange], context: ToolContext) -> ToolAction:
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
    places = [part.place for part in each]
    each = [
        msgspec.structs.replace(part, protected=part.protected or steers_git(part.place, places))
        for part in each
    ]
    named = ", ".join(part.target for part in each)
    return ToolAction(tool=tool, kind="edit", target=named, parts=tuple(each))


def _preview(changes: list[FileChange]) -> str:
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


async def _applied(
    changes: list[FileChange],
    preview: str,
    context: ToolContext,
    summary: str,
    *,
    is_whole: bool,
) -> ToolOutcome:
    """All changes in their order; where one is refused, those before it are reported as done, or
    taken back."""
    touched: list[ChangedFile] = []
    done: list[FileChange] = []
    error: ToolError | None = None
    try:
        for change in changes:
            touched.append(await _written(change, context))
            done.append(change)
    except ToolError as refused:
        if done and is_whole:
            done = await _left_after_undo(done, context)
            if not done:
                raise type(refused)(f"{refused}; nothing was changed") from refused
            touched = [each for each in touched if each.path in {left.target.path for left in done}]
        if not done:
            raise
        error = refused
    except BaseException:
        if is_whole:
            await _left_after_undo(done, context)
        raise
    lines = [summary] if summary else []
    lines += [f"{change.verb} {change.target.path}" for change in done]
    if error is not None:
        left = ", ".join(change.target.path for change in changes if change not in done)
        lines.append(f"{error}.  Not done: {left}")
    seen = {
        change.target.path: change.after
        for change in done
        if change.data is not None and change.is_known
    }
    names = [change.target.path for change in done]
    kept = {"diff": bounded(preview), "read": seen, "files": names}
    return ToolOutcome(
        text="\n".join(lines), touched=tuple(touched), data=kept, is_error=error is not None
    )


async def _written(change: FileChange, context: ToolContext) -> ChangedFile:
    target = change.target
    if change.data is None:
        assert target.state is not None
        return await context.workspace.remove(target.path, expected=target.state.hash)
    expected = None if target.state is None else target.state.hash
    touched = await context.workspace.write(target.path, change.data, expected=expected)
    if change.is_known:
        context.reads.saw(target.path, BlobId(change.after))
    return touched


async def _left_after_undo(done: list[FileChange], context: ToolContext) -> list[FileChange]:
    """Take changes of files back; those that could not be, because the file is another one by now.

    Shielded: a cancel half way would leave what it is meant to prevent.
    """
    left: list[FileChange] = []
    with anyio.CancelScope(shield=True):
        for change in reversed(done):
            before = change.target.state
            assert before is not None
            try:
                await context.workspace.write(
                    change.target.path, before.data, expected=BlobId(change.after)
                )
            except ToolError:
                left.insert(0, change)
                continue
            if context.reads.seen(change.target.path) == change.after:
                context.reads.saw(change.target.path, before.hash)
    return left
