"""Limits of a tree of agents, a root session and all that work for it: how many, how deep, at what
cost.

Nothing is counted twice and nothing is kept that the logs do not have: what the tree has spent is
the root's ledger, which holds every finished child, and the ledgers of the children that are still
at work.  What a running turn is about to use is set aside here until it is on record, so that eight
children cannot each spend the last dollar.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from weft.ids import CallUid, NodeId, SessionId, TurnId
from weft.loop import SharedBudget, TurnLimits
from weft.messages import NOTHING_USED, Usage
from weft.session import Reserve, Settle
from weft.state import ChildSession, SessionState


class AgentLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How large a tree of agents may be."""

    depth: int = 2
    """Agents of agents: 1 lets a session have agents that have none."""
    at_once: int = 8
    in_all: int = 50
    """In one turn of the root."""


HasEnded: TypeAlias = Callable[[SessionId, TurnId], Awaitable[bool]]
"""Whether a turn is over, by the log of its session."""


async def never_ended(session_id: SessionId, turn_id: TurnId) -> bool:
    """The answer where no log can be read."""
    return False


class AgentTree(SharedBudget):
    """One root session and its descendants, as far as they are open in this process."""

    def __init__(
        self,
        root: SessionId,
        bounds: Callable[[], AgentLimits],
        limits: Callable[[], TurnLimits],
        has_ended: HasEnded = never_ended,
    ) -> None:
        """`limits` gives what the root may spend."""
        self.root = root
        self._has_ended = has_ended
        self._bounds = bounds
        self._limits = limits
        self._members: dict[SessionId, Callable[[], SessionState]] = {}
        self._at_work: set[SessionId] = set()
        self._promised: dict[SessionId, tuple[NodeId | None, set[CallUid]]] = {}
        self._held: dict[TurnId, Callable[[], Usage]] = {}
        self._foreign: dict[TurnId, SessionId] = {}
        """Of the turns that hold something, those of other processes, and whose they are."""
        self._last: dict[SessionId, Usage] = {}
        """What sessions had spent that are closed, as long as no record of their parents has it."""
        self._told: dict[SessionId, Usage] = {}
        """What sessions of other processes say they have on record; their logs are read later."""

    def join(self, session_id: SessionId, state: Callable[[], SessionState]) -> None:
        """A session of the tree is open; `state` gives its present state."""
        self._members[session_id] = state
        self._last.pop(session_id, None)

    def leave(self, session_id: SessionId) -> None:
        """It is closed."""
        # Kept, because the parent's log has nothing of it before it records the child's end; until
        # then the money must not look unspent.
        self._last[session_id] = self._spent(session_id)
        self._members.pop(session_id, None)
        self._promised.pop(session_id, None)

    # -- places

    def why_no_agent(
        self, session_id: SessionId, depth: int, node: NodeId | None, call_uid: CallUid
    ) -> str | None:
        """Why the session may have no further agent for this call; None promises it one.

        A promise holds while the calls of the same answer are looked at; the next answer's replace
        it.
        """
        bounds = self._bounds()
        if depth >= bounds.depth:
            return (
                f"agents can be nested {bounds.depth} deep and no deeper; do this yourself, "
                "with the other tools"
            )
        # The answer before is done with: those of its calls that were promised a place and not
        # permitted do not need it any more.
        if node != self._promised.get(session_id, (None, set()))[0]:
            self._promised.pop(session_id, None)
        # All calls of an answer are prepared before the first child begins. Without promises each
        # of them would be given the last place.
        promised = sum(len(calls) for _, calls in self._promised.values())
        if len(self._at_work) + promised >= bounds.at_once:
            return (
                f"{bounds.at_once} agents are at work already, which is the limit; "
                "wait for one to end, then call again"
            )
        if self.count() + promised >= bounds.in_all:
            return (
                f"{bounds.in_all} agents have been started for this task, which is the limit; "
                "continue without further ones"
            )
        self._promised.setdefault(session_id, (node, set()))[1].add(call_uid)
        return None

    def enter(self, session_id: SessionId, call_uid: CallUid | None, child: SessionId) -> None:
        """An agent begins to work."""
        if call_uid is not None and session_id in self._promised:
            self._promised[session_id][1].discard(call_uid)
        self._at_work.add(child)

    def exit(self, child: SessionId) -> None:
        """It has ended, or this process does not wait for it any more."""
        self._at_work.discard(child)

    def is_at_work(self, child: SessionId) -> bool:
        """True while this process follows it to its end."""
        return child in self._at_work

    def count(self) -> int:
        """The agents that were started in the root's present turn, and by them."""
        root = self._members.get(self.root)
        if root is None:
            return 0
        state = root()
        return sum(
            self._count_with(child, about)
            for child, about in state.children.known.items()
            if about.turn_id == state.children.turn_id
        )

    def descendants(self, session_id: SessionId) -> int:
        """The agents below a session."""
        state = self._members.get(session_id)
        if state is None:
            return 0
        return sum(
            self._count_with(child, about) for child, about in state().children.known.items()
        )

    def _count_with(self, child: SessionId, about: ChildSession) -> int:
        below = self.descendants(child) if about.is_open else about.descendants
        return below + (about.purpose == "agent")

    # -- money

    @property
    def is_limited(self) -> bool:
        limits = self._limits()
        return limits.max_budget_usd is not None or limits.max_tokens is not None

    def spent(self) -> Usage:
        """What the whole tree has on record."""
        return self._spent(self.root)

    def _spent(self, session_id: SessionId) -> Usage:
        member, told = self._members.get(session_id), self._told.get(session_id, NOTHING_USED)
        if member is None:
            return _larger(self._last.get(session_id, NOTHING_USED), told)
        state = member()
        total = state.ledger.total
        for child, about in state.children.known.items():
            # Less what the parent has counted already: a child that was stopped and goes on is open
            # again, and one that has ended may work on for the user.
            spent, counted = self._spent(child), sum(about.counted.values(), NOTHING_USED)
            if about.is_open or spent.total_tokens > counted.total_tokens:
                total += spent - counted
            else:
                self._last.pop(child, None)
                self._told.pop(child, None)
        return _larger(total, told)

    def refuses(self, turn_id: TurnId, pending: Usage, *, is_priced: bool) -> str | None:
        limits = self._limits()
        # Without the share of this turn itself: that is what it is asking for.
        others = (held() for turn, held in self._held.items() if turn != turn_id)
        used = self.spent() + pending + sum(others, NOTHING_USED)
        if limits.max_tokens is not None and used.total_tokens >= limits.max_tokens:
            return (
                f"the limit of {limits.max_tokens} tokens, for all its agents together, is reached"
            )
        if limits.max_budget_usd is None:
            return None
        if used.cost_usd is None or not is_priced:
            return (
                "a model's price is unknown, so the money budget of the session it works for "
                "cannot be kept"
            )
        if used.cost_usd >= limits.max_budget_usd:
            return (
                f"the budget of ${limits.max_budget_usd:g}, for all its agents together, is used up"
            )
        return None

    def hold(self, turn_id: TurnId, outstanding: Callable[[], Usage]) -> None:
        self._held[turn_id] = outstanding

    def release(self, turn_id: TurnId) -> None:
        self._held.pop(turn_id, None)
        self._foreign.pop(turn_id, None)

    async def refusal(self, turn_id: TurnId, pending: Usage, *, is_priced: bool) -> str | None:
        why = self.refuses(turn_id, pending, is_priced=is_priced)
        if why is None or not self._foreign:
            return why
        # Before money is refused that a dead process may only seem to hold.
        for turn, session_id in list(self._foreign.items()):
            if turn != turn_id and await self._has_ended(session_id, turn):
                self.release(turn)
        return self.refuses(turn_id, pending, is_priced=is_priced)

    async def reserve(
        self,
        turn_id: TurnId,
        pending: Usage,
        outstanding: Callable[[], Usage],
        *,
        is_priced: bool,
    ) -> str | None:
        why = await self.refusal(turn_id, pending, is_priced=is_priced)
        # Nothing may wait between the look and this: another turn would be given the same money.
        if why is None:
            self.hold(turn_id, outstanding)
        return why

    async def answer(self, command: Reserve | Settle) -> str:
        """What a session of the tree gets that lives in another process: why it may not make a
        model call, or nothing.
        """
        if isinstance(command, Settle):
            self.release(command.turn_id)
            return ""
        self.tell(command.child, command.total)
        if not self.is_limited:
            return ""
        turn_id, session_id = command.turn_id, command.session or command.child
        # A session has one turn at a time: what its earlier ones held is free, though the word that
        # they are over was lost.
        for turn in [turn for turn, whose in self._foreign.items() if whose == session_id]:
            if turn != turn_id:
                self.release(turn)
        why = await self.refusal(turn_id, command.pending, is_priced=command.is_priced)
        if why is None and command.share is not None:
            share = command.share
            self.hold(
                turn_id, lambda: NOTHING_USED if self._is_over(session_id, turn_id) else share
            )
            self._foreign[turn_id] = session_id
        return why or ""

    def tell(self, session_id: SessionId, total: Usage) -> None:
        """A session of another process has so much on record."""
        self._told[session_id] = total

    def _is_over(self, session_id: SessionId, turn_id: TurnId) -> bool:
        member = self._members.get(session_id)
        return member is not None and member().turn.last_turn == turn_id


def _larger(one: Usage, other: Usage) -> Usage:
    """What is known later: what a session has used never becomes less."""
    return max(one, other, key=lambda usage: usage.total_tokens)
