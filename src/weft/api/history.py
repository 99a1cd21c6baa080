"""A line of the conversation as programs read it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import takewhile

import msgspec

from weft.ids import EntryId, NodeId
from weft.loop import LineEntry
from weft.messages import File, Image, Node, Text, Thinking, typed_text
from weft.state import QueueEntry, SessionState, combine_queue_entries_to_text
from weft.tree import TreeNote
from weft.view.snapshot import HistoryMessage


def history(line: Sequence[LineEntry], state: SessionState) -> list[tuple[str, HistoryMessage]]:
    """A whole line as programs read it: answers, each call's result behind its answer, and the
    system's notes.
    """
    return rows(line, state.tree.notes, from_start=True, excluded=state.tree.excluded)


def rows(
    line: Sequence[LineEntry],
    notes: Iterable[TreeNote],
    *,
    from_start: bool = False,
    excluded: Container[NodeId] = (),
) -> list[tuple[str, HistoryMessage]]:
    """A part of a line, with those of the notes that were said in it; `from_start`, with those from
    before the first message too.  `excluded` are the messages that no model is sent.
    """
    by_node: dict[NodeId | None, list[tuple[str, HistoryMessage]]] = {}
    for note in notes:
        by_node.setdefault(note.node, []).append(_note_row(note))
    found = by_node.get(None, []) if from_start else []
    for entry in line:
        said = _rows(entry)
        if entry.node.id in excluded:
            said = [(row, msgspec.structs.replace(each, is_excluded=True)) for row, each in said]
        found += said
        found += by_node.get(entry.node.id, [])
    return found


def notes_after(state: SessionState, seq: int) -> list[TreeNote]:
    """The notes after this fact of the session's own log, oldest first."""
    # From the end: the notes of a turn are the last ones of a list that grows with the session.
    newest = takewhile(lambda note: note.seq > seq, reversed(state.tree.notes))
    return list(newest)[::-1]


def note_id(note: TreeNote) -> str:
    """The id of a note's row."""
    return f"note_{note.seq}"


def _note_row(note: TreeNote) -> tuple[str, HistoryMessage]:
    message = HistoryMessage(
        role="system",
        content=note.text,
        is_error=note.level == "error",
        parts=(Text(text=note.text),),
        at=note.at,
    )
    return note_id(note), message


def _shown(node: Node) -> str:
    """What a message says, with pictures and files named."""
    entry = QueueEntry(entry_id=EntryId(""), delivery="steering", parts=node.parts)
    return combine_queue_entries_to_text([entry])


def _attached(node: Node) -> tuple[str, ...]:
    if not any(isinstance(part, (File, Image)) for part in node.parts):
        return ()  # as nearly all: a run without files need not load the blocks of screens
    from weft.view.blocks import attached_names

    return tuple(attached_names(node.parts))


def _rows(entry: LineEntry) -> list[tuple[str, HistoryMessage]]:
    node = entry.node
    content, typed = _shown(node), typed_text(node.parts)
    rows = [
        (
            str(node.id),
            HistoryMessage(
                role=node.role,
                content=content,
                typed=typed if typed != content and node.role == "user" else "",
                attached=_attached(node),
                tool_calls=tuple(
                    {"id": call.call_uid, "name": call.name, "args": call.args}
                    for call in node.calls
                ),
                is_partial=node.is_partial,
                thinking="".join(part.text for part in node.parts if isinstance(part, Thinking)),
                parts=node.parts,
                model=node.model,
                usage=node.usage,
                at=entry.at,
            ),
        )
    ]
    for call in node.calls:
        result = entry.results.get(call.call_uid)
        if result is not None:
            message = HistoryMessage(
                role="tool",
                content=result.text,
                tool_call_id=call.call_uid,
                is_error=result.is_error,
                diff=str(result.data.get("diff") or ""),
                output=str(result.data.get("output") or "") if result.status == "aborted" else "",
                parts=(Text(text=result.text), *result.images),
                at=entry.result_times.get(call.call_uid, 0.0),
            )
            rows.append((str(call.call_uid), message))
    return rows


def whole(text: str, said: Sequence[HistoryMessage]) -> str:
    """The model's last words in full: events carry only the beginning of very long ones."""
    last = next((each.content for each in reversed(said) if each.role == "assistant"), "")
    # A turn that failed has no words; the last ones on the line are then those of another turn.
    return last if text and last.startswith(text) else text
