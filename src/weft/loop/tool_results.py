"""How a call ends: the facts that settle it, and the sentences the model reads.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from weft.events import (
    Fact,
    FileTouched,
    PermissionResolved,
    QuestionAnswered,
    SystemNote,
    Todo,
    TodoChanged,
    ToolComplete,
)
from weft.ids import BlobId, CallUid, NodeId
from weft.messages import Image, ToolCall, ToolResult, clean_text
from weft.sha256 import sha256
from weft.tools import ChangedFile, PreparedCall, Tool, ToolOutcome, as_outcome

NOT_RUN: Final = "Not run: the turn was stopped before this call."
STOPPED_WHILE_RUNNING: Final = (
    "Stopped while it ran. It may have taken effect in part; check before you rely on it."
)
INTERRUPTED: Final = (
    "Interrupted: the program ended while this call ran, and its effect is unknown. "
    "It was not run again. Check what happened before you repeat it."
)
INTERRUPTED_INSIDE: Final = (
    "Interrupted: the program ended while this call ran. It was not run again."
)
INTERRUPTED_BY_OUTAGE: Final = (
    "Interrupted: the store of this session was out of reach when this call began or ended, and "
    "its effect is unknown. It was not run again. Check what happened before you repeat it."
)
INSIDE_BY_OUTAGE: Final = (
    "Interrupted: the store of this session was out of reach when this call began or ended. It was "
    "not run again."
)
DONE_BEFORE_INTERRUPTION: Final = (
    "Done. (The program was interrupted right after; the files were checked and have the "
    "new content.)"
)


def settled(
    call: ToolCall, node: NodeId, outcome: ToolOutcome, *, duration_ms: int, limit: int
) -> tuple[list[Fact], dict[BlobId, bytes]]:
    """The facts (and blobs) of a call that ran."""
    text, whole = _within(clean_text(outcome.text), limit)
    blobs: dict[BlobId, bytes] = {}
    full = outcome.full_text if outcome.full_text is not None else whole
    full_id = _blob(blobs, full) if full is not None else None
    result = ToolResult(
        call_uid=call.call_uid,
        text=text,
        images=outcome.images,
        is_error=outcome.is_error,
        full_text=full_id,
        data=outcome.data,
    )
    facts: list[Fact] = [
        ToolComplete(
            call_uid=call.call_uid,
            node=node,
            result=result,
            is_error=outcome.is_error,
            duration_ms=duration_ms,
        )
    ]
    facts += touched_facts(outcome.touched, call.call_uid, blobs)
    facts += [SystemNote(text=text, level="warning", node=node) for text in outcome.notes]
    if outcome.todos is not None:
        facts.append(TodoChanged(items=outcome.todos))
    facts += outcome.facts
    return facts, blobs


def with_file_note(outcome: ToolOutcome, note: Callable[[Iterable[str]], str]) -> ToolOutcome:
    """The outcome with what there is to be said about the files that it read or changed."""
    read = outcome.data.get("read")
    paths = [*(each.path for each in outcome.touched), *(read if isinstance(read, dict) else ())]
    text = note(paths) if paths else ""
    return msgspec.structs.replace(outcome, text=f"{outcome.text}\n\n{text}") if text else outcome


def sound_preparation(prepared: object) -> PreparedCall:
    """A tool's own preparation, as it can be shown and stored.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(prepared, PreparedCall):
        raise TypeError(f"prepare() gave {type(prepared).__name__}, not a Prepared")
    action = msgspec.structs.replace(prepared.action, target=clean_text(prepared.action.target))
    return msgspec.structs.replace(prepared, action=action, preview=clean_text(prepared.preview))


def sound_forwarding(found: object) -> tuple[Tool, dict[str, Any]]:
    """The tool that a call is meant for, and its arguments.

    Raises:
        TypeError: it is none.
    """
    match found:
        case (Tool() as tool, dict() as args):
            return tool, args
    raise TypeError(f"forwarded() gave {type(found).__name__}, not a Tool and its arguments")


