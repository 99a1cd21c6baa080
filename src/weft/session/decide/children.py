"""Decisions about what sessions that work for this one send: their ends, and their requests."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.errors import UsageError
from weft.events import Fact, InputQueued, PermissionResolved
from weft.ids import EntryId, SessionId, new_id
from weft.loop import Commit, child_finished
from weft.session.commands import ForwardRequest, ReportChild
from weft.state import ChildSession, SessionState

LONGEST_TEXT: Final = 2_000
"""Characters of a child's answer that the parent's record keeps.

The whole is in the child's own.
"""


def child_end(state: SessionState, report: ReportChild) -> tuple[Fact, ...]:
    """The facts with which a child's end goes on the record.

    None when it is there already, or the child is none of this session's.
    """
    known = state.children.known.get(report.child)
    if known is not None and report.is_late:
        return _used_late(state, known, report)
    # Recovery, or a run that another process resumed, may have been first.
    if known is None or not known.is_open:
        return ()
    ended = child_finished(
        state,
        report.child,
        report.reason,
        report.used,
        text=report.text[:LONGEST_TEXT],
        descendants=report.descendants,
    )
    return (*report.files, ended)


def _used_late(state: SessionState, known: ChildSession, report: ReportChild) -> tuple[Fact, ...]:
    """What a child used after its end; how it ended stays as it was."""
    # One without an end on record is followed, and its end says what it used.
    if known.reason is None:
        return ()
    ended = child_finished(state, report.child, known.reason, report.used)
    return (ended,) if ended.models else ()


def decide_report(state: SessionState, report: ReportChild, now: float) -> Commit:
    """The end of a child, with what the model is to read of it."""
    facts = child_end(state, report)
    # Its end is on record already, and the model must not read of it twice.
    if not facts or not report.message:
        return Commit(facts=facts)
    note = InputQueued(
        entry_id=EntryId(new_id("ent", now)), delivery="steering", parts=report.message
    )
    return Commit(facts=(*facts, note))


def decide_forward(state: SessionState, command: ForwardRequest) -> Commit:
    """A request of a child, or its answer, as the record of this session shows it.

    Raises:
        UsageError: no such child works for this session.
    """
    known = state.children.known.get(command.child)
    if known is None or not known.is_open:
        raise UsageError(f"no session {command.child!r} works for this one")
    if command.answer is not None:
        return _settled(state, command)
    request = command.request
    if request is None or request.child != command.child:
        raise UsageError("a request that is passed on names the session that it is of")
    open_or_answered = state.turn.requests.keys() | {
        answered.request.request_id for answered in state.turn.answers.values()
    }
    has_no_reader = state.turn.open is None and not request.outlives_turn
    if request.request_id in open_or_answered or has_no_reader:
        return Commit(facts=())
    return Commit(facts=(_unmarked(request),))


def _settled(state: SessionState, command: ForwardRequest) -> Commit:
    """The child's request was settled at the child: it is settled with the parent too."""
    answer = command.answer
    asked = state.turn.requests.get(answer.request_id) if answer is not None else None
    if answer is None or asked is None or asked.child != command.child:
        return Commit(facts=())
    if isinstance(answer, PermissionResolved):
        # What the user grants to the child is granted to it alone.
        answer = msgspec.structs.replace(answer, pattern="", rules=())
    return Commit(facts=(_unmarked(answer),))


def _unmarked(fact: Fact) -> Fact:
    """Without the marks of the child's log: the parent's stamps its own."""
    return msgspec.structs.replace(fact, session_id=SessionId(""), seq=0, at=0.0, cause=None)
