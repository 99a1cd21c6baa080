"""Places and money of a family: counted from the logs, so that a restart forgets nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.agents.limits import AgentLimits, AgentTree, HasEnded, never_ended
from weft.events import (
    ChildFinished,
    ChildStarted,
    Fact,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from weft.ids import CallUid, NodeId, SessionId, TurnId
from weft.loop import TurnLimits
from weft.messages import NOTHING_USED, Usage
from weft.runtime.foreign_budget import ForeignBudget, TreePlaces
from weft.session import Command, Reserve, SessionPort, Settle
from weft.state import SessionState, fold

ROOT, A, B, C = (SessionId(name) for name in ("root", "a", "b", "c"))
TURN, OTHER = TurnId("t"), TurnId("u")
NODE = NodeId("n")


def state(session_id: SessionId, *facts: Fact) -> SessionState:
    return fold(facts, SessionState(session_id=session_id))


def used(tokens: int, cost: float | None = 0.0) -> UsageRecorded:
    usage = Usage(input_tokens=tokens, cost_usd=cost)
    return UsageRecorded(usage=usage, model="m")


def own(session_id: SessionId, facts: Sequence[Fact]) -> list[Fact]:
    return [msgspec.structs.replace(fact, session_id=session_id) for fact in facts]


def family(
    *states: SessionState,
    bounds: AgentLimits | None = None,
    has_ended: HasEnded = never_ended,
    **limits: float,
) -> AgentTree:
    found = AgentTree(
        ROOT,
        lambda: bounds or AgentLimits(),
        lambda: TurnLimits(**limits),  # type: ignore[arg-type]
        has_ended,
    )
    for each in states:
        found.join(each.session_id, lambda each=each: each)  # type: ignore[misc]
    return found


def member(session_id: SessionId, *facts: Fact) -> SessionState:
    return state(session_id, *own(session_id, facts))


STARTED = TurnStarted(turn_id=TURN)


def test_what_a_family_spent_is_the_roots_ledger_and_those_still_at_work() -> None:
    root = member(
        ROOT,
        STARTED,
        used(1),
        ChildStarted(child=A),
        ChildStarted(child=B),
        ChildFinished(child=B, reason="stop", usage=Usage(input_tokens=10, cost_usd=0.0)),
    )
    a = member(A, used(100), ChildStarted(child=C))
    b = member(B, used(10))
    c = member(C, used(1000))
    assert family(root, a, b, c).spent().input_tokens == 1 + 10 + 100 + 1000


def test_a_child_that_is_closed_counts_until_its_end_is_on_record() -> None:
    root = member(ROOT, STARTED, ChildStarted(child=A))
    a = member(A, used(100))
    found = family(root, a)
    found.leave(A)
    assert found.spent().input_tokens == 100
    done = ChildFinished(child=A, reason="stop", usage=Usage(input_tokens=100, cost_usd=0.0))
    fold(own(ROOT, [done]), root)
    assert found.spent().input_tokens == 100


def test_a_child_that_goes_on_after_an_end_is_counted_once() -> None:
    once = Usage(input_tokens=100, cost_usd=0.0)
    root = member(
        ROOT,
        STARTED,
        ChildStarted(child=A),
        ChildFinished(child=A, reason="aborted", usage=once, models={"m": once}),
        ChildStarted(child=A),
    )
    a = member(A, used(100), used(40))
    assert family(root, a).spent().input_tokens == 140


def test_what_others_are_about_to_use_is_as_good_as_spent() -> None:
    found = family(member(ROOT, STARTED, used(60)), max_tokens=100)
    assert found.refuses(TURN, NOTHING_USED, is_priced=True) is None
    found.hold(OTHER, lambda: Usage(input_tokens=50, cost_usd=0.0))
    why = found.refuses(TURN, NOTHING_USED, is_priced=True)
    assert why is not None
    assert "100 tokens" in why
    assert found.refuses(OTHER, NOTHING_USED, is_priced=True) is None, "not what it holds itself"
    found.release(OTHER)
    assert found.refuses(TURN, NOTHING_USED, is_priced=True) is None


def reserve(total: int, share: int | None = None) -> Reserve:
    return Reserve(
        child=A,
        turn_id=OTHER,
        total=Usage(input_tokens=total, cost_usd=0.0),
        pending=NOTHING_USED,
        share=None if share is None else Usage(input_tokens=share, cost_usd=0.0),
    )


@pytest.mark.anyio
async def test_a_child_of_another_process_is_counted_by_its_word_until_its_log_is_read() -> None:
    root = member(ROOT, STARTED, used(10), ChildStarted(child=A))
    a = member(A, used(20))
    found = family(root, a, max_tokens=100)
    assert await found.answer(reserve(total=50)) == ""
    assert found.spent().input_tokens == 60
    assert "100 tokens" in await found.answer(reserve(total=90))
    fold(own(A, [used(75)]), a)
    assert found.spent().input_tokens == 105, "the log is ahead by now"
    done = ChildFinished(child=A, reason="stop", usage=Usage(input_tokens=95, cost_usd=0.0))
    fold(own(ROOT, [done]), root)
    assert found.spent().input_tokens == 105, "counted once"


@pytest.mark.anyio
async def test_what_a_lost_word_left_set_aside_is_free_when_the_log_says_it_is_over() -> None:
    ended: set[TurnId] = set()

    async def has_ended(session_id: SessionId, turn_id: TurnId) -> bool:
        assert session_id == A
        return turn_id in ended

    # The child is of another process, and none of its facts are followed here.
    root = member(ROOT, STARTED, used(10), ChildStarted(child=A))
    found = family(root, max_tokens=100, has_ended=has_ended)
    assert await found.answer(reserve(total=0, share=95)) == ""
    assert await found.refusal(TURN, NOTHING_USED, is_priced=True) is not None
    ended.add(OTHER)
    assert await found.refusal(TURN, NOTHING_USED, is_priced=True) is None
    assert await found.answer(Settle(child=A, turn_id=OTHER)) == "", "late, and it changes nothing"


class ElsewhereParent(TreePlaces):
    """The parent of a session, in another process."""

    is_open = True

    def __init__(self) -> None:
        self.heard: list[Command[Any]] = []
        self.sends: list[Callable[[], Awaitable[None]]] = []

    async def call(self, command: Command[Any]) -> str:
        self.heard.append(command)
        return ""

    async def parent_port(self, parent: SessionId) -> SessionPort:
        return cast("SessionPort", self)

    def tree_with(self, session_id: SessionId, parent: SessionId) -> AgentTree | None:
        return None

    def start(self, send: Callable[[], Awaitable[None]], name: str) -> None:
        self.sends.append(send)


@pytest.mark.anyio
async def test_each_turn_that_set_something_aside_elsewhere_says_when_it_is_over() -> None:
    parent = ElsewhereParent()
    budget = ForeignBudget(parent, A, ROOT, family(member(A)))
    await budget.reserve(TURN, NOTHING_USED, lambda: NOTHING_USED, is_priced=True)
    # A session that works for this one, in a third process, asks through it.
    below = msgspec.structs.replace(reserve(total=0, share=5), child=B)
    await budget.answer(below)
    assert [each.session for each in parent.heard if isinstance(each, Reserve)] == [None, B]
    budget.release(TURN)
    await budget.answer(Settle(child=B, turn_id=OTHER))
    budget.release(OTHER)
    for send in parent.sends:
        await send()
    assert [each.turn_id for each in parent.heard if isinstance(each, Settle)] == [TURN, OTHER]


@pytest.mark.anyio
async def test_the_next_turn_of_a_child_frees_what_its_last_one_set_aside() -> None:
    root = member(ROOT, STARTED, used(10), ChildStarted(child=A))
    found = family(root, max_tokens=100)
    assert await found.answer(reserve(total=0, share=95)) == ""
    following = msgspec.structs.replace(reserve(total=0, share=20), turn_id=TurnId("trn_next"))
    assert await found.answer(following) == ""
    # Another session, that works for the child, has turns beside the child's own.
    below = msgspec.structs.replace(following, turn_id=TurnId("trn_below"), session=B)
    assert await found.answer(below) == ""
    assert await found.refusal(TURN, Usage(input_tokens=49), is_priced=True) is None
    assert await found.refusal(TURN, Usage(input_tokens=51), is_priced=True) is not None


@pytest.mark.anyio
async def test_what_a_child_of_another_process_sets_aside_is_free_when_its_turn_is_over() -> None:
    root = member(ROOT, STARTED, used(10), ChildStarted(child=A))
    a = member(A, TurnStarted(turn_id=OTHER))
    found = family(root, a, max_tokens=100)
    assert await found.answer(reserve(total=0, share=95)) == ""
    assert found.refuses(TURN, NOTHING_USED, is_priced=True) is not None
    assert await found.answer(Settle(child=A, turn_id=OTHER)) == ""
    assert found.refuses(TURN, NOTHING_USED, is_priced=True) is None
    # Its process may die before it can say so.
    assert await found.answer(reserve(total=0, share=95)) == ""
    fold(own(A, [TurnFinished(turn_id=OTHER, reason="aborted")]), a)
    assert found.refuses(TURN, NOTHING_USED, is_priced=True) is None


@pytest.mark.parametrize(
    ("spent", "is_priced", "refused"),
    [(0.5, True, None), (1.0, True, "used up"), (0.5, False, "unknown"), (None, True, "unknown")],
)
def test_a_money_budget_is_kept_and_an_unknown_price_refuses(
    spent: float | None, is_priced: bool, refused: str | None
) -> None:
    found = family(member(ROOT, STARTED, used(1, spent)), max_budget_usd=1.0)
    why = found.refuses(TURN, NOTHING_USED, is_priced=is_priced)
    assert (why is None) if refused is None else (why is not None and refused in why)


def test_without_limits_nothing_is_held_to_any() -> None:
    assert not family(member(ROOT)).is_limited
    assert family(member(ROOT), max_tokens=5).is_limited


def test_agents_are_counted_for_the_roots_turn_with_all_below_them() -> None:
    root = member(
        ROOT,
        STARTED,
        ChildStarted(child=C),
        ChildFinished(child=C, reason="stop", descendants=5),
        TurnStarted(turn_id=OTHER),
        ChildStarted(child=A),
        ChildStarted(child=B, purpose="step"),
    )
    a = member(A, ChildStarted(child=SessionId("x")))
    b = member(B, ChildStarted(child=SessionId("y")))
    assert family(root, a, b).count() == 3, (
        "a, x and y; a step is no agent, an earlier turn is over"
    )


def promise(found: AgentTree, *calls: str, node: NodeId = NODE, depth: int = 0) -> list[bool]:
    return [found.why_no_agent(ROOT, depth, node, CallUid(call)) is None for call in calls]


def test_places_are_promised_while_the_calls_of_one_answer_are_looked_at() -> None:
    found = family(member(ROOT, STARTED), bounds=AgentLimits(at_once=2))
    assert promise(found, "1", "2", "3") == [True, True, False]
    assert promise(found, "4", node=NodeId("next")) == [True], "what came of nothing is forgotten"


def test_a_place_is_taken_until_the_agent_has_ended() -> None:
    found = family(member(ROOT, STARTED), bounds=AgentLimits(at_once=1))
    assert promise(found, "1") == [True]
    found.enter(ROOT, CallUid("1"), A)
    assert found.is_at_work(A)
    assert promise(found, "2") == [False]
    found.exit(A)
    assert promise(found, "2") == [True]


@given(depth=st.integers(0, 5), bound=st.integers(0, 5))
def test_no_agent_is_deeper_than_allowed(depth: int, bound: int) -> None:
    found = family(member(ROOT, STARTED), bounds=AgentLimits(depth=bound))
    assert promise(found, "1", depth=depth) == [depth < bound]


@given(
    sizes=st.lists(st.integers(0, 100), min_size=1, max_size=6),
    ended=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_every_token_is_counted_exactly_once(sizes: list[int], ended: list[bool]) -> None:
    """A chain of sessions, each the child of the one before.

    Some ends are on record, and those of all below them then too.
    """
    names = [SessionId(f"s{i}") for i in range(len(sizes))]
    below = 0
    states: list[SessionState] = []
    for place in reversed(range(len(sizes))):
        facts: list[Fact] = [STARTED, used(sizes[place])]
        if place + 1 < len(sizes):
            facts.append(ChildStarted(child=names[place + 1]))
            if ended[place]:
                usage = Usage(input_tokens=below, cost_usd=0.0)
                facts.append(ChildFinished(child=names[place + 1], reason="stop", usage=usage))
        states.append(member(names[place], *facts))
        below += sizes[place]
    found = AgentTree(names[0], AgentLimits, TurnLimits)
    for each in states:
        found.join(each.session_id, lambda each=each: each)  # type: ignore[misc]
    assert found.spent().input_tokens == sum(sizes)


def test_a_child_that_works_on_after_its_end_counts_too() -> None:
    once = Usage(input_tokens=100, cost_usd=0.0)
    root = member(
        ROOT,
        STARTED,
        ChildStarted(child=A),
        ChildFinished(child=A, reason="stop", usage=once, models={"m": once}),
    )
    a = member(A, used(100), used(40))
    found = family(root, a)
    assert found.spent().input_tokens == 140
    found.leave(A)
    assert found.spent().input_tokens == 140
    more = Usage(input_tokens=40, cost_usd=0.0)
    late = ChildFinished(child=A, reason="stop", usage=more, models={"m": more})
    fold(own(ROOT, [late]), root)
    assert found.spent().input_tokens == 140
