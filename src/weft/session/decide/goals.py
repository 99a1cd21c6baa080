"""Decisions about a goal: set, changed, paused, ended; and what comes next for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, Literal, assert_never

import msgspec

from weft.errors import UsageError
from weft.events import (
    Fact,
    GoalChecked,
    GoalEnded,
    GoalPaused,
    GoalSet,
    HeadMoved,
    NewMessage,
    Rewound,
    SessionRestarted,
    UnattendedPermission,
)
from weft.ids import GoalId, new_id, new_node_id
from weft.loop import revision_of
from weft.messages import Node, Text
from weft.permissions import ToolAction, grant_pattern
from weft.session.commands import ClearGoal, EditGoal, PauseGoal, ResumeGoal, SetGoal
from weft.session.decide.base import DecidedCommand, DecisionContext, GoalCommand
from weft.session.decide.prompts import with_turn
from weft.session.goal_text import NO_SANDBOX, round_text, round_typed
from weft.session.unattended_seal import goal_words
from weft.state import GOAL_OPTION, GOAL_TIMED, SessionGoal, SessionState

MOST_ROUNDS: Final = 25
"""Rounds of a goal where nothing else is said."""
MOST_IDLE: Final = 2
"""Rounds in a row without progress that end a goal."""
MOST_RESTARTS: Final = 3
RESTARTS_SECONDS: Final = 3600.0
"""A goal goes on by itself in another process so often in so long: one that kills its process must
not do so without end."""
LONGEST_TEXT: Final = 20_000
LONGEST_CHECK: Final = 2_000
_RESTARTED: Final = SessionRestarted(reason="the goal goes on after its process ended")
_LEFT: Final = SessionRestarted(reason="the process that worked for its goal has ended")
_MOVES: Final[frozenset[type[Fact]]] = frozenset({HeadMoved, Rewound})
NO_GOAL: Final = "there is no goal here; `/goal TEXT --check CMD` or `weft goal` sets one"


def decide_goal(
    command: GoalCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a command about the goal does.

    Raises:
        UsageError: it cannot be done; nothing happens.
    """
    match command:
        case SetGoal():
            return _set(command, state, context)
        case EditGoal():
            return _edit(command, state, context)
        case PauseGoal():
            return _pause(state)
        case ResumeGoal():
            return _resume(command, state, context)
        case ClearGoal():
            return _clear(state)
        case _:
            assert_never(command)


# -- set and changed


def _set(command: SetGoal, state: SessionState, context: DecisionContext) -> DecidedCommand:
    if state.about.parent is not None:
        raise UsageError("an agent's session has no goal of its own; set it in its parent")
    if state.goal.is_open:
        raise UsageError("there is a goal here already; edit it, or clear it first")
    goal = GoalSet(
        goal_id=GoalId(new_id("gol", context.now)),
        text=command.text.strip(),
        check=command.check.strip(),
        judge=command.judge.strip(),
        max_budget_usd=command.max_budget_usd,
        max_seconds=command.max_seconds,
        max_rounds=MOST_ROUNDS if command.max_rounds is None else command.max_rounds,
        by=command.client,
    )
    goal = _sealed(goal, state, context, outside_sandbox=command.outside_sandbox)
    if context.running or state.turn.open is not None:
        return DecidedCommand(facts=(goal,), answer=goal.goal_id)
    # As it will be: the first round is in one append with the goal.
    stands = SessionGoal()
    stands.cost_before = state.ledger.total.cost_usd or 0.0
    return _round(goal, stands, (goal,), state, context, answer=goal.goal_id)


def _edit(command: EditGoal, state: SessionState, context: DecisionContext) -> DecidedCommand:
    old = _open_goal(state)
    changed: dict[str, Any] = {
        name: value.strip() if isinstance(value, str) else value
        for name in ("text", "check", "judge", "max_budget_usd", "max_seconds", "max_rounds")
        if (value := getattr(command, name)) is not None
    }
    if not changed:
        raise UsageError("nothing is changed: name a text, a check, a judge or a limit")
    goal = msgspec.structs.replace(
        old,
        **changed,
        revision=old.revision + 1,
        permission=None,
        by=command.client,
        at=0.0,
        cause=None,
    )
    keeps = _given(old, context)
    is_same = goal.check == old.check
    may_leave = command.outside_sandbox or (is_same and _is_granted(old, keeps))
    goal = _sealed(goal, state, context, outside_sandbox=may_leave, keeps=keeps)
    return DecidedCommand(facts=(goal,), answer=goal.goal_id)


def _again(goal: GoalSet, client: str) -> GoalSet:
    """The next revision, without what was given to this one."""
    return msgspec.structs.replace(
        goal, revision=goal.revision + 1, permission=None, by=client, at=0.0, cause=None
    )


def _open_goal(state: SessionState) -> GoalSet:
    if state.goal.goal is None or not state.goal.is_open:
        raise UsageError(NO_GOAL)
    return state.goal.goal


