"""A turn that waits: for a time, for the end of a background command, for the first of the two.

The wait is on record before it begins (`TurnWaiting`), and its end before anything follows from it
(`TurnWoken`).  So a process that dies meanwhile leaves a turn that still waits: whichever process
goes on with it finds how far the wait had come, and the turn is woken once.  What wakes it is
decided by the session's writer: the end of the command and a message stand in one append with the
fact that they end the wait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from weft.events import Fact, ToolComplete, TurnWaiting, WaitSubject
from weft.faults import FailPointPair
from weft.ids import CallUid, NodeId, WaitId, new_id
from weft.loop.approval import within
from weft.loop.base import ToolCallEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.waits.wake import woken_fact
from weft.state import SessionState
from weft.tools import ToolOutcome, WaitRequest

_WAIT = FailPointPair("loop.wait")
_WAKE = FailPointPair("loop.wake")

LONGEST_SLEEP_SECONDS: Final = 30.0
"""How long the clock on the wall is not looked at: a machine that was suspended slept longer than
any timer knows."""
LONGEST_WAIT_SECONDS: Final = 7 * 24 * 3600.0
"""How far away the end of a wait may be, however it is named."""


class CallWait:
    """The wait of one tool call."""

    def __init__(
        self,
        environment: ToolCallEnvironment,
        pending: PendingFacts,
        node: NodeId,
        call_uid: CallUid,
        request: WaitRequest,
    ) -> None:
        self._env = environment
        self._pending = pending
        self._node = node
        self._call_uid = call_uid
        self._request = request
        self._refusal = ""
        self.duration_ms = 0
        """How long the turn waited."""

    async def over(self) -> ToolOutcome:
        """Wait to the end; says how it came.  A cancel leaves the wait open, in the log."""
        await self._begin()
        if self._refusal:
            return ToolOutcome(text=self._refusal, is_error=True)
        wait = self._env.journal.state.turn.wait
        if wait is None or wait.call_uid != self._call_uid:
            return self._ended_before()
        if self._env.journal.state.turn.woken is None:
            await self._sleep(wait)
        return self._outcome(wait)

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
            self._refusal = _bad_time(self._request, now) or _why_not(state, noted, self._request)
            if self._refusal or _has_ended(state, self._request):
                return []
            return [
                TurnWaiting(
                    wait_id=WaitId(new_id("wai", now)),
                    turn_id=turn.turn_id,
                    on=_subject(state, self._request),
                    until=_until(self._request, now),
                    node=self._node,
                    call_uid=self._call_uid,
                )
            ]

        await self._pending.commit(_WAIT, more)

    async def _sleep(self, wait: TurnWaiting) -> None:
        journal = self._env.journal
        journal.status("waiting")
        try:
            await self._until_woken(wait)
        finally:
            journal.status("executing_tool")

    async def _until_woken(self, wait: TurnWaiting) -> None:
        journal, until = self._env.journal, wait.until

        async def woken() -> bool:
            await journal.until(lambda state: state.turn.asleep is not wait)
            return True

        if until is None:
            await woken()
            return
        if await within(0, lambda seconds: self._sleep_until(until), woken):
            return

        def expired(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            # A message may have come while the time ran out: the first on record counts.
            return [] if state.turn.asleep is not wait else [woken_fact(wait, "time")]

        await self._pending.commit(_WAKE, expired)

    async def _sleep_until(self, until: float) -> None:
        clock = self._env.clock
        left = until - clock.now()
        while left > 0:
            step = min(left, LONGEST_SLEEP_SECONDS)
            await self._env.sleep(step)
            # By both: a clock on the wall that was set back must not prolong the wait.
            left = min(left - step, until - clock.now())

    def _ended_before(self) -> ToolOutcome:
        state = self._env.journal.state
        return ToolOutcome(text=_end_text(state, self._request.command))

    def _outcome(self, wait: TurnWaiting) -> ToolOutcome:
        state = self._env.journal.state
        woken, now = state.turn.woken, self._env.clock.now()
        by = woken.by if woken is not None else ""
        self.duration_ms = max(0, int((now - wait.at) * 1000))
        passed = shown_seconds(now - wait.at)
        name = wait.on.name
        match by:
            case "command":
                text = _end_text(state, name)
            case "message":
                # Not that it follows: it may be taken back before the model is asked.
                text = f"The wait ended early, after {passed}: a message came."
            case _ if name:
                text = f"{name} still runs after {passed}."
            case _:
                has = "has" if passed.startswith(("1 ", "less ")) else "have"
                text = f"{passed[0].upper()}{passed[1:]} {has} passed; it is {_shown_time(now)}."
        return ToolOutcome(text=text, data={"woken_by": by})


def _subject(state: SessionState, request: WaitRequest) -> WaitSubject:
    if not request.command:
        return WaitSubject(kind="time")
    known = state.background.known.get(request.command)
    text = request.title or (known.command if known is not None else "")
    return WaitSubject(kind="command", name=request.command, text=" ".join(text.split())[:80])


def _until(request: WaitRequest, now: float) -> float | None:
    return now + request.seconds if request.seconds is not None else request.until


def _bad_time(request: WaitRequest, now: float) -> str:
    """Why a wait to such a time is refused; empty when it is not."""
    until = _until(request, now)
    if until is None or now <= until <= now + LONGEST_WAIT_SECONDS:
        return ""
    if until < now:
        return f"that time is over: it is {_shown_time(now)}; name one that is still to come"
    return "a turn waits for 7 days at most: name a time within them, and wait again after it"


def _has_ended(state: SessionState, request: WaitRequest) -> bool:
    known = state.background.known.get(request.command)
    return known is not None and known.end is not None


def _why_not(state: SessionState, noted: Sequence[Fact], request: WaitRequest) -> str:
    """Why the call cannot be waited for; empty when it can."""
    name = request.command
    # One that the same answer has started is only noted yet.
    done = (fact.result.data for fact in noted if isinstance(fact, ToolComplete))
    started = [each.get("background") for each in done]
    new = [each.get("id") for each in started if isinstance(each, dict)]
    if not name or name in state.background.known or name in new:
        return ""
    running = ", ".join([*state.background.running, *map(str, new)]) or "none"
    return f"there is no background command {name!r}; those that run: {running}"


def _end_text(state: SessionState, name: str) -> str:
    known = state.background.known.get(name)
    end = known.end if known is not None else None
    if end is None:
        return f"{name} is over."
    match end.why:
        case "lost":
            return f"{name} is over: the program that ran it was interrupted."
        case "stopped":
            return f"{name} is over: it was stopped."
        case _:
            code = "" if end.exit_code is None else f": it ended with exit code {end.exit_code}"
            return f"{name} is over{code}."


def shown_seconds(seconds: float) -> str:
    """A length of time, in words."""
    # Rounded down: a wait of two seconds ends a little after them, and was not three.
    whole = math.floor(seconds)
    if whole < 1:
        return "less than a second"
    if whole < 120:
        return f"{whole} second{'' if whole == 1 else 's'}"
    minutes = whole // 60
    return f"{minutes} minutes" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _shown_time(now: float) -> str:
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
