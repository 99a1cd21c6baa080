"""The topic `sessions`: which rows of the list of sessions have changed.

Sessions of this process say so themselves.  What other processes change is found by looking at the
list now and then, while there is a reader: the newest rows, so that a look costs the same however
many sessions there are.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Self

import anyio
import msgspec

from weft.actors import Supervisor
from weft.errors import StoreError
from weft.ids import SessionId
from weft.store import SessionRow

logger = logging.getLogger(__name__)

LOOK_EVERY_SECONDS: Final = 0.5
"""How often the list is looked at for what other processes change."""
LOOKED_AT: Final = 200
"""Rows of one look.  Of an older session a message is seen, which makes it new, but a new title
given in another process is not."""
MOST_IDS: Final = 1_000
"""Ids that wait for one reader; with more it is told that anything may have changed."""


class SessionsChanged(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sessions_changed"
):
    """Some sessions were made, changed what a list shows of them, or were deleted."""

    ids: tuple[SessionId, ...]
    """Empty when there are too many to name: read the whole list."""


class SessionListEvents:
    """An async iterator over the changes of the list; leaving the loop at any point is safe.

    Changes that come while no one waits are told together, each session once.
    """

    def __init__(self) -> None:
        self._changed: dict[SessionId, None] = {}
        self._is_full = False
        self._is_closed = False
        self._arrived = anyio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionsChanged:
        while not (self._changed or self._is_full):
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived = anyio.Event()
            await self._arrived.wait()
        change = SessionsChanged(ids=() if self._is_full else tuple(self._changed))
        self._changed, self._is_full = {}, False
        return change

    def _put(self, ids: Iterable[SessionId]) -> None:
        self._changed |= dict.fromkeys(ids)
        if len(self._changed) > MOST_IDS:
            self._is_full, self._changed = True, {}
        self._arrived.set()

    @property
    def is_open(self) -> bool:
        """False once it was closed."""
        return not self._is_closed

    def close(self) -> None:
        """Stop reading; what waits can still be read."""
        self._is_closed = True
        self._arrived.set()

    async def aclose(self) -> None:
        """Stop reading."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()


class SessionTopic:
    """The readers of the topic."""

    def __init__(
        self, newest: Callable[[int], Awaitable[list[SessionRow]]], supervisor: Supervisor
    ) -> None:
        """`newest` reads so many rows of the list, last active first, archived ones too."""
        self._newest = newest
        self._supervisor = supervisor
        # Weak: only the loop that reads holds a reader, and leaving the loop is enough.
        self._readers: weakref.WeakSet[SessionListEvents] = weakref.WeakSet()
        self._shown: dict[SessionId, SessionRow] = {}
        """The rows as the readers know them."""
        self._is_looking = False
        self._starting = anyio.Lock()

    async def subscribe(self) -> SessionListEvents:
        """Read what changes from now on."""
        reader = SessionListEvents()
        async with self._starting:
            if not self._is_looking:
                # Before the reader is told anything: what is there now is no change.
                self._shown = {row.id: row for row in await self._newest(LOOKED_AT)}
                self._is_looking = True
                self._supervisor.start(self._look, "list of sessions")
            self._readers.add(reader)
        return reader

    def close(self) -> None:
        """The application closes: readers come to an end."""
        for reader in tuple(self._readers):
            reader.close()

    def put_row(self, row: SessionRow) -> None:
        """A session of this process has another row now."""
        if not self._is_looking or row.is_child:
            return
        before, self._shown[row.id] = self._shown.get(row.id), row
        if before is None or _differs(before, row):
            self.put(row.id)

    def put(self, *ids: SessionId) -> None:
        """These sessions have changed, or are gone."""
        for reader in tuple(self._readers):
            if reader.is_open:
                reader._put(ids)
            else:
                self._readers.discard(reader)

    def forget(self, session_id: SessionId) -> None:
        """A session was deleted."""
        self._shown.pop(session_id, None)
        self.put(session_id)

    async def _look(self) -> None:
        try:
            while True:
                await anyio.sleep(LOOK_EVERY_SECONDS)
                if not any(reader.is_open for reader in tuple(self._readers)):
                    return
                await self._look_once()
        finally:
            self._is_looking, self._shown = False, {}

    async def _look_once(self) -> None:
        try:
            rows = await self._newest(LOOKED_AT)
        except StoreError:
            logger.warning("the list of sessions could not be read", exc_info=True)
            return
        found = {row.id: row for row in rows}
        # One that is not among the newest any more is gone only if it would have to be there.
        oldest = rows[-1].last_active if len(rows) == LOOKED_AT else float("-inf")
        gone = [
            each
            for each, row in self._shown.items()
            if each not in found and row.last_active > oldest
        ]
        changed = [
            each
            for each, row in found.items()
            if each not in self._shown or _differs(self._shown[each], row)
        ]
        self._shown = found
        if changed or gone:
            self.put(*changed, *gone)


def _differs(one: SessionRow, other: SessionRow) -> bool:
    # Each append writes these two; a list shows no change by them alone.
    def shown(row: SessionRow) -> SessionRow:
        return msgspec.structs.replace(row, last_seq=0, last_active=0.0)

    return shown(one) != shown(other)