def _sealed(
    goal: GoalSet,
    state: SessionState,
    context: DecisionContext,
    *,
    outside_sandbox: bool,
    keeps: UnattendedPermission | None = None,
) -> GoalSet:
    """The goal with what it may do.

    Raises:
        UsageError: it can never be worked for, or its check may not run.
    """
    _refuse(goal, state)
    besides = keeps or UnattendedPermission()
    if keeps is not None and not outside_sandbox:
        kept = tuple(each for each in keeps.grants if each != check_grant(goal.check))
        besides = msgspec.structs.replace(keeps, grants=kept)
    if goal.check and not context.is_sandboxed:
        if not outside_sandbox:
            raise UsageError(
                f"{NO_SANDBOX}: `{goal.check}` would run with all your rights, each round; say "
                "--outside-sandbox to allow that"
            )
        grants = (*besides.grants, check_grant(goal.check))
        besides = msgspec.structs.replace(besides, grants=grants)
    permission = context.sealed(goal.goal_id, goal_words(goal), besides)
    if permission is None:
        raise UsageError("this session cannot have a goal: no key can be kept for it")
    return msgspec.structs.replace(goal, permission=permission)


def _refuse(goal: GoalSet, state: SessionState) -> None:
    if not goal.text:
        raise UsageError("a goal needs a text: what is to be reached")
    if not goal.check and not goal.judge:
        raise UsageError("a goal needs a check (--check CMD) or a judge (--judge MODEL)")
    if len(goal.text) > LONGEST_TEXT or len(goal.check) > LONGEST_CHECK:
        raise UsageError(
            f"a goal has {LONGEST_TEXT} characters at most, and its check {LONGEST_CHECK}"
        )
    if state.settings.permission_mode == "plan":
        raise UsageError("plan mode changes nothing; switch to another mode for a goal")
    for name in ("max_budget_usd", "max_seconds", "max_rounds"):
        limit = getattr(goal, name)
        if limit is not None and not (math.isfinite(limit) and limit > 0):
            raise UsageError(f"{name} is more than 0, not {limit:g}")


def check_grant(check: str) -> str:
    """What allows the check of a goal where there is no sandbox."""
    return grant_pattern(ToolAction(tool="shell", kind="run", target=check))


def _given(goal: GoalSet, context: DecisionContext) -> UnattendedPermission | None:
    """What was given to a goal, where the seal on it is this user's."""
    is_ours = context.is_sealed(goal.goal_id, goal.permission, goal_words(goal))
    return goal.permission if is_ours else None


def _is_granted(goal: GoalSet, given: UnattendedPermission | None) -> bool:
    return given is not None and check_grant(goal.check) in given.grants


# -- paused, gone on with, ended


def paused_fact(goal: GoalSet, reason: str, detail: str = "") -> GoalPaused:
    """The fact that pauses a goal."""
    return GoalPaused(goal_id=goal.goal_id, reason=reason, detail=detail)


def _pause(state: SessionState) -> DecidedCommand:
    goal = _open_goal(state)
    if not state.goal.is_active:
        return DecidedCommand(answer=False)
    return DecidedCommand(facts=(paused_fact(goal, "user"),), answer=True)


def _resume(command: ResumeGoal, state: SessionState, context: DecisionContext) -> DecidedCommand:
    goal, facts = _open_goal(state), list[Fact]()
    if _given(goal, context) is None:
        # The user is here, and gives it what the session may do now.
        fresh = _again(goal, command.client)
        facts.append(_sealed(fresh, state, context, outside_sandbox=command.outside_sandbox))
    is_news = not state.goal.is_active
    is_left = not is_news and not context.running
    if is_left:
        # Its process is gone: the time since then was not worked.
        facts.append(_RESTARTED)
    if is_news or is_left:
        facts.append(GoalPaused(goal_id=goal.goal_id, paused=False, reason="user"))
    plan = DecidedCommand(facts=tuple(facts), answer=is_news)
    return plan if context.running else msgspec.structs.replace(plan, then=_continued(state))


def _clear(state: SessionState) -> DecidedCommand:
    if not state.goal.is_open or state.goal.goal is None:
        return DecidedCommand(answer=False)
    ended = GoalEnded(goal_id=state.goal.goal.goal_id, reason="cleared")
    return DecidedCommand(facts=(ended,), answer=True)


def goal_facts(facts: Sequence[Fact], state: SessionState, *, was_left: bool) -> tuple[Fact, ...]:
    """Facts with what they mean for the active goal: it is paused when the conversation goes
    elsewhere; with `was_left`, no process has worked for it until now.
    """
    goal, kinds = state.goal.goal, set(map(type, facts))
    assert goal is not None
    is_first = was_left and SessionRestarted not in kinds and not GOAL_TIMED.isdisjoint(kinds)
    before = (_LEFT,) if is_first else ()
    behind = () if _MOVES.isdisjoint(kinds) else (paused_fact(goal, "moved"),)
    return (*before, *facts, *behind)


