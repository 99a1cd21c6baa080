"""Decisions about what happens with no user there: waits that are over, scheduled prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from weft.errors import SessionBusy, UsageError
from weft.events import (
    Fact,
    InputQueued,
    InputRemoved,
    InputScheduled,
    NewMessage,
    ScheduleEnded,
    ScheduleFired,
)
from weft.ids import EntryId, ScheduleId, WaitId, new_id, new_node_id
from weft.loop import promote, revision_of, tip_after, woken_fact
from weft.messages import Node, Part
from weft.session.commands import BeginWait, CancelWait, ScheduleInput, WakeTurn
from weft.session.decide.base import DecidedCommand, DecisionContext, UnattendedCommand
from weft.session.decide.prompts import (
    clean_parts,
    come_back,
    resume_choice,
    start_at_head,
    with_turn,
)
from weft.session.unattended_seal import schedule_words
from weft.state import OpenSchedule, SessionState

MOST_SCHEDULES: Final = 100
"""Schedules of one session; one more is refused."""
FURTHEST_SECONDS: Final = 366 * 24 * 3600.0
LEAST_EVERY_SECONDS: Final = 10.0
"""A round is a turn: more often it would never be idle."""


def decide_unattended(
    command: UnattendedCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command about schedules and waits does."""
    match command:
        case ScheduleInput():
            return _schedule(command, state, context)
        case BeginWait():
            return _begin_wait(state, context)
        case CancelWait(wait_id=wait_id):
            return _cancel(wait_id, state)
        case WakeTurn():
            return _wake(state, context)
        case _:
            assert_never(command)


# -- made and ended