def sound_outcome(outcome: object) -> ToolOutcome:
    """What a tool gave, as it can be stored and read again; a program's tool may give anything.

    Raises:
        TypeError, ValueError: it cannot be stored.
    """
    whole = as_outcome(outcome)
    if not isinstance(whole.text, str):
        raise TypeError(f"the text of the outcome is {type(whole.text).__name__}, not str")
    for name, type_, default in _SHORT_PARTS:
        value = getattr(whole, name)
        # Nearly always; and to make a decoder for facts takes as long as several rounds.
        if type(value) is not type(default) or value != default:
            _read_again(value, type_)
    for each in whole.touched:
        slim = msgspec.structs.replace(each, data_before=None, data_after=None)
        _read_again(slim, ChangedFile)
    return whole


_SHORT_PARTS: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("is_error", bool, False),
    ("images", tuple[Image, ...], ()),
    ("data", dict[str, Any], {}),
    ("todos", tuple[Todo, ...] | None, None),
    ("notes", tuple[str, ...], ()),
    ("facts", tuple[Fact, ...], ()),
)
"""What an outcome has besides its long parts, with the type and what it is when nothing is said."""


def _read_again(value: object, type_: Any) -> None:
    """As bytes and back: what could not be read again must not get into the log."""
    _decoder(type_).decode(msgspec.json.encode(value))


@cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    # Kept: to make one takes longer than all that it reads in a round.
    return msgspec.json.Decoder(type_)


def refused(
    call_uid: CallUid,
    node: NodeId,
    text: str,
    *,
    status: str,
    data: Mapping[str, Any] | None = None,
    duration_ms: int = 0,
) -> ToolComplete:
    """The fact of a call that did not run, or whose end we did not see."""
    result = ToolResult(
        call_uid=call_uid,
        text=clean_text(text),
        is_error=True,
        # The callers pass the literals of ToolResult.status.
        status=status,  # type: ignore[arg-type]
        data=dict(data or {}),
    )
    return ToolComplete(
        call_uid=call_uid, node=node, result=result, is_error=True, duration_ms=duration_ms
    )


def denial(resolved: PermissionResolved | QuestionAnswered) -> str:
    """What the model reads of a call that was not allowed."""
    reason = resolved.reason if isinstance(resolved, PermissionResolved) else ""
    if resolved.by == "weft":
        return f"Denied: {reason}."
    return "Denied by the user." + (f" They said: {reason}" if reason else "")


def _within(text: str, limit: int) -> tuple[str, bytes | None]:
    """The text cut to `limit` characters in the middle, and the whole of it where it was cut."""
    if len(text) <= limit:
        return text, None
    # The middle is left out: a log begins with what was run and ends with how it ended, and one of
    # the two is what the model needs.
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out} characters left out …]\n{tail}", text.encode()


def touched_facts(
    changes: Iterable[ChangedFile], call_uid: CallUid | None, blobs: dict[BlobId, bytes]
) -> list[FileTouched]:
    """The facts of what a call changed; what has to be kept for them is added to `blobs`."""
    facts: list[FileTouched] = []
    for touched in changes:
        if touched.before is not None and touched.data_before is not None:
            blobs[touched.before] = touched.data_before
        if touched.after is not None and touched.data_after is not None:
            blobs[touched.after] = touched.data_after
        facts += [
            FileTouched(path=path, action="created", mode_after=mode, call_uid=call_uid)
            for path, mode in touched.folders
        ]
        facts.append(
            FileTouched(
                path=touched.path,
                action=touched.action,
                before=touched.before,
                after=touched.after,
                call_uid=call_uid,
                mode_before=touched.mode_before,
                mode_after=touched.mode_after,
                missing=touched.missing,
                is_certain=touched.is_certain,
            )
        )
    return facts


def _blob(blobs: dict[BlobId, bytes], data: bytes) -> BlobId:
    blob_id = BlobId(sha256(data).hexdigest())
    blobs[blob_id] = data
    return blob_id
