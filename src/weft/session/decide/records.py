"""Decisions that only put something on record: notes, model calls outside of turns, summaries."""

from __future__ import annotations

from typing import assert_never

from weft.errors import UsageError
from weft.events import ModelCallStarted, SystemNote, UsageRecorded
from weft.ids import TurnId, new_node_id
from weft.loop import tip_after
from weft.messages import clean_text
from weft.session.commands import AddNote, BeginCall, BringOver, RecordUsage, StopBackground
from weft.session.decide.base import (
    DecidedCommand,
    DecisionContext,
    RecordCommand,
)
from weft.state import SessionState


def decide_record(
    command: RecordCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command does that neither moves the line nor starts a turn."""
    match command:
        case AddNote():
            return _add_note(command, state)
        case BringOver():
            return _bring_over(command, state)
        case BeginCall():
            return _begin_call(command, context)
        case RecordUsage():
            return _record_usage(command)
        case StopBackground():
            return _stop_background(command, state)
        case _:
            assert_never(command)


def _add_note(command: AddNote, state: SessionState) -> DecidedCommand:
    if not command.text.strip():
        raise UsageError("a note needs some text")
    note = SystemNote(
        text=clean_text(command.text),
        level=command.level,
        to_model=command.to_model,
        node=tip_after(state, ()),
    )
    return DecidedCommand(facts=(note,))


def _bring_over(command: BringOver, state: SessionState) -> DecidedCommand:
    state.tree.require(command.node)
    cleaned = clean_text(command.text)
    text = f"[What was learned on another branch of this conversation:]\n{cleaned}"
    noted = _add_note(AddNote(text=text, to_model=True), state)
    return DecidedCommand(facts=noted.facts, answer=cleaned)


def _begin_call(command: BeginCall, context: DecisionContext) -> DecidedCommand:
    """A model call that no turn makes begins."""
    # On record before it is made: should the process die, the next one counts what it cost.
    started = ModelCallStarted(
        turn_id=TurnId(""),
        node=new_node_id(context.now),
        model=command.model,
        purpose=command.purpose,
        input_tokens=command.input_tokens,
        digest=command.digest,
        exact=command.exact,
    )
    return DecidedCommand(facts=(started,), answer=started.node)


def _record_usage(command: RecordUsage) -> DecidedCommand:
    """A model call that no turn made is over."""
    used = UsageRecorded(
        usage=command.usage,
        model=command.model,
        purpose=command.purpose,
        estimated=command.estimated,
        node=command.call,
        exact=command.exact,
    )
    told = () if command.aside is None else (command.aside,)
    answer = None if command.aside is None else command.aside.answer
    return DecidedCommand(facts=(used, *told), answer=answer)


def _stop_background(command: StopBackground, state: SessionState) -> DecidedCommand:
    """No facts: the end of an agent or a command is recorded by the task that sees it."""
    if _can_be_ended(command.child, state):
        return DecidedCommand()
    if command.child not in state.children.at_work(background=True):
        raise UsageError(f"nothing runs in the background as {command.child!r}")
    return DecidedCommand()


def _can_be_ended(name: str, state: SessionState) -> bool:
    """True for a background command that runs, or that died with its program.

    A client that saw the latter listed as running wants it gone, and gets no error.
    """
    known = state.background.known.get(name)
    return known is not None and (known.end is None or known.end.why == "lost")
