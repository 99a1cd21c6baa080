"""Shared parts of the file tools: a path judged by its real name, read-before-write, and the result
of a change.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable

import msgspec

from weft.errors import FinalToolError, RetryableToolError
from weft.events import FileTouched
from weft.ids import BlobId
from weft.permissions import ToolAction, is_protected
from weft.sha256 import sha256
from weft.tools.base import FormattedContent, PreparedCall, ToolContext, ToolOutcome
from weft.tools.diff import bounded, unified
from weft.tools.text import DecodedText, decode, in_lf
from weft.workspace import FileState, steers_git

MAX_KEPT = 4 * 1024 * 1024
"""A larger file's content is not kept with the intent."""
NOTE_CHANGED = (
    "The file had been changed since you read it; the edit still fitted and was applied to "
    "the new version."
)


_UNFORMATTED = "not formatted: that would change lines outside the boundary"
_MOST_FORMATTED = 40
"""Lines of what a formatter changed that the model is shown."""


class EditTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a tool is about to change, as it is now."""

    path: str
    """Its real name, the one that is judged."""
    state: FileState | None

    @property
    def hash(self) -> str:
        """Of the content, empty where there is no file."""
        return "" if self.state is None else self.state.hash


def action(tool: str, path: str, context: ToolContext, *, edits: bool) -> ToolAction:
    """What the policy is asked about, for a path that is already resolved."""
    place = place_of(path, context)
    return ToolAction(
        tool=tool,
        kind="edit" if edits else "read",
        target=path,
        place=place,
        has_effect=edits,
        outside=context.workspace.is_outside(path),
        protected=is_protected(path) or (edits and steers_git(place)),
    )


def place_of(path: str, context: ToolContext) -> str:
    """The absolute path of one that is already resolved."""
    return path if path.startswith("/") else f"{context.workspace.root.rstrip('/')}/{path}"


async def target_of(path: str, context: ToolContext) -> EditTarget:
    """The file by its real name, read whole."""
    if path.endswith("/"):
        raise FinalToolError(f"{path!r} names a folder; name a file in it")
    # The real name, every link followed: it is what is judged, shown, recorded and written, so that
    # a link cannot have one file approved and another one changed.
    real = await context.workspace.resolve(path)
    state = await context.workspace.peek(real)
    if state is not None and state.truncated:
        raise FinalToolError(f"{real!r} is too large to be edited ({state.size:,} bytes)")
    return EditTarget(path=real, state=state)


def known_text(target: EditTarget, context: ToolContext) -> DecodedText:
    """The text of a file that the model has read in some version.

    Raises:
        FinalToolError: it was never read, is not there, or is no text.
    """
    # Asked first: the error must not reveal a file that may not be read.
    if context.reads.seen(target.path) is None:
        raise FinalToolError(
            f"you have not read {target.path!r} yet; read it before you edit it, or use "
            "the write tool if it is to be a new file"
        )
    if target.state is None:
        raise FinalToolError(f"there is no file {target.path!r}; use the write tool to create it")
    decoded = decode(target.state.data)
    if decoded is None:
        raise FinalToolError(f"{target.path!r} is a binary file and cannot be edited as text")
    return decoded


async def prepare_change(
    tool: str,
    target: EditTarget,
    data: bytes,
    context: ToolContext,
    *,
    summary: Callable[[], str],
) -> PreparedCall:
    """A call that replaces the target's content by `data`, and says `summary()` when it is done.

    Raises:
        FinalToolError: a boundary forbids it.
    """
    content = await vetted_content(target, data, context)
    data = content.data
    after = BlobId(sha256(data).hexdigest())

    async def run() -> ToolOutcome:
        # The version that was shown in the preview: if the file changed while the user was
        # deciding, the write is refused and not applied to something they have not seen.
        expected = None if target.state is None else target.state.hash
        touched = await context.workspace.write(target.path, data, expected=expected)
        context.reads.saw(target.path, after)
        seen = {target.path: after}
        # The record is bounded; what was approved stands whole in its request.
        kept = {"diff": bounded(preview), "read": seen}
        text = f"{summary()}\n{content.note}" if content.note else summary()
        return ToolOutcome(text=text, touched=(touched,), data=kept)

    # All of it, whatever its length: what is not shown cannot be approved.
    preview = change_preview(target, data)
    return PreparedCall(
        action=action(tool, target.path, context, edits=True),
        run=run,
        preview=preview,
        pre_hashes={target.path: target.hash},
        post_hashes={target.path: after},
        keeps=keeps_of(target),
        facts=new_folders(target, context),
    )


async def vetted_content(target: EditTarget, data: bytes, context: ToolContext) -> FormattedContent:
    """The content that is to be written, formatted where that is wanted and may be.

    While preparing, so that the user is shown exactly this, and a change outside the boundaries is
    refused before they are asked about it.

    Raises:
        FinalToolError: a boundary forbids it.
    """
    vet = context.workspace.vet
    if context.format is None:
        await vet(target.path, target.state, data)
        return FormattedContent(data=data)
    made = await context.format(target.path, data)
    try:
        await vet(target.path, target.state, made.data)
    except FinalToolError:
        if made.data == data:
            raise
        # A formatter looks at the whole file, of which only some lines may be changed.
        await vet(target.path, target.state, data)
        return FormattedContent(data=data, note=_UNFORMATTED)
    if made.data == data:
        return made
    return FormattedContent(data=made.data, note=f"{made.note}:\n{_format_diff(data, made.data)}")


def _format_diff(before: bytes, after: bytes) -> str:
    old, new = decode(before) or DecodedText(""), decode(after) or DecodedText("")
    lines = unified(in_lf(old.text), in_lf(new.text), "").split("\n")[2:]
    more = len(lines) - _MOST_FORMATTED
    shown = lines if more <= 0 else [*lines[:_MOST_FORMATTED], f"… {more} more lines"]
    return "\n".join((*shown, *_unseen_changes(old, new)))


def new_folders(target: EditTarget, context: ToolContext) -> tuple[FileTouched, ...]:
    """The folders that will be made on the way, on record before they are: after a crash they must
    still count as ours.
    """
    if target.state is not None:
        return ()
    return tuple(
        FileTouched(path=path, action="created", mode_after=stat.S_IFDIR, call_uid=context.call_uid)
        for path in context.workspace.missing_folders(target.path)
    )


def keeps_of(target: EditTarget) -> dict[BlobId, bytes]:
    """What is about to be replaced, for the file history; it is durable before it goes."""
    if target.state is None or len(target.state.data) > MAX_KEPT:
        return {}
    return {target.state.hash: target.state.data}


def change_preview(target: EditTarget, data: bytes | None) -> str:
    """What the user is shown of a change; without `data` the file is removed."""
    old = decode(b"" if target.state is None else target.state.data)
    new = decode(data or b"")
    if old is None or new is None:
        verb = "remove" if data is None else "replace"
        bytes_ = data if data is not None else b"" if target.state is None else target.state.data
        return f"{verb} {target.path} ({len(bytes_):,} bytes)"
    shown = unified(in_lf(old.text), in_lf(new.text), target.path)
    if not shown and (data is None or target.state is None):
        return f"{'remove' if data is None else 'create'} {target.path}, an empty file"
    if not shown:
        return f"{target.path}: only line ends or the byte-order mark change"
    unseen = [] if data is None else _unseen_changes(old, new)
    if target.state is None and "\r\n" in new.text:
        unseen.append("(lines end in CRLF)")
    return "\n".join((shown, *unseen))


def _unseen_changes(old: DecodedText, new: DecodedText) -> list[str]:
    """What changes besides and a diff does not show, which is made of lines in LF."""
    found: list[str] = []
    if old.bom != new.bom:
        found.append(
            "(a byte-order mark is added)" if new.bom else "(the byte-order mark is removed)"
        )
    if old.encoding != new.encoding and old.text:
        found.append(f"(the encoding changes from {old.encoding} to {new.encoding})")
    # Lines that differ only by their ends are lost from the one text and not from the other.
    if _lost_lines(old.text, new.text) > _lost_lines(in_lf(old.text), in_lf(new.text)):
        found.append("(line ends change)")
    return found


def _lost_lines(old: str, new: str) -> int:
    return (Counter(old.split("\n")) - Counter(new.split("\n"))).total()


def refuse_stale(target: EditTarget, context: ToolContext) -> None:
    """A file may be overwritten whole only in the version that the model knows.

    Raises:
        RetryableToolError: it has to be read first, or again.
    """
    if target.state is None:
        return
    seen = context.reads.seen(target.path)
    if seen is None:
        raise RetryableToolError(
            f"{target.path!r} exists and you have not read it; read it first, or use the edit tool"
        )
    if seen != target.state.hash:
        raise RetryableToolError(
            f"{target.path!r} was changed since you read it; read it again before you overwrite it"
        )
