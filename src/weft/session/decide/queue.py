"""Decisions about the input queue: edit, remove, reorder and recall of messages that wait."""

from __future__ import annotations

from typing import assert_never

from weft.errors import UsageError
from weft.events import InputEdited, InputRemoved, InputsReordered, QueuesRecalled
from weft.session.answers import QueuedMessages
from weft.session.commands import (
    DequeueSteering,
    EditQueued,
    RecallQueues,
    RemoveQueued,
    ReorderQueue,
)
from weft.session.decide.base import (
    DecidedCommand,
    DecisionContext,
    QueueCommand,
)
from weft.session.decide.prompts import clean_parts
from weft.state import SessionState


def decide_queue(
    command: QueueCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command about the queue does."""
    match command:
        case EditQueued():
            return _edit(command, state)
        case RemoveQueued(entry_id=entry_id):
            state.queue.require(entry_id)
            return DecidedCommand(facts=(InputRemoved(entry_id=entry_id),))
        case ReorderQueue(entries=entries):
            for entry_id in entries:
                state.queue.require(entry_id)
            return DecidedCommand(facts=(InputsReordered(entries=entries),))
        case RecallQueues():
            return _recall(state)
        case DequeueSteering():
            return _dequeue(state)
        case _:
            assert_never(command)


def _edit(command: EditQueued, state: SessionState) -> DecidedCommand:
    state.queue.require(command.entry_id)
    cleaned = clean_parts(command.parts)
    if not cleaned:
        raise UsageError("the message would be empty; remove_queued takes it away")
    return DecidedCommand(facts=(InputEdited(entry_id=command.entry_id, parts=cleaned),))


def _recall(state: SessionState) -> DecidedCommand:
    answer = QueuedMessages(
        steering=state.queue.waiting("steering"), follow_up=state.queue.waiting("follow_up")
    )
    if not state.queue.entries:
        return DecidedCommand(answer=answer)
    recalled = QueuesRecalled(entries=tuple(state.queue.entries))
    return DecidedCommand(facts=(recalled,), answer=answer)


def _dequeue(state: SessionState) -> DecidedCommand:
    waiting = state.queue.waiting("steering")
    removed = tuple(InputRemoved(entry_id=entry.entry_id) for entry in waiting)
    return DecidedCommand(facts=removed, answer=waiting)