def _schedule(
    command: ScheduleInput, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    parts = clean_parts(command.parts)
    _refuse(command, state, has_words=bool(parts), now=context.now)
    schedule_id = ScheduleId(new_id("sch", context.now))
    scheduled = InputScheduled(
        schedule_id=schedule_id,
        due=command.due,
        parts=parts,
        every=command.every,
        max_rounds=command.max_rounds,
        ends=command.ends,
        options=command.options,
        by=command.client,
    )
    permission = context.sealed(schedule_id, schedule_words(scheduled))
    if permission is None:
        raise UsageError("this session cannot be sent anything later: no key can be kept for it")
    scheduled = msgspec.structs.replace(scheduled, permission=permission)
    return DecidedCommand(facts=(scheduled,), answer=schedule_id)


def _refuse(command: ScheduleInput, state: SessionState, *, has_words: bool, now: float) -> None:
    """Refuse what could never be sent.

    Raises:
        UsageError: it could not.
    """
    if not has_words:
        raise UsageError("there is nothing to send: the message is empty")
    if state.about.parent is not None:
        raise UsageError("an agent's session is sent nothing later; schedule it in its parent")
    if len(state.schedules.open) >= MOST_SCHEDULES:
        raise UsageError(f"{MOST_SCHEDULES} prompts are scheduled here already; cancel some")
    if command.due < now - 1:
        raise UsageError("that time is over; name one that is still to come")
    if command.due > now + FURTHEST_SECONDS:
        raise UsageError("a prompt is sent within a year at most: name a time within it")
    if command.every is not None and command.every < LEAST_EVERY_SECONDS:
        raise UsageError(f"rounds are at least {LEAST_EVERY_SECONDS:g} seconds apart")
    if command.max_rounds is not None and command.max_rounds < 1:
        raise UsageError("max_rounds is 1 or more")
    if command.ends is not None and command.ends < command.due:
        raise UsageError("it ends before its first round; name a later end, or an earlier time")


def _begin_wait(state: SessionState, context: DecisionContext) -> DecidedCommand:
    """A turn that is asleep: its start and its wait are one append, and no model is asked."""
    if context.running or state.turn.open is not None or context.waited is None:
        raise SessionBusy(state.session_id, "wait for something")
    if state.tree.head is None:
        raise UsageError("there is nothing to go on with yet: send a message first")
    wait_id = WaitId(new_id("wai", context.now))
    started = start_at_head(state, context)
    waited = context.waited
    seal = context.sealed_plainly(wait_id, waited.on.place) if waited.permission else None
    waiting = msgspec.structs.replace(
        waited, wait_id=wait_id, turn_id=started.turn_id, unattended=seal
    )
    return DecidedCommand(facts=(started, waiting), answer=wait_id, then="start_asleep")


def _cancel(wait_id: str, state: SessionState) -> DecidedCommand:
    wait = state.turn.asleep
    if wait is not None and wait.wait_id == wait_id:
        return DecidedCommand(facts=(woken_fact(wait, "cancelled"),), answer=True)
    if (schedule := state.schedules.open.get(ScheduleId(wait_id))) is not None:
        name = schedule.scheduled.schedule_id
        ended = ScheduleEnded(schedule_id=name, reason="cancelled")
        # The round that waits behind a turn has not been sent yet.
        queued = schedule.entry_id if schedule.entry_id in state.queue.entries else None
        removed = () if queued is None else (InputRemoved(entry_id=queued),)
        return DecidedCommand(facts=(ended, *removed), answer=True)
    return DecidedCommand(answer=False)


# -- what is due


def _wake(state: SessionState, context: DecisionContext) -> DecidedCommand:
    # Of those who find the same session due, one after the other comes here: the first sets the
    # turn to work, for all others it is at work already.
    if not context.running and state.turn.wait is not None:
        return DecidedCommand(answer=True, then="start_turn")
    turn = state.turn.open
    if not context.running and turn is not None and resume_choice(state) == "auto":
        plan = come_back(state, context, by_itself=True)
        return msgspec.structs.replace(plan, answer=plan.then == "go_on")
    if not context.running and state.goal.is_active:
        from weft.session.decide.goals import wake_goal  # few sessions have a goal

        return wake_goal(state, context)
    return _due(state, context)


def _due(state: SessionState, context: DecisionContext) -> DecidedCommand:
    """Begin the round that is due longest: a turn of its own, or a follow-up where one runs."""
    ended = tuple(
        ScheduleEnded(schedule_id=each.scheduled.schedule_id, reason="ended")
        for each in state.schedules.overdue(context.now)
        if each.is_over(context.now)
    )
    schedule = next((each for each in _startable(state, context)), None)
    if schedule is None:
        return DecidedCommand(facts=ended, answer=False)
    if context.running or state.turn.open is not None:
        plan = _queued(schedule, state, context)
    else:
        plan = _started(schedule, state, context)
    # A round that its process left open goes on, once for each time that one is due: a round that
    # kills its process would otherwise do so without end.
    left = not context.running and state.schedules.running is not None
    then = "go_on" if left else plan.then
    return msgspec.structs.replace(plan, facts=(*ended, *plan.facts), answer=True, then=then)


def _startable(state: SessionState, context: DecisionContext) -> Sequence[OpenSchedule]:
    return [
        each
        for each in state.schedules.overdue(context.now)
        if not each.is_over(context.now)
        and _is_sealed(each.scheduled, context)
        and (each.entry_id not in state.queue.entries or not _is_busy(state, context))
    ]


def _is_sealed(scheduled: InputScheduled, context: DecisionContext) -> bool:
    said = schedule_words(scheduled)
    return context.is_sealed(scheduled.schedule_id, scheduled.permission, said)


def _is_busy(state: SessionState, context: DecisionContext) -> bool:
    return context.running or state.turn.open is not None


def _queued(
    schedule: OpenSchedule, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    scheduled = schedule.scheduled
    entry_id = EntryId(new_id("ent", context.now))
    fired = _fired(schedule, context.now, entry_id)
    queued = InputQueued(
        entry_id=entry_id,
        delivery="follow_up",
        parts=scheduled.parts,
        options=scheduled.options,
    )
    return DecidedCommand(facts=(fired, queued, *_end_after(schedule, fired)), answer=True)


def _started(
    schedule: OpenSchedule, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    scheduled, fired = schedule.scheduled, _fired(schedule, context.now)
    entry = state.queue.entries.get(schedule.entry_id) if schedule.entry_id else None
    facts: list[Fact] = [fired, *promote(state, (), context.now, follow_up=entry)]
    if entry is None:
        # What was queued for the round before says the same: it is sent once.
        facts.append(NewMessage(node=_message(scheduled.parts, facts, state, context.now)))
    facts += _end_after(schedule, fired)
    return with_turn(facts, tip_after(state, facts), scheduled.options, state, context)


def _message(
    parts: tuple[Part, ...], before: Sequence[Fact], state: SessionState, now: float
) -> Node:
    parent = tip_after(state, before)
    return Node(
        id=new_node_id(now),
        role="user",
        parts=parts,
        parent=parent,
        parent_revision=revision_of(state, parent),
    )


def _fired(schedule: OpenSchedule, now: float, entry_id: EntryId | None = None) -> ScheduleFired:
    return ScheduleFired(
        schedule_id=schedule.scheduled.schedule_id,
        round=schedule.rounds + 1,
        due=schedule.due,
        missed=schedule.missed(now),
        entry_id=entry_id,
    )


def _end_after(schedule: OpenSchedule, fired: ScheduleFired) -> tuple[ScheduleEnded, ...]:
    """The end of a schedule whose last round this was."""
    scheduled, following = schedule.scheduled, schedule.after(fired)
    if scheduled.every is None:
        reason = "done"
    elif scheduled.max_rounds is not None and following.rounds >= scheduled.max_rounds:
        reason = "max_rounds"
    elif scheduled.ends is not None and following.due > scheduled.ends:
        reason = "ended"
    else:
        return ()
    return (ScheduleEnded(schedule_id=scheduled.schedule_id, reason=reason),)
