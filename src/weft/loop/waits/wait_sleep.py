"""The sleep of a turn that waits: until its time has passed, what it looks for has come, or
something else ends the wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from weft.errors import ToolError
from weft.events import Fact, TurnWaiting, WaitSubject
from weft.faults import FailPointPair
from weft.loop.base import ToolCallEnvironment
from weft.loop.pending_facts import PendingFacts
from weft.loop.waits.first_of import first_of
from weft.loop.waits.wake import woken_fact
from weft.state import SessionState
from weft.tools import WaitLook, WaitRequest

_WAKE = FailPointPair("loop.wake")

LONGEST_SLEEP_SECONDS: Final = 30.0
"""How long the clock on the wall is not looked at: a machine that was suspended slept longer than
any timer knows."""


class WaitSleep:
    """One sleep."""

    def __init__(
        self, environment: ToolCallEnvironment, pending: PendingFacts, request: WaitRequest
    ) -> None:
        self._env = environment
        self._pending = pending
        self._request = request

    async def until_woken(self, wait: TurnWaiting) -> None:
        """Sleep until the wait is over, which is on record then.  A cancel leaves it open."""
        journal = self._env.journal
        journal.status("waiting")
        try:
            await self._ended(wait)
        finally:
            journal.status("executing_tool")

    async def _ended(self, wait: TurnWaiting) -> None:
        journal = self._env.journal

        async def woken() -> str:
            await journal.until(lambda state: state.turn.asleep is not wait)
            return ""

        by = await first_of(woken, lambda: self._looked(wait), lambda: self._passed(wait))
        if not by:
            return

        def over(state: SessionState, noted: Sequence[Fact]) -> list[Fact]:
            # A message may have come while the time ran out: the first on record counts.
            return [] if state.turn.asleep is not wait else [woken_fact(wait, by)]

        await self._pending.commit(_WAKE, over)

    async def _looked(self, wait: TurnWaiting) -> str:
        """Look until what is looked for has come; its kind."""
        look = self._request.look
        if look is None:
            await anyio.sleep_forever()
        assert look is not None
        while not await self._has_come(look, wait.on):
            await self._env.sleep(self._request.pace)
        return wait.on.kind

    async def _has_come(self, look: WaitLook, on: WaitSubject) -> bool:
        try:
            return await look(on)
        except ToolError:
            return False  # a forge that cannot be reached now says so for a while, and not for ever

    async def _passed(self, wait: TurnWaiting) -> str:
        """Wait for the time; the word for it."""
        clock, until = self._env.clock, wait.until
        if until is None:
            await anyio.sleep_forever()
        assert until is not None
        left = until - clock.now()
        while left > 0:
            step = min(left, LONGEST_SLEEP_SECONDS)
            await self._env.sleep(step)
            # By both: a clock on the wall that was set back must not prolong the wait.
            left = min(left - step, until - clock.now())
        return "time"
