"""Appends whose answer was lost: whether they are stored is found out by reading.

An append names the end of its stream, so the same one can be stored once and never twice.  That
makes a repeat safe, also while the first try may still be under way on the other side of a broken
connection: the one that comes second is refused with a `Conflict`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from weft.errors import Conflict, Fenced, OutcomeUnknown, StoreUnavailable
from weft.store.base import Append, Record

MOST_TRIES = 5
"""How often a batch is sent whose answers are all lost."""


class AppendLog(Protocol):
    """What is needed of a store."""

    def append(self, *appends: Append) -> Awaitable[None]: ...

    def read(self, stream: str, *, after: int = 0, limit: int = 1000) -> Awaitable[list[Record]]:
        """As `Store.read`."""
        ...


async def append_once(store: AppendLog, *appends: Append) -> None:
    """Append, and where the answer is lost find out what became of it.

    Raises:
        OutcomeUnknown: that could not be found out: the store stays out of reach.
        StoreError: as `Store.append`; nothing was stored.
    """
    try:
        await store.append(*appends)
    except OutcomeUnknown as lost:
        await settle_append(store, appends, lost)


async def is_stored(store: AppendLog, appends: Sequence[Append]) -> bool:
    """Whether a batch is in the log, judged by the bytes of its records.

    False for one without records: to store that again changes nothing.
    """
    grown = [each for each in appends if each.records]
    # One stream speaks for the whole batch, which is all or nothing.  A leased one where there is
    # one: no other process can have put the same bytes there.
    leased = [each for each in grown if each.fence is not None]
    for told in (leased or grown)[:1]:
        count = len(told.records)
        found = await store.read(told.stream, after=told.expected_seq, limit=count)
        return tuple(found) == told.records
    return False


async def settle_append(store: AppendLog, appends: Sequence[Append], lost: OutcomeUnknown) -> None:
    """Find out what became of an append whose answer was `lost`, and send it again if need be.

    Raises:
        OutcomeUnknown, StoreError: as `append_once`.
    """
    for _ in range(MOST_TRIES):
        try:
            await _append_unless_stored(store, appends)
        except OutcomeUnknown:
            continue
        except StoreUnavailable as error:
            # Not this one: it says that nothing was written, which is true of the last try alone.
            raise lost from error
        else:
            return
    raise lost


async def _append_unless_stored(store: AppendLog, appends: Sequence[Append]) -> None:
    if await is_stored(store, appends):
        return
    try:
        await store.append(*appends)
    # The first try arrived between the look and the repeat, or another writer came first.
    except (Conflict, Fenced):
        if not await is_stored(store, appends):
            raise