# -- what comes next


def next_step(state: SessionState, context: DecisionContext) -> DecidedCommand | None:
    """What is done for the goal now, with no turn at work; None for nothing."""
    stands, goal = state.goal, state.goal.goal
    if goal is None or not stands.is_active or context.running or state.turn.open is not None:
        return None
    if _given(goal, context) is None:
        return DecidedCommand(facts=(paused_fact(goal, "unsealed"),))
    if (end := time_is_over(goal, stands, context.now)) is not None:
        return DecidedCommand(facts=(end,))
    if stands.trouble:
        reason = "stopped" if stands.trouble.startswith("aborted") else "failed"
        return DecidedCommand(facts=(paused_fact(goal, reason, _trouble(stands.trouble)),))
    if stands.next == "check":
        return DecidedCommand(then="check")
    if (stop := _budget_is_used(goal, stands, state)) is not None:
        return DecidedCommand(facts=(stop,))
    return _round(goal, stands, (), state, context)


def _trouble(said: str) -> str:
    word, _, detail = said.partition(": ")
    return detail if word == "aborted" else f"its turn ended with {word}: {detail}".rstrip(": ")


def time_is_over(goal: GoalSet, stands: SessionGoal, now: float) -> GoalEnded | None:
    """The end of a goal that was worked for as long as it may be."""
    if goal.max_seconds is None or stands.elapsed(now) < goal.max_seconds:
        return None
    detail = f"{stands.elapsed(now):.0f} of {goal.max_seconds:g} seconds were worked"
    return GoalEnded(goal_id=goal.goal_id, reason="max_time", detail=detail)


def _budget_is_used(goal: GoalSet, stands: SessionGoal, state: SessionState) -> Fact | None:
    spent = (state.ledger.total.cost_usd or 0.0) - stands.cost_before
    if goal.max_budget_usd is not None and spent >= goal.max_budget_usd:
        detail = f"${spent:.2f} of ${goal.max_budget_usd:g} was used"
        return GoalEnded(goal_id=goal.goal_id, reason="max_budget", detail=detail)
    # Another budget is used up: the next round would end before its first call.
    if state.turn.last_turn == stands.last_turn and state.turn.last_reason == "max_budget":
        return paused_fact(goal, "failed", state.turn.last_detail)
    return None


def ends_after(stands: SessionGoal, checked: GoalChecked, note: str = "") -> tuple[Fact, ...]:
    """The end of a goal that comes with a check."""
    goal, detail = stands.goal, ""
    assert goal is not None
    if checked.done:
        reason, detail = "done", note
    elif not checked.progress and stands.idle + 1 >= MOST_IDLE:
        reason = "no_progress"
    elif stands.rounds >= goal.max_rounds:
        reason = "max_rounds"
    else:
        return ()
    return (GoalEnded(goal_id=goal.goal_id, reason=reason, detail=detail),)


def _round(
    goal: GoalSet,
    stands: SessionGoal,
    before: Sequence[Fact],
    state: SessionState,
    context: DecisionContext,
    answer: Any = None,
) -> DecidedCommand:
    """The message of a round and its turn, in one append."""
    number = stands.rounds + 1
    parent = state.tree.head
    node = Node(
        id=new_node_id(context.now),
        role="user",
        parts=(Text(text=round_text(goal, stands, number), typed=round_typed(goal, number)),),
        parent=parent,
        parent_revision=revision_of(state, parent),
    )
    options: dict[str, Any] = {GOAL_OPTION: goal.goal_id}
    if goal.max_budget_usd is not None:
        options["max_budget_usd"] = _dollars(goal.max_budget_usd + stands.cost_before, state)
    facts = (*before, NewMessage(node=node))
    plan = with_turn(facts, node.id, options, state, context)
    return plan if answer is None else msgspec.structs.replace(plan, answer=answer)


def _dollars(limit: float, state: SessionState) -> float:
    """The limit of a turn, which counts all of the session; never above the session's own."""
    own = (state.settings.get("budget") or {}).get("max_budget_usd")
    return limit if own is None else min(limit, own)


# -- after a process that is gone


def wake_goal(state: SessionState, context: DecisionContext) -> DecidedCommand:
    """Go on with a goal that no process works for."""
    goal = state.goal.goal
    assert goal is not None
    if _given(goal, context) is None:
        return DecidedCommand(facts=(paused_fact(goal, "unsealed"),), answer=False)
    recent = [at for at in state.goal.restarts if at > context.now - RESTARTS_SECONDS]
    if len(recent) >= MOST_RESTARTS:
        detail = f"{len(recent)} times within an hour"
        return DecidedCommand(facts=(paused_fact(goal, "restarts", detail),), answer=False)
    return DecidedCommand(facts=(_RESTARTED,), answer=True, then=_continued(state))


def _continued(state: SessionState) -> Literal["goal", "go_on"]:
    return "goal" if state.turn.open is None else "go_on"
