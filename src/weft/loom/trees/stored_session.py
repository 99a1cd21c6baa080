"""A session as its log has it, read without its lease: what those look at who only read."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from weft.errors import StoreError
from weft.events import AnyFact, decode
from weft.ids import SessionId
from weft.session import fold_after, load_state
from weft.state import SessionState
from weft.store import RecordStream, Store


class StoredSession:
    """The state of a session, folded from its log as far as that was read.

    It never takes the lease, and waits for no process that has it.
    """

    def __init__(self, state: SessionState, store: Store) -> None:
        self.session_id = state.session_id
        self.state = state
        self.is_open = True
        self._store = store
        self._reading = anyio.Lock()
        self._records: RecordStream | None = None

    @classmethod
    async def load(cls, session_id: SessionId, store: Store) -> StoredSession:
        """The session of this id.

        Raises:
            SessionNotFound, TooNew, Corrupt: as by `load_state`.
        """
        return cls(await load_state(session_id, store), store)

    async def refresh(self) -> None:
        """Take in what others have stored since."""
        async with self._reading:
            await fold_after(self.state, self.session_id, self.state.seq, self._store)

    async def follow(self, take: Callable[[AnyFact], None]) -> None:
        """Take in what others store, as it comes, until `unfollow`; `take` sees each fact then."""
        records = self._store.follow(self.session_id, after=self.state.seq)
        self._records = records
        try:
            async for record in records:
                fact = decode(record.body)
                async with self._reading:
                    # `refresh` may have been faster.
                    if fact.seq == self.state.seq + 1:
                        self.state.apply(fact)
                take(fact)
        except StoreError:
            # The store was closed, or is out of reach; what is here stays readable.
            return

    async def unfollow(self) -> None:
        """Stop following."""
        records, self._records = self._records, None
        if records is not None:
            await records.aclose()
