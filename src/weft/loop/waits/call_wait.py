"""A turn that waits: for a time, for the end of a background command or agent, for something that
is looked at; for the first of a time and one of these.

The wait is on record before it begins (`TurnWaiting`), and its end before anything follows from it
(`TurnWoken`).  So a process that dies meanwhile leaves a turn that still waits: whichever process
goes on with it finds how far the wait had come, and the turn is woken once.  What wakes it is
decided by the session's writer: the end of the command and a message stand in one append with the
fact that they end the wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.errors import ToolError
from weft.events import (
    CallPermission,
    ChildStarted,
    Fact,
    ToolComplete,
    TurnWaiting,
    UnattendedPermission,
    WaitSubject,
)
from weft.faults import FailPointPair
from weft.ids import CallUid, NodeId, SessionId, WaitId, new_id
from weft.loop.base import ToolCallEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.waits.wait_sleep import WaitSleep
from weft.loop.waits.wait_text import end_text, outcome_text, shown_time
from weft.state import SessionState
from weft.tools import ToolOutcome, WaitRequest

_WAIT = FailPointPair("loop.wait")

LONGEST_WAIT_SECONDS: Final = 7 * 24 * 3600.0
"""How far away the end of a wait may be, however it is named."""
LOOKED_FOR_SECONDS: Final = 24 * 3600.0
"""How long something is looked for that no time was named for: it may never come."""


class CallWait:
    """The wait of one tool call."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        pending: PendingFacts,
        node: NodeId,
        call_uid: CallUid,
        request: WaitRequest,
        permission: CallPermission | None = None,
    ) -> None:
        self._env = environment
        self._pending = pending
        self._node = node
        self._call_uid = call_uid
        self._request = request
        self._permission = permission if request.keeps_permission else None
        self._refusal = ""
        self.duration_ms = 0
        """How long the turn waited."""

    async def over(self) -> ToolOutcome:
        """Wait to the end; says how it came.  A cancel leaves the wait open, in the log."""
        try:
            is_there = await self._is_there()
        except ToolError as error:
            return ToolOutcome(text=str(error), is_error=True)
        if is_there:
            assert self._request.on is not None
            return ToolOutcome(text=end_text(self._env.journal.state, self._request.on))
        await self._begin()
        if self._refusal:
            return ToolOutcome(text=self._refusal, is_error=True)
        wait = self._env.journal.state.turn.wait
        if wait is None or wait.call_uid != self._call_uid:
            return self._ended_before()
        if self._env.journal.state.turn.woken is None:
            await WaitSleep(self._env, self._pending, self._request).until_woken(wait)
        return self._outcome(wait)

    async def _is_there(self) -> bool:
        """Whether what is to be looked for has come before the wait began."""
        request, wait = self._request, self._env.journal.state.turn.wait
        if request.look is None or request.on is None:
            return False
        is_open = wait is not None and wait.call_uid == self._call_uid
        return not is_open and await request.look(request.on)

    async def _begin(self) -> None:
        """Put on record that the turn waits, unless it does already or there is nothing to wait
        for.
        """

        def more(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            open_wait, turn = state.turn.wait, state.turn.open
            if turn is None or (open_wait is not None and open_wait.call_uid == self._call_uid):
                return []
            now = self._env.clock.now()
            # Decided inside the commit: a command whose end came before this append is not
            # waited for, for nothing would ever end that wait.
            self._refusal = bad_wait_time(self._request, now) or why_no_wait(
                state, noted, self._request
            )
            if self._refusal or wait_has_ended(state, self._request):
                return []
            wait_id = WaitId(new_id("wai", now))
            allowed, on = self._permission, wait_subject(state, self._request)
            return [
                TurnWaiting(
                    wait_id=wait_id,
                    turn_id=turn.turn_id,
                    on=on,
                    until=end_of_wait(self._request, now),
                    node=self._node,
                    call_uid=self._call_uid,
                    permission=allowed,
                    unattended=self._sealed(wait_id, on.place),
                )
            ]

        await self._pending.commit(_WAIT, more)

    def _sealed(self, wait_id: WaitId, place: str) -> UnattendedPermission | None:
        """The seal on what allowed the looks, where they need that."""
        if self._permission is None:
            return None
        return self._env.gate.sealed(wait_id, place, is_plain=True)

    def _ended_before(self) -> ToolOutcome:
        state = self._env.journal.state
        return ToolOutcome(text=end_text(state, wait_subject(state, self._request)))

    def _outcome(self, wait: TurnWaiting) -> ToolOutcome:
        state = self._env.journal.state
        woken, now = state.turn.woken, self._env.clock.now()
        by = woken.by if woken is not None else ""
        self.duration_ms = max(0, int((now - wait.at) * 1000))
        return ToolOutcome(text=outcome_text(state, wait, by, now), data={"woken_by": by})


def wait_subject(state: SessionState, request: WaitRequest) -> WaitSubject:
    """What is waited for."""
    if request.on is not None:
        return request.on
    if request.agent:
        child = state.children.known.get(SessionId(request.agent))
        return WaitSubject(kind="agent", name=request.agent, text=child.name if child else "")
    if not request.command:
        return WaitSubject(kind="time")
    known = state.background.known.get(request.command)
    text = request.title or (known.command if known is not None else "")
    return WaitSubject(kind="command", name=request.command, text=" ".join(text.split())[:80])


def end_of_wait(request: WaitRequest, now: float) -> float | None:
    """When the wait is over at the latest."""
    if request.seconds is not None:
        return now + request.seconds
    if request.until is None and request.look is not None:
        return now + LOOKED_FOR_SECONDS
    return request.until


def bad_wait_time(request: WaitRequest, now: float) -> str:
    """Why a wait to such a time is refused; empty when it is not."""
    until = end_of_wait(request, now)
    if until is None or now <= until <= now + LONGEST_WAIT_SECONDS:
        return ""
    if until < now:
        return f"that time is over: it is {shown_time(now)}; name one that is still to come"
    return "a turn waits for 7 days at most: name a time within them, and wait again after it"


def wait_has_ended(state: SessionState, request: WaitRequest) -> bool:
    """Whether the command or the agent has ended."""
    known = state.background.known.get(request.command)
    child = state.children.known.get(SessionId(request.agent))
    is_over = known is not None and known.end is not None
    return is_over or (child is not None and not child.is_open)


def why_no_wait(state: SessionState, noted: Sequence[Fact], request: WaitRequest) -> str:
    """Why the call cannot be waited for; empty when it can."""
    if request.agent:
        return _no_agent(state, noted, request.agent)
    name = request.command
    # One that the same answer has started is only noted yet.
    done = (fact.result.data for fact in noted if isinstance(fact, ToolComplete))
    started = [each.get("background") for each in done]
    new = [each.get("id") for each in started if isinstance(each, dict)]
    if not name or name in state.background.known or name in new:
        return ""
    running = ", ".join([*state.background.running, *map(str, new)]) or "none"
    return f"there is no background command {name!r}; those that run: {running}"


def _no_agent(state: SessionState, noted: Sequence[Fact], name: str) -> str:
    known = {child: each for child, each in state.children.known.items() if each.background}
    new = [fact.child for fact in noted if isinstance(fact, ChildStarted) and fact.background]
    if SessionId(name) in known or SessionId(name) in new:
        return ""
    at_work = ", ".join([*(child for child, each in known.items() if each.is_open), *new]) or "none"
    return f"there is no background agent {name!r}; those at work: {at_work}"
