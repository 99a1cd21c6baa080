"""A store that is out of reach: waited for with growing pauses, by a task beside the session.

The session itself waits for nothing: it is down with the reason in its status, answers reads, and
fails commands one by one.  When the store answers again, the mailbox is told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from weft.actors import Mailbox, Supervisor
from weft.errors import OutcomeUnknown, StoreError, StoreOutage, WeftError
from weft.ids import SessionId
from weft.session.work.mailbox_messages import Message, StoreReturned
from weft.store import Store

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0

MOST_RETURNS = 10
"""How often one turn goes on after an outage by itself.

Each time costs a model call: a connection that breaks in every turn must not spend money all night.
"""


class OutageWatch:
    """Waits for the return of a session's store."""

    def __init__(
        self,
        session_id: SessionId,
        store: Store,
        *,
        mailbox: Mailbox[Message],
        supervisor: Supervisor,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._session_id = session_id
        self._store = store
        self._mailbox = mailbox
        self._supervisor = supervisor
        self._sleep = sleep
        self._is_waiting = False
        self._pause = FIRST_PAUSE_SECONDS
        self._returns = 0

    def begin(self, error: BaseException) -> None:
        """Wait for the store, if this error says that it will come back by itself."""
        if self._is_waiting or not is_outage(error) or self._returns >= MOST_RETURNS:
            return
        self._is_waiting = True
        self._supervisor.start(self._wait, f"store of {self._session_id}")

    def take_return(self) -> None:
        """The session goes on; the next outage of the same turn is waited for longer."""
        self._is_waiting = False
        self._returns += 1

    def turn_ended(self) -> None:
        """Another turn begins with short pauses."""
        self._returns, self._pause = 0, FIRST_PAUSE_SECONDS

    async def _wait(self) -> None:
        is_back = False
        while not is_back:
            await self._sleep(self._pause)
            self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)
            # A read, because it changes nothing: what follows it is the session's own append.
            with suppress(StoreError):
                await self._store.read(self._session_id, limit=1)
                is_back = True
        with suppress(WeftError):  # the session is gone
            self._mailbox.post_now(StoreReturned())


def is_outage(error: BaseException) -> bool:
    """True for an error after which the store comes back without the user."""
    return isinstance(error, StoreOutage | OutcomeUnknown)


def store_error_in(error: BaseException | None) -> BaseException | None:
    """The error of the store that ended a turn, also where calls that ran at once are to report it
    as a group.
    """
    if isinstance(error, BaseExceptionGroup):
        found, others = error.split(StoreError)
        while found is not None and others is None:
            first = found.exceptions[0]
            if not isinstance(first, BaseExceptionGroup):
                return first
            found = first
    return error
